//! FindCoordinator, API 10: names the broker that coordinates a group or a transaction.

use crate::ErrorCode;

message! {
    /// Names the broker that coordinates a group or a transaction.
    FindCoordinatorRequest versions 0..=6, flexible 3, {
        key: String [0..=3];
        key_type: i8 [1..];
        coordinator_keys: Vec<String> [4..];
    }
}

message! {
    /// Answers [`FindCoordinatorRequest`].
    FindCoordinatorResponse versions 0..=6, flexible 3, {
        throttle_time_ms: i32 [1..];
        error_code: ErrorCode [0..=3];
        error_message: Option<String> [1..=3];
        node_id: i32 [0..=3];
        host: String [0..=3];
        port: i32 [0..=3];
        coordinators: Vec<Coordinator> [4..];
    }
}

fields! {
    /// Part of [`FindCoordinatorResponse`].
    Coordinator {
        key: String [4..];
        node_id: i32 [4..];
        host: String [4..];
        port: i32 [4..];
        error_code: ErrorCode [4..];
        error_message: Option<String> [4..];
    }
}
