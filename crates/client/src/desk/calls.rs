//! Which answers somebody waits for.
//!
//! One owner makes one call at a time, but a callback that runs inside a call (of `close`, of `unsubscribe`) makes calls of
//! its own, so several answers can be awaited. That of a call whose future was dropped is thrown away. Commits that nobody waits for are remembered until they have ended, in their order.

use super::Desk;
use crate::{
    Error,
    state::{Answer, Ask, CallId},
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub(super) struct Calls {
    count: u64,
    awaited: BTreeMap<CallId, Option<Result<Answer, Error>>>,
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
        } else if let Some(awaited) = self.awaited.get_mut(&call) {
            *awaited = Some(answer);
        }
    }
}

impl Desk {
    /// Asks, and waits for the answer from now on.
    pub(crate) fn call(&mut self, ask: impl FnOnce(CallId) -> Ask) -> CallId {
        let call = self.calls.next_id();
        // Outside of a callback nobody can be waiting any more: what is left are calls whose futures were dropped.
        if !self.is_calling() {
            self.calls.awaited.clear();
        }
        self.calls.awaited.insert(call, None);
        self.asks.push(ask(call));
        call
    }

    /// The answer to the call that is waited for, when it has come.
    pub(crate) fn take_answer(&mut self, call: CallId) -> Option<Result<Answer, Error>> {
        let answer = self.calls.awaited.get_mut(&call)?.take()?;
        self.calls.awaited.remove(&call);
        Some(answer)
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

    /// Tells the actor something that has no answer.
    pub(crate) fn tell(&mut self, ask: Ask) {
        self.asks.push(ask);
    }

    /// Whether commits that nobody waits for are under way, or have ended without the application knowing.
    pub(crate) fn has_commits_under_way(&self) -> bool {
        !self.calls.listened.is_empty() || !self.calls.ended.is_empty()
    }
}
