//! Heartbeat, API 12: tells the coordinator that a classic member is alive; the answer tells of a rebalance.

use crate::ErrorCode;

message! {
    /// Tells the coordinator that a classic member is alive; the answer tells of a rebalance.
    HeartbeatRequest versions 0..=4, flexible 4, {
        group_id: String [0..];
        generation_id: i32 [0..];
        member_id: String [0..];
        group_instance_id: Option<String> [3..];
    }
}

message! {
    /// Answers [`HeartbeatRequest`].
    HeartbeatResponse versions 0..=4, flexible 4, {
        throttle_time_ms: i32 [1..];
        error_code: ErrorCode [0..];
    }
}
