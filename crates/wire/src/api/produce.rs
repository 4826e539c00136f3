//! Produce, API 0: appends record batches to partitions.

use crate::{ErrorCode, Uuid};
use bytes::Bytes;

message! {
    /// Appends record batches to partitions.
    ProduceRequest versions 3..=13, flexible 9, {
        transactional_id: Option<String> [3..];
        acks: i16 [0..];
        timeout_ms: i32 [0..];
        topic_data: Vec<TopicProduceData> [0..];
    }
}

fields! {
    /// Part of [`ProduceRequest`].
    TopicProduceData {
        name: String [0..=12];
        topic_id: Uuid [13..];
        partition_data: Vec<PartitionProduceData> [0..];
    }
}

fields! {
    /// Part of [`ProduceRequest`].
    PartitionProduceData {
        index: i32 [0..];
        records: Option<Bytes> [0..];
    }
}

message! {
    /// Answers [`ProduceRequest`].
    ProduceResponse versions 3..=13, flexible 9, {
        responses: Vec<TopicProduceResponse> [0..];
        throttle_time_ms: i32 [1..];
        node_endpoints: Vec<NodeEndpoint> [10..] (tag 0);
    }
}

fields! {
    /// Part of [`ProduceResponse`].
    TopicProduceResponse {
        name: String [0..=12];
        topic_id: Uuid [13..];
        partition_responses: Vec<PartitionProduceResponse> [0..];
    }
}

fields! {
    /// Part of [`ProduceResponse`].
    PartitionProduceResponse {
        index: i32 [0..];
        error_code: ErrorCode [0..];
        base_offset: i64 [0..];
        log_append_time_ms: i64 [2..] = -1;
        log_start_offset: i64 [5..] = -1;
        record_errors: Vec<BatchIndexAndErrorMessage> [8..];
        error_message: Option<String> [8..];
        current_leader: LeaderIdAndEpoch [10..] (tag 0);
    }
}

fields! {
    /// Part of [`ProduceResponse`].
    BatchIndexAndErrorMessage {
        batch_index: i32 [8..];
        batch_index_error_message: Option<String> [8..];
    }
}

fields! {
    /// Part of [`ProduceResponse`].
    LeaderIdAndEpoch {
        leader_id: i32 [10..] = -1;
        leader_epoch: i32 [10..] = -1;
    }
}

fields! {
    /// Part of [`ProduceResponse`].
    NodeEndpoint {
        node_id: i32 [10..];
        host: String [10..];
        port: i32 [10..];
        rack: Option<String> [10..];
    }
}
