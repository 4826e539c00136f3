//! DeleteTopics, API 20: deletes topics.

use crate::{ErrorCode, Uuid};

message! {
    /// Deletes topics.
    DeleteTopicsRequest versions 1..=6, flexible 4, {
        topics: Vec<DeleteTopicState> [6..];
        topic_names: Vec<String> [0..=5];
        timeout_ms: i32 [0..];
    }
}

fields! {
    /// Part of [`DeleteTopicsRequest`].
    DeleteTopicState {
        name: Option<String> [6..];
        topic_id: Uuid [6..];
    }
}

message! {
    /// Answers [`DeleteTopicsRequest`].
    DeleteTopicsResponse versions 1..=6, flexible 4, {
        throttle_time_ms: i32 [1..];
        responses: Vec<DeletableTopicResult> [0..];
    }
}

fields! {
    /// Part of [`DeleteTopicsResponse`].
    DeletableTopicResult {
        name: Option<String> [0..] (null 6..);
        topic_id: Uuid [6..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [5..];
    }
}
