//! Commits: waited for, or not.

use super::{Consumer, calls::check_offsets, front::OnCommit};
use crate::{Error, OffsetAndMetadata, net::oneshot, state::CallId};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tontine_group::TopicPartition;

/// The end of a commit that goes on by itself. Dropping it changes nothing.
#[derive(Debug)]
#[must_use = "the commit goes on without it, but only it tells how the commit ended"]
pub struct CommitFuture(State);

#[derive(Debug)]
enum State {
    Refused(Option<Error>),
    UnderWay(oneshot::Receiver<Result<(), Error>>),
}

impl Future for CommitFuture {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Refused(error) => Poll::Ready(Err(error.take().unwrap_or(Error::Closed("the consumer")))),
            State::UnderWay(end) => {
                let end = ready!(Pin::new(end).poll(cx));
                Poll::Ready(end.unwrap_or(Err(Error::Closed("the consumer"))))
            }
        }
    }
}

impl Consumer {
    /// Commits what `poll` has returned so far, and waits for it; all commits before it have ended then, too. Retried
    /// while that can help, for `default.api.timeout.ms` at most.
    pub async fn commit_sync(&mut self) -> Result<(), Error> {
        self.commit_sync_with(self.front.default_timeout).await
    }

    /// [`Consumer::commit_sync`] with a timeout of its own.
    pub async fn commit_sync_with(&mut self, timeout: Duration) -> Result<(), Error> {
        self.front.commit_consumed(timeout).await
    }

    /// Commits these offsets, each that of the next record to read, and waits for it.
    pub async fn commit_sync_offsets<O: Into<OffsetAndMetadata>>(
        &mut self,
        offsets: impl IntoIterator<Item = (TopicPartition, O)>,
    ) -> Result<(), Error> {
        let timeout = self.front.default_timeout;
        self.front.commit(offsets.into_iter().map(|(name, at)| (name, at.into())).collect(), timeout).await
    }

    /// Commits what `poll` has returned so far, and does not wait. Commits keep their order. A commit that fails is not
    /// retried: a later one says more. The future tells how it ended; dropping it changes nothing.
    pub fn commit_async(&mut self) -> CommitFuture {
        let offsets = self.front.desk.consumed();
        self.future(offsets)
    }

    /// [`Consumer::commit_async`] for these offsets.
    pub fn commit_async_offsets<O: Into<OffsetAndMetadata>>(
        &mut self,
        offsets: impl IntoIterator<Item = (TopicPartition, O)>,
    ) -> CommitFuture {
        self.future(offsets.into_iter().map(|(name, at)| (name, at.into())).collect())
    }

    /// [`Consumer::commit_async`] with a callback, which runs inside a later poll, commit or close.
    pub fn commit_async_with(
        &mut self,
        callback: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let offsets = self.front.desk.consumed();
        let call = self.start_commit(offsets)?;
        let callback: OnCommit = Box::new(callback);
        self.front.on_commit.insert(call, callback);
        self.front.flush();
        Ok(())
    }

    fn future(&mut self, offsets: Vec<(TopicPartition, OffsetAndMetadata)>) -> CommitFuture {
        match self.start_commit(offsets) {
            Err(error) => CommitFuture(State::Refused(Some(error))),
            Ok(call) => {
                // Known before it is sent: the answer may be quick.
                let end = self.front.future_of(call);
                self.front.flush();
                CommitFuture(State::UnderWay(end))
            }
        }
    }

    fn start_commit(&mut self, offsets: Vec<(TopicPartition, OffsetAndMetadata)>) -> Result<CallId, Error> {
        self.front.desk.check_group()?;
        check_offsets(&offsets)?;
        let timeout = self.front.default_timeout;
        Ok(self.front.desk.commit_later(offsets, timeout))
    }

    /// The offsets that the group has committed; none for partitions without one.
    pub async fn committed(
        &mut self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndMetadata>>, Error> {
        let timeout = self.front.default_timeout;
        self.front.committed(partitions.iter().cloned().collect(), timeout).await
    }
}
