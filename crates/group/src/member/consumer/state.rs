//! The states of a membership of the consumer protocol, each with its own data and nothing else.
//!
//! Kafka's `MemberState` has ten. Three of them differ only in how one got there and are one here: `UNSUBSCRIBED`, `FENCED`
//! and `STALE` are [`State::Unjoined`], which is left when no loss is to be told any more and the application polls.
//! `PREPARE_LEAVING` and `LEAVING` are the two halves of [`State::Leaving`], `FATAL` is [`State::Failed`].

use crate::Instant;
use crate::member::{MemberState, MembershipOperation};

/// Where a membership stands.
#[derive(Debug)]
pub(super) enum State {
    /// Not a member, and not about to become one before the next poll, or before a loss was told.
    Unjoined,
    /// The heartbeat that joins is wanted, or on its way.
    Joining,
    /// What is owned is not what the coordinator says yet.
    Reconciling(Reconciling),
    /// The application has what the coordinator said; the coordinator is to hear of it.
    Acknowledging,
    /// At rest.
    Stable,
    /// On the way out.
    Leaving(Leaving),
    /// The coordinator refuses this member for good.
    Failed,
}

/// Callbacks are due.
#[derive(Debug)]
pub(super) struct Reconciling {
    /// The application hears that this is done even if nothing comes in: after a join, after a revocation, or after its
    /// listener has failed.
    pub(super) tell: bool,
}

/// On the way out.
#[derive(Debug)]
pub(super) struct Leaving {
    /// Whether what is owned is given up in order, or lost.
    pub(super) orderly: bool,
    pub(super) operation: MembershipOperation,
    /// When leaving is given up; set once the callbacks are through.
    pub(super) deadline: Option<Instant>,
}

impl State {
    pub(super) fn name(&self) -> MemberState {
        match self {
            Self::Unjoined => MemberState::Unjoined,
            Self::Joining => MemberState::Joining,
            Self::Reconciling(_) => MemberState::Reconciling,
            Self::Acknowledging => MemberState::Acknowledging,
            Self::Stable => MemberState::Stable,
            Self::Leaving(_) => MemberState::Leaving,
            Self::Failed => MemberState::Failed,
        }
    }
}
