//! A consumer group whose last member of the consumer protocol goes becomes a classic group again: what its members have
//! becomes their assignments, its epoch the generation.
//!
//! Kafka takes what they are to have. A member that still uses more, and has not joined again when the group goes over
//! once more, would then share partitions with somebody else. Mirrors `validateOnlineDowngradeWithFencedMembers` and `ClassicGroup.fromConsumerGroup`.

use super::{
    ConsumerRecord,
    draft::Draft,
    stored::{ConsumerMember, StoredConsumer, each},
};
use crate::{
    coordinator::{
        classic::{Migrant, record_of_migrants, version_of},
        config::CoordinatorConfig,
        durable::millis,
        output::ClientInfo,
        record::Record,
    },
    topics::Topics,
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{
    Uuid,
    consumer_protocol::{Assignment, TopicPartitions},
    group_records::*,
};

/// Whether the group becomes classic when these members go, and this many classic ones come.
pub(super) fn is_due(
    group: &StoredConsumer,
    leaving: &[Arc<str>],
    joining: usize,
    config: &CoordinatorConfig,
) -> bool {
    let mut stay = group.members.iter().filter(|(id, _)| !leaving.contains(id)).map(|(_, member)| member);
    let goes = |id: &Arc<str>| group.members.get(id).is_some_and(|member| member.classic.is_none());
    let left = group.members.len().saturating_sub(leaving.len()) + joining;
    config.consumer_migration_policy.downgrades()
        && leaving.iter().any(goes)
        && (1..=config.group_max_size).contains(&left)
        && stay.all(|member| member.classic.is_some())
}

/// What makes the group a classic one.
pub(super) struct Change<'a> {
    /// Who goes.
    pub(super) leaving: &'a [Arc<str>],
    /// Whose place is taken, by whom.
    pub(super) joining: Option<(&'a Arc<str>, &'a Arc<str>, &'a ConsumerMember)>,
    /// Everybody has what it is to have, with those who come: nobody has to come together.
    pub(super) at_rest: bool,
}

/// Records that end the consumer group and begin the classic one, whose members come together then. Where they do not have to,
/// the group's record is written once more: one without an end before it stands as it is (see `Durable::apply`).
pub(super) fn records(
    id: &str,
    group: &StoredConsumer,
    change: &Change<'_>,
    names: &BTreeMap<Uuid, &str>,
    wall_ms: i64,
) -> Vec<Record> {
    let mut migrants = Vec::new();
    for (member_id, member) in &group.members {
        let (new_id, member) = match change.joining {
            Some((replaced, new_id, member)) if replaced == member_id => (new_id, member),
            _ => (member_id, member),
        };
        if !change.leaving.contains(new_id) {
            migrants.push(migrant(new_id, member, names));
        }
    }
    let mut records: Vec<Record> = tombstones(id, group).into_iter().map(Record::Consumer).collect();
    let record = record_of_migrants(id.into(), group.epoch, wall_ms, migrants);
    records.extend(change.at_rest.then(|| record.clone()));
    records.push(record);
    records
}

fn migrant(id: &Arc<str>, member: &ConsumerMember, names: &BTreeMap<Uuid, &str>) -> Migrant {
    let classic = member.classic.clone().unwrap_or_default();
    let mut has: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for (topic, partition) in each(&member.assigned).chain(each(&member.revoking)) {
        if let Some(name) = names.get(&topic) {
            has.entry(name).or_default().insert(partition);
        }
    }
    let topic = |(topic, partitions): (&str, BTreeSet<i32>)| TopicPartitions {
        topic: topic.to_owned(),
        partitions: partitions.into_iter().collect(),
    };
    let assigned = Assignment { assigned_partitions: has.into_iter().map(topic).collect(), user_data: None };
    Migrant {
        id: id.clone(),
        instance_id: member.instance_id.clone(),
        client: ClientInfo { client_id: member.client_id.clone(), client_host: member.client_host.clone() },
        session_timeout: millis(classic.session_timeout_ms),
        rebalance_timeout: millis(member.rebalance_timeout_ms),
        protocols: classic.supported_protocols.into_iter().map(|p| (p.name, p.metadata)).collect(),
        assigned,
    }
}

/// What a classic member has, in the words and the version that it speaks.
pub(super) fn assignment_of(member: &ConsumerMember, topics: &Topics) -> Bytes {
    let names: BTreeMap<Uuid, &str> = topics.iter().map(|(name, topic)| (topic.id, &**name)).collect();
    let assigned_partitions = member.assigned.iter().filter_map(|(topic, partitions)| {
        let topic = (*names.get(topic)?).to_owned();
        Some(TopicPartitions { topic, partitions: partitions.keys().copied().collect() })
    });
    let assigned_partitions = assigned_partitions.filter(|topic| !topic.partitions.is_empty()).collect();
    let version = member
        .classic
        .as_ref()
        .and_then(|classic| classic.supported_protocols.first())
        .map_or(0, |protocol| version_of(&protocol.metadata));
    Assignment { assigned_partitions, user_data: None }.to_assignment(version)
}

/// In Kafka's order: what members have, what they are to have, what they want, and the group.
fn tombstones(id: &str, group: &StoredConsumer) -> Vec<ConsumerRecord> {
    let group_id = id.to_owned();
    let topics = Topics::new();
    let mut draft = Draft::new(id, group, &topics);
    let members = |of: fn(String, String) -> ConsumerRecord| {
        group.members.keys().map(move |member| of(id.to_owned(), member.to_string()))
    };
    draft.records.extend(members(|group_id, member_id| {
        ConsumerRecord::Current(ConsumerGroupCurrentMemberAssignmentKey { group_id, member_id }, None)
    }));
    draft.records.extend(members(|group_id, member_id| {
        ConsumerRecord::Target(ConsumerGroupTargetAssignmentMemberKey { group_id, member_id }, None)
    }));
    let target = ConsumerGroupTargetAssignmentMetadataKey { group_id: group_id.clone() };
    draft.records.push(ConsumerRecord::TargetEpoch(target, None));
    draft.records.extend(members(|group_id, member_id| {
        ConsumerRecord::Member(ConsumerGroupMemberMetadataKey { group_id, member_id }, None)
    }));
    for regular_expression in group.regexes.keys().cloned() {
        let key = ConsumerGroupRegularExpressionKey { group_id: group_id.clone(), regular_expression };
        draft.records.push(ConsumerRecord::Regex(key, None));
    }
    draft.records.push(ConsumerRecord::Group(ConsumerGroupMetadataKey { group_id }, None));
    draft.records
}
