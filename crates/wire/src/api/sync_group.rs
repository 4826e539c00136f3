//! SyncGroup, API 14: brings the leader's assignment to the coordinator and each member's part of it back.

use crate::ErrorCode;
use bytes::Bytes;

message! {
    /// Brings the leader's assignment to the coordinator and each member's part of it back.
    SyncGroupRequest versions 0..=5, flexible 4, {
        group_id: String [0..];
        generation_id: i32 [0..];
        member_id: String [0..];
        group_instance_id: Option<String> [3..];
        protocol_type: Option<String> [5..];
        protocol_name: Option<String> [5..];
        assignments: Vec<SyncGroupRequestAssignment> [0..];
    }
}

fields! {
    /// Part of [`SyncGroupRequest`].
    SyncGroupRequestAssignment {
        member_id: String [0..];
        assignment: Bytes [0..];
    }
}

message! {
    /// Answers [`SyncGroupRequest`].
    SyncGroupResponse versions 0..=5, flexible 4, {
        throttle_time_ms: i32 [1..];
        error_code: ErrorCode [0..];
        protocol_type: Option<String> [5..];
        protocol_name: Option<String> [5..];
        assignment: Bytes [0..];
    }
}
