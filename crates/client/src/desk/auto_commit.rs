//! When positions are committed without being asked: `enable.auto.commit` and `auto.commit.interval.ms`.
//!
//! Inside a poll, when the interval has passed, what earlier polls returned is committed; so a record counts as handled
//! when the application polls again. A refused commit is tried again after `retry.backoff.ms` when that can help, and at
//! the next interval otherwise. The commits before a rebalance and in `close` are not decided here.
//!
//! Mirrors `ConsumerCoordinator.maybeAutoCommitOffsetsAsync`.

use super::Desk;
use crate::{
    Error,
    state::{Answer, Ask, CallId, CommitKind},
};
use std::time::Duration;
use tontine_group::Instant;

#[derive(Debug)]
pub(super) struct AutoCommit {
    interval: Option<Duration>,
    retry_backoff: Duration,
    due: Option<Instant>,
    under_way: Option<CallId>,
}

impl AutoCommit {
    pub(super) fn new(interval: Option<Duration>, retry_backoff: Duration) -> Self {
        Self { interval, retry_backoff, due: None, under_way: None }
    }

    pub(super) fn is_on(&self) -> bool {
        self.interval.is_some()
    }

    /// When to look again.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.under_way.is_some() { None } else { self.due }
    }

    /// Counts the interval from now.
    pub(super) fn restart(&mut self, now: Instant) {
        self.due = self.interval.map(|interval| now + interval);
    }

    /// Whether it is time; the first look starts the clock.
    fn is_due(&mut self, now: Instant) -> bool {
        if self.interval.is_none() || self.under_way.is_some() {
            return false;
        }
        match self.due {
            Some(due) => due <= now,
            None => {
                self.restart(now);
                false
            }
        }
    }

    pub(super) fn is_under_way(&self, call: CallId) -> bool {
        self.under_way == Some(call)
    }

    /// Takes the answer of its own commit; `false` when it is another call's.
    pub(super) fn answered(&mut self, now: Instant, call: CallId, answer: &Result<Answer, Error>) -> bool {
        if !self.is_under_way(call) {
            return false;
        }
        self.under_way = None;
        if answer.as_ref().is_err_and(Error::is_retriable) {
            self.due = Some(now + self.retry_backoff);
        }
        true
    }
}

impl Desk {
    /// Commits what earlier polls returned, when the interval has passed.
    pub(super) fn commit_on_time(&mut self, now: Instant) {
        if self.may_commit() && self.auto_commit.is_due(now) {
            self.commit_now(now);
        }
    }

    /// Commits what earlier polls returned, as the interval would.
    pub(super) fn commit_now(&mut self, now: Instant) {
        self.auto_commit.restart(now);
        let offsets = self.consumed();
        if offsets.is_empty() {
            return;
        }
        let call = self.calls.next_id();
        self.auto_commit.under_way = Some(call);
        let timeout = self.settings.max_poll_interval;
        self.asks.push(Ask::commit(call, offsets, CommitKind::OnTimer, timeout));
    }

    /// Whether `close` commits what polls returned.
    pub fn commits_at_close(&self) -> bool {
        let has_part = self.interest.is_manual() || self.membership.is_some();
        self.auto_commit.is_on() && has_part && !self.consumed().is_empty()
    }

    /// Whether a commit on the timer is possible at this moment.
    pub(super) fn may_commit(&self) -> bool {
        self.interest.is_manual() || (self.membership.is_some() && self.rebalance.is_idle())
    }
}
