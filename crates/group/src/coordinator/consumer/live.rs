//! What a coordinator knows of a consumer group only while it runs: whose session ends when, who has to let go of
//! partitions until when, and requests that wait for the log.

use crate::{
    coordinator::{
        output::{ClientInfo, Ticket},
        session::Session,
        timers::{TimerKey, Timers},
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
    releases: BTreeMap<Arc<str>, Instant>,
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

    /// The member has to let go of partitions until `deadline`, or has not. A deadline that runs stays.
    pub(super) fn expect_release(
        &mut self,
        timers: &mut Timers,
        group: &Arc<str>,
        member: &Arc<str>,
        deadline: Option<Instant>,
    ) {
        match (self.releases.get(member).copied(), deadline) {
            (None, Some(at)) => {
                self.releases.insert(member.clone(), at);
                timers.arm(at, release(group, member));
            }
            (Some(at), None) => {
                self.releases.remove(member);
                timers.disarm(at, release(group, member));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// Whether this is the deadline that counts; it does no more.
    pub(super) fn release_is_late(&mut self, member: &str, at: Instant) -> bool {
        let counts = self.releases.get(member) == Some(&at);
        if counts {
            self.releases.remove(member);
        }
        counts
    }

    pub(super) fn forget(&mut self, timers: &mut Timers, group: &Arc<str>, member: &Arc<str>) {
        if let Some(mut session) = self.sessions.remove(member) {
            session.stop(timers, group, member);
        }
        self.expect_release(timers, group, member, None);
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

    pub(super) fn target_is_due(&mut self, at: Instant) -> bool {
        let counts = self.target == Some(at);
        if counts {
            self.target = None;
        }
        counts
    }
}

fn release(group: &Arc<str>, member: &Arc<str>) -> TimerKey {
    TimerKey::Release { group: group.clone(), member: member.clone() }
}
