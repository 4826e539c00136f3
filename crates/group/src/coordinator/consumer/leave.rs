//! Members that go: for good, for a while, sent away, or silent too long. Mirrors `consumerGroupLeave` and
//! `consumerGroupFenceMember`.

use super::{
    ConsumerRecord,
    draft::Draft,
    heartbeat::{fenced_by, not_a_member},
    stored::{ConsumerMember, Held, StoredConsumer},
    target::{Compute, metadata_hash},
    validate::{LEAVE_FOR_A_WHILE, Refusal},
};
use crate::topics::Topics;
use std::sync::Arc;
use tontine_wire::{ErrorCode, api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest};

/// The member that a leave is about.
pub(in crate::coordinator) fn leaver(
    group: Option<&StoredConsumer>,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<Arc<str>, Refusal> {
    let Some(group) = group else {
        let message = format!("Group {} not found.", request.group_id);
        return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message));
    };
    let id = request.member_id.as_str();
    if let Some(instance) = request.instance_id.as_deref() {
        match group.instance(instance) {
            None => {
                let message = format!("Instance id {instance} is unknown.");
                return Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, message));
            }
            Some(owner) if **owner != *id => return Err(fenced_by(id, instance, owner)),
            Some(_) => {}
        }
    }
    let known = group.members.get_key_value(id);
    known.map(|(id, _)| id.clone()).ok_or_else(|| not_a_member(id, &request.group_id))
}

/// A static member leaves for a while: what it has stays its own.
pub(in crate::coordinator) fn for_a_while(
    id: &str,
    member: &Arc<str>,
    group: &StoredConsumer,
) -> Vec<ConsumerRecord> {
    let topics = Topics::new();
    let mut draft = Draft::new(id, group, &topics);
    if let Some(known) = group.members.get(member) {
        let assigned = known.assigned.iter().map(|(topic, partitions)| {
            (*topic, partitions.keys().map(|partition| (*partition, 0)).collect())
        });
        let away = ConsumerMember {
            epoch: LEAVE_FOR_A_WHILE,
            assigned: assigned.collect(),
            revoking: Held::new(),
            state: Default::default(),
            ..known.clone()
        };
        draft.write_current(member, &away);
    }
    draft.records
}

/// Takes members out for good; the group moves on, and to its target at once if `compute` says so.
pub(in crate::coordinator) fn remove(
    id: &str,
    group: &StoredConsumer,
    topics: &Topics,
    members: &[Arc<str>],
    compute: Option<Compute>,
) -> Vec<ConsumerRecord> {
    let mut draft = Draft::new(id, group, topics);
    members.iter().for_each(|member| draft.remove(member));
    draft.forget_unused_regexes();
    if draft.is_empty() {
        draft.bump(1, 0);
        draft.write_target_epoch(draft.epoch, 0);
    } else {
        let hash = metadata_hash(&draft.wanted());
        draft.bump(1, hash);
        if let Some(compute) = compute {
            draft.compute_target(compute);
        }
    }
    draft.records
}
