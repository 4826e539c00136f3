//! ApiVersions: what is served here.

use crate::state::{BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::ApiKey;
use tontine_wire::api::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

/// The feature that says whether groups of the consumer protocol are served, and its level in Apache Kafka 4.
const GROUP_VERSION: &str = "group.version";
const GROUP_VERSION_LEVEL: i16 = 1;
/// From this version on a client can read that a feature begins at level 0; before, Kafka leaves such features out.
const LEVEL_0_SINCE: i16 = 4;

/// The answer, unless the client meant another broker (KIP-1242).
pub(super) fn answer(state: &BrokerState, call: &Call, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    let other_cluster = request.cluster_id.as_ref().is_some_and(|id| *id != state.cluster_id);
    let other_node = request.node_id >= 0 && request.node_id != call.node;
    if other_cluster || other_node {
        return ApiVersionsResponse { error_code: ErrorCode::REBOOTSTRAP_REQUIRED, ..list(call.version) };
    }
    list(call.version)
}

/// The answer to a version that is not known: the client reads it as version 0 and tries again.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    ApiVersionsResponse { error_code: ErrorCode::UNSUPPORTED_VERSION, ..list(0) }
}

fn list(version: i16) -> ApiVersionsResponse {
    let row = |key: &ApiKey| {
        let (first, max_version) = super::versions(*key)?;
        // librdkafka takes a broker for a very old one when Produce does not start at 0 (KAFKA-18659).
        let min_version = if *key == ApiKey::Produce { 0 } else { first };
        Some(ApiVersion { api_key: *key as i16, min_version, max_version })
    };
    let name = GROUP_VERSION.to_owned();
    let supported =
        SupportedFeatureKey { name: name.clone(), min_version: 0, max_version: GROUP_VERSION_LEVEL };
    let finalized = FinalizedFeatureKey {
        name,
        max_version_level: GROUP_VERSION_LEVEL,
        min_version_level: GROUP_VERSION_LEVEL,
    };
    ApiVersionsResponse {
        api_keys: ApiKey::ALL.iter().filter_map(row).collect(),
        supported_features: Some(supported).filter(|_| version >= LEVEL_0_SINCE).into_iter().collect(),
        finalized_features_epoch: 1,
        finalized_features: vec![finalized],
        ..Default::default()
    }
}
