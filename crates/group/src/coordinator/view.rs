//! Groups as seen from outside, for inspection: pages, reports, tests. Mirrors nothing of Kafka.

use super::{
    Coordinator,
    classic::ClassicGroup,
    consumer::{self, StoredConsumer},
    durable::{Group, StoredClassic},
    output::GroupState,
};
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};

/// A group as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// The group's id.
    pub id: Arc<str>,
    /// Its state.
    pub state: GroupState,
    /// Its generation.
    pub generation: i32,
    /// `consumer` for groups of consumers; empty when nobody joined yet.
    pub protocol_type: String,
    /// The assignor that the members voted for.
    pub protocol: Option<String>,
    /// The member that assigns.
    pub leader: Option<Arc<str>>,
    /// Its members, by id.
    pub members: Vec<MemberView>,
    /// How many partitions it has committed offsets for.
    pub offsets: usize,
}

/// A member as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Its id.
    pub id: Arc<str>,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// How its client calls itself.
    pub client_id: String,
    /// Where it is.
    pub client_host: String,
    /// What the leader of a classic group assigned, as bytes of the embedded protocol.
    pub assignment: Bytes,
    /// Whether a JoinGroup of it is waiting for an answer.
    pub joining: bool,
    /// Whether a SyncGroup of it is waiting for an answer.
    pub syncing: bool,
    /// Whether it is a static member of a consumer group that has left for a while: it has nothing until it is back.
    pub away: bool,
}

impl Coordinator {
    /// All groups, by id.
    pub fn groups(&self) -> Vec<GroupView> {
        let mut views = BTreeMap::new();
        for (id, group) in self.durable.groups() {
            match group {
                Group::Classic(_) if self.volatile.classic.contains_key(id) => {}
                Group::Classic(stored) => drop(views.insert(id.clone(), GroupView::of_stored(id, stored))),
                Group::Consumer(stored) => drop(views.insert(id.clone(), GroupView::of_consumer(id, stored))),
            }
        }
        for (id, group) in &self.volatile.classic {
            views.insert(id.clone(), GroupView::of_live(group));
        }
        for (id, view) in &mut views {
            view.offsets = self.durable.offsets(id).count();
        }
        views.into_values().collect()
    }
}

impl GroupView {
    fn of_live(group: &ClassicGroup) -> Self {
        let members = group.members().map(|member| MemberView {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client.client_id.clone(),
            client_host: member.client.client_host.clone(),
            assignment: member.assignment.clone(),
            joining: member.is_joining(),
            syncing: member.is_syncing(),
            away: false,
        });
        Self {
            id: group.id.clone(),
            state: group.state(),
            generation: group.generation(),
            protocol_type: group.protocol_type().unwrap_or_default().to_owned(),
            protocol: group.protocol().map(str::to_owned),
            leader: group.leader().cloned(),
            members: members.collect(),
            offsets: 0,
        }
    }

    fn of_consumer(id: &Arc<str>, stored: &StoredConsumer) -> Self {
        let members = stored.members.iter().map(|(id, member)| MemberView {
            id: id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            assignment: Bytes::new(),
            joining: false,
            syncing: false,
            away: member.epoch < 0,
        });
        Self {
            id: id.clone(),
            state: consumer::state(stored),
            generation: stored.epoch,
            protocol_type: consumer::CONSUMER.to_owned(),
            protocol: None,
            leader: None,
            members: members.collect(),
            offsets: 0,
        }
    }

    /// A group that nobody has asked for since the start: it has no members, or its members would be live.
    fn of_stored(id: &Arc<str>, stored: &StoredClassic) -> Self {
        Self {
            id: id.clone(),
            state: GroupState::Empty,
            generation: stored.generation,
            protocol_type: stored.protocol_type.clone().unwrap_or_default(),
            protocol: stored.protocol.clone(),
            leader: None,
            members: Vec::new(),
            offsets: 0,
        }
    }
}
