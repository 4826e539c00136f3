//! Which callback is due, and what its end changes: revoked strictly before assigned, and the coordinator hears that a
//! partition was let go only after its delivery has stopped and the callback about it has returned.
//!
//! What is due follows from what is owned and what the coordinator said last, at the moment it is asked for. So whatever
//! comes between two steps (another assignment, a fence, a new epoch) is acted on by the next one. Mirrors
//! `AbstractMembershipManager.maybeReconcile`.
//!
//! Topics whose names are not known yet are set aside and asked for again; the others need not wait for them, except for a
//! moment, so that the first assignment comes in one piece.

use super::{Consumer, State};
use crate::{
    Instant, TopicPartition,
    member::{Callback, Deadline, Due, Granted, Occasion, Revocation, Why},
};
use std::time::Duration;

/// How long partitions with names wait for those without.
const PATIENCE: Duration = Duration::from_secs(1);

impl Consumer {
    /// The callback that would begin now.
    pub(in crate::member) fn due_callback(&self) -> Option<Due> {
        if self.running {
            return None;
        }
        match &self.state {
            State::Unjoined | State::Failed => self.lost(),
            State::Reconciling(reconciling) => self.due_to_reconcile(reconciling.tell),
            State::Leaving(leaving) if leaving.orderly => {
                let partitions: Vec<_> = self.held.names().iter().cloned().collect();
                let occasion = Occasion::Leaving;
                (!partitions.is_empty()).then_some(Due::Revoke { partitions, occasion })
            }
            State::Leaving(_) => self.lost(),
            State::Joining | State::Acknowledging | State::Stable => None,
        }
    }

    fn lost(&self) -> Option<Due> {
        let partitions: Vec<_> = self.held.names().iter().cloned().collect();
        (!partitions.is_empty()).then_some(Due::Lost { partitions })
    }

    fn due_to_reconcile(&self, tell: bool) -> Option<Due> {
        let gone = self.held.outside(&self.told);
        if !gone.is_empty() {
            return Some(Due::Revoke { partitions: gone, occasion: Occasion::AfterSync });
        }
        if self.names_until.is_some() {
            return None;
        }
        let added: Vec<_> = self.held.missing(&self.told, &self.names).into_keys().collect();
        (tell || !added.is_empty()).then_some(Due::Assign { added })
    }

    pub(in crate::member) fn begin_callback(&mut self, now: Instant) -> Option<Callback> {
        let callback = self.due_callback()?.begin(|added| self.grant(added));
        self.running = true;
        self.advance(now);
        Some(callback)
    }

    /// The new partitions are part of the assignment while the listener is told of them.
    fn grant(&mut self, added: Vec<TopicPartition>) -> Granted {
        let missing = self.held.missing(&self.told, &self.names);
        self.held.add(missing);
        Granted { added, all: self.held.names().iter().cloned().collect() }
    }

    pub(in crate::member) fn revoke_done(&mut self, now: Instant, revocation: Revocation) {
        self.running = false;
        self.held.remove(&revocation.partitions);
        if let (State::Reconciling(reconciling), false) = (&mut self.state, revocation.is_lost()) {
            // Whoever gets these waits for nothing but this.
            reconciling.tell = true;
            self.acknowledge();
        }
        self.advance(now);
    }

    pub(in crate::member) fn assign_done(&mut self, now: Instant, granted: Granted) {
        self.running = false;
        drop(granted);
        if let State::Reconciling(reconciling) = &mut self.state {
            reconciling.tell = false;
        }
        self.advance(now);
    }

    /// Assigned is due again: with nothing new, since the partitions are owned already.
    pub(in crate::member) fn assign_failed(&mut self, now: Instant, granted: Granted) {
        self.running = false;
        drop(granted);
        if let State::Reconciling(reconciling) = &mut self.state {
            reconciling.tell = true;
        }
        self.advance(now);
    }

    /// Another assignment came: asks for the names that it needs and that are not known.
    pub(super) fn find_names(&mut self, now: Instant) {
        self.names_backoff.reset();
        self.ask_names_at = None;
        self.names_until = None;
        if !self.held.knows_all(&self.told, &self.names) {
            self.names_until = Some(now + PATIENCE);
            self.ask_metadata();
        }
    }

    /// Metadata came: with what is known now it goes on, and what is missing is asked for again after a while.
    pub(super) fn take_names(&mut self, now: Instant) {
        self.names_until = None;
        self.ask_names_at = if self.held.knows_all(&self.told, &self.names) {
            None
        } else {
            Some(now + self.names_backoff.fail(&mut self.jitter))
        };
    }

    pub(super) fn wait_for_names(&mut self, now: Instant) {
        if self.names_until.take_if(|until| now >= *until).is_some() {
            self.ask_names_at = Some(now);
        }
        if self.ask_names_at.take_if(|at| now >= *at).is_some() {
            // Should no answer come, it is asked for once more all the same.
            self.ask_names_at = Some(now + PATIENCE);
            self.ask_metadata();
        }
    }

    pub(super) fn names_deadline(&self) -> Option<Deadline> {
        let at = crate::time::soonest(self.names_until, self.ask_names_at)?;
        Some(Deadline { at, why: Why::Metadata })
    }
}
