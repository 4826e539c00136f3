//! When metadata is asked for: at once when new topics are wanted, with a growing pause when something is wrong, and now
//! and then in any case. What an answer changes is decided in `metadata`.

use super::{
    ClusterSettings, Ticket, TopicsOfInterest,
    backoff::{Jitter, backoff},
};
use std::time::Duration;
use tontine_group::Instant;

#[derive(Debug, Default)]
pub(super) struct Refresh {
    /// The request under way, and what it asks for.
    under_way: Option<(Ticket, TopicsOfInterest)>,
    /// Needed at once.
    urgent: bool,
    /// Needed, but not before `not_before`.
    wanted: bool,
    not_before: Instant,
    /// Requests since the picture last changed.
    attempts: u32,
    last_sent: Option<Instant>,
    last_success: Option<Instant>,
    failing_since: Option<Instant>,
}

impl Refresh {
    pub(super) fn want_at_once(&mut self) {
        self.urgent = true;
    }

    /// Asks for a refresh with the pause that is due since the last one.
    pub(super) fn want(&mut self, now: Instant, settings: &ClusterSettings, jitter: &mut Jitter) {
        if self.wanted {
            return;
        }
        self.wanted = true;
        let calm = settings.retry_backoff_max * 2;
        if self.failing_since.is_none() && self.last_sent.is_none_or(|sent| now - sent > calm) {
            self.attempts = 0;
        }
        if let Some(last) = self.last_sent.max(self.last_success) {
            self.not_before = last + self.pause(settings, jitter);
        }
    }

    fn pause(&self, settings: &ClusterSettings, jitter: &mut Jitter) -> Duration {
        backoff(settings.retry_backoff, settings.retry_backoff_max, self.attempts, jitter)
    }

    /// When the next request is due; `None` while one is under way or nothing was ever wanted.
    pub(super) fn due(&self, settings: &ClusterSettings) -> Option<Instant> {
        if self.under_way.is_some() {
            return None;
        }
        if self.urgent && self.failing_since.is_none() {
            return Some(Instant::ZERO);
        }
        if self.urgent || self.wanted {
            return Some(self.not_before);
        }
        self.last_success.map(|t| t + settings.metadata_max_age)
    }

    /// Whether an answer is awaited.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// How long one attempt may take. A broker that is silent must not hold everything up for request.timeout.ms.
    pub(super) fn patience(&self, settings: &ClusterSettings) -> Duration {
        settings.request_timeout.min(Duration::from_secs(5) * (1 << self.attempts.min(3)))
    }

    pub(super) fn sent(&mut self, now: Instant, ticket: Ticket, topics: TopicsOfInterest) {
        self.under_way = Some((ticket, topics));
        self.urgent = false;
        self.wanted = false;
        self.attempts = self.attempts.saturating_add(1);
        self.last_sent = Some(now);
    }

    /// The request under way is over; what it asked for.
    pub(super) fn take(&mut self) -> TopicsOfInterest {
        self.under_way.take().map(|(_, topics)| topics).unwrap_or_default()
    }

    pub(super) fn succeeded(&mut self, now: Instant, changed: bool) {
        self.last_success = Some(now);
        self.failing_since = None;
        if changed {
            self.attempts = 0;
        }
    }

    /// Whether the latest attempt failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failing_since.is_some()
    }

    /// Whether failures have lasted long enough to start again from the bootstrap servers.
    pub(super) fn failed(&mut self, now: Instant, settings: &ClusterSettings, jitter: &mut Jitter) -> bool {
        self.wanted = true;
        self.not_before = now + self.pause(settings, jitter);
        let since = *self.failing_since.get_or_insert(now);
        let too_long = settings.rebootstrap && now - since >= settings.rebootstrap_trigger;
        if too_long {
            self.failing_since = Some(now);
        }
        too_long
    }
}
