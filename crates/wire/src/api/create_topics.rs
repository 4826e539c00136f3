//! CreateTopics, API 19: creates topics.

use crate::{ErrorCode, Uuid};

message! {
    /// Creates topics.
    CreateTopicsRequest versions 2..=7, flexible 5, {
        topics: Vec<CreatableTopic> [0..];
        timeout_ms: i32 [0..] = 60000;
        validate_only: bool [1..];
    }
}

fields! {
    /// Part of [`CreateTopicsRequest`].
    CreatableTopic {
        name: String [0..];
        num_partitions: i32 [0..];
        replication_factor: i16 [0..];
        assignments: Vec<CreatableReplicaAssignment> [0..];
        configs: Vec<CreatableTopicConfig> [0..];
    }
}

fields! {
    /// Part of [`CreateTopicsRequest`].
    CreatableReplicaAssignment {
        partition_index: i32 [0..];
        broker_ids: Vec<i32> [0..];
    }
}

fields! {
    /// Part of [`CreateTopicsRequest`].
    CreatableTopicConfig {
        name: String [0..];
        value: Option<String> [0..];
    }
}

message! {
    /// Answers [`CreateTopicsRequest`].
    CreateTopicsResponse versions 2..=7, flexible 5, {
        throttle_time_ms: i32 [2..];
        topics: Vec<CreatableTopicResult> [0..];
    }
}

fields! {
    /// Part of [`CreateTopicsResponse`].
    CreatableTopicResult {
        name: String [0..];
        topic_id: Uuid [7..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [1..];
        topic_config_error_code: ErrorCode [5..] (tag 0);
        num_partitions: i32 [5..] = -1;
        replication_factor: i16 [5..] = -1;
        configs: Option<Vec<CreatableTopicConfigs>> [5..];
    }
}

fields! {
    /// Part of [`CreateTopicsResponse`].
    CreatableTopicConfigs {
        name: String [5..];
        value: Option<String> [5..];
        read_only: bool [5..];
        config_source: i8 [5..] = -1;
        is_sensitive: bool [5..];
    }
}
