//! ListConfigResources, API 74: lists resources that have configurations.

use crate::ErrorCode;

message! {
    /// Lists resources that have configurations.
    ListConfigResourcesRequest versions 0..=1, flexible 0, {
        resource_types: Vec<i8> [1..];
    }
}

message! {
    /// Answers [`ListConfigResourcesRequest`].
    ListConfigResourcesResponse versions 0..=1, flexible 0, {
        throttle_time_ms: i32 [0..];
        error_code: ErrorCode [0..];
        config_resources: Vec<ConfigResource> [0..];
    }
}

fields! {
    /// Part of [`ListConfigResourcesResponse`].
    ConfigResource {
        resource_name: String [0..];
        resource_type: i8 [1..] = 16;
    }
}
