//! Which offsets are forgotten: those nobody has used for the retention time, those of deleted topics, and all of a
//! deleted group. Mirrors `cleanupExpiredOffsets` and `offsetExpirationCondition`.

use super::tombstone;
use crate::{
    coordinator::{
        classic::ClassicGroup, consumer::StoredConsumer, durable::Durable, output::GroupState, record::Record,
    },
    topics::Topics,
};

/// Offsets of a group that are too old, and whether none is left without them.
pub(in crate::coordinator) fn expired(
    durable: &Durable,
    group: &ClassicGroup,
    wall_ms: i64,
    retention_ms: i64,
) -> (Vec<Record>, bool) {
    let Some(unused_since) = unused_since(group) else { return (Vec::new(), false) };
    let mut records = Vec::new();
    let mut all = true;
    for (partition, offset) in durable.offsets(&group.id) {
        let since = match unused_since {
            Since::Commit => offset.commit_timestamp,
            Since::Empty(at) => at,
        };
        let ended = match offset.expire_timestamp {
            Some(at) => wall_ms >= at,
            None => wall_ms.saturating_sub(since) >= retention_ms,
        };
        if ended && !group.is_subscribed_to(&partition.topic) {
            records.push(tombstone(&group.id, partition));
        } else {
            all = false;
        }
    }
    (records, all)
}

/// From when on the retention time of an offset runs.
#[derive(Clone, Copy)]
enum Since {
    Commit,
    Empty(i64),
}

/// From when on offsets count as unused; `None` when they are in use.
fn unused_since(group: &ClassicGroup) -> Option<Since> {
    if group.protocol_type().is_none() {
        return Some(Since::Commit);
    }
    match group.state() {
        GroupState::Empty => Some(Since::Empty(group.since_ms())),
        GroupState::Stable if group.is_of_consumers() && group.knows_subscriptions() => Some(Since::Commit),
        GroupState::Stable
        | GroupState::PreparingRebalance
        | GroupState::CompletingRebalance
        | GroupState::Assigning
        | GroupState::Reconciling
        | GroupState::Dead => None,
    }
}

/// The same of a consumer group: what nobody subscribes to is kept for the retention time after its commit.
pub(in crate::coordinator) fn expired_of_consumer(
    durable: &Durable,
    id: &str,
    group: &StoredConsumer,
    wall_ms: i64,
    retention_ms: i64,
) -> (Vec<Record>, bool) {
    let mut records = Vec::new();
    let mut all = true;
    for (partition, offset) in durable.offsets(id) {
        let ended = wall_ms.saturating_sub(offset.commit_timestamp) >= retention_ms;
        if ended && !group.is_subscribed_to(&partition.topic) {
            records.push(tombstone(id, partition));
        } else {
            all = false;
        }
    }
    (records, all)
}

/// Offsets of topics that are gone, or were made anew under the same name.
pub(in crate::coordinator) fn of_deleted_topics(durable: &Durable, topics: &Topics) -> Vec<Record> {
    let mut records = Vec::new();
    for (group, offsets) in durable.all_offsets() {
        let gone = offsets.iter().filter(|(partition, offset)| match topics.get(&partition.topic) {
            None => true,
            Some(topic) => topic.id != offset.topic_id && !topic.id.is_zero() && !offset.topic_id.is_zero(),
        });
        records.extend(gone.map(|(partition, _)| tombstone(group, partition)));
    }
    records
}

/// All offsets of a group.
pub(in crate::coordinator) fn of_group(durable: &Durable, group: &str) -> Vec<Record> {
    durable.offsets(group).map(|(partition, _)| tombstone(group, partition)).collect()
}
