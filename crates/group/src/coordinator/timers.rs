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
    /// A member of a consumer group has had time enough to do something.
    Duty { group: Arc<str>, member: Arc<str>, duty: Duty },
    /// A consumer group's target is due.
    Target { group: Arc<str> },
    /// Time to look for offsets that nobody uses any more.
    OffsetsCleanup,
}

/// What a member of a consumer group has to do in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Duty {
    /// Let go of partitions.
    Release,
    /// Join again, as a classic member that was told so.
    Rejoin,
    /// Fetch its assignment, as a classic member that has joined.
    Sync,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::from_origin(Duration::from_millis(ms))
    }

    #[test]
    fn what_is_due_comes_in_the_order_of_time_and_what_is_disarmed_does_not() {
        let mut timers = Timers::default();
        let join = |group: &str| TimerKey::Join { group: group.into() };
        timers.arm(at(3), join("c"));
        timers.arm(at(1), join("a"));
        timers.arm(at(2), join("b"));
        timers.arm(at(9), join("d"));
        timers.disarm(at(2), join("b"));
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!(timers.take_due(at(5)), [(at(1), join("a")), (at(3), join("c"))]);
        assert_eq!(timers.next(), Some(at(9)));
    }
}
