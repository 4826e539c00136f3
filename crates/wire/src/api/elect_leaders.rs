//! ElectLeaders, API 43: elects leaders of partitions.

use crate::ErrorCode;

message! {
    /// Elects leaders of partitions.
    ElectLeadersRequest versions 0..=2, flexible 2, {
        election_type: i8 [1..];
        topic_partitions: Option<Vec<TopicPartitions>> [0..];
        timeout_ms: i32 [0..] = 60000;
    }
}

fields! {
    /// Part of [`ElectLeadersRequest`].
    TopicPartitions {
        topic: String [0..];
        partitions: Vec<i32> [0..];
    }
}

message! {
    /// Answers [`ElectLeadersRequest`].
    ElectLeadersResponse versions 0..=2, flexible 2, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [1..];
        replica_election_results: Vec<ReplicaElectionResult> [0..];
    }
}

fields! {
    /// Part of [`ElectLeadersResponse`].
    ReplicaElectionResult {
        topic: String [0..];
        partition_result: Vec<PartitionResult> [0..];
    }
}

fields! {
    /// Part of [`ElectLeadersResponse`].
    PartitionResult {
        partition_id: i32 [0..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
    }
}
