//! When the next heartbeat goes out, and whether the coordinator has been heard of within a session.
//!
//! It does not decide what an answer means. Mirrors `Heartbeat`, with one addition: after a cooperative round heartbeats
//! come quickly for a while, because whoever gave something up joins again at once, and everybody else learns of that
//! second round from nothing but the answer to a heartbeat. The partitions that move stand still until then. The consumer
//! protocol has no other messages at all, so there the same holds after every change.

use super::{
    Ticket,
    backoff::{Backoff, Jitter},
};
use crate::{Instant, ids::Membership};
use std::time::Duration;

/// The gap of quick heartbeats.
const QUICK: Duration = Duration::from_millis(100);
/// How many heartbeats come that quickly before the gap doubles each time.
const QUICK_BEATS: u32 = 10;
/// How many heartbeats may go out without waiting for their time, until time has passed: much more than any rebalance
/// needs, but a coordinator that says something else in every answer is not asked as fast as the network allows.
const AT_ONCE: u32 = 20;
/// The longest gap of a member that expects partitions others have to let go of first.
const EXPECTANT: Duration = Duration::from_millis(200);

/// The clock of one member's heartbeats.
#[derive(Debug)]
pub(crate) struct Heart {
    interval: Duration,
    session: Duration,
    timeout: Duration,
    backoff: Backoff,
    next: Instant,
    heard: Instant,
    /// When the last heartbeat was sent.
    sent: Instant,
    /// When that was sent whose answer shows that the member is one: an answer may have waited for long.
    confirmed: Instant,
    /// How many heartbeats went out since a cooperative round ended; `None` at the regular pace.
    quick: Option<u32>,
    /// Until when partitions are expected that others still have.
    expectant_until: Instant,
    in_flight: Option<(Ticket, Membership)>,
    /// How many heartbeats may go out before their time; one more each [`QUICK`] since then.
    at_once: (u32, Instant),
}

impl Heart {
    pub(crate) fn new(interval: Duration, session: Duration, request: Duration, backoff: Backoff) -> Self {
        // A heartbeat that hangs must fail early enough for another one within the session.
        let timeout = request.min(interval.max(session / 3));
        Self {
            interval,
            session,
            timeout,
            backoff,
            next: Instant::ZERO,
            heard: Instant::ZERO,
            sent: Instant::ZERO,
            confirmed: Instant::ZERO,
            quick: None,
            expectant_until: Instant::ZERO,
            in_flight: None,
            at_once: (AT_ONCE, Instant::ZERO),
        }
    }

    /// How long to wait for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A generation began: one regular interval from now on.
    pub(crate) fn start(&mut self, now: Instant) {
        (self.heard, self.sent, self.confirmed) = (now, now, now);
        self.next = now + self.interval;
        self.quick = None;
        self.in_flight = None;
        self.backoff.reset();
    }

