//! DeleteGroups, API 42: deletes groups and their offsets.

use crate::ErrorCode;

message! {
    /// Deletes groups and their offsets.
    DeleteGroupsRequest versions 0..=3, flexible 2, {
        groups_names: Vec<String> [0..];
    }
}

message! {
    /// Answers [`DeleteGroupsRequest`].
    DeleteGroupsResponse versions 0..=3, flexible 2, {
        throttle_time_ms: i32 [0..];
        results: Vec<DeletableGroupResult> [0..];
    }
}

fields! {
    /// Part of [`DeleteGroupsResponse`].
    DeletableGroupResult {
        group_id: String [0..];
        error_code: ErrorCode [0..];
        error_message: Option<String> [3..];
    }
}
