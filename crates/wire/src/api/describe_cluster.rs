//! DescribeCluster, API 60: names the cluster, its brokers and its controller.

use crate::ErrorCode;

message! {
    /// Names the cluster, its brokers and its controller.
    DescribeClusterRequest versions 0..=2, flexible 0, {
        include_cluster_authorized_operations: bool [0..];
        endpoint_type: i8 [1..] = 1;
        include_fenced_brokers: bool [2..];
    }
}

message! {
    /// Answers [`DescribeClusterRequest`].
    DescribeClusterResponse versions 0..=2, flexible 0, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        endpoint_type: i8 [1..] = 1;
        cluster_id: String [0..];
        controller_id: i32 [0..] = -1;
        brokers: Vec<DescribeClusterBroker> [0..];
        cluster_authorized_operations: i32 [0..] = -2147483648;
    }
}

fields! {
    /// Part of [`DescribeClusterResponse`].
    DescribeClusterBroker {
        broker_id: i32 [0..];
        host: String [0..];
        port: i32 [0..];
        rack: Option<String> [0..];
        is_fenced: bool [2..];
    }
}
