//! ConsumerGroupHeartbeat of a member that joins or stays: who it is, what it wants, what it gets.
//!
//! Mirrors `consumerGroupHeartbeat` of `GroupMetadataManager`. Two things are better than there, both so that a lost
//! answer harms nobody: a static member whose first answer was lost may join again under the same id, and a member that
//! is one epoch behind and does not say what it has is told everything.

use super::{
    ServerAssignors, by_name,
    draft::Draft,
    reconcile::Step,
    regex,
    stored::{ConsumerMember, Held, MemberState, Partitions, StoredConsumer},
    tally::Tally,
    target::{Compute, metadata_hash},
    validate::{LEAVE_FOR_A_WHILE, Refusal},
};
use crate::{
    cause::Cause,
    coordinator::{config::InForce, output::ClientInfo},
    topics::Topics,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{ErrorCode, Uuid, api::consumer_group_heartbeat::*, group_records::ClassicMemberMetadata};

/// What a heartbeat meets.
pub(in crate::coordinator) struct Heartbeat<'a> {
    pub(in crate::coordinator) group: Option<&'a StoredConsumer>,
    pub(in crate::coordinator) topics: &'a Topics,
    /// How many members the group may have.
    pub(in crate::coordinator) size: usize,
    pub(in crate::coordinator) in_force: InForce,
    pub(in crate::coordinator) assignors: ServerAssignors,
    pub(in crate::coordinator) client: &'a ClientInfo,
    pub(in crate::coordinator) request: &'a ConsumerGroupHeartbeatRequest,
    pub(in crate::coordinator) wall_ms: i64,
    /// What a member of the classic protocol said: its JoinGroup is answered as a heartbeat, too.
    pub(in crate::coordinator) classic: Option<ClassicMemberMetadata>,
    /// The group was a classic one until now: its assignment is not what an assignor here would make of it.
    pub(in crate::coordinator) is_upgraded: bool,
}

/// What comes of it.
pub(in crate::coordinator) struct Beaten {
    pub(in crate::coordinator) records: Vec<super::ConsumerRecord>,
    pub(in crate::coordinator) response: ConsumerGroupHeartbeatResponse,
    pub(in crate::coordinator) member: Arc<str>,
    /// The member as it is then.
    pub(in crate::coordinator) after: ConsumerMember,
    /// The epoch that the group is in then.
    pub(in crate::coordinator) epoch: i32,
    /// A former id of the same static member.
    pub(in crate::coordinator) replaced: Option<Arc<str>>,
    /// How long it may take to let go of partitions, if it has to.
    pub(in crate::coordinator) must_release_within_ms: Option<i32>,
    /// The group's epoch has no target yet.
    pub(in crate::coordinator) target_is_due: bool,
    pub(in crate::coordinator) cause: Option<Cause>,
}

