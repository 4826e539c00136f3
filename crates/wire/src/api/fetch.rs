//! Fetch, API 1: reads record batches from partitions, waiting for them when asked to.

use crate::{ErrorCode, Uuid};
use bytes::Bytes;

message! {
    /// Reads record batches from partitions, waiting for them when asked to.
    FetchRequest versions 4..=18, flexible 12, {
        cluster_id: Option<String> [12..] (tag 0);
        replica_id: i32 [0..=14] = -1;
        replica_state: ReplicaState [15..] (tag 1);
        max_wait_ms: i32 [0..];
        min_bytes: i32 [0..];
        max_bytes: i32 [3..] = 2147483647;
        isolation_level: i8 [4..];
        session_id: i32 [7..];
        session_epoch: i32 [7..] = -1;
        topics: Vec<FetchTopic> [0..];
        forgotten_topics_data: Vec<ForgottenTopic> [7..];
        rack_id: String [11..];
    }
}

fields! {
    /// Part of [`FetchRequest`].
    ReplicaState {
        replica_id: i32 [15..] = -1;
        replica_epoch: i64 [15..] = -1;
    }
}

fields! {
    /// Part of [`FetchRequest`].
    FetchTopic {
        topic: String [0..=12];
        topic_id: Uuid [13..];
        partitions: Vec<FetchPartition> [0..];
    }
}

fields! {
    /// Part of [`FetchRequest`].
    FetchPartition {
        partition: i32 [0..];
        current_leader_epoch: i32 [9..] = -1;
        fetch_offset: i64 [0..];
        last_fetched_epoch: i32 [12..] = -1;
        log_start_offset: i64 [5..] = -1;
        partition_max_bytes: i32 [0..];
        replica_directory_id: Uuid [17..] (tag 0);
        high_watermark: i64 [18..] (tag 1) = 9223372036854775807;
    }
}

fields! {
    /// Part of [`FetchRequest`].
    ForgottenTopic {
        topic: String [7..=12];
        topic_id: Uuid [13..];
        partitions: Vec<i32> [7..];
    }
}

message! {
    /// Answers [`FetchRequest`].
    FetchResponse versions 4..=18, flexible 12, {
        throttle_time_ms: i32 [1..];
        error_code: ErrorCode [7..];
        session_id: i32 [7..];
        responses: Vec<FetchableTopicResponse> [0..];
        node_endpoints: Vec<NodeEndpoint> [16..] (tag 0);
    }
}

fields! {
    /// Part of [`FetchResponse`].
    FetchableTopicResponse {
        topic: String [0..=12];
        topic_id: Uuid [13..];
        partitions: Vec<PartitionData> [0..];
    }
}

fields! {
    /// Part of [`FetchResponse`].
    PartitionData {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
        high_watermark: i64 [0..];
        last_stable_offset: i64 [4..] = -1;
        log_start_offset: i64 [5..] = -1;
        diverging_epoch: EpochEndOffset [12..] (tag 0);
        current_leader: LeaderIdAndEpoch [12..] (tag 1);
        snapshot_id: SnapshotId [12..] (tag 2);
        aborted_transactions: Option<Vec<AbortedTransaction>> [4..];
        preferred_read_replica: i32 [11..] = -1;
        records: Option<Bytes> [0..];
    }
}

fields! {
    /// Part of [`FetchResponse`].
    EpochEndOffset {
        epoch: i32 [12..] = -1;
        end_offset: i64 [12..] = -1;
    }
}

fields! {
    /// Part of [`FetchResponse`].
    LeaderIdAndEpoch {
        leader_id: i32 [12..] = -1;
        leader_epoch: i32 [12..] = -1;
    }
}

fields! {
    /// Part of [`FetchResponse`].
    SnapshotId {
        end_offset: i64 [0..] = -1;
        epoch: i32 [0..] = -1;
    }
}

fields! {
    /// Part of [`FetchResponse`].
    AbortedTransaction {
        producer_id: i64 [4..];
        first_offset: i64 [4..];
    }
}

fields! {
    /// Part of [`FetchResponse`].
    NodeEndpoint {
        node_id: i32 [16..];
        host: String [16..];
        port: i32 [16..];
        rack: Option<String> [16..];
    }
}
