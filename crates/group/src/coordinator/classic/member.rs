//! One member of a classic group, its session and its parked requests. Mirrors `ClassicGroupMember`.

use super::vote::Protocol;
use crate::{
    coordinator::{
        output::{ClientInfo, Ticket},
        timers::{TimerKey, Timers},
    },
    time::{Duration, Instant},
};
use bytes::Bytes;
use std::sync::Arc;

/// A member of a classic group.
#[derive(Clone, Debug)]
pub(in crate::coordinator) struct Member {
    pub(in crate::coordinator) id: Arc<str>,
    pub(in crate::coordinator) instance_id: Option<Arc<str>>,
    pub(in crate::coordinator) client: ClientInfo,
    pub(in crate::coordinator) assignment: Bytes,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
    /// What it can work with, the best first, each with its subscription.
    pub(super) protocols: Vec<Protocol>,
    /// Not answered yet since it came: it may not know its id and cannot send heartbeats.
    pub(super) is_new: bool,
    pub(super) arrival: u64,
    pub(super) join: Option<ParkedRequest>,
    pub(super) sync: Option<ParkedRequest>,
    pub(super) session: Session,
}

/// A request that waits for the others. It counts for the group even when nobody waits for its answer any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParkedRequest {
    /// `None` when the connection is gone.
    pub(super) ticket: Option<Ticket>,
    pub(super) version: i16,
}

impl Member {
    /// The metadata it sent for this protocol.
    pub(in crate::coordinator) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|p| p.name == protocol).map(|p| p.metadata.clone()).unwrap_or_default()
    }

    pub(in crate::coordinator) fn is_joining(&self) -> bool {
        self.join.is_some()
    }

    pub(in crate::coordinator) fn is_syncing(&self) -> bool {
        self.sync.is_some()
    }

    /// A member that waits for an answer sends no heartbeats and is not expected to.
    pub(super) fn may_be_silent(&self) -> bool {
        let waits = |parked: &Option<ParkedRequest>| parked.is_some_and(|p| p.ticket.is_some());
        !self.is_new && (waits(&self.join) || waits(&self.sync))
    }
}

/// Until when a member may be silent, and the timer that looks after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    deadline: Instant,
    armed: Option<Instant>,
}

/// What a session timer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionCheck {
    /// The session was renewed meanwhile, or the timer is not the one that counts.
    Alive,
    /// Nothing came in time.
    Expired,
}

impl Session {
    /// Renews the session. A timer that fires earlier is left alone: it will find the later deadline.
    pub(super) fn restart(
        &mut self,
        timers: &mut Timers,
        deadline: Instant,
        group: &Arc<str>,
        member: &Arc<str>,
    ) {
        self.deadline = deadline;
        if self.armed.is_some_and(|at| at <= deadline) {
            return;
        }
        self.stop(timers, group, member);
        self.arm(timers, group, member);
    }

    pub(super) fn stop(&mut self, timers: &mut Timers, group: &Arc<str>, member: &Arc<str>) {
        if let Some(at) = self.armed.take() {
            timers.disarm(at, TimerKey::Session { group: group.clone(), member: member.clone() });
        }
    }

    /// A timer of this session fired at its time `at`.
    pub(super) fn fired(
        &mut self,
        timers: &mut Timers,
        now: Instant,
        at: Instant,
        group: &Arc<str>,
        member: &Arc<str>,
    ) -> SessionCheck {
        if self.armed != Some(at) {
            return SessionCheck::Alive;
        }
        self.armed = None;
        if self.deadline <= now {
            return SessionCheck::Expired;
        }
        self.arm(timers, group, member);
        SessionCheck::Alive
    }

    fn arm(&mut self, timers: &mut Timers, group: &Arc<str>, member: &Arc<str>) {
        self.armed = Some(self.deadline);
        timers.arm(self.deadline, TimerKey::Session { group: group.clone(), member: member.clone() });
    }
}