impl Heartbeat<'_> {
    /// Decides. Nothing changes until the records are applied.
    pub(in crate::coordinator) fn decide(&self) -> Result<Beaten, Refusal> {
        let nobody = StoredConsumer::default();
        let request = self.request;
        let group = match self.group {
            Some(group) => group,
            None if request.member_epoch == 0 => &nobody,
            None => {
                let message = format!("Consumer group {} not found.", request.group_id);
                return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message));
            }
        };
        let place = self.find(group)?;
        if let Place::Known(member) = &place
            && self.is_calm(group, member)
        {
            return Ok(self.calm_answer(member));
        }
        self.decide_for(group, place)
    }

    /// The member that speaks, once it is sure that it is the one it says.
    fn find<'g>(&self, group: &'g StoredConsumer) -> Result<Place<'g>, Refusal> {
        let request = self.request;
        let id = request.member_id.as_str();
        let joins = request.member_epoch == 0;
        if let Some(instance) = request.instance_id.as_deref() {
            match group.instance(instance) {
                None if !joins => {
                    let message = format!("Instance id {instance} is unknown.");
                    return Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, message));
                }
                None => {}
                Some(owner) if joins => return self.take_over(group, instance, owner),
                Some(owner) if **owner != *id => return Err(fenced_by(id, instance, owner)),
                Some(_) => {}
            }
        }
        match group.members.get(id) {
            Some(member) => {
                self.check_epoch(member)?;
                Ok(Place::Known(member))
            }
            None if joins => self.check_size(group).map(|()| Place::New),
            None => Err(not_a_member(id, &request.group_id)),
        }
    }

    fn take_over<'g>(
        &self,
        group: &'g StoredConsumer,
        instance: &str,
        owner: &'g Arc<str>,
    ) -> Result<Place<'g>, Refusal> {
        let id = self.request.member_id.as_str();
        match group.members.get(owner) {
            // Members of the classic protocol never leave for a while, and are replaced all the same.
            Some(member)
                if member.epoch == LEAVE_FOR_A_WHILE
                    || (**owner != *id && (member.classic.is_some() || self.classic.is_some())) =>
            {
                Ok(Place::Away(owner, member))
            }
            Some(member) if **owner == *id => Ok(Place::Known(member)),
            Some(_) | None => {
                let message = format!(
                    "Static member {id} with instance id {instance} cannot join the group because the instance id is \
                     owned by {owner} member."
                );
                Err(Refusal::new(ErrorCode::UNRELEASED_INSTANCE_ID, message))
            }
        }
    }

    fn check_size(&self, group: &StoredConsumer) -> Result<(), Refusal> {
        let size = self.size;
        if group.members.len() < size {
            return Ok(());
        }
        let message = format!("The consumer group has reached its maximum capacity of {size} members.");
        Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, message))
    }

    fn check_epoch(&self, member: &ConsumerMember) -> Result<(), Refusal> {
        let said = self.request.member_epoch;
        let fenced = |how: &str| {
            let known = member.epoch;
            let message = format!(
                "The consumer group member has a {how} member epoch ({said}) than the one known by the group \
                 coordinator ({known}). The member must abandon all its partitions and rejoin."
            );
            Err(Refusal::new(ErrorCode::FENCED_MEMBER_EPOCH, message))
        };
        if said == 0 || said == member.epoch {
            return Ok(());
        }
        if said > member.epoch {
            return fenced("greater");
        }
        // The answer that brought the newer epoch was lost. What the member was told to let go of meanwhile it may have.
        let may_have = |owned: &Partitions| within(owned, &member.assigned, &member.revoking);
        let lost = said == member.previous_epoch && self.owned().as_ref().is_none_or(may_have);
        if lost { Ok(()) } else { fenced("smaller") }
    }

    fn owned(&self) -> Option<Partitions> {
        let topics = self.request.topic_partitions.as_ref()?;
        Some(topics.iter().map(|t| (t.topic_id, t.partitions.iter().copied().collect())).collect())
    }

    /// Whether there is nothing to decide: the shortest way, for nearly all heartbeats of a group at rest.
    fn is_calm(&self, group: &StoredConsumer, member: &ConsumerMember) -> bool {
        let request = self.request;
        request.member_epoch == member.epoch
            && member.epoch == group.target_epoch
            && group.target_epoch == group.epoch
            && member.state == MemberState::Stable
            && member.classic.is_none()
            && request.subscribed_topic_names.is_none()
            && request.subscribed_topic_regex.is_none()
            && request.server_assignor.is_none()
            && request.rack_id.is_none()
            && request.rebalance_timeout_ms == -1
            && member.client_id == self.client.client_id
            && member.client_host == self.client.client_host
    }

    fn calm_answer(&self, member: &ConsumerMember) -> Beaten {
        Beaten {
            records: Vec::new(),
            response: self.response(member, false, true),
            member: self.request.member_id.as_str().into(),
            after: ConsumerMember::default(),
            epoch: member.epoch,
            replaced: None,
            must_release_within_ms: None,
            target_is_due: false,
            cause: None,
        }
    }

    fn decide_for(&self, group: &StoredConsumer, place: Place<'_>) -> Result<Beaten, Refusal> {
        let mut draft = Draft::new(&self.request.group_id, group, self.topics);
        let id: Arc<str> = self.request.member_id.as_str().into();
        let mut cause = None;
        let (before, replaced) = match place {
            Place::Known(member) => (member.clone(), None),
            Place::New => {
                cause = Some(Cause::MemberJoined { member: id.to_string() });
                (
                    ConsumerMember {
                        instance_id: self.request.instance_id.as_deref().map(Arc::from),
                        ..Default::default()
                    },
                    None,
                )
            }
            Place::Away(old, member) => {
                let instance = self.request.instance_id.clone().unwrap_or_default();
                cause = Some(Cause::StaticMemberReplaced { instance });
                (replace(&mut draft, old, &id, member), Some(old.clone()))
            }
        };
        let is_new = cause.is_some() && replaced.is_none();
        let member = self.updated(&before);
        let resubscribed = member.names != before.names || member.regex != before.regex;
        if is_new || wants_differ(&member, &before) {
            draft.write_member(&id, &member);
        }
        draft.changed = Some((id.clone(), member));
        self.enter_epoch(&mut draft, resubscribed)?;
        if draft.epoch != group.epoch && cause.is_none() {
            cause = Some(if resubscribed {
                Cause::SubscriptionChanged { member: id.to_string() }
            } else {
                Cause::AssignorChanged
            });
        }
        if draft.target_epoch < draft.epoch && self.may_compute(group) {
            draft.compute_target(Compute { assignors: self.assignors, wall_ms: self.wall_ms });
        }
        Ok(self.conclude(draft, id, replaced, &before, resubscribed, cause))
    }

    /// What the member says of itself now; what it does not say stays.
    fn updated(&self, before: &ConsumerMember) -> ConsumerMember {
        let request = self.request;
        let mut member = before.clone();
        // Whoever joins again may be static from now on; between joins no unknown instance id gets as far as here.
        if let Some(instance) = request.instance_id.as_deref() {
            member.instance_id = Some(instance.into());
        }
        if let Some(names) = &request.subscribed_topic_names {
            member.names = names.iter().cloned().collect();
        }
        if let Some(regex) = &request.subscribed_topic_regex {
            member.regex.clone_from(regex);
        }
        if request.rebalance_timeout_ms != -1 {
            member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        if request.server_assignor.is_some() {
            member.server_assignor.clone_from(&request.server_assignor);
        }
        if request.rack_id.is_some() {
            member.rack_id.clone_from(&request.rack_id);
        }
        member.client_id.clone_from(&self.client.client_id);
        member.client_host.clone_from(&self.client.client_host);
        member.classic.clone_from(&self.classic);
        member
    }

    /// Whatever asks for another assignment moves the group to another epoch; a new group begins with one of its own.
    fn enter_epoch(&self, draft: &mut Draft<'_>, resubscribed: bool) -> Result<(), Refusal> {
        let regex = draft.changed.as_ref().map(|(_, m)| m.regex.clone()).unwrap_or_default();
        if resubscribed && !regex.is_empty() && draft.resolved(&regex).is_none() {
            let topics = regex::resolve(&regex, self.topics)?;
            draft.resolve(&regex, topics, self.wall_ms);
        }
        if resubscribed {
            draft.forget_unused_regexes();
        }
        let is_new_group = draft.group.epoch == 0;
        let preferred = |tally: &Tally| self.assignors.preferred(&tally.assignors);
        let assignor_changed = preferred(&draft.tally()) != preferred(&draft.group.tally);
        let changed = resubscribed || self.is_upgraded || assignor_changed;
        if changed || is_new_group {
            let hash = metadata_hash(&draft.wanted());
            draft.bump(i32::from(is_new_group) + i32::from(changed), hash);
        }
        Ok(())
    }

    /// Targets are not computed more often than the interval allows, unless there is nothing to be gentle about.
    fn may_compute(&self, group: &StoredConsumer) -> bool {
        let interval = i64::try_from(self.in_force.assignment_interval.as_millis()).unwrap_or(i64::MAX);
        group.target_timestamp == 0 || self.wall_ms.saturating_sub(group.target_timestamp) >= interval
    }

    fn conclude(
        &self,
        mut draft: Draft<'_>,
        id: Arc<str>,
        replaced: Option<Arc<str>>,
        before: &ConsumerMember,
        resubscribed: bool,
        cause: Option<Cause>,
    ) -> Beaten {
        let member = draft.changed.take().map(|(_, member)| member).unwrap_or_default();
        let after = self.step(&draft, &id, replaced.as_ref(), &member, resubscribed);
        if !draft.group.members.contains_key(&id) || replaced.is_some() || has_differs(&after, before) {
            draft.write_current(&id, &after);
        }
        let request = self.request;
        let full = request.rebalance_timeout_ms != -1
            && request.topic_partitions.is_some()
            && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some());
        let behind = request.member_epoch != before.epoch;
        let tell =
            request.member_epoch == 0 || full || behind || !same_places(&after.assigned, &before.assigned);
        let settled = after.state == MemberState::Stable && after.epoch == draft.epoch;
        Beaten {
            response: self.response(&after, tell, settled),
            // Classic members have to join again, and to fetch their assignment, in time instead.
            must_release_within_ms: (after.state == MemberState::Unrevoked && after.classic.is_none())
                .then_some(after.rebalance_timeout_ms),
            target_is_due: draft.target_epoch < draft.epoch,
            epoch: draft.epoch,
            records: draft.records,
            member: id,
            after,
            replaced,
            cause,
        }
    }

    fn step(
        &self,
        draft: &Draft<'_>,
        id: &Arc<str>,
        replaced: Option<&Arc<str>>,
        member: &ConsumerMember,
        resubscribed: bool,
    ) -> ConsumerMember {
        let wanted: BTreeSet<Uuid> = draft
            .topics_of(member)
            .iter()
            .filter_map(|name| self.topics.get(name))
            .map(|topic| topic.id)
            .collect();
        let mut target = draft.target(id);
        target.retain(|topic, _| wanted.contains(topic));
        let is_others = |topic, partition| {
            draft.group.owner(topic, partition).is_some_and(|owner| owner != id && Some(owner) != replaced)
        };
        let selves: Vec<&Arc<str>> = replaced.into_iter().chain([id]).collect();
        let used = by_name::used(draft.group, self.topics, &selves);
        let taken = |topic, partition| is_others(topic, partition) || used.contains(&(topic, partition));
        let is_new = selves.iter().all(|id| !draft.group.members.contains_key(*id));
        let member = match &self.request.topic_partitions {
            Some(owned) if self.classic.is_some() && !is_new => {
                &by_name::claimed(member, draft.target_epoch, owned, is_others)
            }
            _ => member,
        };
        if !resubscribed && self.may_be_late(member, &target) {
            return member.clone();
        }
        let owned = self.owned();
        let step = Step {
            target: &target,
            target_epoch: draft.target_epoch,
            taken: &taken,
            owned: owned.as_ref(),
            resubscribed,
        };
        let mut after = step.take(member);
        let said = self.request.member_epoch;
        if said > 0 && said < member.epoch {
            // The member has not heard of the epoch it is at: this answer may be lost, too.
            after.previous_epoch = said;
        }
        after
    }

    /// Heartbeats have no numbers: a join of a known member may be one that something held up while a later one was
    /// answered. Then the member uses what it has, must not be taken at this word, and hears nothing of the answer. So
    /// nothing moves. Who really joins again goes on from what it had with its next word, which it says at once, as soon as
    /// there is something to be had: without, every join is taken at its word, as in Kafka.
    fn may_be_late(&self, member: &ConsumerMember, target: &Partitions) -> bool {
        let keeps = |(topic, held): (&Uuid, &BTreeMap<i32, i32>)| {
            target.get(topic).is_some_and(|target| held.keys().any(|partition| target.contains(partition)))
        };
        let joins_again = self.request.member_epoch == 0 && member.epoch > 0 && self.classic.is_none();
        joins_again && member.assigned.iter().any(keeps)
    }

    fn response(&self, member: &ConsumerMember, tell: bool, settled: bool) -> ConsumerGroupHeartbeatResponse {
        let interval = self.in_force.pace.interval(settled);
        ConsumerGroupHeartbeatResponse {
            member_id: Some(self.request.member_id.clone()),
            member_epoch: member.epoch,
            heartbeat_interval_ms: i32::try_from(interval.as_millis()).unwrap_or(i32::MAX),
            assignment: tell.then(|| assignment_of(&member.assigned)),
            ..Default::default()
        }
    }
}

