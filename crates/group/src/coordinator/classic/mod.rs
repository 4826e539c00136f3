//! A classic group while it lives: its members and the phase it is in.
//!
//! Here is what a group is and how members come into it and out of it. What happens on a request or a timeout has a file
//! of its own for each: `join`, `static_member`, `sync`, `heartbeat`, `leave`, `expire`; how a rebalance goes is in
//! `rebalance`, who wins the vote in `vote`, and what is written in `stored`. Mirrors `ClassicGroup`.

mod commit;
mod expire;
mod heartbeat;
mod join;
mod leave;
mod member;
mod rebalance;
mod static_member;
mod stored;
mod sync;
mod vote;

pub(super) use join::{Join, join_refused};
pub(super) use member::Member;
pub(super) use static_member::Replaced;
pub(super) use stored::{Migrant, record_of_migrants, version_of};
pub(super) use sync::{Sync, sync_refused};

use super::{effects::Effects, output::GroupState, session::Session, timers::TimerKey};
use crate::{
    cause::Cause,
    time::{Duration, Instant},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{ErrorCode, consumer_protocol::PROTOCOL_TYPE};
use vote::Support;

/// A classic group with everything that is not in the log.
#[derive(Debug)]
pub(super) struct ClassicGroup {
    pub(super) id: Arc<str>,
    phase: Phase,
    generation: i32,
    protocol_type: Option<String>,
    protocol: Option<String>,
    leader: Option<Arc<str>>,
    members: BTreeMap<Arc<str>, Member>,
    /// Static members: instance id to member id.
    instances: BTreeMap<Arc<str>, Arc<str>>,
    /// Ids that were handed out and not used yet.
    pending: BTreeMap<Arc<str>, Session>,
    support: Support,
    /// Topics that members subscribe to, as of this generation; `None` when that cannot be known.
    subscribed: Option<BTreeSet<String>>,
    /// Since when it is in its phase, milliseconds since 1970.
    since_ms: i64,
    /// Why the rebalance that is going on, or the last one, began.
    cause: Cause,
    /// How many members have a join parked.
    joined: usize,
    /// Members are numbered as they come: the longest-standing one leads.
    next_arrival: u64,
    /// The append that makes the group exist, while it is on its way: no reply may overtake it.
    pub(super) creating: Option<super::AppendId>,
}

/// The phase a group is in, with what only that phase has.
#[derive(Debug)]
enum Phase {
    Empty,
    /// Waiting for members to join.
    Preparing {
        /// When waiting ends.
        until: Instant,
        /// Set when the group was empty before: it waits a fixed time for first members to come together.
        initial: Option<Initial>,
    },
    /// Waiting for the leader's assignment.
    Completing {
        syncing: Syncing,
        /// The assignment is on its way to the log.
        storing: bool,
    },
    Stable {
        /// Members that have not fetched their assignment yet, if any.
        syncing: Option<Syncing>,
    },
    /// Being deleted.
    Dead,
}

/// The first rebalance of a group that was empty.
#[derive(Clone, Copy, Debug)]
struct Initial {
    delay: Duration,
    remaining: Duration,
    /// Somebody joined since the delay began: one more delay is worth it.
    more_came: bool,
}

/// Who has not fetched an assignment yet, and until when that is fine.
#[derive(Debug)]
struct Syncing {
    until: Instant,
    missing: BTreeSet<Arc<str>>,
}

impl ClassicGroup {
    /// A group that nobody has joined yet.
    pub(super) fn new(id: Arc<str>, wall_ms: i64) -> Self {
        Self {
            id,
            phase: Phase::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            pending: BTreeMap::new(),
            support: Support::default(),
            subscribed: None,
            since_ms: wall_ms,
            cause: Cause::Coordinator,
            joined: 0,
            next_arrival: 0,
            creating: None,
        }
    }

    pub(super) fn state(&self) -> GroupState {
        match &self.phase {
            Phase::Empty => GroupState::Empty,
            Phase::Preparing { .. } => GroupState::PreparingRebalance,
            Phase::Completing { .. } => GroupState::CompletingRebalance,
            Phase::Stable { .. } => GroupState::Stable,
            Phase::Dead => GroupState::Dead,
        }
    }

    pub(super) fn generation(&self) -> i32 {
        self.generation
    }

    pub(super) fn protocol_type(&self) -> Option<&str> {
        self.protocol_type.as_deref()
    }

    pub(super) fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    pub(super) fn leader(&self) -> Option<&Arc<str>> {
        self.leader.as_ref()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    pub(super) fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// Whether its members are consumers, whose subscriptions can be read.
    pub(super) fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(PROTOCOL_TYPE)
    }

    /// Whether the topics of its members are known.
    pub(super) fn knows_subscriptions(&self) -> bool {
        self.subscribed.is_some()
    }

    /// Whether a member uses this topic. A group of consumers whose subscriptions cannot be read may use any.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        self.subscribed.as_ref().map_or(self.is_of_consumers(), |topics| topics.contains(topic))
    }

    /// Whether nobody is in it and nobody is about to be.
    pub(super) fn is_unused(&self) -> bool {
        matches!(self.phase, Phase::Empty) && self.pending.is_empty()
    }

    /// Whether somebody is in it, or about to be.
    pub(super) fn is_used(&self) -> bool {
        !self.members.is_empty() || !self.pending.is_empty()
    }

    /// Nothing more happens in this group: it is being deleted.
    pub(super) fn kill(&mut self) {
        self.phase = Phase::Dead;
    }

    /// The deletion failed.
    pub(super) fn revive(&mut self) {
        self.phase = Phase::Empty;
    }

    fn is_leader(&self, member: &str) -> bool {
        self.leader.as_deref() == Some(member)
    }

    /// How long the group waits for its members: as long as the most patient one asks for.
    fn rebalance_timeout(&self) -> Duration {
        self.members.values().map(|m| m.rebalance_timeout).max().unwrap_or_default()
    }

    /// Whether `member` speaks for itself: it is one of the group, and of this instance if it names one.
    fn validate(&self, member: &str, instance: Option<&str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.instances.get(instance) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(known) if **known != *member => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        if self.members.contains_key(member) { Ok(()) } else { Err(ErrorCode::UNKNOWN_MEMBER_ID) }
    }

    /// Takes a member in. The first one says of which type the group is, and leads.
    fn add(&mut self, fx: &mut Effects<'_>, mut member: Member, protocol_type: &str) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.to_owned());
        }
        if self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), member.id.clone());
        }
        self.forget_pending(fx, &member.id.clone());
        member.arrival = self.next_arrival;
        self.next_arrival += 1;
        self.support.add(&member.protocols);
        self.members.insert(member.id.clone(), member);
    }

    /// Takes a member out; a request of it that is parked learns so.
    fn remove(&mut self, fx: &mut Effects<'_>, id: &str) -> Option<Member> {
        self.answer_join_with_error(fx, id, "", ErrorCode::UNKNOWN_MEMBER_ID);
        self.answer_sync_with_error(fx, id, ErrorCode::UNKNOWN_MEMBER_ID);
        let mut member = self.members.remove(id)?;
        member.session.stop(fx.timers, &self.id, &member.id);
        self.support.remove(&member.protocols);
        if let Some(instance) = &member.instance_id {
            self.instances.remove(instance);
        }
        if self.is_leader(id) {
            self.leader = self.members.values().min_by_key(|m| m.arrival).map(|m| m.id.clone());
        }
        self.note_synced(fx, id);
        Some(member)
    }

    fn forget_pending(&mut self, fx: &mut Effects<'_>, id: &str) -> bool {
        match self.pending.remove_entry(id) {
            Some((id, mut session)) => {
                session.stop(fx.timers, &self.id, &id);
                true
            }
            None => false,
        }
    }

    /// From now on the member may be silent for its session timeout.
    fn restart_session(&mut self, fx: &mut Effects<'_>, id: &str) {
        if let Some(member) = self.members.get_mut(id) {
            let timeout = member.session_timeout;
            member.session.restart(fx.timers, fx.now + timeout, &self.id, &member.id);
        }
    }

    /// Stops every timer and answers everything parked: the group is gone, or goes elsewhere.
    pub(super) fn dissolve(&mut self, fx: &mut Effects<'_>, code: ErrorCode) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.answer_join_with_error(fx, &id, &id, code);
            self.answer_sync_with_error(fx, &id, code);
        }
        for (id, member) in &mut self.members {
            member.session.stop(fx.timers, &self.id, id);
        }
        for (id, session) in &mut self.pending {
            session.stop(fx.timers, &self.id, id);
        }
        self.disarm_phase(fx);
        self.phase = Phase::Dead;
    }

    fn disarm_phase(&mut self, fx: &mut Effects<'_>) {
        let syncing = match &self.phase {
            Phase::Preparing { until, .. } => {
                fx.timers.disarm(*until, TimerKey::Join { group: self.id.clone() });
                None
            }
            Phase::Completing { syncing, .. } => Some(syncing),
            Phase::Stable { syncing } => syncing.as_ref(),
            Phase::Empty | Phase::Dead => None,
        };
        if let Some(syncing) = syncing {
            fx.timers.disarm(syncing.until, TimerKey::Sync { group: self.id.clone() });
        }
    }
}
