//! ListGroups, API 16: lists groups.

use crate::ErrorCode;

message! {
    /// Lists groups.
    ListGroupsRequest versions 0..=5, flexible 3, {
        states_filter: Vec<String> [4..];
        types_filter: Vec<String> [5..];
    }
}

message! {
    /// Answers [`ListGroupsRequest`].
    ListGroupsResponse versions 0..=5, flexible 3, {
        throttle_time_ms: i32 [1..];
        error_code: ErrorCode [0..];
        groups: Vec<ListedGroup> [0..];
    }
}

fields! {
    /// Part of [`ListGroupsResponse`].
    ListedGroup {
        group_id: String [0..];
        protocol_type: String [0..];
        group_state: String [4..];
        group_type: String [5..];
    }
}
