//! Keys and values of `__consumer_offsets`, in Kafka's own formats.
//!
//! A key starts with an int16 that names the type of the record, a value with an int16 that is its version; the tables
//! below are what follows that number.

use crate::Uuid;
use bytes::Bytes;

message! {
    /// The key of a record of type 1.
    OffsetCommitKey versions 0..=0, flexible i16::MAX, {
        group: String [0..=0];
        topic: String [0..=0];
        partition: i32 [0..=0];
    }
}

message! {
    /// The value of a record of type 1.
    OffsetCommitValue versions 0..=4, flexible 4, {
        offset: i64 [0..];
        leader_epoch: i32 [3..] = -1;
        metadata: String [0..];
        commit_timestamp: i64 [0..];
        expire_timestamp: i64 [1..=1] = -1;
        topic_id: Uuid [4..] (tag 0);
    }
}

message! {
    /// The key of a record of type 2.
    GroupMetadataKey versions 0..=0, flexible i16::MAX, {
        group: String [0..=0];
    }
}

message! {
    /// The value of a record of type 2.
    GroupMetadataValue versions 0..=4, flexible 4, {
        protocol_type: String [0..];
        generation: i32 [0..];
        protocol: Option<String> [0..];
        leader: Option<String> [0..];
        current_state_timestamp: i64 [2..] = -1;
        members: Vec<MemberMetadata> [0..];
    }
}

message! {
    /// The key of a record of type 3.
    ConsumerGroupMetadataKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
    }
}

message! {
    /// The value of a record of type 3.
    ConsumerGroupMetadataValue versions 0..=0, flexible 0, {
        epoch: i32 [0..];
        metadata_hash: i64 [0..] (tag 0);
    }
}

message! {
    /// The key of a record of type 4, which Kafka does not write any more; its tombstone goes with a deleted group.
    ConsumerGroupPartitionMetadataKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
    }
}

message! {
    /// The key of a record of type 5.
    ConsumerGroupMemberMetadataKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
        member_id: String [0..=0];
    }
}

message! {
    /// The value of a record of type 5.
    ConsumerGroupMemberMetadataValue versions 0..=0, flexible 0, {
        instance_id: Option<String> [0..];
        rack_id: Option<String> [0..];
        client_id: String [0..];
        client_host: String [0..];
        subscribed_topic_names: Vec<String> [0..];
        subscribed_topic_regex: Option<String> [0..];
        rebalance_timeout_ms: i32 [0..] = -1;
        server_assignor: Option<String> [0..];
        classic_member_metadata: Option<ClassicMemberMetadata> [0..] (tag 0 always);
    }
}

fields! {
    /// Part of [`ConsumerGroupMemberMetadataValue`].
    ClassicMemberMetadata {
        session_timeout_ms: i32 [0..];
        supported_protocols: Vec<ClassicProtocol> [0..];
    }
}

fields! {
    /// Part of [`ConsumerGroupMemberMetadataValue`].
    ClassicProtocol {
        name: String [0..];
        metadata: Bytes [0..];
    }
}

message! {
    /// The key of a record of type 6.
    ConsumerGroupTargetAssignmentMetadataKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
    }
}

message! {
    /// The value of a record of type 6.
    ConsumerGroupTargetAssignmentMetadataValue versions 0..=0, flexible 0, {
        assignment_epoch: i32 [0..];
        assignment_timestamp: i64 [0..] (tag 0);
    }
}

message! {
    /// The key of a record of type 7.
    ConsumerGroupTargetAssignmentMemberKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
        member_id: String [0..=0];
    }
}

message! {
    /// The value of a record of type 7.
    ConsumerGroupTargetAssignmentMemberValue versions 0..=0, flexible 0, {
        topic_partitions: Vec<TopicPartition> [0..];
    }
}

fields! {
    /// Part of [`ConsumerGroupTargetAssignmentMemberValue`].
    TopicPartition {
        topic_id: Uuid [0..];
        partitions: Vec<i32> [0..];
    }
}

message! {
    /// The key of a record of type 8.
    ConsumerGroupCurrentMemberAssignmentKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
        member_id: String [0..=0];
    }
}

message! {
    /// The value of a record of type 8.
    ConsumerGroupCurrentMemberAssignmentValue versions 0..=0, flexible 0, {
        member_epoch: i32 [0..];
        previous_member_epoch: i32 [0..];
        state: i8 [0..];
        assigned_partitions: Vec<TopicPartitions> [0..];
        partitions_pending_revocation: Vec<TopicPartitions> [0..];
    }
}

message! {
    /// The key of a record of type 16.
    ConsumerGroupRegularExpressionKey versions 0..=0, flexible i16::MAX, {
        group_id: String [0..=0];
        regular_expression: String [0..=0];
    }
}

message! {
    /// The value of a record of type 16.
    ConsumerGroupRegularExpressionValue versions 0..=0, flexible 0, {
        topics: Vec<String> [0..];
        version: i64 [0..];
        timestamp: i64 [0..];
    }
}

fields! {
    /// Part of [`GroupMetadataValue`].
    MemberMetadata {
        member_id: String [0..];
        group_instance_id: Option<String> [3..];
        client_id: String [0..];
        client_host: String [0..];
        rebalance_timeout: i32 [1..] = -1;
        session_timeout: i32 [0..];
        subscription: Bytes [0..];
        assignment: Bytes [0..];
    }
}

fields! {
    /// Part of [`ConsumerGroupCurrentMemberAssignmentValue`].
    TopicPartitions {
        topic_id: Uuid [0..];
        partitions: Vec<i32> [0..];
        assignment_epochs: Option<Vec<i32>> [0..] (tag 0) = Some(Vec::new());
    }
}
