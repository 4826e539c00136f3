//! LeaveGroup, API 13: takes members out of a group.

use crate::ErrorCode;

message! {
    /// Takes members out of a group.
    LeaveGroupRequest versions 0..=5, flexible 4, {
        group_id: String [0..];
        member_id: String [0..=2];
        members: Vec<MemberIdentity> [3..];
    }
}

fields! {
    /// Part of [`LeaveGroupRequest`].
    MemberIdentity {
        member_id: String [3..];
        group_instance_id: Option<String> [3..];
        reason: Option<String> [5..];
    }
}

message! {
    /// Answers [`LeaveGroupRequest`].
    LeaveGroupResponse versions 0..=5, flexible 4, {
        throttle_time_ms: i32 [1..];
        error_code: ErrorCode [0..];
        members: Vec<MemberResponse> [3..];
    }
}

fields! {
    /// Part of [`LeaveGroupResponse`].
    MemberResponse {
        member_id: String [3..];
        group_instance_id: Option<String> [3..];
        error_code: ErrorCode [3..];
    }
}
