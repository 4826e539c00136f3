//! AlterConfigs, API 33: replaces configurations.

use crate::ErrorCode;

message! {
    /// Replaces configurations.
    AlterConfigsRequest versions 0..=2, flexible 2, {
        resources: Vec<AlterConfigsResource> [0..];
        validate_only: bool [0..];
    }
}

fields! {
    /// Part of [`AlterConfigsRequest`].
    AlterConfigsResource {
        resource_type: i8 [0..];
        resource_name: String [0..];
        configs: Vec<AlterableConfig> [0..];
    }
}

fields! {
    /// Part of [`AlterConfigsRequest`].
    AlterableConfig {
        name: String [0..];
        value: Option<String> [0..];
    }
}

message! {
    /// Answers [`AlterConfigsRequest`].
    AlterConfigsResponse versions 0..=2, flexible 2, {
        throttle_time_ms: i32 [0..];
        responses: Vec<AlterConfigsResourceResponse> [0..];
    }
}

fields! {
    /// Part of [`AlterConfigsResponse`].
    AlterConfigsResourceResponse {
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        resource_type: i8 [0..];
        resource_name: String [0..];
    }
}
