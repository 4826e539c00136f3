//! Who may commit and fetch offsets of a consumer group. Mirrors `ConsumerGroup.validateOffsetCommit` and KIP-1251.

use super::stored::{ConsumerMember, StoredConsumer};
use crate::topics::Topics;
use tontine_wire::{
    ErrorCode,
    api::offset_commit::{OffsetCommitRequest, OffsetCommitRequestTopic},
};

/// Members of consumer groups speak this version at least.
const OLDEST_VERSION: i16 = 9;

/// Whether a commit counts.
pub(in crate::coordinator) fn validate_commit(
    group: &StoredConsumer,
    request: &OffsetCommitRequest,
    version: i16,
    topics: &Topics,
) -> Result<(), ErrorCode> {
    let epoch = request.generation_id_or_member_epoch;
    if epoch < 0 && group.members.is_empty() {
        return Ok(());
    }
    let member = group.members.get(request.member_id.as_str()).ok_or_else(|| stranger(group, request))?;
    if version < OLDEST_VERSION && member.classic.is_none() {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    if epoch == member.epoch {
        return Ok(());
    }
    if epoch > member.epoch || epoch <= 0 {
        return Err(wrong_epoch(member));
    }
    // The member has not heard of its newer epoch yet; what it had then and has still is its own.
    let own = request.topics.iter().all(|topic| is_own(member, topic, epoch, topics));
    if own { Ok(()) } else { Err(wrong_epoch(member)) }
}

/// What somebody is told who is no member. Kafka says that it is unknown also to a static member whose place a twin has
/// taken: that would join again, and put the twin out.
fn stranger(group: &StoredConsumer, request: &OffsetCommitRequest) -> ErrorCode {
    let instance = request.group_instance_id.as_deref();
    match instance.and_then(|instance| group.instance(instance)) {
        Some(_) => ErrorCode::FENCED_INSTANCE_ID,
        None => ErrorCode::UNKNOWN_MEMBER_ID,
    }
}

/// A classic member knows its epoch as a generation.
fn wrong_epoch(member: &ConsumerMember) -> ErrorCode {
    if member.classic.is_some() { ErrorCode::ILLEGAL_GENERATION } else { ErrorCode::STALE_MEMBER_EPOCH }
}

fn is_own(member: &ConsumerMember, topic: &OffsetCommitRequestTopic, epoch: i32, topics: &Topics) -> bool {
    let id = topics.get(&topic.name).map_or(topic.topic_id, |known| known.id);
    topic.partitions.iter().all(|partition| {
        let held = |held: &super::stored::Held| held.get(&id)?.get(&partition.partition_index).copied();
        let since = held(&member.assigned).or_else(|| held(&member.revoking));
        since.is_some_and(|since| since <= epoch)
    })
}

/// Whether a member may fetch offsets. Who does not say that it is a member may.
pub(in crate::coordinator) fn validate_fetch(
    group: &StoredConsumer,
    member: Option<&str>,
    epoch: i32,
) -> Result<(), ErrorCode> {
    let Some(id) = member else { return Ok(()) };
    let known = group.members.get(id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
    if epoch == known.epoch { Ok(()) } else { Err(wrong_epoch(known)) }
}
