//! The group as its record says, both ways. Mirrors `newGroupMetadataRecord` and the replay of it.

use super::{ClassicGroup, Phase, member::Member, vote::Protocol};
use crate::{
    cause::Cause,
    coordinator::{
        durable::{StoredClassic, StoredMember, as_millis},
        effects::Effects,
        output::ClientInfo,
        record::Record,
    },
    time::Duration,
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{
    consumer_protocol::{Assignment, PROTOCOL_TYPE, Subscription},
    group_records::{GroupMetadataKey, GroupMetadataValue, MemberMetadata},
};

impl ClassicGroup {
    /// A group that was found in the log. Its members' sessions begin now.
    pub(in crate::coordinator) fn from_stored(
        fx: &mut Effects<'_>,
        id: &Arc<str>,
        stored: &StoredClassic,
    ) -> Self {
        let mut group = Self::new(id.clone(), stored.since_ms.unwrap_or(fx.wall_ms));
        group.generation = stored.generation;
        group.protocol_type = stored.protocol_type.clone();
        group.protocol = stored.protocol.clone();
        group.cause = Cause::CoordinatorMoved;
        for (id, member) in &stored.members {
            group.take_in(id, member);
        }
        group.leader = stored.leader.clone().filter(|id| group.members.contains_key(id));
        if !group.members.is_empty() {
            group.phase = Phase::Stable { syncing: None };
        }
        group.subscribed = group.read_subscriptions();
        for id in stored.members.keys() {
            group.restart_session(fx, id);
        }
        group
    }

    fn take_in(&mut self, id: &Arc<str>, stored: &StoredMember) {
        if let Some(instance) = &stored.instance_id {
            self.instances.insert(instance.clone(), id.clone());
        }
        let name = self.protocol.clone().unwrap_or_default();
        self.seat(Member {
            id: id.clone(),
            instance_id: stored.instance_id.clone(),
            client: ClientInfo {
                client_id: stored.client_id.clone(),
                client_host: stored.client_host.clone(),
            },
            assignment: stored.assignment.clone(),
            session_timeout: stored.session_timeout,
            rebalance_timeout: stored.rebalance_timeout,
            protocols: vec![Protocol { name, metadata: stored.subscription.clone() }],
            ..Member::default()
        });
    }

    fn take_in_migrant(&mut self, migrant: Migrant) {
        let protocol = |(name, metadata)| Protocol { name, metadata };
        self.seat(Member {
            id: migrant.id,
            instance_id: migrant.instance_id,
            client: migrant.client,
            session_timeout: migrant.session_timeout,
            rebalance_timeout: migrant.rebalance_timeout,
            protocols: migrant.protocols.into_iter().map(protocol).collect(),
            ..Member::default()
        });
    }

    /// A member that is at rest: nothing of it waits for an answer.
    fn seat(&mut self, mut member: Member) {
        self.support.add(&member.protocols);
        member.arrival = self.next_arrival;
        self.next_arrival += 1;
        self.members.insert(member.id.clone(), member);
    }

    /// The record of the group as it stands, with these assignments; members that are not named get none.
    pub(super) fn record_with(&self, assignments: &BTreeMap<&str, Bytes>) -> Record {
        let members = self.members.values().map(|member| {
            let assignment = assignments.get(&*member.id).cloned().unwrap_or_default();
            self.member_record(member, assignment)
        });
        self.record_of(members.collect())
    }

    /// The record of the group as it stands, with the assignments it has.
    pub(super) fn record(&self) -> Record {
        self.record_of(self.members.values().map(|m| self.member_record(m, m.assignment.clone())).collect())
    }

    /// The record of a group that nobody has joined yet: it exists, and no more.
    pub(in crate::coordinator) fn record_of_new(&self) -> Record {
        let value = GroupMetadataValue { current_state_timestamp: self.since_ms, ..Default::default() };
        Record::GroupMetadata(GroupMetadataKey { group: self.id.to_string() }, Some(value))
    }

    fn record_of(&self, members: Vec<MemberMetadata>) -> Record {
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.as_deref().map(str::to_owned),
            current_state_timestamp: self.since_ms,
            members,
        };
        Record::GroupMetadata(GroupMetadataKey { group: self.id.to_string() }, Some(value))
    }

    fn member_record(&self, member: &Member, assignment: Bytes) -> MemberMetadata {
        MemberMetadata {
            member_id: member.id.to_string(),
            group_instance_id: member.instance_id.as_deref().map(str::to_owned),
            client_id: member.client.client_id.clone(),
            client_host: member.client.client_host.clone(),
            rebalance_timeout: as_millis(member.rebalance_timeout),
            session_timeout: as_millis(member.session_timeout),
            subscription: member.metadata(self.protocol.as_deref().unwrap_or_default()),
            assignment,
        }
    }

    /// The topics of all members; `None` when their metadata is not that of consumers.
    pub(super) fn read_subscriptions(&self) -> Option<BTreeSet<String>> {
        let protocol_type = self.protocol_type.as_deref()?;
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_deref().filter(|_| protocol_type == PROTOCOL_TYPE)?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.extend(Subscription::from_metadata(member.metadata(protocol)).ok()?.topics);
        }
        Some(topics)
    }
}

/// A member that comes from a group of the other protocol.
#[derive(Debug)]
pub(in crate::coordinator) struct Migrant {
    pub(in crate::coordinator) id: Arc<str>,
    pub(in crate::coordinator) instance_id: Option<Arc<str>>,
    pub(in crate::coordinator) client: ClientInfo,
    pub(in crate::coordinator) session_timeout: Duration,
    pub(in crate::coordinator) rebalance_timeout: Duration,
    pub(in crate::coordinator) protocols: Vec<(String, Bytes)>,
    pub(in crate::coordinator) assigned: Assignment,
}

/// The record of a group that has these members from the start, with the protocol that they vote for. Each gets its
/// assignment in the version of the embedded protocol that it speaks.
pub(in crate::coordinator) fn record_of_migrants(
    id: Arc<str>,
    generation: i32,
    wall_ms: i64,
    migrants: Vec<Migrant>,
) -> Record {
    let mut group = ClassicGroup::new(id, wall_ms);
    group.generation = generation;
    group.protocol_type = Some(PROTOCOL_TYPE.to_owned());
    group.leader = migrants.first().map(|first| first.id.clone());
    let assigned: BTreeMap<Arc<str>, Assignment> =
        migrants.iter().map(|migrant| (migrant.id.clone(), migrant.assigned.clone())).collect();
    migrants.into_iter().for_each(|migrant| group.take_in_migrant(migrant));
    group.protocol = group.select_protocol();
    let protocol = group.protocol.clone().unwrap_or_default();
    for (id, member) in &mut group.members {
        let version = version_of(&member.metadata(&protocol));
        member.assignment = assigned.get(id).map(|a| a.to_assignment(version)).unwrap_or_default();
    }
    group.record()
}

/// The version of an embedded message, as far as it is known here.
pub(in crate::coordinator) fn version_of(metadata: &[u8]) -> i16 {
    const NEWEST: i16 = 3;
    metadata.first_chunk().map_or(0, |bytes| i16::from_be_bytes(*bytes).clamp(0, NEWEST))
}
