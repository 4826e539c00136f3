//! What a coordinator knows of a consumer group only while it runs: whose session ends when, who has to let go of
//! partitions until when, and requests that wait for the log.

use crate::{
    coordinator::{
        output::{ClientInfo, Ticket},
        session::Session,
        timers::{Duty, TimerKey, Timers},
    },
    time::Instant,
    topics::Topics,
};
use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::api::Request;

/// Timers of one consumer group.
#[derive(Debug, Default)]
pub(in crate::coordinator) struct LiveConsumer {
    pub(super) sessions: BTreeMap<Arc<str>, Session>,
    duties: BTreeMap<(Arc<str>, Duty), Instant>,
    target: Option<Instant>,
}

/// A request that waits until the records of the one before it are in the log.
#[derive(Debug)]
pub(in crate::coordinator) struct Deferred {
    pub(in crate::coordinator) ticket: Ticket,
    pub(in crate::coordinator) client: ClientInfo,
    pub(in crate::coordinator) version: i16,
    pub(in crate::coordinator) request: Request,
    pub(in crate::coordinator) topics: Topics,
}

impl LiveConsumer {
    pub(super) fn renew_session(
        &mut self,
        timers: &mut Timers,
        group: &Arc<str>,
        member: &Arc<str>,
        deadline: Instant,
    ) {
        let session = self.sessions.entry(member.clone()).or_default();
        session.restart(timers, deadline, group, member);
    }

    /// The member has to do something until `deadline`, or has done it. A deadline that runs stays.
    pub(super) fn expect(
        &mut self,
        timers: &mut Timers,
        group: &Arc<str>,
        member: &Arc<str>,
        duty: Duty,
        deadline: Option<Instant>,
    ) {
        let key = (member.clone(), duty);
        match (self.duties.get(&key).copied(), deadline) {
            (None, Some(at)) => {
                self.duties.insert(key, at);
                timers.arm(at, timer(group, member, duty));
            }
            (Some(at), None) => {
                self.duties.remove(&key);
                timers.disarm(at, timer(group, member, duty));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// Whether this is the deadline that counts; it does no more.
    pub(super) fn is_late(&mut self, member: &Arc<str>, duty: Duty, at: Instant) -> bool {
        let key = (member.clone(), duty);
        let counts = self.duties.get(&key) == Some(&at);
        if counts {
            self.duties.remove(&key);
        }
        counts
    }

    pub(super) fn forget(&mut self, timers: &mut Timers, group: &Arc<str>, member: &Arc<str>) {
        if let Some(mut session) = self.sessions.remove(member) {
            session.stop(timers, group, member);
        }
        for duty in [Duty::Release, Duty::Rejoin, Duty::Sync] {
            self.expect(timers, group, member, duty, None);
        }
    }

    /// Looks after the target of the group at this time, unless it is looked after sooner.
    pub(super) fn look_after_target(&mut self, timers: &mut Timers, group: &Arc<str>, at: Instant) {
        if self.target.is_none_or(|known| at < known) {
            if let Some(known) = self.target.replace(at) {
                timers.disarm(known, TimerKey::Target { group: group.clone() });
            }
            timers.arm(at, TimerKey::Target { group: group.clone() });
        }
    }

    /// Stops every timer: the group is gone, or of the other protocol.
    pub(in crate::coordinator) fn stop(&mut self, timers: &mut Timers, group: &Arc<str>) {
        let known = self.sessions.keys().chain(self.duties.keys().map(|(member, _)| member));
        for member in known.cloned().collect::<Vec<_>>() {
            self.forget(timers, group, &member);
        }
        if let Some(at) = self.target.take() {
            timers.disarm(at, TimerKey::Target { group: group.clone() });
        }
    }

    pub(super) fn target_is_due(&mut self, at: Instant) -> bool {
        let counts = self.target == Some(at);
        if counts {
            self.target = None;
        }
        counts
    }
}

fn timer(group: &Arc<str>, member: &Arc<str>, duty: Duty) -> TimerKey {
    TimerKey::Duty { group: group.clone(), member: member.clone(), duty }
}
