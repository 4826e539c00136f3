//! DescribeConfigs, API 32: reads configurations.

use crate::ErrorCode;

message! {
    /// Reads configurations.
    DescribeConfigsRequest versions 1..=4, flexible 4, {
        resources: Vec<DescribeConfigsResource> [0..];
        include_synonyms: bool [1..];
        include_documentation: bool [3..];
    }
}

fields! {
    /// Part of [`DescribeConfigsRequest`].
    DescribeConfigsResource {
        resource_type: i8 [0..];
        resource_name: String [0..];
        configuration_keys: Option<Vec<String>> [0..];
    }
}

message! {
    /// Answers [`DescribeConfigsRequest`].
    DescribeConfigsResponse versions 1..=4, flexible 4, {
        throttle_time_ms: i32 [0..];
        results: Vec<DescribeConfigsResult> [0..];
    }
}

fields! {
    /// Part of [`DescribeConfigsResponse`].
    DescribeConfigsResult {
        error_code: ErrorCode [0..];
        error_message: Option<String> [0..];
        resource_type: i8 [0..];
        resource_name: String [0..];
        configs: Vec<DescribeConfigsResourceResult> [0..];
    }
}

fields! {
    /// Part of [`DescribeConfigsResponse`].
    DescribeConfigsResourceResult {
        name: String [0..];
        value: Option<String> [0..];
        read_only: bool [0..];
        config_source: i8 [1..] = -1;
        is_sensitive: bool [0..];
        synonyms: Vec<DescribeConfigsSynonym> [1..];
        config_type: i8 [3..];
        documentation: Option<String> [3..];
    }
}

fields! {
    /// Part of [`DescribeConfigsResponse`].
    DescribeConfigsSynonym {
        name: String [1..];
        value: Option<String> [1..];
        source: i8 [1..];
    }
}