    /// Everything the member has to say is due at once, whatever failed before.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.start(now);
        self.next = now;
    }

    /// The next heartbeat is due at once: its answer decides something.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.next = self.next.min(now);
    }

    /// The membership is over; an answer that is still to come is of no interest.
    pub(crate) fn stop(&mut self) {
        self.in_flight = None;
        self.quick = None;
        self.expectant_until = Instant::ZERO;
    }

    /// A second round may follow: beat quickly for a while.
    pub(crate) fn quicken(&mut self, now: Instant, jitter: &mut Jitter) {
        self.quick = Some(0);
        self.next = now + self.gap(now, jitter);
    }

    /// Whoever has partitions that this member is to get hears of it within its own interval: until all have, and have
    /// let go, the gaps stay short.
    pub(crate) fn expect(&mut self, now: Instant) {
        self.expectant_until = now + self.interval + self.interval / 2;
    }

    /// The coordinator says how often it wants to hear.
    pub(crate) fn set_interval(&mut self, now: Instant, interval: Duration) {
        self.interval = interval;
        let next = now + interval;
        self.next = if self.quick.is_some() { self.next.min(next) } else { next };
    }

    fn gap(&mut self, now: Instant, jitter: &mut Jitter) -> Duration {
        let Some(beats) = self.quick else { return self.interval };
        let doublings = (beats + 1).saturating_sub(QUICK_BEATS).min(16);
        let gap = QUICK.saturating_mul(1 << doublings);
        let gap = if now < self.expectant_until { gap.min(EXPECTANT) } else { gap };
        self.quick = (gap < self.interval).then_some(beats + 1);
        jitter.around(gap).min(self.interval)
    }

    /// Whether a heartbeat should go out now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.in_flight.is_none() && now >= self.next
    }

    /// There is something to say before the next heartbeat is due: whether it may go out now. If not it goes out soon.
    pub(crate) fn may_speak_at_once(&mut self, now: Instant) -> bool {
        let (left, since) = &mut self.at_once;
        let regained = (now - *since).as_millis() / QUICK.as_millis();
        if let Ok(regained @ 1..) = u32::try_from(regained.min(u128::from(AT_ONCE))) {
            (*left, *since) = ((*left + regained).min(AT_ONCE), now);
        }
        let may = *left > 0;
        match may {
            true => *left -= 1,
            false => self.next = self.next.min(*since + QUICK),
        }
        may
    }

    pub(crate) fn sent(&mut self, now: Instant, ticket: Ticket, membership: Membership, jitter: &mut Jitter) {
        self.in_flight = Some((ticket, membership));
        self.sent = now;
        self.next = now + self.gap(now, jitter);
    }

    /// Whether a heartbeat is under way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Takes note of the answer to this ticket, if it is that of the heartbeat in flight.
    pub(crate) fn answered(&mut self, ticket: Ticket) -> Option<Membership> {
        let (_, membership) = self.in_flight.take_if(|(t, _)| *t == ticket)?;
        Some(membership)
    }

    /// The coordinator answered another request of the member. It says nothing of a heartbeat that may be on its way.
    pub(crate) fn served(&mut self, now: Instant) {
        self.heard = now;
        self.backoff.reset();
    }

    /// The coordinator answered the heartbeat: the member was one when that was sent.
    pub(crate) fn heard(&mut self, now: Instant) {
        (self.heard, self.confirmed) = (now, self.sent.max(self.confirmed));
        self.backoff.reset();
    }

    /// The coordinator is there, whatever it says.
    pub(crate) fn refused(&mut self, now: Instant) {
        self.heard = now;
    }

    /// A heartbeat failed: try again soon.
    pub(crate) fn failed(&mut self, now: Instant, jitter: &mut Jitter) {
        self.next = now + self.backoff.fail(jitter).min(self.interval);
    }

    /// The coordinator is found: its session starts over, and it should hear from this member at once.
    pub(crate) fn found(&mut self, now: Instant) {
        self.heard = now;
        self.in_flight = None;
    }

    pub(crate) fn confirmed(&self) -> Instant {
        self.confirmed
    }

    pub(crate) fn session_expired(&self, now: Instant) -> bool {
        now >= self.session_end()
    }

    pub(crate) fn session_end(&self) -> Instant {
        self.heard + self.session
    }

    /// When the next heartbeat is due; `None` while one is in flight.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.in_flight.is_none().then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heart() -> (Heart, Jitter) {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let heart =
            Heart::new(Duration::from_secs(3), Duration::from_secs(45), Duration::from_secs(30), backoff);
        (heart, Jitter::new(1))
    }

    fn beat(heart: &mut Heart, jitter: &mut Jitter, n: u64) -> Duration {
        let now = heart.next;
        let membership = Membership { member_id: "m".into(), generation: 1, instance_id: None };
        heart.sent(now, Ticket(n), membership, jitter);
        assert!(heart.answered(Ticket(n)).is_some());
        heart.heard(now);
        heart.next - now
    }

    #[test]
    fn quick_heartbeats_come_every_100_ms_and_back_off_to_the_interval() {
        let (mut heart, mut jitter) = heart();
        heart.start(Instant::ZERO);
        heart.quicken(Instant::ZERO, &mut jitter);
        assert!(heart.next - Instant::ZERO <= Duration::from_millis(120));
        let gaps: Vec<_> = (0..20).map(|n| beat(&mut heart, &mut jitter, n)).collect();
        assert!(gaps[..8].iter().all(|gap| *gap <= Duration::from_millis(120)), "{gaps:?}");
        assert!(
            gaps[9..].iter().zip(&gaps[10..]).all(|(a, b)| b > a || *b == Duration::from_secs(3)),
            "{gaps:?}"
        );
        assert_eq!(gaps.last(), Some(&Duration::from_secs(3)));
    }

    #[test]
    fn a_failed_heartbeat_is_tried_again_long_before_the_interval() {
        let (mut heart, mut jitter) = heart();
        heart.start(Instant::ZERO);
        heart.failed(Instant::ZERO, &mut jitter);
        assert!(heart.next - Instant::ZERO <= Duration::from_millis(120));
    }

    #[test]
    fn a_hanging_heartbeat_fails_within_a_third_of_the_session() {
        assert_eq!(heart().0.timeout(), Duration::from_secs(15));
    }
}
