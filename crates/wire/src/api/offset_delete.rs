//! OffsetDelete, API 47: deletes offsets of a group.

use crate::ErrorCode;

message! {
    /// Deletes offsets of a group.
    OffsetDeleteRequest versions 0..=0, flexible i16::MAX, {
        group_id: String [0..];
        topics: Vec<OffsetDeleteRequestTopic> [0..];
    }
}

fields! {
    /// Part of [`OffsetDeleteRequest`].
    OffsetDeleteRequestTopic {
        name: String [0..];
        partitions: Vec<OffsetDeleteRequestPartition> [0..];
    }
}

fields! {
    /// Part of [`OffsetDeleteRequest`].
    OffsetDeleteRequestPartition {
        partition_index: i32 [0..];
    }
}

message! {
    /// Answers [`OffsetDeleteRequest`].
    OffsetDeleteResponse versions 0..=0, flexible i16::MAX, {
        error_code: ErrorCode [0..];
        throttle_time_ms: i32 [0..];
        topics: Vec<OffsetDeleteResponseTopic> [0..];
    }
}

fields! {
    /// Part of [`OffsetDeleteResponse`].
    OffsetDeleteResponseTopic {
        name: String [0..];
        partitions: Vec<OffsetDeleteResponsePartition> [0..];
    }
}

fields! {
    /// Part of [`OffsetDeleteResponse`].
    OffsetDeleteResponsePartition {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
    }
}
