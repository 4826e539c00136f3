//! What happens next: steps are taken until none is possible, then it is known when time alone will bring one.

use super::{
    Classic,
    state::{Applying, Joining, Leaving, Round, State, SyncStep, Syncing},
};
use crate::{
    Cause, Instant,
    assignor::RebalanceProtocol,
    member::{Deadline, Why},
};
use std::time::Duration;

/// How long commits in flight may hold up a join: longer than a commit takes, and short for a partition that moves and
/// stands still meanwhile.
const COMMIT_GRACE: Duration = Duration::from_millis(100);

impl Classic {
    /// Takes every step that is possible now, and tells of a callback that is due.
    pub(in crate::member) fn advance(&mut self, now: Instant) {
        while self.step(now) {}
        self.part(now);
        self.beat(now);
        self.audit(now);
        self.tell_due();
    }

    /// Takes one step. Whether another one may be possible.
    fn step(&mut self, now: Instant) -> bool {
        match &self.state {
            State::Unjoined => self.step_unjoined(now),
            State::Preparing => self.step_preparing(now),
            State::Joining(_) => self.step_joining(now),
            State::Syncing(_) => self.step_syncing(now),
            State::Applying(applying) if applying.begun => false,
            State::Applying(applying) if self.is_foreign(applying) => self.discard_assignment(now),
            State::Applying(_) => self.skip_assignment(now),
            State::Stable => self.step_stable(now),
            State::Leaving(_) => self.step_leaving(now),
            State::Fenced => false,
        }
    }

    fn step_unjoined(&mut self, now: Instant) -> bool {
        let losing = self.running || !self.owned.is_empty();
        if losing || !self.may_join || self.subscription.is_empty() {
            return false;
        }
        let member = self.config.client_id.clone();
        let cause = self.rejoin.take().unwrap_or(Cause::MemberJoined { member });
        self.go(State::Joining(Joining::new(now)), Some(cause));
        true
    }

    /// Eager members leave this state when the revocation is done, cooperative ones when nothing is left to give up.
    fn step_preparing(&mut self, now: Instant) -> bool {
        let ready = match self.protocol {
            RebalanceProtocol::Eager => false,
            RebalanceProtocol::Cooperative => !self.running && self.dropped().is_empty(),
        };
        if ready {
            self.go(State::Joining(Joining::new(now)), None);
        }
        ready
    }

    fn step_joining(&mut self, now: Instant) -> bool {
        let State::Joining(joining) = &self.state else { return false };
        if joining.request.is_some() || joining.await_poll {
            return false;
        }
        let is_time = now >= self.join_at(joining);
        let doubts = self.is_in_doubt(now);
        if let State::Joining(joining) = &mut self.state {
            joining.doubts = doubts;
        }
        if self.has_coordinator() && is_time && !doubts {
            self.send_join();
        }
        false
    }

    /// Whether the session may have ended, unheard, and what is owned may be somebody else's. A join would not tell: a
    /// consumer group takes one of a classic member that it has put out for that of a new one, under the same id. A
    /// heartbeat does. Kafka's client joins without asking.
    fn is_in_doubt(&self, now: Instant) -> bool {
        let unheard = now >= self.heart.confirmed() + self.config.session_timeout;
        unheard && !self.owned.is_empty() && self.is_beating()
    }

    fn join_at(&self, joining: &Joining) -> Instant {
        match self.commits_in_flight {
            0 => self.retry_at,
            _ => self.retry_at.max(joining.since + COMMIT_GRACE),
        }
    }

    pub(super) fn step_syncing(&mut self, now: Instant) -> bool {
        let Some(syncing) = self.state.syncing() else { return false };
        match &syncing.step {
            SyncStep::Planning { until, .. } if now >= *until => {
                self.plan_now();
                true
            }
            SyncStep::Ready { .. } => {
                if self.has_coordinator() && now >= self.retry_at {
                    self.send_sync();
                }
                false
            }
            SyncStep::Planning { .. } | SyncStep::Dealing { .. } | SyncStep::Sent { .. } => false,
        }
    }

