//! DeleteTopics, by name or by id.

use crate::state::{BrokerState, Call};
use tontine_wire::api::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use tontine_wire::{ErrorCode, Uuid};

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let by_name = request
        .topic_names
        .into_iter()
        .map(|name| DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO });
    let wanted: Vec<DeleteTopicState> = by_name.chain(request.topics).collect();
    let responses = wanted.into_iter().map(|topic| delete(state, call, topic)).collect();
    DeleteTopicsResponse { responses, ..Default::default() }
}

fn delete(state: &mut BrokerState, call: &Call, wanted: DeleteTopicState) -> DeletableTopicResult {
    let known = match &wanted.name {
        Some(name) => state.topics.get(name).map(|topic| (topic.name.clone(), topic.id)),
        None => state.topics.name_of(wanted.topic_id).map(|name| (name.clone(), wanted.topic_id)),
    };
    let refused = |error_code: ErrorCode, message: &str| DeletableTopicResult {
        name: wanted.name.clone(),
        topic_id: wanted.topic_id,
        error_code,
        error_message: Some(message.to_owned()),
    };
    let Some((name, topic_id)) = known else {
        return match wanted.name {
            Some(_) => refused(
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            ),
            None => refused(ErrorCode::UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
        };
    };
    if !state.settings.delete_topic_enable {
        return refused(ErrorCode::TOPIC_DELETION_DISABLED, "Topic deletion is disabled.");
    }
    match state.delete_topic(call.now, &name) {
        Ok(()) => DeletableTopicResult { name: Some(name.to_string()), topic_id, ..Default::default() },
        Err(code) => refused(code, "the topic is gone already"),
    }
}
