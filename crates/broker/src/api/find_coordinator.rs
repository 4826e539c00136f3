//! FindCoordinator: which node coordinates a group, or the transactions of an id. Mirrors `KafkaApis.getCoordinator`.

use crate::state::{BrokerState, Call};
use tontine_wire::ErrorCode;
use tontine_wire::api::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

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
    let node = match key_type {
        GROUP => {
            state.create_offsets_topic(call.now);
            state.coordinator_of(key)
        }
        TRANSACTION => state.transaction_coordinator(call.now, key),
        _ => {
            let message = "only coordinators of groups and transactions are found here";
            return refused(key, ErrorCode::INVALID_REQUEST, message);
        }
    };
    match node.and_then(|id| Some((id, state.nodes.get(&id)?))) {
        Some((node_id, node)) => Coordinator {
            key: key.to_owned(),
            node_id,
            host: node.host.clone(),
            port: i32::from(node.port),
            ..Default::default()
        },
        None => refused(
            key,
            ErrorCode::COORDINATOR_NOT_AVAILABLE,
            "no replica of the coordinator's partition is up",
        ),
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
