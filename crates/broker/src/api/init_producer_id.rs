//! InitProducerId: a number for an idempotent producer; with a transactional id see [`super::transactions`].

use crate::state::{BrokerState, Call};
use tontine_wire::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: &InitProducerIdRequest,
) -> InitProducerIdResponse {
    let refused = |code| InitProducerIdResponse { error_code: code, ..Default::default() };
    if let Some(id) = &request.transactional_id {
        return super::transactions::init(state, call, id, request);
    }
    // A producer that lost a batch for good goes on with the next epoch of its number.
    let next_epoch =
        request.producer_epoch.checked_add(1).filter(|epoch| *epoch > 0 && request.producer_id >= 0);
    if let Some(producer_epoch) = next_epoch {
        return InitProducerIdResponse {
            producer_id: request.producer_id,
            producer_epoch,
            ..Default::default()
        };
    }
    match state.new_producer_id(call.now) {
        Ok(producer_id) => InitProducerIdResponse { producer_id, ..Default::default() },
        Err(code) => refused(code),
    }
}
