//! Changes of the assignment, one after the other, on the application's side.
//!
//! The actor says what is due; the application gets ready inside a poll: what goes away is not handed out any more, and
//! with auto-commit on what was handed out is committed. Then it says [`Ask::Begin`], and the actor answers with the step
//! as it stands at that moment: what was to be revoked may be lost by now. The listener runs; only when it has *returned*
//! is the step over. When the future of a poll is dropped in the middle of a callback, the next poll runs it again.
//!
//! What is assigned may be sought and paused in its callback, and is handed out afterwards. What is revoked or lost is
//! still assigned in its callback, and gone afterwards.
//!
//! Mirrors `ConsumerRebalanceListenerInvoker` and the callback parts of `ConsumerCoordinator`.

use super::{Desk, Held, Turn};
use crate::audit::Why;
use crate::state::{Ask, CallId, CommitKind, Step, StepKind};
use tontine_group::{Instant, TopicPartition, member::Due};

#[derive(Debug, Default)]
pub(super) struct Rebalance {
    due: Option<Due>,
    stage: Stage,
    /// The group is being left on request: partitions are given up without a commit.
    leaving: bool,
}

#[derive(Debug, Default)]
enum Stage {
    /// Nothing is going on.
    #[default]
    Idle,
    /// What was handed out is being committed.
    Committing(CallId),
    /// The actor was asked to begin.
    Beginning,
    /// The actor has begun; the application has not seen it yet.
    Begun(Step),
    /// The listener has to run, or runs.
    Calling(Step),
}

impl Rebalance {
    pub(super) fn is_idle(&self) -> bool {
        self.due.is_none() && matches!(self.stage, Stage::Idle)
    }

    /// Whether this is the commit before a revocation.
    pub(super) fn waits_for(&self, call: CallId) -> bool {
        matches!(self.stage, Stage::Committing(own) if own == call)
    }

    /// Takes the answer of the commit before a revocation; however it ended, the revocation goes on.
    pub(super) fn answered(&mut self, call: CallId) -> Option<Ask> {
        if !self.waits_for(call) {
            return None;
        }
        self.stage = Stage::Beginning;
        Some(Ask::Begin)
    }
}

impl Desk {
    /// The actor says what is due.
    pub(super) fn set_due(&mut self, due: Option<Due>) {
        self.rebalance.due = due;
    }

