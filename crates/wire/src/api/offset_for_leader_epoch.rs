//! OffsetForLeaderEpoch, API 23: tells where the log of a leader epoch ends.

use crate::ErrorCode;

message! {
    /// Tells where the log of a leader epoch ends.
    OffsetForLeaderEpochRequest versions 2..=4, flexible 4, {
        replica_id: i32 [3..] = -2;
        topics: Vec<OffsetForLeaderTopic> [0..];
    }
}

fields! {
    /// Part of [`OffsetForLeaderEpochRequest`].
    OffsetForLeaderTopic {
        topic: String [0..];
        partitions: Vec<OffsetForLeaderPartition> [0..];
    }
}

fields! {
    /// Part of [`OffsetForLeaderEpochRequest`].
    OffsetForLeaderPartition {
        partition: i32 [0..];
        current_leader_epoch: i32 [2..] = -1;
        leader_epoch: i32 [0..];
    }
}

message! {
    /// Answers [`OffsetForLeaderEpochRequest`].
    OffsetForLeaderEpochResponse versions 2..=4, flexible 4, {
        throttle_time_ms: i32 [2..];
        topics: Vec<OffsetForLeaderTopicResult> [0..];
    }
}

fields! {
    /// Part of [`OffsetForLeaderEpochResponse`].
    OffsetForLeaderTopicResult {
        topic: String [0..];
        partitions: Vec<EpochEndOffset> [0..];
    }
}

fields! {
    /// Part of [`OffsetForLeaderEpochResponse`].
    EpochEndOffset {
        error_code: ErrorCode [0..];
        partition: i32 [0..];
        leader_epoch: i32 [1..] = -1;
        end_offset: i64 [0..] = -1;
    }
}
