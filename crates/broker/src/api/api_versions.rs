//! ApiVersions: what is served here.

use crate::state::{BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::ApiKey;
use tontine_wire::api::api_versions::{ApiVersion, ApiVersionsRequest, ApiVersionsResponse};

/// The answer, unless the client meant another broker (KIP-1242).
pub(super) fn answer(state: &BrokerState, call: &Call, request: &ApiVersionsRequest) -> ApiVersionsResponse {
    let other_cluster = request.cluster_id.as_ref().is_some_and(|id| *id != state.cluster_id);
    let other_node = request.node_id >= 0 && request.node_id != call.node;
    if other_cluster || other_node {
        return ApiVersionsResponse { error_code: ErrorCode::REBOOTSTRAP_REQUIRED, ..list() };
    }
    list()
}

/// The answer to a version that is not known: the client reads it as version 0 and tries again.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    ApiVersionsResponse { error_code: ErrorCode::UNSUPPORTED_VERSION, ..list() }
}

fn list() -> ApiVersionsResponse {
    let row = |key: &ApiKey| {
        let (first, max_version) = super::versions(*key)?;
        // librdkafka takes a broker for a very old one when Produce does not start at 0 (KAFKA-18659).
        let min_version = if *key == ApiKey::Produce { 0 } else { first };
        Some(ApiVersion { api_key: *key as i16, min_version, max_version })
    };
    ApiVersionsResponse { api_keys: ApiKey::ALL.iter().filter_map(row).collect(), ..Default::default() }
}
