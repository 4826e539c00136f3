//! The classic protocol, eager and cooperative: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

use super::{
    Callback, CommitRefusal, Due, Granted, MemberConfig, MemberState, MembershipOperation, Output,
    Revocation, SendError, Ticket,
};
use crate::{Cause, Instant, TopicPartition, assignor::RebalanceProtocol, ids::Membership, topics::Topics};
use std::{collections::BTreeSet, sync::Arc};
use tontine_wire::{ErrorCode, api::Response};

/// One membership of a classic group.
#[derive(Debug)]
pub struct Classic {
    config: MemberConfig,
    subscription: BTreeSet<Arc<str>>,
    owned: BTreeSet<TopicPartition>,
}

#[allow(missing_docs, unused_variables)]
impl Classic {
    pub fn new(config: MemberConfig, seed: u64) -> Self {
        Self { config, subscription: BTreeSet::new(), owned: BTreeSet::new() }
    }
    pub fn subscribe(&mut self, now: Instant, topics: BTreeSet<Arc<str>>) {}
    pub fn unsubscribe(&mut self, now: Instant) {}
    pub fn leave(&mut self, now: Instant, reason: &str, operation: MembershipOperation) {}
    pub fn poll(&mut self, now: Instant) {}
    pub fn request_rejoin(&mut self, now: Instant, cause: Cause) {}
    pub fn set_commits_in_flight(&mut self, now: Instant, commits: usize) {}
    pub fn handle_response(&mut self, now: Instant, ticket: Ticket, result: Result<Response, SendError>) {}
    pub fn handle_topics(&mut self, now: Instant, topics: &Topics) {}
    pub fn handle_coordinator(&mut self, now: Instant, known: bool) {}
    pub fn handle_timeout(&mut self, now: Instant) {}
    pub fn handle_commit_error(
        &mut self,
        now: Instant,
        membership: &Membership,
        code: ErrorCode,
    ) -> Option<CommitRefusal> {
        None
    }
    pub fn due_callback(&self) -> Option<Due> {
        None
    }
    pub fn begin_callback(&mut self, now: Instant) -> Option<Callback> {
        None
    }
    pub fn revoke_done(&mut self, now: Instant, revocation: Revocation) {}
    pub fn assign_done(&mut self, now: Instant, granted: Granted) {}
    pub fn assign_failed(&mut self, now: Instant, granted: Granted) {}
    pub fn poll_output(&mut self) -> Output {
        Output::Wait(None)
    }
    pub fn state(&self) -> MemberState {
        MemberState::Unjoined
    }
    pub fn membership(&self) -> Option<Membership> {
        None
    }
    pub fn member_id(&self) -> &str {
        ""
    }
    pub fn assignment(&self) -> &BTreeSet<TopicPartition> {
        &self.owned
    }
    pub fn subscription(&self) -> &BTreeSet<Arc<str>> {
        &self.subscription
    }
    pub fn may_commit(&self) -> Result<Membership, CommitRefusal> {
        Err(CommitRefusal::NotAMember)
    }
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        self.config.rebalance_protocol()
    }
    pub fn poll_deadline(&self) -> Option<Instant> {
        None
    }
    pub fn last_cause(&self) -> Option<&Cause> {
        None
    }
    pub fn is_leader(&self) -> bool {
        false
    }
}
