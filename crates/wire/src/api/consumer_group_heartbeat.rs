//! ConsumerGroupHeartbeat, API 68: joins, keeps alive, reconciles and leaves a group of the consumer protocol.

use crate::{ErrorCode, Uuid};

message! {
    /// Joins, keeps alive, reconciles and leaves a group of the consumer protocol.
    ConsumerGroupHeartbeatRequest versions 0..=1, flexible 0, {
        group_id: String [0..];
        member_id: String [0..];
        member_epoch: i32 [0..];
        instance_id: Option<String> [0..];
        rack_id: Option<String> [0..];
        rebalance_timeout_ms: i32 [0..] = -1;
        subscribed_topic_names: Option<Vec<String>> [0..];
        subscribed_topic_regex: Option<String> [1..];
        server_assignor: Option<String> [0..];
        topic_partitions: Option<Vec<TopicPartitions>> [0..];
    }
}

fields! {
    /// Part of [`ConsumerGroupHeartbeatRequest`].
    TopicPartitions {
        topic_id: Uuid [0..];
        partitions: Vec<i32> [0..];
    }
}

message! {
    /// Answers [`ConsumerGroupHeartbeatRequest`].
    ConsumerGroupHeartbeatResponse versions 0..=1, flexible 0, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        member_id: Option<String> [0..];
        member_epoch: i32 [0..];
        heartbeat_interval_ms: i32 [0..];
        assignment: Option<Assignment> [0..];
    }
}

fields! {
    /// Part of [`ConsumerGroupHeartbeatResponse`].
    Assignment {
        topic_partitions: Vec<TopicPartitions> [0..];
    }
}
