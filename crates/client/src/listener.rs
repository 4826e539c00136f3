//! How an application hears of its partitions: async callbacks, each with a context that can do what is legal there.
//!
//! Callbacks run only inside `poll`, `unsubscribe` and `close`, in the caller's task. A context is borrowed and dies with
//! its call, so what is illegal later does not compile. When the future of a poll is dropped in the middle of a callback,
//! that callback is run again by the next poll. An error is reported by `poll` and vetoes nothing.
//!
//! Mirrors `ConsumerRebalanceListener` and `RebalanceConsumer`.

use crate::{
    Error, OffsetAndMetadata, OffsetAndTimestamp,
    consumer::{Front, GroupMetadata},
    offsets::Spot,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
};
use tontine_group::TopicPartition;

/// What a callback returns: any error of the application's. It is reported by `poll` and vetoes nothing.
pub type ListenerResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Hears of partitions that come and go. Write plain `async fn`s.
///
/// ```
/// use tontine::{Assigned, ListenerResult, RebalanceListener, Revoked};
///
/// struct Mine;
///
/// impl RebalanceListener for Mine {
///     async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
///         println!("now mine: {:?}", cx.partitions());
///         Ok(())
///     }
///     async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
///         cx.commit_sync().await?; // what poll returned so far; the next owner goes on from there
///         Ok(())
///     }
/// }
/// ```
pub trait RebalanceListener: Send {
    /// These partitions are assigned, in addition to those that already are. Records of them come after this returns.
    fn on_partitions_assigned(
        &mut self,
        cx: &mut Assigned<'_>,
    ) -> impl Future<Output = ListenerResult> + Send {
        let _ = cx;
        async { Ok(()) }
    }

    /// These partitions are given up, in good order: the next owner gets them when this has returned.
    fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> impl Future<Output = ListenerResult> + Send {
        let _ = cx;
        async { Ok(()) }
    }

    /// These partitions are gone: somebody else may own them already. Unless overridden, they are treated as revoked,
    /// with a context that refuses to commit.
    fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> impl Future<Output = ListenerResult> + Send {
        async move { self.on_partitions_revoked(&mut cx.as_revoked()).await }
    }
}

/// No listener.
impl RebalanceListener for () {}

/// Partitions have been assigned: seek, look at positions, pause.
pub struct Assigned<'a> {
    partitions: &'a [TopicPartition],
    front: &'a mut Front,
}

/// Partitions are being revoked: commit, look at positions.
pub struct Revoked<'a> {
    partitions: &'a [TopicPartition],
    front: &'a mut Front,
    lost: bool,
}

/// Partitions are lost: nothing can be committed for them.
pub struct Lost<'a> {
    partitions: &'a [TopicPartition],
    front: &'a mut Front,
}

macro_rules! every_context {
    ($name:ident) => {
        impl $name<'_> {
            /// The partitions that this callback is about, sorted.
            pub fn partitions(&self) -> &[TopicPartition] {
                self.partitions
            }

            /// Everything that is assigned at this moment, what comes or goes included.
            pub fn assignment(&self) -> BTreeSet<TopicPartition> {
                self.front.desk.assignment()
            }

            /// The offset of the next record of an assigned partition. Waits until it is known.
            pub async fn position(&mut self, partition: &TopicPartition) -> Result<i64, Error> {
                let timeout = self.front.default_timeout();
                self.front.position(partition, timeout).await
            }

            /// The offsets that the group has committed; none for partitions without one.
            pub async fn committed(
                &mut self,
                partitions: &[TopicPartition],
            ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndMetadata>>, Error> {
                let timeout = self.front.default_timeout();
                self.front.committed(partitions.iter().cloned().collect(), timeout).await
            }

            /// The membership as it is during this callback.
            pub fn group_metadata(&self) -> Result<GroupMetadata, Error> {
                self.front.group_metadata()
            }
        }

        impl std::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("partitions", &self.partitions)
                    .finish_non_exhaustive()
            }
        }
    };
}

every_context!(Assigned);
every_context!(Revoked);
every_context!(Lost);

macro_rules! committing_context {
    ($name:ident) => {
        impl $name<'_> {
            /// Commits what `poll` has returned of all assigned partitions, and waits for it.
            pub async fn commit_sync(&mut self) -> Result<(), Error> {
                self.may_commit()?;
                let timeout = self.front.default_timeout();
                self.front.commit_consumed(timeout).await
            }

            /// Commits these offsets, and waits for it.
            pub async fn commit_sync_offsets<O: Into<OffsetAndMetadata>>(
                &mut self,
                offsets: impl IntoIterator<Item = (TopicPartition, O)>,
            ) -> Result<(), Error> {
                self.may_commit()?;
                let timeout = self.front.default_timeout();
                let offsets = offsets.into_iter().map(|(name, at)| (name, at.into())).collect();
                self.front.commit(offsets, timeout).await
            }
        }
    };
}

