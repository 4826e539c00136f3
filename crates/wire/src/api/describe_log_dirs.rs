//! DescribeLogDirs, API 35: tells how large partitions are on disk.

use crate::ErrorCode;

message! {
    /// Tells how large partitions are on disk.
    DescribeLogDirsRequest versions 1..=5, flexible 2, {
        topics: Option<Vec<DescribableLogDirTopic>> [0..];
    }
}

fields! {
    /// Part of [`DescribeLogDirsRequest`].
    DescribableLogDirTopic {
        topic: String [0..];
        partitions: Vec<i32> [0..];
    }
}

message! {
    /// Answers [`DescribeLogDirsRequest`].
    DescribeLogDirsResponse versions 1..=5, flexible 2, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [3..];
        results: Vec<DescribeLogDirsResult> [0..];
    }
}

fields! {
    /// Part of [`DescribeLogDirsResponse`].
    DescribeLogDirsResult {
        error_code: ErrorCode [0..];
        log_dir: String [0..];
        topics: Vec<DescribeLogDirsTopic> [0..];
        total_bytes: i64 [4..] = -1;
        usable_bytes: i64 [4..] = -1;
        is_cordoned: bool [5..];
    }
}

fields! {
    /// Part of [`DescribeLogDirsResponse`].
    DescribeLogDirsTopic {
        name: String [0..];
        partitions: Vec<DescribeLogDirsPartition> [0..];
    }
}

fields! {
    /// Part of [`DescribeLogDirsResponse`].
    DescribeLogDirsPartition {
        partition_index: i32 [0..];
        partition_size: i64 [0..];
        offset_lag: i64 [0..];
        is_future_key: bool [0..];
    }
}
