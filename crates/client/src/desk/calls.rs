//! Which answers somebody waits for.
//!
//! One owner makes one call at a time, so at most one answer is awaited, and one more while the group is left: callbacks
//! that run meanwhile make calls of their own. That of a call whose future was dropped is thrown away. Commits that nobody waits for are remembered until they have ended, in their order.

use super::Desk;
use crate::{
    Error, OffsetAndMetadata,
    state::{Answer, Ask, CallId, CommitKind},
};
use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};
use tontine_group::TopicPartition;

#[derive(Debug, Default)]
pub(super) struct Calls {
    count: u64,
    awaited: Option<CallId>,
    answer: Option<Result<Answer, Error>>,
    leaving: Option<CallId>,
    has_left: bool,
    /// Commits under way whose end the application is told.
    listened: BTreeSet<CallId>,
    ended: VecDeque<(CallId, Result<(), Error>)>,
}

impl Calls {
    pub(super) fn next_id(&mut self) -> CallId {
        self.count += 1;
        CallId(self.count)
    }

    pub(super) fn next_ended(&mut self) -> Option<(CallId, Result<(), Error>)> {
        self.ended.pop_front()
    }

    pub(super) fn answered(&mut self, call: CallId, answer: Result<Answer, Error>) {
        if self.listened.remove(&call) {
            self.ended.push_back((call, answer.map(|_| ())));
        } else if self.awaited == Some(call) {
            self.answer = Some(answer);
        } else if self.leaving == Some(call) {
            self.has_left = true;
        }
    }
}

impl Desk {
    /// Asks, and waits for the answer from now on.
    pub(crate) fn call(&mut self, ask: impl FnOnce(CallId) -> Ask) -> CallId {
        let call = self.calls.next_id();
        self.calls.awaited = Some(call);
        self.calls.answer = None;
        self.asks.push(ask(call));
        call
    }

    /// The answer to the call that is waited for, when it has come.
    pub(crate) fn take_answer(&mut self, call: CallId) -> Option<Result<Answer, Error>> {
        if self.calls.awaited != Some(call) {
            return None;
        }
        self.calls.answer.take()
    }

    /// Starts a commit that somebody waits for; see [`Desk::take_commit`].
    pub fn commit(&mut self, offsets: Vec<(TopicPartition, OffsetAndMetadata)>, timeout: Duration) -> CallId {
        self.call(|call| Ask::commit(call, offsets, CommitKind::Awaited, timeout))
    }

    /// How the commit that somebody waits for ended, when it has.
    pub fn take_commit(&mut self, call: CallId) -> Option<Result<(), Error>> {
        self.take_answer(call).map(|answer| answer.map(|_| ()))
    }

    /// Starts to leave the group, for good or until the next subscription: run [`Desk::next_callback`] until
    /// [`Desk::has_left`].
    pub fn leave(&mut self, reason: &str, forever: bool, timeout: Duration) {
        self.set_leaving(true);
        let reason = reason.to_owned();
        self.call_leave(|call| Ask::Leave { call, reason, forever, timeout });
    }

    /// The group has been left, or leaving it took too long: whatever is still held is let go without a callback.
    pub fn finish_leaving(&mut self) {
        self.set_leaving(false);
        self.forget_interest();
        self.drop_assignment();
        self.asks.push(Ask::Assign(Vec::new()));
    }

    /// Lets the actor end.
    pub fn close(&mut self, timeout: Duration) {
        self.asks.push(Ask::Close { timeout });
    }

    /// Asks to leave the group; see [`Desk::has_left`].
    fn call_leave(&mut self, ask: impl FnOnce(CallId) -> Ask) {
        let call = self.calls.next_id();
        self.calls.leaving = Some(call);
        self.calls.has_left = false;
        self.asks.push(ask(call));
    }

    /// Whether the group has been left, or leaving it was given up.
    pub fn has_left(&self) -> bool {
        self.calls.has_left
    }

    /// Asks for a commit and does not wait: its end comes as [`super::Turn::CommitEnded`].
    pub(crate) fn call_later(&mut self, ask: impl FnOnce(CallId) -> Ask) -> CallId {
        let call = self.calls.next_id();
        self.calls.listened.insert(call);
        self.asks.push(ask(call));
        call
    }

    /// A commit that nobody waited for and that has ended.
    pub(crate) fn next_ended_commit(&mut self) -> Option<(CallId, Result<(), Error>)> {
        self.calls.next_ended()
    }

    /// Starts a commit that nobody waits for; its end comes as [`super::Turn::CommitEnded`].
    pub fn commit_later(
        &mut self,
        offsets: Vec<(TopicPartition, OffsetAndMetadata)>,
        timeout: Duration,
    ) -> CallId {
        self.call_later(|call| Ask::commit(call, offsets, CommitKind::Once, timeout))
    }

    /// Tells the actor something that has no answer.
    pub(crate) fn tell(&mut self, ask: Ask) {
        self.asks.push(ask);
    }

    /// Whether commits that nobody waits for are under way, or have ended without the application knowing.
    pub(crate) fn has_commits_under_way(&self) -> bool {
        !self.calls.listened.is_empty() || !self.calls.ended.is_empty()
    }
}
