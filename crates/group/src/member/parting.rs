//! LeaveGroup on its way: tried again while that can help, given up at a deadline.
//!
//! It outlives the membership, so that a member that missed its poll deadline can join again meanwhile. Mirrors
//! `AbstractCoordinator.maybeLeaveGroup`, which does not try again.

use super::{
    Ticket,
    backoff::{Backoff, Jitter},
};
use crate::Instant;
use tontine_wire::{
    ErrorCode,
    api::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity},
};

/// One member id that leaves.
#[derive(Debug)]
pub(crate) struct Parting {
    pub(crate) member_id: String,
    pub(crate) reason: String,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) retry_at: Instant,
    pub(crate) deadline: Instant,
    backoff: Backoff,
}

impl Parting {
    pub(crate) fn new(
        member_id: String,
        reason: String,
        now: Instant,
        deadline: Instant,
        backoff: Backoff,
    ) -> Self {
        Self { member_id, reason, ticket: None, retry_at: now, deadline, backoff }
    }

    /// The request, filled for the single leave of old versions and for the batch of new ones.
    pub(crate) fn request(&self, group_id: &str, instance_id: Option<&String>) -> LeaveGroupRequest {
        LeaveGroupRequest {
            group_id: group_id.to_owned(),
            member_id: self.member_id.clone(),
            members: vec![MemberIdentity {
                member_id: self.member_id.clone(),
                group_instance_id: instance_id.cloned(),
                reason: Some(self.reason.clone()),
            }],
        }
    }

    /// Tries again after a while.
    pub(crate) fn retry(&mut self, now: Instant, jitter: &mut Jitter) {
        self.ticket = None;
        self.retry_at = now + self.backoff.fail(jitter);
    }
}

/// What the coordinator said of the one member that left.
pub(crate) fn verdict(response: &LeaveGroupResponse) -> ErrorCode {
    let member = response.members.first().map_or(ErrorCode::NONE, |m| m.error_code);
    if response.error_code.is_err() { response.error_code } else { member }
}
