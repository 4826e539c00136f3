//! What the application's side asks of the actor, and what the actor tells it.
//!
//! Both are plain data, so that a simulator can carry them as well as a channel. A call that wants an answer has a
//! [`CallId`]; answers come in the same order as everything else the actor tells.

use crate::{
    Error,
    lease::{Delivery, Incarnation, LogEnd},
    offsets::{OffsetAndMetadata, Spot},
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine_group::{Instant, TopicPartition, ids::Membership, member::Due, pattern::TopicPattern};

/// Names a call until its answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

/// Names a callback that the actor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StepId(pub(crate) u64);

/// Which topics a member wants.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// These.
    Names(BTreeSet<Arc<str>>),
    /// Every topic whose name matches, internal ones left out when so configured.
    Pattern {
        /// Matches whole names.
        regex: TopicPattern,
        /// As the application wrote it.
        written: Arc<str>,
    },
}

/// What the application's side asks for.
#[derive(Clone, Debug)]
pub struct Command(pub(crate) Ask);

/// See [`Command`].
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// Join the group for these topics, or change them.
    Subscribe(Wanted),
    /// Leave the group, for good or until the next subscription; what is owned is given up first. Answered when that is done.
    Leave { call: CallId, reason: String, forever: bool, timeout: Duration },
    /// Read these partitions, without a group. Those that were read already go on.
    Assign(Vec<(TopicPartition, Incarnation)>),
    /// The application polls.
    Poll,
    /// These bytes of a partition's queue are being handed out: there is room for more.
    Credit { partition: TopicPartition, incarnation: Incarnation, bytes: usize },
    /// Read from elsewhere.
    Seek { partition: TopicPartition, incarnation: Incarnation, target: SeekTarget },
    /// Fetch no more of these, or fetch them again.
    Pause { partitions: Vec<TopicPartition>, paused: bool },
    /// The application is ready for the callback that is due: delivery has stopped, offsets are committed.
    Begin,
    /// The callback has returned.
    StepDone { step: StepId, failed: bool },
    /// Store offsets in the group.
    Commit {
        call: CallId,
        offsets: Vec<(TopicPartition, OffsetAndMetadata)>,
        kind: CommitKind,
        timeout: Duration,
        /// The ownership of each offset's partition as the desk knows it; filled in when it goes out.
        seen: Vec<Option<u64>>,
    },
    /// Read offsets stored in the group.
    Committed { call: CallId, partitions: BTreeSet<TopicPartition>, timeout: Duration },
    /// Look up places in logs.
    Lookup { call: CallId, spots: Vec<(TopicPartition, Spot)>, timeout: Duration },
    /// Tell the partitions of a topic.
    PartitionsOf { call: CallId, topic: Arc<str>, timeout: Duration },
    /// Join again.
    Rejoin { reason: String },
    /// Let go of everything that is left, and stop.
    Close { timeout: Duration },
}

impl Ask {
    /// Store these offsets.
    pub(crate) fn commit(
        call: CallId,
        offsets: Vec<(TopicPartition, OffsetAndMetadata)>,
        kind: CommitKind,
        timeout: Duration,
    ) -> Self {
        Self::Commit { call, offsets, kind, timeout, seen: Vec::new() }
    }
}

/// How much is done for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitKind {
    /// Somebody waits for it: it is tried again while that can help and time is left.
    Awaited,
    /// Nobody waits for it: a later one says more.
    Once,
    /// The interval has passed: it goes out only while the group rests.
    OnTimer,
}

/// Where a seek goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SeekTarget {
    /// To an offset.
    Offset { offset: i64, epoch: Option<i32> },
    /// To a place that has to be looked up.
    Spot(Spot),
}

/// What the actor tells.
#[derive(Clone, Debug)]
pub struct Event(pub(crate) Tell);

/// See [`Event`].
#[derive(Clone, Debug)]
pub(crate) enum Tell {
    /// A callback will be due, and what it will be about: the application has to get ready. `None`: none is due any more.
    Due(Option<Due>),
    /// The assignment changes now: the listener has to hear of it, and the actor waits until it has. Answers
    /// [`Ask::Begin`]; `None` when nothing is due any more.
    Step(Option<Step>),
    /// Something for a partition's queue.
    Delivery { partition: TopicPartition, incarnation: Incarnation, delivery: Delivery },
    /// Where the log of a partition ends.
    LogEnd { partition: TopicPartition, incarnation: Incarnation, end: LogEnd },
    /// The leader's log differs from what was read from this offset on: reading goes on there.
    Truncated { partition: TopicPartition, incarnation: Incarnation, at: i64 },
    /// The partition is another one under the same name: what is known of it is void.
    Restarted { partition: TopicPartition, incarnation: Incarnation },
    /// A call has its answer.
    Answer { call: CallId, answer: Result<Answer, Error> },
    /// The membership is this now.
    Membership(Option<Membership>),
    /// The topics that a pattern stands for are these now.
    Matched(BTreeSet<Arc<str>>),
    /// Nothing has failed yet, but somebody who looks should know.
    Warned(Arc<str>),
    /// The next poll reports this. A fatal one is reported by every poll from now on.
    Failed { error: Error, fatal: bool },
    /// Something happened to the membership, for the history.
    Happened(crate::history::Happening),
}

/// A change of the assignment.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Names it.
    pub(crate) id: StepId,
    /// Which way.
    pub(crate) kind: StepKind,
    /// Sorted.
    pub(crate) partitions: Vec<(TopicPartition, Incarnation)>,
    /// The membership as it is during the callback.
    pub(crate) membership: Option<Membership>,
    /// When the coordinator last confirmed it.
    pub(crate) confirmed: Instant,
}

/// Which way an assignment changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// These are added.
    Assigned,
    /// These are given up, in good order.
    Revoked,
    /// These are somebody else's already.
    Lost,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// Offsets stored in the group, for each partition asked for.
    Committed(Vec<(TopicPartition, Option<OffsetAndMetadata>)>),
    /// Places found, for each partition asked for.
    Spots(Vec<(TopicPartition, Option<crate::offsets::OffsetAndTimestamp>)>),
    /// How many partitions a topic has, each with its leader.
    Partitions(Vec<(i32, Option<i32>)>),
}
