//! DescribeTopicPartitions, API 75: describes partitions page by page.

use crate::{ErrorCode, Uuid};

message! {
    /// Describes partitions page by page.
    DescribeTopicPartitionsRequest versions 0..=0, flexible 0, {
        topics: Vec<TopicRequest> [0..];
        response_partition_limit: i32 [0..] = 2000;
        cursor: Option<Cursor> [0..];
    }
}

fields! {
    /// Part of [`DescribeTopicPartitionsRequest`].
    TopicRequest {
        name: String [0..];
    }
}

fields! {
    /// Part of [`DescribeTopicPartitionsRequest`].
    Cursor {
        topic_name: String [0..];
        partition_index: i32 [0..];
    }
}

message! {
    /// Answers [`DescribeTopicPartitionsRequest`].
    DescribeTopicPartitionsResponse versions 0..=0, flexible 0, {
        throttle_time_ms: i32 [0..];
        topics: Vec<DescribeTopicPartitionsResponseTopic> [0..];
        next_cursor: Option<Cursor> [0..];
    }
}

fields! {
    /// Part of [`DescribeTopicPartitionsResponse`].
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode [0..];
        name: Option<String> [0..];
        topic_id: Uuid [0..];
        is_internal: bool [0..];
        partitions: Vec<DescribeTopicPartitionsResponsePartition> [0..];
        topic_authorized_operations: i32 [0..] = -2147483648;
    }
}

fields! {
    /// Part of [`DescribeTopicPartitionsResponse`].
    DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode [0..];
        partition_index: i32 [0..];
        leader_id: i32 [0..];
        leader_epoch: i32 [0..] = -1;
        replica_nodes: Vec<i32> [0..];
        isr_nodes: Vec<i32> [0..];
        eligible_leader_replicas: Option<Vec<i32>> [0..];
        last_known_elr: Option<Vec<i32>> [0..];
        offline_replicas: Vec<i32> [0..];
    }
}
