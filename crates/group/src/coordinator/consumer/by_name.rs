//! What members of the classic protocol use, by name: a topic that is deleted and comes again under its name is another
//! one to the group, with another id, and the same one to them.
//!
//! The group deals partitions by the ids of topics. A classic member that was assigned `orders-3` goes on with `orders-3`
//! when the topic behind it has become another, until it joins again and its next assignment says otherwise. So what it
//! was assigned of a topic that is gone keeps others away from what may have the same name now ([`used`]), and what it
//! says it has when it joins is what it has, whichever id it got that under ([`claimed`]). Kafka deals the new topic's
//! partitions at once, and two members share them.

use super::stored::{ConsumerMember, MemberState, StoredConsumer, each};
use crate::topics::Topics;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{Uuid, api::consumer_group_heartbeat::TopicPartitions, consumer_protocol};

/// Stands for the id of a topic that a member names and that does not exist. No topic has it.
pub(super) fn id_without_topic(name: &str) -> Uuid {
    // FNV-1a: the same on every machine and in every version.
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in name.bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    Uuid::from_u128(hash)
}

/// Partitions by the ids of their topics, also of topics and partitions that do not exist.
pub(super) fn by_id(
    partitions: impl IntoIterator<Item = consumer_protocol::TopicPartitions>,
    topics: &Topics,
) -> BTreeMap<Uuid, Vec<i32>> {
    let mut by_id: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    for named in partitions {
        let id = topics.get(&named.topic).map_or_else(|| id_without_topic(&named.topic), |topic| topic.id);
        by_id.entry(id).or_default().extend(named.partitions);
    }
    by_id
}

/// The names of the topics that members have something of: of those that exist, of those that are `gone`, and of those
/// that members name and that did not exist when it came to that.
pub(super) fn names<'a>(
    group: &'a StoredConsumer,
    topics: &'a Topics,
    gone: &'a BTreeMap<Uuid, Arc<str>>,
) -> BTreeMap<Uuid, &'a str> {
    let wanted = group.tally.names.keys().map(|name| (id_without_topic(name), name.as_str()));
    let gone = gone.iter().map(|(id, name)| (*id, &**name));
    let existing = topics.iter().map(|(name, topic)| (topic.id, &**name));
    wanted.chain(gone).chain(existing).collect()
}

/// Partitions that classic members other than `except` may use by their names, and got under ids that no topic has any more.
pub(super) fn used(group: &StoredConsumer, topics: &Topics, except: &[&Arc<str>]) -> BTreeSet<(Uuid, i32)> {
    if group.tally.classic == 0 {
        return BTreeSet::new();
    }
    let ids: BTreeSet<Uuid> = topics.iter().map(|(_, topic)| topic.id).collect();
    let others = group.members.iter().filter(|(id, m)| m.classic.is_some() && !except.contains(id));
    let has = |member| all(member).map(move |(topic, partition)| (member, topic, partition));
    let gone = others.flat_map(|(_, member)| has(member)).filter(|(_, topic, _)| !ids.contains(topic));
    let may_be = |(member, gone, partition): (&ConsumerMember, Uuid, i32)| {
        let same = move |name: &str| member.names.contains(name) || gone == id_without_topic(name);
        let topics = topics.iter().filter(move |(name, _)| same(name));
        topics.map(move |(_, topic)| (topic.id, partition)).collect::<Vec<_>>()
    };
    gone.flat_map(may_be).collect()
}

/// A classic member on its way to `target_epoch`, with what it says it has and nobody else does: it has to let go of it
/// before somebody else gets it.
pub(super) fn claimed(
    member: &ConsumerMember,
    target_epoch: i32,
    owned: &[TopicPartitions],
    is_others: impl Fn(Uuid, i32) -> bool,
) -> ConsumerMember {
    let mut member = member.clone();
    if member.state == MemberState::Stable && member.epoch == target_epoch {
        return member;
    }
    for TopicPartitions { topic_id, partitions } in owned {
        for &partition in partitions {
            let has = all(&member).any(|place| place == (*topic_id, partition));
            if !has && !is_others(*topic_id, partition) {
                member.assigned.entry(*topic_id).or_default().insert(partition, member.epoch);
            }
        }
    }
    member
}

fn all(member: &ConsumerMember) -> impl Iterator<Item = (Uuid, i32)> {
    each(&member.assigned).chain(each(&member.revoking))
}
