//! How often members of a consumer group are asked to speak. A member hears of everything by the answer to a heartbeat,
//! so the one that has to let go of a partition decides with its interval how long everybody else waits.
//!
//! Kafka answers the configured interval, always. Here a coordinator of few members can afford to hear from them often:
//! the interval grows with their number, so that a coordinator at rest takes in at most 50 heartbeats a second, however
//! many groups it has.

use crate::{coordinator::config::HeartbeatPace, time::Duration};

/// Between two heartbeats of a member at rest, for each member that the coordinator has; and at least so much.
const REST_EACH: Duration = Duration::from_millis(20);
const SHORTEST_REST: Duration = Duration::from_millis(50);
/// The same while partitions are on their way, and at most so much.
const MOVING_EACH: Duration = Duration::from_millis(5);
const SHORTEST_MOVING: Duration = Duration::from_millis(25);
const LONGEST_MOVING: Duration = Duration::from_millis(100);

/// What the answers to heartbeats ask for.
#[derive(Clone, Copy, Debug)]
pub(in crate::coordinator) struct Pace {
    kind: HeartbeatPace,
    /// The longest interval, or the one that was asked for.
    interval: Duration,
    /// How many members of consumer groups the coordinator has.
    members: u32,
}

impl Pace {
    pub(in crate::coordinator) fn new(kind: HeartbeatPace, interval: Duration, members: usize) -> Self {
        Self { kind, interval, members: u32::try_from(members).unwrap_or(u32::MAX) }
    }

    /// The interval for a member that has all it is to have, or for one that does not.
    pub(super) fn interval(&self, settled: bool) -> Duration {
        let scaled = |each: Duration, shortest: Duration| each.saturating_mul(self.members).max(shortest);
        let wanted = match (self.kind, settled) {
            (HeartbeatPace::Fixed, _) | (HeartbeatPace::QuickWhileMoving, true) => self.interval,
            (HeartbeatPace::Quick, true) => scaled(REST_EACH, SHORTEST_REST),
            (_, false) => scaled(MOVING_EACH, SHORTEST_MOVING).min(LONGEST_MOVING),
        };
        wanted.min(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(kind: HeartbeatPace, members: usize) -> (u128, u128) {
        let pace = Pace::new(kind, Duration::from_secs(5), members);
        (pace.interval(true).as_millis(), pace.interval(false).as_millis())
    }

    #[test]
    fn few_members_speak_often_and_many_as_often_as_was_configured() {
        let quick = |members| millis(HeartbeatPace::Quick, members);
        assert_eq!([quick(0), quick(2), quick(10)], [(50, 25), (50, 25), (200, 50)]);
        assert_eq!([quick(100), quick(250), quick(usize::MAX)], [(2_000, 100), (5_000, 100), (5_000, 100)]);
        assert!((1..2_000).all(|members| members as u128 * 1_000 / quick(members).0 <= 50 || members >= 250));
    }

    #[test]
    fn an_interval_that_was_asked_for_is_the_answer_at_rest_and_never_exceeded() {
        assert_eq!(millis(HeartbeatPace::QuickWhileMoving, 2), (5_000, 25));
        assert_eq!(millis(HeartbeatPace::Fixed, 2), (5_000, 5_000));
        let short = Pace::new(HeartbeatPace::Quick, Duration::from_millis(10), 2);
        assert_eq!((short.interval(true).as_millis(), short.interval(false).as_millis()), (10, 10));
    }
}
