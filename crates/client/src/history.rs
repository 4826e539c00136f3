//! What happened to a membership: every change of state with its cause, and every callback with its partitions.
//!
//! The application reads it with `Consumer::history`; the demo's timeline and the tests are fed from it.

use crate::state::StepKind;
use std::{collections::VecDeque, fmt};
use tontine_group::{Cause, TopicPartition, member};

/// How many happenings are kept: the latest ones.
const KEPT: usize = 1_000;

/// One thing that happened to the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// The membership changed its state.
    Transition(member::Transition),
    /// The assignment changed: the listener was called.
    Assigned {
        /// What was added; sorted, may be empty.
        partitions: Vec<TopicPartition>,
        /// The generation of the group.
        generation: Option<i32>,
    },
    /// The assignment changed: the listener was called.
    Revoked {
        /// What was given up; sorted.
        partitions: Vec<TopicPartition>,
        /// The generation of the group.
        generation: Option<i32>,
        /// Why the rebalance is going on.
        cause: Option<Cause>,
    },
    /// The assignment changed: the listener was called.
    Lost {
        /// What was somebody else's already; sorted.
        partitions: Vec<TopicPartition>,
        /// Why.
        cause: Option<Cause>,
    },
}

impl Happening {
    pub(crate) fn step(
        kind: StepKind,
        partitions: Vec<TopicPartition>,
        generation: Option<i32>,
        cause: Option<Cause>,
    ) -> Self {
        match kind {
            StepKind::Assigned => Self::Assigned { partitions, generation },
            StepKind::Revoked => Self::Revoked { partitions, generation, cause },
            StepKind::Lost => Self::Lost { partitions, cause },
        }
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transition(t) => write!(f, "{} -> {}{}", t.from, t.to, because(t.cause.as_ref())),
            Self::Assigned { partitions, .. } => write!(f, "assigned {partitions:?}"),
            Self::Revoked { partitions, cause, .. } => {
                write!(f, "revoked {partitions:?}{}", because(cause.as_ref()))
            }
            Self::Lost { partitions, cause } => write!(f, "lost {partitions:?}{}", because(cause.as_ref())),
        }
    }
}

fn because(cause: Option<&Cause>) -> String {
    cause.map_or_else(String::new, |cause| format!(" ({cause})"))
}

/// The latest happenings of one consumer, each with its number, counted from zero.
#[derive(Clone, Debug, Default)]
pub struct History {
    kept: VecDeque<Happening>,
    dropped: u64,
}

impl History {
    pub(crate) fn push(&mut self, happening: Happening) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(happening);
    }

    /// How many there have been.
    pub fn count(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// Those from this number on that are still kept.
    pub fn since(&self, number: u64) -> impl Iterator<Item = &Happening> {
        let skip = usize::try_from(number.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip)
    }

    /// All that are still kept, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Happening> {
        self.kept.iter()
    }

    /// How often the assignment was confirmed or changed: completed rebalances.
    pub fn rebalances(&self) -> usize {
        self.kept.iter().filter(|h| matches!(h, Happening::Assigned { .. })).count()
    }
}
