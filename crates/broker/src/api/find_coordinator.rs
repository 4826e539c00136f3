//! FindCoordinator: which node coordinates a group. Mirrors `KafkaApis.getCoordinator`.

use crate::state::{BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};

const GROUP: i8 = 0;

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: &FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    if call.version >= 4 {
        let found = |key: &String| find(state, call, request.key_type, key);
        let coordinators = request.coordinator_keys.iter().map(found).collect();
        return FindCoordinatorResponse { coordinators, ..Default::default() };
    }
    let found = find(state, call, request.key_type, &request.key);
    FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..Default::default()
    }
}

fn find(state: &mut BrokerState, call: &Call, key_type: i8, key: &str) -> Coordinator {
    if key_type != GROUP {
        let message =
            "only coordinators of groups are found here: transactions and share groups are not served";
        return refused(key, ErrorCode::INVALID_REQUEST, message);
    }
    state.create_offsets_topic(call.now);
    match state.coordinator_of(key).and_then(|id| Some((id, state.nodes.get(&id)?))) {
        Some((node_id, node)) => Coordinator {
            key: key.to_owned(),
            node_id,
            host: node.host.clone(),
            port: i32::from(node.port),
            ..Default::default()
        },
        None => {
            refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE, "no replica of the group's partition is up")
        }
    }
}

fn refused(key: &str, code: ErrorCode, message: &str) -> Coordinator {
    Coordinator {
        key: key.to_owned(),
        node_id: -1,
        port: -1,
        error_code: code,
        error_message: Some(message.to_owned()),
        ..Default::default()
    }
}
