//! OffsetCommit, API 8: stores how far a group has read.

use crate::{ErrorCode, Uuid};

message! {
    /// Stores how far a group has read.
    OffsetCommitRequest versions 2..=10, flexible 8, {
        group_id: String [0..];
        generation_id_or_member_epoch: i32 [1..] = -1;
        member_id: String [1..];
        group_instance_id: Option<String> [7..];
        retention_time_ms: i64 [2..=4] = -1;
        topics: Vec<OffsetCommitRequestTopic> [0..];
    }
}

fields! {
    /// Part of [`OffsetCommitRequest`].
    OffsetCommitRequestTopic {
        name: String [0..=9];
        topic_id: Uuid [10..];
        partitions: Vec<OffsetCommitRequestPartition> [0..];
    }
}

fields! {
    /// Part of [`OffsetCommitRequest`].
    OffsetCommitRequestPartition {
        partition_index: i32 [0..];
        committed_offset: i64 [0..];
        committed_leader_epoch: i32 [6..] = -1;
        committed_metadata: Option<String> [0..];
    }
}

message! {
    /// Answers [`OffsetCommitRequest`].
    OffsetCommitResponse versions 2..=10, flexible 8, {
        throttle_time_ms: i32 [3..];
        topics: Vec<OffsetCommitResponseTopic> [0..];
    }
}

fields! {
    /// Part of [`OffsetCommitResponse`].
    OffsetCommitResponseTopic {
        name: String [0..=9];
        topic_id: Uuid [10..];
        partitions: Vec<OffsetCommitResponsePartition> [0..];
    }
}

fields! {
    /// Part of [`OffsetCommitResponse`].
    OffsetCommitResponsePartition {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
    }
}
