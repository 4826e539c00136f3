//! One partition on the actor's side: whether it can be fetched, from where, and what has to be found out first.
//!
//! Mirrors `SubscriptionState.TopicPartitionState`.

use super::{buffer, position::Position};
use crate::{lease::Incarnation, lease::LogEnd, offsets::Spot};
use bytes::Bytes;
use std::time::Duration;
use tontine_group::Instant;
use tontine_wire::Uuid;

/// Where a partition stands on its way to being fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    /// The committed offset has to be looked up.
    Committed,
    /// The committed offset is being looked up.
    AskedCommitted,
    /// A place in the log has to be looked up.
    Spot(Spot),
    /// A place in the log is being looked up.
    AskedSpot(Spot),
    /// A new leader has to be asked whether its log holds this position.
    Doubtful(Position),
    /// A new leader is being asked.
    AskedDoubtful(Position),
    /// Fetching goes on here.
    Fetching(Position),
    /// Nothing is done until the application seeks.
    Stuck,
}

/// One partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) incarnation: Incarnation,
    /// The topic's id; zero until metadata told it.
    pub(crate) topic_id: Uuid,
    pub(crate) phase: Phase,
    /// The callback that announces it has returned.
    pub(crate) open: bool,
    /// The application paused it.
    pub(crate) paused: bool,
    /// It is about to be given up.
    pub(crate) leaving: bool,
    /// Bytes that wait for the application.
    pub(crate) queued: usize,
    pub(crate) end: Option<LogEnd>,
    /// The leader epoch for which the position is known to be right.
    pub(crate) validated: Option<i32>,
    /// A follower that is nearer than the leader, and until when it is asked.
    pub(crate) preferred: Option<(i32, Instant)>,
    /// Who is asked for it.
    pub(crate) node: Option<i32>,
    /// Not before this time.
    retry_at: Option<Instant>,
    attempts: u32,
    /// It failed under this leader epoch, or without a leader: another one is tried as soon as it is known.
    stale_leader: Option<i32>,
}

impl Partition {
    pub(crate) fn new(incarnation: Incarnation, phase: Phase, open: bool) -> Self {
        Self {
            incarnation,
            topic_id: Uuid::ZERO,
            phase,
            open,
            paused: false,
            leaving: false,
            queued: 0,
            end: None,
            validated: None,
            preferred: None,
            node: None,
            retry_at: None,
            attempts: 0,
            stale_leader: None,
        }
    }

    /// Starts afresh: what is under way for it is void.
    pub(crate) fn restart(&mut self, incarnation: Incarnation, phase: Phase) {
        self.incarnation = incarnation;
        self.phase = phase;
        self.queued = 0;
        self.validated = None;
        self.preferred = None;
        self.worked();
    }

    /// Whether it may be tried now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.retry_at.is_none_or(|at| at <= now)
    }

    /// When it may be tried, when that is later.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Where to fetch from, when it may be fetched at all.
    pub(crate) fn fetchable(&self, now: Instant, share: usize) -> Option<Position> {
        let free = self.open && !self.paused && !self.leaving && self.queued < share && self.is_due(now);
        match self.phase {
            Phase::Fetching(position) if free => Some(position),
            _ => None,
        }
    }

    /// Records from `start` on wait for the application now, and fetching goes on behind them. Answers the size of the
    /// largest batch.
    pub(crate) fn queue(&mut self, start: i64, records: &Bytes) -> usize {
        self.queued = self.queued.saturating_add(records.len());
        let reach = buffer::reach(records);
        // Without one whole batch there is no place to go on from: the application's side reports why.
        self.phase = match reach.map(|reach| reach.behind).filter(|next| next.offset > start) {
            Some(next) => Phase::Fetching(next),
            None => Phase::Stuck,
        };
        reach.map_or(0, |reach| reach.largest_batch)
    }

    /// It failed: try later.
    pub(crate) fn failed(&mut self, now: Instant, base: Duration, max: Duration) {
        let pause = base.saturating_mul(1 << self.attempts.min(10)).min(max);
        self.attempts = self.attempts.saturating_add(1);
        self.retry_at = Some(now + pause);
    }

    /// It failed because of its leader, whose epoch was this.
    pub(crate) fn awaits_leader(&mut self, epoch: Option<i32>) {
        self.stale_leader = Some(epoch.unwrap_or(-1));
    }

    /// It has this leader epoch now: when it waited for another leader, it is tried at once.
    pub(crate) fn leader_is_known(&mut self, epoch: Option<i32>) {
        if self.stale_leader.is_some_and(|stale| epoch.unwrap_or(i32::MAX) > stale) {
            self.stale_leader = None;
            self.retry_at = None;
        }
    }

    /// It works.
    pub(crate) fn worked(&mut self) {
        self.attempts = 0;
        self.retry_at = None;
        self.stale_leader = None;
    }
}
