//! What a ConsumerGroupHeartbeat must carry, before anybody looks at the group. Mirrors
//! `throwIfConsumerGroupHeartbeatRequestIsInvalid`.

use super::ServerAssignors;
use tontine_wire::{ErrorCode, api::consumer_group_heartbeat::*};

/// Leaves for good.
pub(super) const LEAVE: i32 = -1;
/// Leaves for a while, as static members do.
pub(super) const LEAVE_FOR_A_WHILE: i32 = -2;

/// A request that is not answered as it wishes: the code, and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::coordinator) struct Refusal {
    pub(in crate::coordinator) code: ErrorCode,
    pub(in crate::coordinator) message: String,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The answer. Nothing of the member is told.
    pub(in crate::coordinator) fn response(self) -> ConsumerGroupHeartbeatResponse {
        ConsumerGroupHeartbeatResponse {
            error_code: self.code,
            error_message: Some(self.message),
            ..Default::default()
        }
    }
}

fn invalid(message: &str) -> Result<(), Refusal> {
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
}

/// Checks the form of a request. A member id that is missing in version 0 has been made by then.
pub(in crate::coordinator) fn check(
    request: &ConsumerGroupHeartbeatRequest,
    assignors: ServerAssignors,
) -> Result<(), Refusal> {
    if request.group_id.trim().is_empty() {
        return invalid("GroupId can't be empty.");
    }
    if request.member_id.trim().is_empty() {
        return invalid("MemberId can't be empty.");
    }
    let empty = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    if empty(&request.instance_id) {
        return invalid("InstanceId can't be empty.");
    }
    if empty(&request.rack_id) {
        return invalid("RackId can't be empty.");
    }
    match request.member_epoch {
        0 => check_join(request)?,
        LEAVE_FOR_A_WHILE if request.instance_id.is_none() => return invalid("InstanceId can't be null."),
        ..LEAVE_FOR_A_WHILE => return invalid("MemberEpoch is invalid."),
        _ => {}
    }
    check_assignor(request, assignors)
}

fn check_join(request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    if request.rebalance_timeout_ms == -1 {
        return invalid("RebalanceTimeoutMs must be provided in first request.");
    }
    if request.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty()) {
        return invalid("TopicPartitions must be empty when (re-)joining.");
    }
    if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() {
        return invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        );
    }
    Ok(())
}

fn check_assignor(
    request: &ConsumerGroupHeartbeatRequest,
    assignors: ServerAssignors,
) -> Result<(), Refusal> {
    match request.server_assignor.as_deref() {
        Some(name) if !assignors.allows(name) => Err(Refusal::new(
            ErrorCode::UNSUPPORTED_ASSIGNOR,
            format!("ServerAssignor {name} is not supported. Supported assignors: {assignors}."),
        )),
        Some(_) | None => Ok(()),
    }
}
