//! What happened in a demo, seen from the application's side: what was delivered, committed and called back, and when.
//!
//! Nothing in here asks the library what it believes: members write down what they were handed.

use std::time::Duration;
use tontine_group::TopicPartition;

/// A member's number in the order of its start; its letter in the picture.
pub(crate) type MemberId = usize;

/// One thing that happened, at a time since the demo began.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Since the demo began.
    pub(crate) at: Duration,
    /// Who saw it.
    pub(crate) member: MemberId,
    /// What it was.
    pub(crate) what: What,
}

/// What a member saw or did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// The member began.
    Started,
    /// `on_partitions_assigned` was called with these.
    Assigned(Vec<TopicPartition>),
    /// `on_partitions_revoked` returned for these.
    Revoked(Vec<TopicPartition>),
    /// `on_partitions_lost` returned for these.
    Lost(Vec<TopicPartition>),
    /// `poll` handed out records with consecutive offsets of one partition.
    Delivered {
        /// The partition.
        partition: TopicPartition,
        /// Every offset, in the order of delivery.
        offsets: Vec<i64>,
    },
    /// A commit was acknowledged.
    Committed(Vec<(TopicPartition, i64)>),
    /// The group's state changed for a reason that the library names.
    Rebalanced {
        /// The reason.
        cause: String,
    },
    /// The member left in good order.
    Left,
    /// The member was killed: nothing of it runs any more.
    Killed,
    /// Something went wrong that the member could go on after.
    Trouble(String),
}

/// A step of the script: something was done to the group, and the group came to rest again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// What was done.
    pub(crate) cause: String,
    /// When it was done.
    pub(crate) began: Duration,
    /// When every partition was being delivered by its owner again.
    pub(crate) settled: Duration,
}

/// A letter for a member: A to Z, then a to z, then `#`.
pub(crate) fn letter(member: MemberId) -> char {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    LETTERS.chars().nth(member).unwrap_or('#')
}