    /// The actor has begun a step, or found none due. The application sees nothing of it before its next poll. What was
    /// made ready for a callback that is about something else now flows again.
    pub(super) fn begin_step(&mut self, step: Option<Step>) {
        for held in self.held.values_mut().filter(|held| held.announced) {
            held.frozen = false;
        }
        self.line_up();
        self.rebalance.stage = match step {
            None => Stage::Idle,
            Some(step) => {
                // Here and not when the callback runs: by then a later epoch may have been told.
                self.membership.clone_from(&step.membership);
                if step.kind == StepKind::Assigned {
                    for (name, incarnation) in &step.partitions {
                        self.held.insert(name.clone(), Held::new(*incarnation));
                    }
                } else {
                    self.freeze(&step.partitions.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
                }
                Stage::Begun(step)
            }
        };
    }

    /// The callback that has to run now, if any.
    pub(super) fn next_step(&mut self) -> Option<Turn> {
        match std::mem::take(&mut self.rebalance.stage) {
            Stage::Idle => {
                let due = self.rebalance.due.take()?;
                self.prepare(&due);
                None
            }
            Stage::Begun(step) => {
                self.show(&step);
                self.call_listener(step)
            }
            Stage::Calling(step) => self.call_listener(step),
            waiting @ (Stage::Committing(_) | Stage::Beginning) => {
                self.rebalance.stage = waiting;
                None
            }
        }
    }

    fn call_listener(&mut self, step: Step) -> Option<Turn> {
        let names = step.partitions.iter().map(|(name, _)| name.clone()).collect();
        let turn = Turn::Callback(step.kind, names);
        self.rebalance.stage = Stage::Calling(step);
        Some(turn)
    }

    /// Gets ready for a callback: what goes away stops flowing, and is committed.
    fn prepare(&mut self, due: &Due) {
        let commit = match due {
            Due::Assign { .. } => None,
            Due::Lost { partitions } => {
                self.freeze(partitions);
                None
            }
            Due::Revoke { partitions, .. } => {
                self.freeze(partitions);
                self.commit_before_revocation()
            }
        };
        self.rebalance.stage = match commit {
            Some(call) => Stage::Committing(call),
            None => {
                self.asks.push(Ask::Begin);
                Stage::Beginning
            }
        };
    }

    fn freeze(&mut self, partitions: &[TopicPartition]) {
        for name in partitions {
            if let Some(held) = self.held.get_mut(name) {
                held.frozen = true;
            }
        }
    }

    fn commit_before_revocation(&mut self) -> Option<CallId> {
        if !self.auto_commit.is_on() || self.rebalance.leaving {
            return None;
        }
        let offsets = self.consumed();
        if offsets.is_empty() {
            return None;
        }
        let call = self.calls.next_id();
        let timeout = self.settings.max_poll_interval;
        self.asks.push(Ask::commit(call, offsets, CommitKind::Awaited, timeout));
        Some(call)
    }

    /// The application sees the step from now on.
    fn show(&mut self, step: &Step) {
        for (name, _) in &step.partitions {
            if let Some(held) = self.held.get_mut(name) {
                held.announced = true;
                held.frozen = true;
            }
        }
    }

    /// The callback of [`Turn::Callback`] has returned: the change is made, whatever it returned. Whatever the actor has
    /// said by then should have been heard before.
    pub fn callback_done(&mut self, now: Instant, failed: bool) {
        let step = match std::mem::take(&mut self.rebalance.stage) {
            Stage::Calling(step) => step,
            other => {
                self.rebalance.stage = other;
                return;
            }
        };
        self.audit_step(now, &step);
        for (name, _) in &step.partitions {
            match step.kind {
                StepKind::Revoked | StepKind::Lost => {
                    self.held.remove(name);
                }
                StepKind::Assigned => {
                    if let Some(held) = self.held.get_mut(name) {
                        held.frozen = false;
                        held.unheard = failed;
                    }
                }
            }
        }
        if step.kind == StepKind::Assigned {
            // A failed callback is called again with nothing new; its success is good for all that waited for it.
            if !failed {
                self.held.values_mut().for_each(|held| held.unheard = false);
            }
            self.auto_commit.restart(now);
            self.line_up();
        }
        self.tell_next_poll();
        self.asks.push(Ask::StepDone { step: step.id, failed });
    }

    fn audit_step(&mut self, now: Instant, step: &Step) {
        let Some(ledger) = &mut self.ledger else { return };
        ledger.tick(now);
        ledger.is_member(step.membership.as_ref());
        ledger.confirmed(step.confirmed);
        ledger.is_member(self.membership.as_ref());
        // A membership that ended while the callback ran left nothing to give up in good order.
        let is_over = step.membership.is_some() && self.membership.is_none();
        for (name, _) in &step.partitions {
            match step.kind {
                StepKind::Assigned => ledger.assigned(name),
                StepKind::Revoked if !is_over => ledger.released(name, Why::Revoked),
                StepKind::Revoked | StepKind::Lost => ledger.released(name, Why::Lost),
            }
        }
    }

    /// The group is being left: what is given up from now on is not committed.
    pub(crate) fn set_leaving(&mut self, leaving: bool) {
        self.rebalance.leaving = leaving;
    }

    /// Whether the group is being left.
    pub(crate) fn is_leaving(&self) -> bool {
        self.rebalance.leaving
    }

    /// Everything is over: whatever is still held is let go without a callback.
    pub(crate) fn drop_assignment(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            ledger.left();
        }
        self.rebalance = Rebalance::default();
        self.held.clear();
        self.line.clear();
    }
}
