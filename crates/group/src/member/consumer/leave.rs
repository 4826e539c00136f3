//! Leaving on purpose: the last callbacks, then a last heartbeat, then it is told.
//!
//! The last heartbeat is tried until it is answered or its time is over, as long as the member does not want to join again:
//! it would come again under the same id, and be thrown out by a farewell that comes late. Static members leave for a
//! while, so that their partitions wait for them. Mirrors `AbstractMembershipManager.leaveGroup`, which sends it once.

use super::{Consumer, Event, State, state::Leaving};
use crate::{
    Instant,
    member::{Deadline, MembershipOperation, SendError, Ticket, Why, backoff::Backoff},
};
use tontine_wire::api::Response;

/// The epoch of a heartbeat that leaves for good.
const LEAVE: i32 = -1;
/// The epoch of a static member that leaves for a while.
const LEAVE_FOR_A_WHILE: i32 = -2;

/// The last heartbeat of a membership.
#[derive(Debug)]
pub(super) struct Farewell {
    epoch: i32,
    ticket: Option<Ticket>,
    failed: bool,
    retry_at: Instant,
    deadline: Instant,
    backoff: Backoff,
}

impl Farewell {
    pub(super) fn is_sent_as(&self, ticket: Ticket) -> bool {
        self.ticket == Some(ticket)
    }

    /// Whether it was sent and got no answer that counts.
    pub(super) fn has_failed(&self) -> bool {
        self.failed && self.ticket.is_none()
    }
}

impl Consumer {
    pub(in crate::member) fn leave(&mut self, now: Instant, operation: MembershipOperation) {
        self.wish = Default::default();
        self.may_join = false;
        self.rejoin = None;
        self.tell_interest();
        if !matches!(self.state, State::Leaving(_)) {
            let orderly = self.epoch.is_some();
            self.go(State::Leaving(Leaving { orderly, operation, deadline: None }), None);
        }
        self.advance(now);
    }

    /// The steps that follow the callbacks.
    pub(super) fn step_leaving(&mut self, now: Instant) -> bool {
        if self.running || !self.held.is_empty() {
            return false;
        }
        let State::Leaving(leaving) = &mut self.state else { return false };
        let deadline = *leaving.deadline.get_or_insert(now + self.config.request_timeout);
        let operation = leaving.operation;
        if self.may_be_member {
            self.say_farewell(now, operation);
        }
        self.forget_epoch();
        if self.farewell.is_some() && self.wish.is_empty() && now < deadline {
            return false;
        }
        self.go(if self.fenced { State::Failed } else { State::Unjoined }, None);
        self.outbox.event(Event::Left);
        true
    }

    /// Has the coordinator hear that this member is gone, unless it is to remain.
    pub(super) fn say_farewell(&mut self, now: Instant, operation: MembershipOperation) {
        self.may_be_member = false;
        let is_static = self.config.instance_id.is_some();
        let epoch = match operation {
            MembershipOperation::LeaveGroup => LEAVE,
            MembershipOperation::Default | MembershipOperation::RemainInGroup if is_static => {
                LEAVE_FOR_A_WHILE
            }
            MembershipOperation::Default => LEAVE,
            MembershipOperation::RemainInGroup => return,
        };
        let backoff = Backoff::new(self.config.retry_backoff, self.config.retry_backoff_max);
        let deadline = now + self.config.request_timeout;
        self.farewell =
            Some(Farewell { epoch, ticket: None, failed: false, retry_at: now, deadline, backoff });
    }

    /// Sends the farewell when it is due, and gives it up when its time is over.
    pub(super) fn part(&mut self, now: Instant) {
        self.farewell.take_if(|farewell| now >= farewell.deadline);
        let Some(farewell) = &self.farewell else { return };
        let (epoch, patience) = (farewell.epoch, farewell.deadline - now);
        if farewell.ticket.is_some() || now < farewell.retry_at || !self.has_coordinator() {
            return;
        }
        let request = self.addressed(epoch);
        let ticket = self.outbox.send(request, Some(patience));
        if let Some(farewell) = &mut self.farewell {
            farewell.ticket = Some(ticket);
        }
    }

    pub(super) fn farewell_answered(&mut self, now: Instant, result: Result<Response, SendError>) {
        let retry = match result {
            Ok(Response::ConsumerGroupHeartbeat(answer)) => {
                if answer.error_code.needs_coordinator() {
                    self.lose_coordinator();
                }
                answer.error_code.is_retriable()
            }
            Ok(_) | Err(SendError::Unsupported | SendError::TooOld) => false,
            Err(SendError::Disconnected | SendError::TimedOut) => {
                self.lose_coordinator();
                true
            }
        };
        match &mut self.farewell {
            Some(farewell) if retry => {
                farewell.ticket = None;
                farewell.failed = true;
                farewell.retry_at = now + farewell.backoff.fail(&mut self.jitter);
            }
            Some(_) | None => self.farewell = None,
        }
    }

    pub(super) fn part_deadline(&self) -> Option<Deadline> {
        let farewell = self.farewell.as_ref()?;
        let end = Deadline { at: farewell.deadline, why: Why::Leave };
        if farewell.ticket.is_some() || !self.reach.is_known() {
            return Some(end);
        }
        let retry = Deadline { at: farewell.retry_at, why: Why::Retry };
        Some(if retry.at < end.at { retry } else { end })
    }
}