/// Where a member that speaks stands.
enum Place<'a> {
    Known(&'a ConsumerMember),
    New,
    /// A static member that was away, under the id it had.
    Away(&'a Arc<str>, &'a ConsumerMember),
}

/// Puts a static member in the place of its former self, with everything it had.
fn replace(draft: &mut Draft<'_>, old: &Arc<str>, id: &Arc<str>, member: &ConsumerMember) -> ConsumerMember {
    let target = draft.target(old);
    let member = ConsumerMember { epoch: 0, previous_epoch: 0, ..member.clone() };
    draft.remove(old);
    draft.write_member(id, &member);
    draft.write_target(id, target);
    draft.write_current(id, &member);
    member
}

fn within(owned: &Partitions, assigned: &Held, revoking: &Held) -> bool {
    let has = |held: &Held, topic: &Uuid, partition: &i32| {
        held.get(topic).is_some_and(|held| held.contains_key(partition))
    };
    let mut places = owned.iter().flat_map(|(topic, partitions)| partitions.iter().map(move |p| (topic, p)));
    places.all(|(topic, partition)| has(assigned, topic, partition) || has(revoking, topic, partition))
}

fn wants_differ(a: &ConsumerMember, b: &ConsumerMember) -> bool {
    a.metadata_value() != b.metadata_value()
}

fn has_differs(a: &ConsumerMember, b: &ConsumerMember) -> bool {
    (a.epoch, a.previous_epoch, a.state) != (b.epoch, b.previous_epoch, b.state)
        || a.assigned != b.assigned
        || a.revoking != b.revoking
}

fn same_places(a: &Held, b: &Held) -> bool {
    super::stored::each(a).eq(super::stored::each(b))
}

fn assignment_of(held: &Held) -> Assignment {
    let topics = held.iter().filter(|(_, partitions)| !partitions.is_empty());
    let topic = |(topic_id, partitions): (&Uuid, &BTreeMap<i32, i32>)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.keys().copied().collect(),
    };
    Assignment { topic_partitions: topics.map(topic).collect() }
}

pub(super) fn fenced_by(id: &str, instance: &str, owner: &str) -> Refusal {
    let message = format!("Static member {id} with instance id {instance} was fenced by member {owner}.");
    Refusal::new(ErrorCode::FENCED_INSTANCE_ID, message)
}

pub(super) fn not_a_member(id: &str, group: &str) -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, format!("Member {id} is not a member of group {group}."))
}