committing_context!(Assigned);
committing_context!(Revoked);

impl<'a> Assigned<'a> {
    pub(crate) fn new(partitions: &'a [TopicPartition], front: &'a mut Front) -> Self {
        Self { partitions, front }
    }

    #[allow(clippy::unused_self, clippy::unnecessary_wraps)]
    fn may_commit(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Starts reading an assigned partition here.
    pub fn seek(
        &mut self,
        partition: &TopicPartition,
        to: impl Into<OffsetAndMetadata>,
    ) -> Result<(), Error> {
        self.front.seek(partition, &to.into())
    }

    /// Starts reading these partitions at their first record; all assigned ones when none is named.
    pub fn seek_to_beginning(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.seek_all(partitions, Spot::Beginning)
    }

    /// Starts reading these partitions at their end; all assigned ones when none is named.
    pub fn seek_to_end(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.seek_all(partitions, Spot::End)
    }

    /// Starts reading these partitions at the first record with this timestamp or a later one.
    pub fn seek_to_timestamp(&mut self, partitions: &[TopicPartition], unix_ms: i64) -> Result<(), Error> {
        self.front.seek_all(partitions, Spot::Timestamp(unix_ms))
    }

    /// Hands out nothing of these partitions until they are resumed.
    pub fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.set_paused(partitions, true)
    }

    /// Goes on with paused partitions.
    pub fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), Error> {
        self.front.set_paused(partitions, false)
    }

    /// The first offsets of these partitions.
    pub async fn beginning_offsets(
        &mut self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let timeout = self.front.default_timeout();
        self.front.ends(partitions, Spot::Beginning, timeout).await
    }

    /// The offsets behind the last records of these partitions.
    pub async fn end_offsets(
        &mut self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let timeout = self.front.default_timeout();
        self.front.ends(partitions, Spot::End, timeout).await
    }

    /// The first record at or after a timestamp, for each partition.
    pub async fn offsets_for_times(
        &mut self,
        times: impl IntoIterator<Item = (TopicPartition, i64)>,
    ) -> Result<BTreeMap<TopicPartition, Option<OffsetAndTimestamp>>, Error> {
        let timeout = self.front.default_timeout();
        self.front
            .lookup(times.into_iter().map(|(name, ms)| (name, Spot::Timestamp(ms))).collect(), timeout)
            .await
    }
}

impl<'a> Revoked<'a> {
    pub(crate) fn new(partitions: &'a [TopicPartition], front: &'a mut Front) -> Self {
        Self { partitions, front, lost: false }
    }

    /// Whether the partitions are in fact lost: then a commit is refused without being sent.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    fn may_commit(&self) -> Result<(), Error> {
        if !self.lost {
            return Ok(());
        }
        let message = "the partitions were lost, another member may own them: nothing was sent, and what was not committed is read again";
        Err(Error::Lost(message.into()))
    }
}

impl<'a> Lost<'a> {
    pub(crate) fn new(partitions: &'a [TopicPartition], front: &'a mut Front) -> Self {
        Self { partitions, front }
    }

    /// The same as a revocation that refuses to commit.
    pub fn as_revoked(&mut self) -> Revoked<'_> {
        Revoked { partitions: self.partitions, front: self.front, lost: true }
    }
}

type BoxFuture<'a> = Pin<Box<dyn Future<Output = ListenerResult> + Send + 'a>>;

/// The listener's twin that can be boxed.
pub(crate) trait DynListener: Send {
    fn assigned<'a>(&'a mut self, cx: &'a mut Assigned<'_>) -> BoxFuture<'a>;
    fn revoked<'a>(&'a mut self, cx: &'a mut Revoked<'_>) -> BoxFuture<'a>;
    fn lost<'a>(&'a mut self, cx: &'a mut Lost<'_>) -> BoxFuture<'a>;
}

impl<L: RebalanceListener> DynListener for L {
    fn assigned<'a>(&'a mut self, cx: &'a mut Assigned<'_>) -> BoxFuture<'a> {
        Box::pin(self.on_partitions_assigned(cx))
    }
    fn revoked<'a>(&'a mut self, cx: &'a mut Revoked<'_>) -> BoxFuture<'a> {
        Box::pin(self.on_partitions_revoked(cx))
    }
    fn lost<'a>(&'a mut self, cx: &'a mut Lost<'_>) -> BoxFuture<'a> {
        Box::pin(self.on_partitions_lost(cx))
    }
}
