//! The states of a classic membership, each with its own data and nothing else.

use crate::{
    Instant, TopicPartition,
    member::{MemberState, MembershipOperation, Ticket, leader::Group},
};
use std::collections::BTreeSet;
use tontine_wire::api::sync_group::SyncGroupRequestAssignment;

/// Where a classic membership stands.
#[derive(Debug)]
pub(super) enum State {
    Unjoined,
    Preparing,
    Joining(Joining),
    Syncing(Syncing),
    Applying(Applying),
    Stable,
    Leaving(Leaving),
    Fenced,
}

/// JoinGroup is wanted, or on its way.
#[derive(Debug)]
pub(super) struct Joining {
    /// The request that is on its way.
    pub(super) request: Option<Ticket>,
    /// Since when the join is wanted: commits in flight may hold it up for a moment.
    pub(super) since: Instant,
    /// After an error that the application must see first.
    pub(super) await_poll: bool,
    /// Before it joins, a heartbeat has to tell whether this is still a member.
    pub(super) doubts: bool,
    /// The coordinator did not know the member while the request was on its way.
    pub(super) unknown: bool,
}

/// The group has come together.
#[derive(Debug)]
pub(super) struct Syncing {
    /// The assignor that the group voted for.
    pub(super) assignor: String,
    pub(super) step: SyncStep,
}

#[derive(Debug)]
pub(super) enum SyncStep {
    /// The leader has asked for metadata; it plans when it comes, or at a deadline with what it has.
    Planning { group: Group, until: Instant },
    /// The leader's assignor deals the partitions, outside of this machine.
    Dealing { ticket: Ticket },
    /// SyncGroup is to be sent; only the leader has something to say in it.
    Ready { plan: Vec<SyncGroupRequestAssignment> },
    /// SyncGroup is on its way. The plan is kept in case that it has to be sent again.
    Sent { ticket: Ticket, plan: Vec<SyncGroupRequestAssignment> },
}

/// The assignment is here; callbacks are due.
#[derive(Debug)]
pub(super) struct Applying {
    pub(super) target: BTreeSet<TopicPartition>,
    /// Whether something was given up, so that a second round is needed for the others to get it.
    pub(super) gave_up: bool,
    /// Whether a callback has begun: from then on the assignment is applied to its end.
    pub(super) begun: bool,
}

/// On the way out.
#[derive(Debug)]
pub(super) struct Leaving {
    /// Whether what is owned is given up in order, or lost.
    pub(super) orderly: bool,
    pub(super) operation: MembershipOperation,
    pub(super) reason: String,
    /// A first join that is on its way: its answer brings the id that has to leave.
    pub(super) awaited: Option<Ticket>,
    /// When leaving is given up; set once the callbacks are through.
    pub(super) deadline: Option<Instant>,
    /// The round that was under way, whose answers are taken until the last callback has ended.
    pub(super) round: Option<Round>,
}

/// A round that a member follows on its way out: commits are taken under the generation it brings only.
#[derive(Debug)]
pub(super) enum Round {
    /// JoinGroup is on its way.
    Joining(Ticket),
    Syncing(Syncing),
}

impl Joining {
    pub(super) fn new(now: Instant) -> Self {
        Self { request: None, since: now, await_poll: false, doubts: false, unknown: false }
    }
}

impl Syncing {
    pub(super) fn is_sent_as(&self, ticket: Ticket) -> bool {
        matches!(self.step, SyncStep::Sent { ticket: sent, .. } if sent == ticket)
    }

    /// What was sent will not be answered: it has to be sent again.
    pub(super) fn unsend(&mut self) {
        if let SyncStep::Sent { plan, .. } = &mut self.step {
            self.step = SyncStep::Ready { plan: std::mem::take(plan) };
        }
    }
}

impl Leaving {
    /// Nobody joins again on the way out; a sync can be repeated.
    pub(super) fn coordinator_lost(&mut self) {
        match &mut self.round {
            Some(Round::Joining(_)) => self.round = None,
            Some(Round::Syncing(syncing)) => syncing.unsend(),
            None => {}
        }
    }
}

impl State {
    /// The sync of the round that is under way, also of a member that only follows it on its way out.
    pub(super) fn syncing(&self) -> Option<&Syncing> {
        match self {
            Self::Syncing(syncing) | Self::Leaving(Leaving { round: Some(Round::Syncing(syncing)), .. }) => {
                Some(syncing)
            }
            _ => None,
        }
    }

    pub(super) fn syncing_mut(&mut self) -> Option<&mut Syncing> {
        match self {
            Self::Syncing(syncing) | Self::Leaving(Leaving { round: Some(Round::Syncing(syncing)), .. }) => {
                Some(syncing)
            }
            _ => None,
        }
    }

    pub(super) fn name(&self) -> MemberState {
        match self {
            Self::Unjoined => MemberState::Unjoined,
            Self::Preparing => MemberState::Preparing,
            Self::Joining(_) => MemberState::Joining,
            Self::Syncing(_) => MemberState::Syncing,
            Self::Applying(_) => MemberState::Applying,
            Self::Stable => MemberState::Stable,
            Self::Leaving(_) => MemberState::Leaving,
            Self::Fenced => MemberState::Fenced,
        }
    }
}
