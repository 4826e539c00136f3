//! A classic group with members becomes a consumer group: its members stay what they are, their last assignment becomes
//! what they have and what they are to have, their generation becomes their epoch.
//!
//! A cooperative member that has not fetched that assignment yet still uses what it had when it joined. Kafka forgets
//! that; here it has it until it says otherwise. Whether it happens is decided here, and what is written. Mirrors `validateOnlineUpgrade` and
//! `ConsumerGroup.fromClassicGroup`.

use super::{
    by_name,
    draft::Draft,
    stored::{ConsumerMember, Held, Partitions, StoredConsumer, each},
    target::metadata_hash,
    validate::Refusal,
};
use crate::{
    coordinator::{
        classic::{ClassicGroup, Member},
        config::CoordinatorConfig,
        durable::as_millis,
    },
    topics::Topics,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{
    ErrorCode, Uuid,
    consumer_protocol::{Assignment, Subscription, TopicPartitions},
    group_records::{ClassicMemberMetadata, ClassicProtocol},
};

const CUSTOM: &str = "an unsupported custom assignor is in use. Please refer to the documentation or switch to a \
                      default assignor before re-attempting the upgrade";
const MALFORMED: &str = "the embedded consumer protocol is malformed";

fn refused(group: &ClassicGroup, why: &str) -> Refusal {
    let message = format!("Cannot upgrade classic group {} to consumer group because {why}.", group.id);
    Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message)
}

/// Whether the group may become a consumer group while it has members.
pub(super) fn check(group: &ClassicGroup, config: &CoordinatorConfig) -> Result<(), Refusal> {
    if !config.consumer_migration_policy.upgrades() {
        return Err(refused(group, "online upgrade is disabled"));
    }
    if !group.is_of_consumers() {
        return Err(refused(group, "the group does not use the consumer embedded protocol"));
    }
    if group.members().count() > config.consumer_group_max_size {
        return Err(refused(group, "the group size exceeds the consumer group maximum size"));
    }
    Ok(())
}

/// The group as a consumer group, with the records that make it one.
pub(super) fn convert(
    group: &ClassicGroup,
    topics: &Topics,
) -> Result<(StoredConsumer, Vec<super::ConsumerRecord>), Refusal> {
    let members: Result<BTreeMap<Arc<str>, ConsumerMember>, &str> =
        group.members().map(|member| Ok((member.id.clone(), as_consumer(group, member, topics)?))).collect();
    let mut members = members.map_err(|why| refused(group, why))?;
    let targets: BTreeMap<Arc<str>, Partitions> =
        members.iter().map(|(id, member)| (id.clone(), existing(&member.assigned, topics))).collect();
    keep_what_is_used(group, topics, &mut members);
    let empty = StoredConsumer::default();
    let mut draft = Draft::new(&group.id, &empty, topics);
    members.iter().for_each(|(id, member)| draft.write_member(id, member));
    let mut wanted = BTreeMap::new();
    for name in members.values().flat_map(|member| &member.names) {
        if let Some((name, topic)) = topics.get_key_value(name) {
            wanted.insert(name.clone(), topic.clone());
        }
    }
    let wanted: Vec<_> = wanted.into_iter().collect();
    draft.bump(group.generation(), metadata_hash(&wanted));
    targets.into_iter().for_each(|(id, target)| draft.write_target(&id, target));
    draft.write_target_epoch(group.generation(), 0);
    members.iter().for_each(|(id, member)| draft.write_current(id, member));
    let mut stored = StoredConsumer::default();
    draft.records.iter().for_each(|record| stored.apply(record));
    Ok((stored, draft.records))
}

fn as_consumer(
    group: &ClassicGroup,
    member: &Member,
    topics: &Topics,
) -> Result<ConsumerMember, &'static str> {
    let protocols = member.protocols();
    let subscription =
        Subscription::from_metadata(member.metadata(chosen(group, member))).map_err(|_| MALFORMED)?;
    let assignment = Assignment::from_assignment(member.assignment.clone()).map_err(|_| MALFORMED)?;
    if assignment.user_data.is_some_and(|data| !data.is_empty()) {
        return Err(CUSTOM);
    }
    let generation = group.generation();
    let supported_protocols =
        protocols.into_iter().map(|(name, metadata)| ClassicProtocol { name: name.to_owned(), metadata });
    Ok(ConsumerMember {
        instance_id: member.instance_id.clone(),
        rack_id: subscription.rack_id,
        client_id: member.client.client_id.clone(),
        client_host: member.client.client_host.clone(),
        names: subscription.topics.into_iter().collect(),
        rebalance_timeout_ms: as_millis(member.rebalance_timeout()),
        classic: Some(ClassicMemberMetadata {
            session_timeout_ms: as_millis(member.session_timeout()),
            supported_protocols: supported_protocols.collect(),
        }),
        // Who has not joined since the group was last a consumer group is told to, instead of being thrown out.
        epoch: group.generation_of(member),
        previous_epoch: group.generation_of(member),
        assigned: held(assignment.assigned_partitions, topics, generation),
        ..ConsumerMember::default()
    })
}

/// What of it is there. Members may use what is not there, or has only just gone, by its name.
fn existing(held: &Held, topics: &Topics) -> Partitions {
    let counts: BTreeMap<Uuid, i32> = topics.iter().map(|(_, topic)| (topic.id, topic.partitions)).collect();
    let mut there = Partitions::new();
    for (topic, partition) in each(held) {
        if counts.get(&topic).is_some_and(|count| (0..*count).contains(&partition)) {
            there.entry(topic).or_default().insert(partition);
        }
    }
    there
}

/// What members said that they own, and nobody was assigned.
fn keep_what_is_used(
    group: &ClassicGroup,
    topics: &Topics,
    members: &mut BTreeMap<Arc<str>, ConsumerMember>,
) {
    let mut taken: BTreeSet<(Uuid, i32)> =
        members.values().flat_map(|member| each(&member.assigned)).collect();
    for member in group.members() {
        let Some(consumer) = members.get_mut(&member.id) else { continue };
        let metadata = member.metadata(chosen(group, member));
        let Ok(subscription) = Subscription::from_metadata(metadata) else { continue };
        let owned = held(subscription.owned_partitions, topics, group.generation());
        for (topic, partition) in each(&owned) {
            if taken.insert((topic, partition)) {
                consumer.assigned.entry(topic).or_default().insert(partition, group.generation());
            }
        }
    }
}

/// The protocol that counts for a member.
fn chosen<'a>(group: &'a ClassicGroup, member: &'a Member) -> &'a str {
    group.protocol().unwrap_or_else(|| member.protocols().first().map_or("", |(name, _)| name))
}

/// Partitions by the ids of their topics, each with the epoch in which it was assigned.
fn held(partitions: Vec<TopicPartitions>, topics: &Topics, epoch: i32) -> Held {
    let by_id = by_name::by_id(partitions, topics).into_iter();
    let with_epoch = |(topic, partitions): (Uuid, Vec<i32>)| {
        (topic, partitions.into_iter().map(|partition| (partition, epoch)).collect())
    };
    by_id
        .map(with_epoch)
        .filter(|(_, partitions): &(Uuid, BTreeMap<i32, i32>)| !partitions.is_empty())
        .collect()
}
