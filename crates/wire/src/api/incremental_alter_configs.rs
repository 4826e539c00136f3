//! IncrementalAlterConfigs, API 44: changes single configuration entries.

use crate::ErrorCode;

message! {
    /// Changes single configuration entries.
    IncrementalAlterConfigsRequest versions 0..=1, flexible 1, {
        resources: Vec<AlterConfigsResource> [0..];
        validate_only: bool [0..];
    }
}

fields! {
    /// Part of [`IncrementalAlterConfigsRequest`].
    AlterConfigsResource {
        resource_type: i8 [0..];
        resource_name: String [0..];
        configs: Vec<AlterableConfig> [0..];
    }
}

fields! {
    /// Part of [`IncrementalAlterConfigsRequest`].
    AlterableConfig {
        name: String [0..];
        config_operation: i8 [0..];
        value: Option<String> [0..];
    }
}

message! {
    /// Answers [`IncrementalAlterConfigsRequest`].
    IncrementalAlterConfigsResponse versions 0..=1, flexible 1, {
        throttle_time_ms: i32 [0..];
        responses: Vec<AlterConfigsResourceResponse> [0..];
    }
}

fields! {
    /// Part of [`IncrementalAlterConfigsResponse`].
    AlterConfigsResourceResponse {
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        resource_type: i8 [0..];
        resource_name: String [0..];
    }
}
