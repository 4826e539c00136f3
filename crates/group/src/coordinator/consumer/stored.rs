//! A consumer group as its records say. Unlike a classic group it has nothing that is not in the log.

use super::{record::ConsumerRecord, tally::Tally};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{
    Uuid,
    group_records::{
        ClassicMemberMetadata, ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue,
        TopicPartition, TopicPartitions,
    },
};

/// Partitions of topics.
pub type Partitions = BTreeMap<Uuid, BTreeSet<i32>>;

/// Partitions of topics, each with the epoch in which the member got it.
pub type Held = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// A consumer group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredConsumer {
    /// Rises with everything that asks for another assignment.
    pub epoch: i32,
    /// Tells whether the topics are still as they were.
    pub metadata_hash: i64,
    /// The epoch for which the targets were computed.
    pub target_epoch: i32,
    /// When that was, milliseconds since 1970; 0 when there is nothing to wait for.
    pub target_timestamp: i64,
    /// Its members, by id.
    pub members: BTreeMap<Arc<str>, ConsumerMember>,
    /// What each member is to have.
    pub targets: BTreeMap<Arc<str>, Partitions>,
    /// Which topics the regular expressions of members mean.
    pub regexes: BTreeMap<String, BTreeSet<String>>,
    /// Who has a partition, or has not let go of it yet. Follows from the members.
    owners: BTreeMap<(Uuid, i32), Arc<str>>,
    /// Sums over the members. Follows from the members.
    pub(super) tally: Tally,
    /// Static members. Follows from the members.
    instances: BTreeMap<Arc<str>, Arc<str>>,
}

/// A member of a consumer group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerMember {
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// `client.rack`.
    pub rack_id: Option<String>,
    /// How its client calls itself.
    pub client_id: String,
    /// Where it is.
    pub client_host: String,
    /// The topics it wants by name.
    pub names: BTreeSet<String>,
    /// The regular expression of the topics it wants; empty for none.
    pub regex: String,
    /// How long it may take to let go of partitions.
    pub rebalance_timeout_ms: i32,
    /// The assignor it would like.
    pub server_assignor: Option<String>,
    /// What it said when it joined, if it speaks the classic protocol.
    pub classic: Option<ClassicMemberMetadata>,
    /// The epoch it is at; -2 when it is away for a while.
    pub epoch: i32,
    /// The epoch it was at before.
    pub previous_epoch: i32,
    /// How far it is on the way to its target.
    pub state: MemberState,
    /// What it has.
    pub assigned: Held,
    /// What it was told to let go of, and has not yet.
    pub revoking: Held,
}

/// How far a member is on the way to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberState {
    /// It has what it is to have at its epoch.
    #[default]
    Stable,
    /// It has to let go of partitions first.
    Unrevoked,
    /// Others have to let go of partitions that it is to have.
    Unreleased,
}

impl MemberState {
    fn code(self) -> i8 {
        match self {
            Self::Stable => 0,
            Self::Unrevoked => 1,
            Self::Unreleased => 2,
        }
    }

    fn from_code(code: i8) -> Self {
        match code {
            1 => Self::Unrevoked,
            2 => Self::Unreleased,
            _ => Self::Stable,
        }
    }
}

impl StoredConsumer {
    /// Applies a record of this group.
    pub(in crate::coordinator) fn apply(&mut self, record: &ConsumerRecord) {
        match record {
            ConsumerRecord::Group(_, Some(value)) => {
                (self.epoch, self.metadata_hash) = (value.epoch, value.metadata_hash);
            }
            ConsumerRecord::Group(_, None) => {}
            ConsumerRecord::TargetEpoch(_, value) => {
                let value = value.as_ref().map(|v| (v.assignment_epoch, v.assignment_timestamp));
                (self.target_epoch, self.target_timestamp) = value.unwrap_or((-1, 0));
            }
            ConsumerRecord::Target(key, Some(value)) => {
                let target = value
                    .topic_partitions
                    .iter()
                    .map(|t| (t.topic_id, t.partitions.iter().copied().collect()));
                self.targets.insert(key.member_id.as_str().into(), target.collect());
            }
            ConsumerRecord::Target(key, None) => drop(self.targets.remove(key.member_id.as_str())),
            ConsumerRecord::Member(key, Some(value)) => self.apply_member(&key.member_id, value),
            ConsumerRecord::Member(key, None) => self.remove(&key.member_id),
            ConsumerRecord::Current(key, value) => self.apply_current(&key.member_id, value.as_ref()),
            ConsumerRecord::Regex(key, Some(value)) => {
                self.regexes.insert(key.regular_expression.clone(), value.topics.iter().cloned().collect());
            }
            ConsumerRecord::Regex(key, None) => drop(self.regexes.remove(&key.regular_expression)),
        }
    }

    fn apply_member(&mut self, id: &str, value: &ConsumerGroupMemberMetadataValue) {
        let id: Arc<str> = id.into();
        let instance = value.instance_id.as_deref().map(Arc::from);
        if let Some(before) = self.members.get(&id) {
            self.tally.remove(before);
            forget_instance(&mut self.instances, before, &id);
        }
        if let Some(instance) = &instance {
            self.instances.insert(Arc::clone(instance), id.clone());
        }
        let member = self.members.entry(id).or_default();
        member.instance_id = instance;
        member.rack_id = value.rack_id.clone();
        member.client_id = value.client_id.clone();
        member.client_host = value.client_host.clone();
        member.names = value.subscribed_topic_names.iter().cloned().collect();
        member.regex = value.subscribed_topic_regex.clone().unwrap_or_default();
        member.rebalance_timeout_ms = value.rebalance_timeout_ms;
        member.server_assignor = value.server_assignor.clone();
        member.classic = value.classic_member_metadata.clone();
        self.tally.add(member);
    }

