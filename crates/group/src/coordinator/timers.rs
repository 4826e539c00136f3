//! Which deadline comes next. What happens then is decided where the deadline was set.
//!
//! Sessions are renewed at every heartbeat, so a renewal only notes the later time with the member; the entry here fires
//! at the older time and is set again. Everything else is armed and disarmed exactly.

use crate::time::Instant;
use std::{collections::BTreeSet, sync::Arc};

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// A member, or an id that was handed out, has been silent for its session timeout.
    Session { group: Arc<str>, member: Arc<str> },
    /// A group has waited long enough for members to join.
    Join { group: Arc<str> },
    /// A group has waited long enough for members to fetch their assignment.
    Sync { group: Arc<str> },
    /// Time to look for offsets that nobody uses any more.
    OffsetsCleanup,
}

/// All deadlines, the next one first.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Instant, TimerKey)>,
}

impl Timers {
    pub(super) fn arm(&mut self, at: Instant, key: TimerKey) {
        self.queue.insert((at, key));
    }

    pub(super) fn disarm(&mut self, at: Instant, key: TimerKey) {
        self.queue.remove(&(at, key));
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes out what is due. What is armed again for the same moment waits for the next call, so that no deadline can
    /// keep a caller busy for ever.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(Instant, TimerKey)> {
        let mut due = Vec::new();
        while self.queue.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.queue.pop_first());
        }
        due
    }
}