    fn step_stable(&mut self, now: Instant) -> bool {
        if std::mem::take(&mut self.recheck) {
            self.check_plan();
        }
        let Some(cause) = self.rejoin.take() else { return false };
        self.prepare(now, cause);
        true
    }

    /// Whether the present assignment still fits what this member wants and, for the leader, what there is.
    fn check_plan(&mut self) {
        if self.joined_as != self.subscription {
            let member = self.identity.member_id.clone();
            self.want_rejoin(Cause::SubscriptionChanged { member });
        }
        if let Some(cause) = self.watch.as_ref().and_then(|watch| watch.change(&self.topics)) {
            self.want_rejoin(cause);
        }
    }

    /// Begins another round with what has to be given up before it.
    pub(super) fn prepare(&mut self, now: Instant, cause: Cause) {
        let first = match self.protocol {
            RebalanceProtocol::Eager => State::Preparing,
            RebalanceProtocol::Cooperative if !self.dropped().is_empty() => State::Preparing,
            RebalanceProtocol::Cooperative => State::Joining(Joining::new(now)),
        };
        self.go(first, Some(cause));
    }

    /// Whether an assignment has topics that are not subscribed to any more.
    fn is_foreign(&self, applying: &Applying) -> bool {
        applying.target.iter().any(|tp| !self.subscription.contains(&tp.topic))
    }

    /// Joins again with the new subscription, and without any callback: nothing of the assignment was told.
    fn discard_assignment(&mut self, now: Instant) -> bool {
        let member = self.identity.member_id.clone();
        self.prepare(now, Cause::SubscriptionChanged { member });
        true
    }

    /// An assignment that a new round overtakes before the application is there to hear of it is not told at all: the
    /// group need not wait for that application. What is owned and told so far stays as it is, so everybody else is as
    /// safe as before. Kafka's client makes the group wait.
    fn skip_assignment(&mut self, now: Instant) -> bool {
        let Some(cause) = self.rejoin.take() else { return false };
        match self.protocol {
            // Everything was revoked before the round that is skipped.
            RebalanceProtocol::Eager => self.go(State::Joining(Joining::new(now)), Some(cause)),
            RebalanceProtocol::Cooperative => self.prepare(now, cause),
        }
        true
    }

    fn tell_due(&mut self) {
        let due = self.due_callback();
        self.announced.due(due, &mut self.outbox);
    }

    /// When time alone brings the next step.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let poll = self.poll_deadline().map(|at| Deadline { at, why: Why::PollInterval });
        let round = self.round_deadline();
        let others = [self.beat_deadline(), self.part_deadline(), self.audit_deadline()];
        [poll, round].into_iter().chain(others).flatten().min_by_key(|d| d.at)
    }

    fn round_deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Joining(joining)
                if joining.request.is_none()
                    && !joining.await_poll
                    && !joining.doubts
                    && self.reach.is_known() =>
            {
                let at = self.join_at(joining);
                let why = if at > self.retry_at { Why::CommitGrace } else { Why::Retry };
                Some(Deadline { at, why })
            }
            State::Syncing(syncing) => self.sync_deadline(syncing),
            State::Leaving(Leaving { round: Some(Round::Syncing(syncing)), .. }) => {
                self.sync_deadline(syncing)
            }
            State::Leaving(leaving) => leaving.deadline.map(|at| Deadline { at, why: Why::Leave }),
            State::Unjoined
            | State::Preparing
            | State::Joining(_)
            | State::Applying(_)
            | State::Stable
            | State::Fenced => None,
        }
    }

    fn sync_deadline(&self, syncing: &Syncing) -> Option<Deadline> {
        match &syncing.step {
            SyncStep::Planning { until, .. } => Some(Deadline { at: *until, why: Why::Metadata }),
            SyncStep::Ready { .. } if self.reach.is_known() => {
                Some(Deadline { at: self.retry_at, why: Why::Retry })
            }
            SyncStep::Dealing { .. } | SyncStep::Ready { .. } | SyncStep::Sent { .. } => None,
        }
    }
}