    fn apply_current(&mut self, id: &str, value: Option<&ConsumerGroupCurrentMemberAssignmentValue>) {
        self.disown(id);
        if let Some(before) = self.members.get(id) {
            self.tally.remove(before);
        }
        let Some(value) = value else {
            if let Some(member) = self.members.get_mut(id) {
                (member.epoch, member.previous_epoch, member.state) = (0, 0, MemberState::Stable);
                (member.assigned, member.revoking) = (Held::new(), Held::new());
                self.tally.add(member);
            }
            return;
        };
        let id: Arc<str> = id.into();
        let member = self.members.entry(id.clone()).or_default();
        member.epoch = value.member_epoch;
        member.previous_epoch = value.previous_member_epoch;
        member.state = MemberState::from_code(value.state);
        member.assigned = held(&value.assigned_partitions, value.member_epoch);
        member.revoking = held(&value.partitions_pending_revocation, value.member_epoch);
        self.tally.add(member);
        for (topic, partition) in each(&member.assigned).chain(each(&member.revoking)) {
            self.owners.insert((topic, partition), id.clone());
        }
    }

    fn remove(&mut self, id: &str) {
        self.disown(id);
        let Some(member) = self.members.remove(id) else { return };
        self.tally.remove(&member);
        forget_instance(&mut self.instances, &member, id);
    }

    fn disown(&mut self, id: &str) {
        let Some(member) = self.members.get(id) else { return };
        for place in each(&member.assigned).chain(each(&member.revoking)) {
            if self.owners.get(&place).is_some_and(|owner| **owner == *id) {
                self.owners.remove(&place);
            }
        }
    }

    /// Who has this partition, or has not let go of it yet.
    pub fn owner(&self, topic: Uuid, partition: i32) -> Option<&Arc<str>> {
        self.owners.get(&(topic, partition))
    }

    /// The member that is this instance.
    pub fn instance(&self, instance: &str) -> Option<&Arc<str>> {
        self.instances.get(instance)
    }

    /// What a member is to have; nothing when it was not dealt with yet.
    pub fn target(&self, member: &str) -> Partitions {
        self.targets.get(member).cloned().unwrap_or_default()
    }
}

/// The member is not this instance any more, unless somebody else is already.
fn forget_instance(instances: &mut BTreeMap<Arc<str>, Arc<str>>, member: &ConsumerMember, id: &str) {
    if let Some(instance) = &member.instance_id
        && instances.get(instance).is_some_and(|owner| **owner == *id)
    {
        instances.remove(instance);
    }
}

fn held(topics: &[TopicPartitions], epoch: i32) -> Held {
    let topic = |t: &TopicPartitions| {
        let epochs = t.assignment_epochs.clone().unwrap_or_default();
        let with = |(i, partition): (usize, &i32)| (*partition, epochs.get(i).copied().unwrap_or(epoch));
        (t.topic_id, t.partitions.iter().enumerate().map(with).collect())
    };
    topics.iter().map(topic).collect()
}

/// Every partition that is held.
pub(super) fn each(held: &Held) -> impl Iterator<Item = (Uuid, i32)> {
    held.iter().flat_map(|(topic, partitions)| partitions.keys().map(|partition| (*topic, *partition)))
}

fn held_record(held: &Held) -> Vec<TopicPartitions> {
    let topic = |(topic_id, partitions): (&Uuid, &BTreeMap<i32, i32>)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.keys().copied().collect(),
        assignment_epochs: Some(partitions.values().copied().collect()),
    };
    held.iter().map(topic).collect()
}

impl ConsumerMember {
    /// The value of the record of what it wants.
    pub(super) fn metadata_value(&self) -> ConsumerGroupMemberMetadataValue {
        ConsumerGroupMemberMetadataValue {
            instance_id: self.instance_id.as_deref().map(str::to_owned),
            rack_id: self.rack_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            subscribed_topic_names: self.names.iter().cloned().collect(),
            subscribed_topic_regex: Some(self.regex.clone()),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            server_assignor: self.server_assignor.clone(),
            classic_member_metadata: self.classic.clone(),
        }
    }

    /// The value of the record of what it has.
    pub(super) fn current_value(&self) -> ConsumerGroupCurrentMemberAssignmentValue {
        ConsumerGroupCurrentMemberAssignmentValue {
            member_epoch: self.epoch,
            previous_member_epoch: self.previous_epoch,
            state: self.state.code(),
            assigned_partitions: held_record(&self.assigned),
            partitions_pending_revocation: held_record(&self.revoking),
        }
    }
}

/// The value of the record of what a member is to have.
pub(super) fn target_value(target: &Partitions) -> Vec<TopicPartition> {
    let topic = |(topic_id, partitions): (&Uuid, &BTreeSet<i32>)| TopicPartition {
        topic_id: *topic_id,
        partitions: partitions.iter().copied().collect(),
    };
    target.iter().filter(|(_, partitions)| !partitions.is_empty()).map(topic).collect()
}
