//! Until when a member may be silent. Renewed at every sign of life, so that a renewal costs next to nothing.

use super::timers::{TimerKey, Timers};
use crate::time::Instant;
use std::sync::Arc;

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
