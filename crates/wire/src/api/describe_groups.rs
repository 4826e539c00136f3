//! DescribeGroups, API 15: describes classic groups.

use crate::ErrorCode;
use bytes::Bytes;

message! {
    /// Describes classic groups.
    DescribeGroupsRequest versions 0..=6, flexible 5, {
        groups: Vec<String> [0..];
        include_authorized_operations: bool [3..];
    }
}

message! {
    /// Answers [`DescribeGroupsRequest`].
    DescribeGroupsResponse versions 0..=6, flexible 5, {
        throttle_time_ms: i32 [1..];
        groups: Vec<DescribedGroup> [0..];
    }
}

fields! {
    /// Part of [`DescribeGroupsResponse`].
    DescribedGroup {
        error_code: ErrorCode [0..];
        error_message: Option<String> [6..];
        group_id: String [0..];
        group_state: String [0..];
        protocol_type: String [0..];
        protocol_data: String [0..];
        members: Vec<DescribedGroupMember> [0..];
        authorized_operations: i32 [3..] = -2147483648;
    }
}

fields! {
    /// Part of [`DescribeGroupsResponse`].
    DescribedGroupMember {
        member_id: String [0..];
        group_instance_id: Option<String> [4..];
        client_id: String [0..];
        client_host: String [0..];
        member_metadata: Bytes [0..];
        member_assignment: Bytes [0..];
    }
}
