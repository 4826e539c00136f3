//! Callbacks as values: what is due, what runs, and the tokens that say that it ran.
//!
//! What is due follows from the state at the moment it is asked for, so a callback that nobody has begun cannot go stale:
//! a revocation turns into a loss when the membership ends before the application polls. Only what runs is remembered.

use crate::TopicPartition;

/// A callback to run, as it stands right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Partitions will be given up in order: stop handing them out, commit, then begin. May be empty (eager).
    Revoke {
        /// Sorted.
        partitions: Vec<TopicPartition>,
        /// Which step of a rebalance it belongs to.
        occasion: Occasion,
    },
    /// Partitions come in.
    Assign {
        /// The new ones, sorted; may be empty.
        added: Vec<TopicPartition>,
    },
    /// Partitions are gone already, perhaps to another owner: stop handing them out, commit nothing.
    Lost {
        /// Sorted, never empty.
        partitions: Vec<TopicPartition>,
    },
}

impl Due {
    /// What is due begins; `grant` makes new partitions part of the assignment.
    pub(super) fn begin(self, grant: impl FnOnce(Vec<TopicPartition>) -> Granted) -> Callback {
        match self {
            Self::Revoke { partitions, occasion } => {
                Callback::Revoke(Revocation { partitions, occasion: Some(occasion) })
            }
            Self::Lost { partitions } => Callback::Lost(Revocation { partitions, occasion: None }),
            Self::Assign { added } => Callback::Assign(grant(added)),
        }
    }
}

/// Which step a revocation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Before the member joins: everything (eager), or what it no longer subscribes to (cooperative).
    BeforeJoin,
    /// After the assignment came: what goes to somebody else (cooperative, and the consumer protocol).
    AfterSync,
    /// Because the member leaves.
    Leaving,
}

/// A callback that has begun. Its token goes back to the member when the listener has returned, whatever it returned.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the member waits until the token comes back"]
pub enum Callback {
    /// Call `on_partitions_revoked`, then [`super::Member::revoke_done`].
    Revoke(Revocation),
    /// Call `on_partitions_assigned`, then [`super::Member::assign_done`].
    Assign(Granted),
    /// Call `on_partitions_lost`, then [`super::Member::revoke_done`].
    Lost(Revocation),
}

/// Partitions that go away. Consumed by [`super::Member::revoke_done`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the member waits until the token comes back"]
pub struct Revocation {
    pub(crate) partitions: Vec<TopicPartition>,
    pub(crate) occasion: Option<Occasion>,
}

impl Revocation {
    /// The partitions, sorted.
    pub fn partitions(&self) -> &[TopicPartition] {
        &self.partitions
    }

    /// The step of a rebalance; `None` when the partitions are lost.
    pub fn occasion(&self) -> Option<Occasion> {
        self.occasion
    }

    /// Whether the partitions are lost rather than given up in order.
    pub fn is_lost(&self) -> bool {
        self.occasion.is_none()
    }
}

/// Partitions that came in. Consumed by [`super::Member::assign_done`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the member waits until the token comes back"]
pub struct Granted {
    pub(crate) added: Vec<TopicPartition>,
    pub(crate) all: Vec<TopicPartition>,
}

impl Granted {
    /// The new partitions, sorted; may be empty.
    pub fn added(&self) -> &[TopicPartition] {
        &self.added
    }

    /// Everything the member owns now, sorted.
    pub fn all(&self) -> &[TopicPartition] {
        &self.all
    }
}
