//! DeleteRecords, API 21: moves the start of partitions forward.

use crate::ErrorCode;

message! {
    /// Moves the start of partitions forward.
    DeleteRecordsRequest versions 0..=2, flexible 2, {
        topics: Vec<DeleteRecordsTopic> [0..];
        timeout_ms: i32 [0..];
    }
}

fields! {
    /// Part of [`DeleteRecordsRequest`].
    DeleteRecordsTopic {
        name: String [0..];
        partitions: Vec<DeleteRecordsPartition> [0..];
    }
}

fields! {
    /// Part of [`DeleteRecordsRequest`].
    DeleteRecordsPartition {
        partition_index: i32 [0..];
        offset: i64 [0..];
    }
}

message! {
    /// Answers [`DeleteRecordsRequest`].
    DeleteRecordsResponse versions 0..=2, flexible 2, {
        throttle_time_ms: i32 [0..];
        topics: Vec<DeleteRecordsTopicResult> [0..];
    }
}

fields! {
    /// Part of [`DeleteRecordsResponse`].
    DeleteRecordsTopicResult {
        name: String [0..];
        partitions: Vec<DeleteRecordsPartitionResult> [0..];
    }
}

fields! {
    /// Part of [`DeleteRecordsResponse`].
    DeleteRecordsPartitionResult {
        partition_index: i32 [0..];
        low_watermark: i64 [0..];
        error_code: ErrorCode [0..];
    }
}
