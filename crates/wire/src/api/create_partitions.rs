//! CreatePartitions, API 37: adds partitions to topics.

use crate::ErrorCode;

message! {
    /// Adds partitions to topics.
    CreatePartitionsRequest versions 0..=3, flexible 2, {
        topics: Vec<CreatePartitionsTopic> [0..];
        timeout_ms: i32 [0..];
        validate_only: bool [0..];
    }
}

fields! {
    /// Part of [`CreatePartitionsRequest`].
    CreatePartitionsTopic {
        name: String [0..];
        count: i32 [0..];
        assignments: Option<Vec<CreatePartitionsAssignment>> [0..];
    }
}

fields! {
    /// Part of [`CreatePartitionsRequest`].
    CreatePartitionsAssignment {
        broker_ids: Vec<i32> [0..];
    }
}

message! {
    /// Answers [`CreatePartitionsRequest`].
    CreatePartitionsResponse versions 0..=3, flexible 2, {
        throttle_time_ms: i32 [0..];
        results: Vec<CreatePartitionsTopicResult> [0..];
    }
}

fields! {
    /// Part of [`CreatePartitionsResponse`].
    CreatePartitionsTopicResult {
        name: String [0..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
    }
}
