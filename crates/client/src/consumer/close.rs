//! The end of a consumer, in good order: commit, callbacks, leave, pending commits, then the network.
//!
//! Every step is tried even when an earlier one failed, and each is bounded by what is left of the timeout, the
//! application's own callbacks included: one that has not returned by then is dropped, and the member leaves without it.
//! Mirrors `AsyncKafkaConsumer.close`, which would wait for the callback for ever.

use super::Consumer;
use crate::{
    Error,
    desk::Turn,
    state::{Ask, CommitKind},
};
use std::time::Duration;
use tontine_group::Instant;

/// What `close` takes at most unless told otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// What the actor, which is only a thread away, gets in any case.
const GRACE: Duration = Duration::from_millis(200);

impl Consumer {
    /// [`Consumer::close_with`] 30 seconds.
    pub async fn close(&mut self) -> Result<(), Error> {
        self.close_with(DEFAULT_TIMEOUT).await
    }

    /// Commits (auto-commit on), gives everything up with the listener's callbacks, leaves the group and ends. Takes no
    /// longer than the timeout, and a moment for the last bytes: a callback that has not returned by then is dropped, and
    /// the member leaves all the same. The first error of a callback is returned, when everything is done. Closing a
    /// closed consumer does nothing.
    pub async fn close_with(&mut self, timeout: Duration) -> Result<(), Error> {
        if self.front.desk.is_closed() {
            return Ok(());
        }
        let until = self.front.now() + timeout;
        if self.front.desk.commits_at_close() {
            // Refused or late: the next owner reads again what was not committed.
            let left = self.left(until);
            if let Err(error) = self.commit_at_close(left).await {
                tracing::warn!(
                    group = self.front.group_id.as_deref().unwrap_or_default(),
                    "the commit of auto-commit at close failed, what was read since the last one is read again: {error}"
                );
            }
        }
        let left = self.left(until);
        let result = self.leave("the consumer was closed", true, left).await;
        let late = self.end_commits(until).await;
        self.end_actor(until).await;
        self.front.desk.set_closed();
        self.listener = None;
        result.and(late)
    }

    fn left(&self, until: Instant) -> Duration {
        until.saturating_since(self.front.now()).max(GRACE)
    }

    async fn commit_at_close(&mut self, timeout: Duration) -> Result<(), Error> {
        let offsets = self.front.desk.consumed();
        let kind = CommitKind::Awaited;
        let call = self.front.desk.call(|call| Ask::commit(call, offsets, kind, timeout));
        loop {
            self.front.exchange();
            if let Some(answer) = self.front.desk.take_answer(call) {
                return answer.map(|_| ());
            }
            self.front.wait(None).await?;
        }
    }

    /// Waits for commits that nobody waited for, and tells whoever wants to know.
    async fn end_commits(&mut self, until: Instant) -> Result<(), Error> {
        loop {
            self.front.exchange();
            self.front.run_commit_callbacks();
            if !self.front.desk.has_commits_under_way() || self.front.now() >= until {
                return Ok(());
            }
            if let Err(Error::Closed(_)) = self.front.wait(Some(until)).await {
                return Ok(());
            }
        }
    }

    /// Lets the actor end; its end is the end of its events.
    async fn end_actor(&mut self, until: Instant) {
        let timeout = self.left(until);
        self.front.desk.close(timeout);
        self.front.flush();
        let until = self.front.now() + timeout + GRACE;
        while self.front.now() < until {
            if self.front.wait(Some(until)).await.is_err() {
                break;
            }
        }
        self.front.run_commit_callbacks();
    }

    /// Runs a callback, to its end or until the deadline; then it has timed out.
    pub(super) async fn turn_while_leaving(
        &mut self,
        turn: Turn,
        deadline: Option<Instant>,
    ) -> Result<(), Error> {
        match turn {
            Turn::Callback(kind, partitions) => {
                let Some(deadline) = deadline else { return self.run_listener(kind, &partitions).await };
                let left = self.left(deadline);
                let run = tokio::time::timeout(left, self.run_listener(kind, &partitions));
                run.await.unwrap_or_else(|_| Err(late_callback(left)))
            }
            Turn::CommitEnded(call, result) => {
                self.front.commit_ended(call, result);
                Ok(())
            }
            Turn::Failed(_) | Turn::Records(_) | Turn::Wait(_) => Ok(()),
        }
    }
}

fn late_callback(after: Duration) -> Error {
    let why = Some("it was dropped, and the member has left without it".into());
    Error::Timeout { what: "the listener's last callback".to_owned(), after, why }
}
