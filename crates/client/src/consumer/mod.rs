//! The consumer as an application sees it.
//!
//! Everything that decides is elsewhere: [`crate::desk`] says what to do next in a poll, [`crate::state`] owns the network
//! and the membership on a thread of its own. Here the two get a voice: channels, timers and the listener's futures.
//!
//! Mirrors `KafkaConsumer`.

mod audit_log;
mod build;
mod calls;
mod close;
mod commit;
mod front;
mod offsets;
mod subscribe;

pub use calls::Offsets;
pub use commit::CommitFuture;
pub(crate) use front::Front;
pub use subscribe::Topics;

use crate::{
    Error, History, Records,
    config::ConsumerBuilder,
    desk::Turn,
    listener::{Assigned, DynListener, ListenerResult, Lost, Revoked},
    state::{Ask, StepKind},
};
use front::Wakeup;
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};
use tontine_group::TopicPartition;

/// A consumer: shares the partitions of topics with the other members of its group, or reads partitions of its choice.
///
/// One owner uses it at a time (`&mut self`); [`Consumer::waker`] gives a handle for everybody else. Dropping it never
/// blocks: it leaves its group in the background, without a callback and without a commit. [`Consumer::close`] does
/// everything in good order.
///
/// Every method can be dropped while it waits, in a `select!` for example: nothing is lost, skipped or handed out twice.
///
/// ```no_run
/// # async fn example() -> Result<(), tontine::Error> {
/// use std::time::Duration;
/// use tontine::Consumer;
///
/// let mut consumer = Consumer::builder()
///     .set("bootstrap.servers", "127.0.0.1:9092")
///     .group_id("billing")
///     .enable_auto_commit(false)
///     .build()?;
/// consumer.subscribe(["orders"], ()).await?;
/// loop {
///     let records = consumer.poll(Duration::from_secs(1)).await?;
///     for record in &records {
///         println!("{}-{} {}: {:?}", record.topic(), record.partition(), record.offset(), record.value());
///     }
///     consumer.commit_sync().await?;
/// }
/// # }
/// ```
pub struct Consumer {
    front: Front,
    listener: Option<Box<dyn DynListener>>,
}

/// What a member is known by, for those who commit on its behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadata {
    /// `group.id`.
    pub group_id: String,
    /// The generation; `None` outside of the group.
    pub generation: Option<i32>,
    /// The id the coordinator gave; empty outside of the group.
    pub member_id: String,
    /// `group.instance.id`.
    pub instance_id: Option<String>,
}

/// Interrupts a consumer from anywhere.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Wakeup>);

impl Waker {
    /// Makes the call that waits at this moment, or the next one that would, end with [`Error::Woken`].
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl Consumer {
    /// Starts from the defaults.
    pub fn builder() -> ConsumerBuilder {
        ConsumerBuilder::default()
    }

    /// Returns records as soon as there are any, at most `max.poll.records`, and nothing when the time is over.
    ///
    /// The listener's callbacks run in here, and so do those of [`Consumer::commit_async_with`]. A member has to poll
    /// within `max.poll.interval.ms`. What this returns counts as handed out: the positions move when it returns, not
    /// before.
    pub async fn poll(&mut self, timeout: Duration) -> Result<Records, Error> {
        let now = self.front.now();
        self.front.desk.begin_poll(now)?;
        let deadline = now + timeout;
        loop {
            self.front.exchange();
            self.front.check_woken()?;
            match self.front.turn() {
                Turn::Records(records) => return Ok(records),
                Turn::Failed(error) => return Err(error),
                Turn::CommitEnded(call, result) => self.front.commit_ended(call, result),
                Turn::Callback(kind, partitions) => self.run_listener(kind, &partitions).await?,
                Turn::Wait(at) => {
                    if self.front.now() >= deadline {
                        return Ok(Records::default());
                    }
                    self.front.wait(Front::earlier(deadline, at)).await?;
                }
            }
        }
    }

    /// Runs a callback to its end. Until then the change it is about has not happened.
    async fn run_listener(&mut self, kind: StepKind, partitions: &[TopicPartition]) -> Result<(), Error> {
        let result = match &mut self.listener {
            None => Ok(()),
            Some(listener) => Self::call(listener.as_mut(), kind, partitions, &mut self.front).await,
        };
        self.front.exchange();
        let now = self.front.now();
        self.front.desk.callback_done(now, result.is_err());
        self.front.flush();
        result.map_err(|error| Error::Callback(error.into()))
    }

    async fn call(
        listener: &mut dyn DynListener,
        kind: StepKind,
        partitions: &[TopicPartition],
        front: &mut Front,
    ) -> ListenerResult {
        match kind {
            StepKind::Assigned => listener.assigned(&mut Assigned::new(partitions, front)).await,
            StepKind::Revoked => listener.revoked(&mut Revoked::new(partitions, front)).await,
            StepKind::Lost => listener.lost(&mut Lost::new(partitions, front)).await,
        }
    }

    /// The partitions that are assigned. Changes only inside `poll`, `unsubscribe`, `assign` and `close`.
    pub fn assignment(&self) -> BTreeSet<TopicPartition> {
        self.front.desk.assignment()
    }

    /// The topics that are subscribed; for a pattern those that match now.
    pub fn subscription(&self) -> BTreeSet<Arc<str>> {
        self.front.desk.subscription()
    }

    /// The membership as the latest callbacks knew it.
    pub fn group_metadata(&self) -> Result<GroupMetadata, Error> {
        self.front.group_metadata()
    }

    /// Joins the group again inside the next poll, as if a member had come or gone.
    pub fn enforce_rebalance(&mut self, reason: &str) -> Result<(), Error> {
        self.front.desk.check_group()?;
        if !self.front.desk.is_in_group() {
            return Err(Error::misuse("nothing is subscribed: there is no group to rebalance"));
        }
        self.front.desk.tell(Ask::Rejoin { reason: reason.chars().take(255).collect() });
        self.front.flush();
        Ok(())
    }

    /// What happened to the membership so far, as far as polls and other calls have learned of it.
    pub fn history(&self) -> &History {
        self.front.desk.history()
    }

    /// A handle that interrupts this consumer from another task or thread.
    pub fn waker(&self) -> Waker {
        Waker(self.front.wakeup.clone())
    }

    /// Whether the consumer is closed.
    pub fn is_closed(&self) -> bool {
        self.front.desk.is_closed()
    }
}

impl Front {
    pub(crate) fn group_metadata(&self) -> Result<GroupMetadata, Error> {
        self.desk.check_group()?;
        let membership = self.desk.membership();
        Ok(GroupMetadata {
            group_id: self.group_id.as_deref().unwrap_or_default().to_owned(),
            generation: membership.map(|m| m.generation),
            member_id: membership.map_or_else(String::new, |m| m.member_id.clone()),
            instance_id: membership.and_then(|m| m.instance_id.clone()),
        })
    }

    pub(crate) fn default_timeout(&self) -> Duration {
        self.default_timeout
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("group", &self.front.group_id)
            .field("assignment", &self.assignment())
            .finish_non_exhaustive()
    }
}
