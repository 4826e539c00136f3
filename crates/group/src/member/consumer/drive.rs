//! What happens next: steps are taken until none is possible, then it is known when time alone will bring one.

use super::{Consumer, State, state::Reconciling};
use crate::{
    Cause, Instant,
    member::{Deadline, Why},
};

impl Consumer {
    /// Takes every step that is possible now, and tells of a callback that is due.
    pub(in crate::member) fn advance(&mut self, now: Instant) {
        self.wait_for_names(now);
        while self.step(now) {}
        self.part(now);
        // The end of a farewell can be what a step waited for.
        while self.step(now) {}
        self.beat(now);
        self.tell_due();
    }

    /// Takes one step. Whether another one may be possible.
    fn step(&mut self, now: Instant) -> bool {
        match &self.state {
            State::Unjoined => self.step_unjoined(now),
            State::Reconciling(_) => self.step_reconciling(),
            State::Stable => self.step_stable(),
            State::Leaving(_) => self.step_leaving(now),
            State::Failed => self.step_failed(now),
            State::Joining | State::Acknowledging => false,
        }
    }

    fn step_unjoined(&mut self, now: Instant) -> bool {
        let losing = self.running || !self.held.is_empty();
        if losing || !self.wants_to_join() || now < self.rejoin_at {
            return false;
        }
        // One that is not tried again, because of this join, has no chance left.
        self.farewell.take_if(|farewell| farewell.has_failed());
        if self.farewell.is_some() {
            return false;
        }
        let member = self.config.client_id.clone();
        let cause = self.rejoin.take().unwrap_or(Cause::MemberJoined { member });
        self.heart.begin(now);
        self.speak = false;
        self.go(State::Joining, Some(cause));
        true
    }

    pub(super) fn wants_to_join(&self) -> bool {
        self.may_join && !self.wish.is_empty()
    }

    /// Nothing is left to be told: the coordinator may hear of it. It does also when nothing had to be told, because it may
    /// wait for just that.
    fn step_reconciling(&mut self) -> bool {
        let done = !self.running && self.due_callback().is_none() && self.names_until.is_none();
        if done {
            self.acknowledge();
            self.go(State::Acknowledging, None);
        }
        done
    }

    /// The next heartbeat names the partitions, and goes out at once.
    pub(super) fn acknowledge(&mut self) {
        self.report = true;
        self.speak = true;
    }

    /// Names of topics that were set aside may be known by now.
    fn step_stable(&mut self) -> bool {
        if self.held.missing(&self.told, &self.names).is_empty() {
            return false;
        }
        self.go(State::Reconciling(Reconciling { tell: false }), Some(Cause::Coordinator));
        true
    }

    /// When the loss was told, the coordinator need not count on this member any longer.
    fn step_failed(&mut self, now: Instant) -> bool {
        if self.may_be_member && !self.running && self.held.is_empty() && !self.unsupported {
            self.say_farewell(now, Default::default());
        }
        false
    }

    /// Whether a heartbeat has meaning.
    pub(super) fn is_beating(&self) -> bool {
        match self.state {
            State::Joining | State::Reconciling(_) | State::Acknowledging | State::Stable => true,
            State::Leaving(_) => self.epoch.is_some() && !self.fenced,
            State::Unjoined | State::Failed => false,
        }
    }

    /// Whether an answer to a heartbeat has meaning.
    pub(super) fn is_in_group(&self) -> bool {
        self.is_beating()
    }

    /// Sends a heartbeat if one is due, and looks for the coordinator if it is not known.
    fn beat(&mut self, now: Instant) {
        if !self.is_beating() || !self.has_coordinator() || self.heart.is_waiting() {
            return;
        }
        let due = self.heart.is_due(now) || (self.speak && self.heart.may_speak_at_once(now));
        if !due {
            return;
        }
        self.speak = false;
        let sent_under = self.membership_at(self.epoch.unwrap_or(0));
        let request = self.heartbeat();
        self.may_be_member = true;
        let ticket = self.outbox.send(request, Some(self.heart.timeout()));
        self.heart.sent(now, ticket, sent_under, &mut self.jitter);
        if matches!(self.state, State::Acknowledging) {
            self.go(State::Stable, None);
        }
    }

    fn tell_due(&mut self) {
        let due = self.due_callback();
        self.announced.due(due, &mut self.outbox);
    }

    /// When time alone brings the next step.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let poll = self.poll_deadline().map(|at| Deadline { at, why: Why::PollInterval });
        let leave = match &self.state {
            State::Leaving(leaving) => leaving.deadline.map(|at| Deadline { at, why: Why::Leave }),
            State::Unjoined
            | State::Joining
            | State::Reconciling(_)
            | State::Acknowledging
            | State::Stable
            | State::Failed => None,
        };
        let rejoins = matches!(self.state, State::Unjoined) && self.wants_to_join();
        let rejoin = (rejoins && !self.running && self.held.is_empty() && self.farewell.is_none())
            .then_some(Deadline { at: self.rejoin_at, why: Why::Retry });
        let all = [poll, leave, rejoin, self.beat_deadline(), self.part_deadline(), self.names_deadline()];
        all.into_iter().flatten().min_by_key(|d| d.at)
    }

    fn beat_deadline(&self) -> Option<Deadline> {
        if !self.is_beating() || !self.reach.is_known() {
            return None;
        }
        let session = Deadline { at: self.heart.session_end(), why: Why::Session };
        let beat = self.heart.next().map(|at| Deadline { at, why: Why::Heartbeat });
        Some(beat.into_iter().fold(session, |a, b| if b.at <= a.at { b } else { a }))
    }
}
