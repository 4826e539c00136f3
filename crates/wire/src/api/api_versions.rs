//! ApiVersions, API 18: tells which APIs and versions a broker speaks.

use crate::ErrorCode;

message! {
    /// Tells which APIs and versions a broker speaks.
    ApiVersionsRequest versions 0..=5, flexible 3, {
        client_software_name: String [3..];
        client_software_version: String [3..];
        cluster_id: Option<String> [5..];
        node_id: i32 [5..] = -1;
    }
}

message! {
    /// Answers [`ApiVersionsRequest`].
    ApiVersionsResponse versions 0..=5, flexible 3, {
        error_code: ErrorCode [0..];
        api_keys: Vec<ApiVersion> [0..];
        throttle_time_ms: i32 [1..];
        supported_features: Vec<SupportedFeatureKey> [3..] (tag 0);
        finalized_features_epoch: i64 [3..] (tag 1) = -1;
        finalized_features: Vec<FinalizedFeatureKey> [3..] (tag 2);
        zk_migration_ready: bool [3..] (tag 3);
    }
}

fields! {
    /// Part of [`ApiVersionsResponse`].
    ApiVersion {
        api_key: i16 [0..];
        min_version: i16 [0..];
        max_version: i16 [0..];
    }
}

fields! {
    /// Part of [`ApiVersionsResponse`].
    SupportedFeatureKey {
        name: String [3..];
        min_version: i16 [3..];
        max_version: i16 [3..];
    }
}

fields! {
    /// Part of [`ApiVersionsResponse`].
    FinalizedFeatureKey {
        name: String [3..];
        max_version_level: i16 [3..];
        min_version_level: i16 [3..];
    }
}
