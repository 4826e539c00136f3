//! OffsetFetch, API 9: reads how far a group has read.

use crate::{ErrorCode, Uuid};

message! {
    /// Reads how far a group has read.
    OffsetFetchRequest versions 1..=10, flexible 6, {
        group_id: String [0..=7];
        topics: Option<Vec<OffsetFetchRequestTopic>> [0..=7] (null 2..);
        groups: Vec<OffsetFetchRequestGroup> [8..];
        require_stable: bool [7..];
    }
}

fields! {
    /// Part of [`OffsetFetchRequest`].
    OffsetFetchRequestTopic {
        name: String [0..=7];
        partition_indexes: Vec<i32> [0..=7];
    }
}

fields! {
    /// Part of [`OffsetFetchRequest`].
    OffsetFetchRequestGroup {
        group_id: String [8..];
        member_id: Option<String> [9..];
        member_epoch: i32 [9..] = -1;
        topics: Option<Vec<OffsetFetchRequestTopics>> [8..];
    }
}

fields! {
    /// Part of [`OffsetFetchRequest`].
    OffsetFetchRequestTopics {
        name: String [8..=9];
        topic_id: Uuid [10..];
        partition_indexes: Vec<i32> [8..];
    }
}

message! {
    /// Answers [`OffsetFetchRequest`].
    OffsetFetchResponse versions 1..=10, flexible 6, {
        throttle_time_ms: i32 [3..];
        topics: Vec<OffsetFetchResponseTopic> [0..=7];
        error_code: ErrorCode [2..=7];
        groups: Vec<OffsetFetchResponseGroup> [8..];
    }
}

fields! {
    /// Part of [`OffsetFetchResponse`].
    OffsetFetchResponseTopic {
        name: String [0..=7];
        partitions: Vec<OffsetFetchResponsePartition> [0..=7];
    }
}

fields! {
    /// Part of [`OffsetFetchResponse`].
    OffsetFetchResponsePartition {
        partition_index: i32 [0..=7];
        committed_offset: i64 [0..=7];
        committed_leader_epoch: i32 [5..=7] = -1;
        metadata: Option<String> [0..=7];
        error_code: ErrorCode [0..=7];
    }
}

fields! {
    /// Part of [`OffsetFetchResponse`].
    OffsetFetchResponseGroup {
        group_id: String [8..];
        topics: Vec<OffsetFetchResponseTopics> [8..];
        error_code: ErrorCode [8..];
    }
}

fields! {
    /// Part of [`OffsetFetchResponse`].
    OffsetFetchResponseTopics {
        name: String [8..=9];
        topic_id: Uuid [10..];
        partitions: Vec<OffsetFetchResponsePartitions> [8..];
    }
}

fields! {
    /// Part of [`OffsetFetchResponse`].
    OffsetFetchResponsePartitions {
        partition_index: i32 [8..];
        committed_offset: i64 [8..];
        committed_leader_epoch: i32 [8..] = -1;
        metadata: Option<String> [8..];
        error_code: ErrorCode [8..];
    }
}
