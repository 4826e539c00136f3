//! JoinGroup, API 11: joins a classic group, or rejoins it; answered when the group has come together.

use crate::ErrorCode;
use bytes::Bytes;

message! {
    /// Joins a classic group, or rejoins it; answered when the group has come together.
    JoinGroupRequest versions 0..=9, flexible 6, {
        group_id: String [0..];
        session_timeout_ms: i32 [0..];
        rebalance_timeout_ms: i32 [1..] = -1;
        member_id: String [0..];
        group_instance_id: Option<String> [5..];
        protocol_type: String [0..];
        protocols: Vec<JoinGroupRequestProtocol> [0..];
        reason: Option<String> [8..];
    }
}

fields! {
    /// Part of [`JoinGroupRequest`].
    JoinGroupRequestProtocol {
        name: String [0..];
        metadata: Bytes [0..];
    }
}

message! {
    /// Answers [`JoinGroupRequest`].
    JoinGroupResponse versions 0..=9, flexible 6, {
        throttle_time_ms: i32 [2..];
        error_code: ErrorCode [0..];
        generation_id: i32 [0..] = -1;
        protocol_type: Option<String> [7..];
        protocol_name: Option<String> [0..] (null 7..);
        leader: String [0..];
        skip_assignment: bool [9..];
        member_id: String [0..];
        members: Vec<JoinGroupResponseMember> [0..];
    }
}

fields! {
    /// Part of [`JoinGroupResponse`].
    JoinGroupResponseMember {
        member_id: String [0..];
        group_instance_id: Option<String> [5..];
        metadata: Bytes [0..];
    }
}
