//! What happened in a demo, seen from the application's side: what was delivered, committed and called back, and when.
//!
//! Nothing in here asks the library what it believes: members write down what they were handed.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};
use tontine_group::TopicPartition;

/// A member's number in the order of its start; its letter in the picture.
pub(crate) type MemberId = usize;

/// One thing that happened, at a time since the demo began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Since the demo began.
    pub(crate) at: Duration,
    /// Who saw it.
    pub(crate) member: MemberId,
    /// What it was.
    pub(crate) what: What,
}

/// A partition as text, `topic-0`, for the line that a member writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Partition(pub(crate) TopicPartition);

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<Partition> for String {
    fn from(partition: Partition) -> Self {
        partition.to_string()
    }
}

impl FromStr for Partition {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('-').and_then(|(topic, n)| Some((topic, n.parse().ok()?)));
        let (topic, number): (&str, i32) = parts.ok_or_else(|| format!("`{text}` is not topic-number"))?;
        Ok(Self(TopicPartition::new(topic, number)))
    }
}

impl TryFrom<String> for Partition {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What a member saw or did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    /// The member began.
    Started,
    /// `on_partitions_assigned` was called with these.
    Assigned(Vec<Partition>),
    /// `on_partitions_revoked` returned for these.
    Revoked(Vec<Partition>),
    /// `on_partitions_lost` returned for these.
    Lost(Vec<Partition>),
    /// `poll` handed out records of one partition.
    Delivered {
        /// The partition.
        partition: Partition,
        /// Runs of offsets without a gap, first and last, in the order of delivery.
        runs: Vec<(i64, i64)>,
    },
    /// A commit was acknowledged.
    Committed(Vec<(Partition, i64)>),
    /// What the library says went on until now, in its order.
    History(Vec<Told>),
    /// The member left in good order.
    Left,
    /// The member was killed: nothing of it runs any more.
    Killed,
    /// Something went wrong that the member could go on after.
    Trouble(String),
}

/// One entry of a member's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// The group's state changed, for this reason.
    Cause(String),
    /// One of the three callbacks was called.
    Callback,
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

/// Offsets as runs without a gap.
pub(crate) fn runs(offsets: &[i64]) -> Vec<(i64, i64)> {
    let runs = offsets.chunk_by(|a, b| a + 1 == *b);
    runs.filter_map(|run| Some((*run.first()?, *run.last()?))).collect()
}
