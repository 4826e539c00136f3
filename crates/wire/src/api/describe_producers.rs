//! DescribeProducers, API 61: lists the producers that are active on partitions.

use crate::ErrorCode;

message! {
    /// Lists the producers that are active on partitions.
    DescribeProducersRequest versions 0..=0, flexible 0, {
        topics: Vec<TopicRequest> [0..];
    }
}

fields! {
    /// Part of [`DescribeProducersRequest`].
    TopicRequest {
        name: String [0..];
        partition_indexes: Vec<i32> [0..];
    }
}

message! {
    /// Answers [`DescribeProducersRequest`].
    DescribeProducersResponse versions 0..=0, flexible 0, {
        throttle_time_ms: i32 [0..];
        topics: Vec<TopicResponse> [0..];
    }
}

fields! {
    /// Part of [`DescribeProducersResponse`].
    TopicResponse {
        name: String [0..];
        partitions: Vec<PartitionResponse> [0..];
    }
}

fields! {
    /// Part of [`DescribeProducersResponse`].
    PartitionResponse {
        partition_index: i32 [0..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        active_producers: Vec<ProducerState> [0..];
    }
}

fields! {
    /// Part of [`DescribeProducersResponse`].
    ProducerState {
        producer_id: i64 [0..];
        producer_epoch: i32 [0..];
        last_sequence: i32 [0..] = -1;
        last_timestamp: i64 [0..] = -1;
        coordinator_epoch: i32 [0..];
        current_txn_start_offset: i64 [0..] = -1;
    }
}
