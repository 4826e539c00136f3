//! The events of a history.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tontine_group::TopicPartition;

/// Which method of a rebalance listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Callback {
    /// `on_partitions_assigned`.
    Assigned,
    /// `on_partitions_revoked`.
    Revoked,
    /// `on_partitions_lost`.
    Lost,
}

impl Callback {
    /// One letter: A, R or L.
    pub fn letter(self) -> char {
        match self {
            Self::Assigned => 'A',
            Self::Revoked => 'R',
            Self::Lost => 'L',
        }
    }
}

/// How a member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `close` returned.
    Closed,
    /// It was killed: no callback, no leave.
    Killed,
}

/// How a commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitResult {
    /// The coordinator has it.
    Stored,
    /// The coordinator refused it, or it was refused before it was sent.
    Refused(String),
    /// Nobody knows: the answer did not come in time.
    Unknown(String),
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A callback begins, with these partitions.
    Called(Callback, Vec<TopicPartition>),
    /// The callback that began last has returned.
    Returned(Callback),
    /// `poll` handed out records of one partition with these offsets.
    Delivered(TopicPartition, Vec<i64>),
    /// The member asks to commit these offsets.
    CommitSent(BTreeMap<TopicPartition, i64>),
    /// The commit of these offsets has ended.
    CommitEnded(BTreeMap<TopicPartition, i64>, CommitResult),
    /// The member moved its position itself: what is delivered and committed next starts anew.
    Sought(TopicPartition, i64),
    /// A second client asked at `asked` what is committed, and was answered this.
    Seen {
        /// When the question was sent.
        asked: Duration,
        /// Every committed offset.
        offsets: BTreeMap<TopicPartition, i64>,
    },
    /// A call of the consumer ended with this error.
    Failed(String),
    /// An administrator puts the member out of the group, which it does not know yet.
    Expelled,
    /// The member is gone.
    Ended(End),
    /// Something worth reading in a failure: a lever was moved, a member was frozen.
    Note(String),
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When, counted from the start of the history.
    pub at: Duration,
    /// To whom.
    pub member: Arc<str>,
    /// What.
    pub what: What,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3} ms  {:<10} ", self.at.as_secs_f64() * 1e3, self.member)?;
        match &self.what {
            What::Called(callback, partitions) => write!(f, "{callback:?} {partitions:?}"),
            What::Returned(callback) => write!(f, "{callback:?} returned"),
            What::Delivered(partition, offsets) => write!(f, "delivered {partition}: {}", Ranges(offsets)),
            What::CommitSent(offsets) => write!(f, "commit {offsets:?}"),
            What::CommitEnded(offsets, result) => write!(f, "commit {offsets:?} ended: {result:?}"),
            What::Sought(partition, offset) => write!(f, "sought {partition} to {offset}"),
            What::Seen { offsets, .. } => write!(f, "committed as others see it {offsets:?}"),
            What::Failed(error) => write!(f, "error: {error}"),
            What::Expelled => write!(f, "put out of the group"),
            What::Ended(end) => write!(f, "{end:?}"),
            What::Note(note) => write!(f, "-- {note}"),
        }
    }
}

/// Offsets as ranges, for people.
struct Ranges<'a>(&'a [i64]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(&first) = rest.first() {
            let length =
                rest.iter().zip(first..).take_while(|(offset, expected)| *offset == expected).count();
            let last = first + length as i64 - 1;
            if last > first {
                write!(f, "{first}..={last} ")?
            } else {
                write!(f, "{first} ")?
            }
            rest = &rest[length..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_shown_as_ranges() {
        assert_eq!(Ranges(&[3, 4, 5, 9, 2]).to_string(), "3..=5 9 2 ");
    }
}
