//! ListOffsets, API 2: finds offsets by timestamp, the first and the last included.

use crate::ErrorCode;

message! {
    /// Finds offsets by timestamp, the first and the last included.
    ListOffsetsRequest versions 1..=11, flexible 6, {
        replica_id: i32 [0..];
        isolation_level: i8 [2..];
        topics: Vec<ListOffsetsTopic> [0..];
        timeout_ms: i32 [10..];
    }
}

fields! {
    /// Part of [`ListOffsetsRequest`].
    ListOffsetsTopic {
        name: String [0..];
        partitions: Vec<ListOffsetsPartition> [0..];
    }
}

fields! {
    /// Part of [`ListOffsetsRequest`].
    ListOffsetsPartition {
        partition_index: i32 [0..];
        current_leader_epoch: i32 [4..] = -1;
        timestamp: i64 [0..];
    }
}

message! {
    /// Answers [`ListOffsetsRequest`].
    ListOffsetsResponse versions 1..=11, flexible 6, {
        throttle_time_ms: i32 [2..];
        topics: Vec<ListOffsetsTopicResponse> [0..];
    }
}

fields! {
    /// Part of [`ListOffsetsResponse`].
    ListOffsetsTopicResponse {
        name: String [0..];
        partitions: Vec<ListOffsetsPartitionResponse> [0..];
    }
}

fields! {
    /// Part of [`ListOffsetsResponse`].
    ListOffsetsPartitionResponse {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
        timestamp: i64 [1..] = -1;
        offset: i64 [1..] = -1;
        leader_epoch: i32 [4..] = -1;
    }
}
