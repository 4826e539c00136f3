//! TxnOffsetCommit, API 28: stores offsets of a group within a transaction.

use crate::{ErrorCode, Uuid};

message! {
    /// Stores offsets of a group within a transaction.
    TxnOffsetCommitRequest versions 0..=6, flexible 3, {
        transactional_id: String [0..];
        group_id: String [0..];
        producer_id: i64 [0..];
        producer_epoch: i16 [0..];
        generation_id_or_member_epoch: i32 [3..] = -1;
        member_id: String [3..];
        group_instance_id: Option<String> [3..];
        topics: Vec<TxnOffsetCommitRequestTopic> [0..];
    }
}

fields! {
    /// Part of [`TxnOffsetCommitRequest`].
    TxnOffsetCommitRequestTopic {
        name: String [0..=5];
        topic_id: Uuid [6..];
        partitions: Vec<TxnOffsetCommitRequestPartition> [0..];
    }
}

fields! {
    /// Part of [`TxnOffsetCommitRequest`].
    TxnOffsetCommitRequestPartition {
        partition_index: i32 [0..];
        committed_offset: i64 [0..];
        committed_leader_epoch: i32 [2..] = -1;
        committed_metadata: Option<String> [0..];
    }
}

message! {
    /// Answers [`TxnOffsetCommitRequest`].
    TxnOffsetCommitResponse versions 0..=6, flexible 3, {
        throttle_time_ms: i32 [0..];
        topics: Vec<TxnOffsetCommitResponseTopic> [0..];
    }
}

fields! {
    /// Part of [`TxnOffsetCommitResponse`].
    TxnOffsetCommitResponseTopic {
        name: String [0..=5];
        topic_id: Uuid [6..];
        partitions: Vec<TxnOffsetCommitResponsePartition> [0..];
    }
}

fields! {
    /// Part of [`TxnOffsetCommitResponse`].
    TxnOffsetCommitResponsePartition {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
    }
}
