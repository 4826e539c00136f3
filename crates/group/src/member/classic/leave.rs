//! Leaving on purpose: the last callbacks, then LeaveGroup, then it is told.

use super::{
    Classic, Event, State,
    state::{Joining, Leaving},
};
use crate::{
    Instant,
    member::{Deadline, MembershipOperation, SendError, Ticket, Why, backoff::Backoff, parting, reason},
};
use tontine_wire::{ErrorCode, api::Response};

/// A JoinGroup that was on its way when its member left.
#[derive(Debug)]
pub(super) struct LateJoin {
    pub(super) ticket: Ticket,
    pub(super) member_id: String,
    pub(super) reason: String,
}

impl Classic {
    pub(in crate::member) fn leave(&mut self, now: Instant, why: &str, operation: MembershipOperation) {
        self.subscription.clear();
        self.may_join = false;
        self.rejoin = None;
        if !matches!(self.state, State::Leaving(_)) {
            let leaving = Leaving {
                orderly: self.identity.generation.is_some(),
                operation,
                reason: reason::cut(why),
                awaited: self.first_join_under_way(),
                deadline: None,
                round: self.take_round(),
            };
            self.go(State::Leaving(leaving), None);
        }
        self.advance(now);
    }

    /// A first join, whose answer will bring a member id that must not be left behind in the group.
    fn first_join_under_way(&self) -> Option<crate::member::Ticket> {
        match &self.state {
            State::Joining(Joining { request, .. }) if self.identity.member_id.is_empty() => *request,
            State::Unjoined
            | State::Preparing
            | State::Joining(_)
            | State::Syncing(_)
            | State::Applying(_)
            | State::Stable
            | State::Leaving(_)
            | State::Fenced => None,
        }
    }

    pub(super) fn awaited_join_answered(&mut self, result: Result<Response, SendError>) {
        if let Ok(Response::JoinGroup(response)) = result
            && matches!(response.error_code, ErrorCode::NONE | ErrorCode::MEMBER_ID_REQUIRED)
        {
            self.identity.member_id = response.member_id;
        }
    }

    /// The steps that follow the callbacks.
    pub(super) fn step_leaving(&mut self, now: Instant) -> bool {
        if self.running || !self.owned.is_empty() {
            return self.step_syncing(now);
        }
        let deadline = now + self.config.request_timeout;
        let State::Leaving(leaving) = &mut self.state else { return false };
        leaving.round = None;
        let deadline = *leaving.deadline.get_or_insert(deadline);
        let sends = match leaving.operation {
            MembershipOperation::Default => self.config.instance_id.is_none(),
            MembershipOperation::LeaveGroup => true,
            MembershipOperation::RemainInGroup => false,
        };
        if sends && leaving.awaited.is_some() && now < deadline {
            return false;
        }
        if !self.identity.member_id.is_empty() && !self.fenced {
            if sends {
                let reason = leaving.reason.clone();
                self.leave_behind(now, reason);
            }
            // Whoever remains in the group comes back under its id: as a stranger it could fence itself.
            self.forget_generation(!sends);
        }
        self.finish_leaving(now, deadline)
    }

    /// Ends when the coordinator has answered, or will not. A new subscription need not wait for that.
    fn finish_leaving(&mut self, now: Instant, deadline: Instant) -> bool {
        let waits = self.partings.iter().any(|parting| now < parting.deadline);
        if waits && self.subscription.is_empty() && now < deadline {
            return false;
        }
        self.forget_generation(!self.fenced);
        self.go(if self.fenced { State::Fenced } else { State::Unjoined }, None);
        self.outbox.event(Event::Left);
        true
    }

    /// Sends every LeaveGroup that is due, and gives up those whose time is over.
    pub(super) fn part(&mut self, now: Instant) {
        self.partings.retain(|parting| now < parting.deadline);
        if self.partings.iter().all(|p| p.ticket.is_some()) || !self.has_coordinator() {
            return;
        }
        let waiting = |p: &parting::Parting| p.ticket.is_none() && now >= p.retry_at;
        while let Some(index) = self.partings.iter().position(waiting) {
            let instance = self.config.instance_id.as_ref();
            let request = self.partings[index].request(&self.config.group_id, instance);
            let patience = self.partings[index].deadline - now;
            let ticket = self.outbox.send(request, Some(patience.min(self.config.request_timeout)));
            self.partings[index].ticket = Some(ticket);
        }
    }

    pub(super) fn leave_answered(&mut self, now: Instant, index: usize, result: Result<Response, SendError>) {
        let retry = match result {
            Ok(Response::LeaveGroup(response)) => {
                let code = parting::verdict(&response);
                if code.needs_coordinator() {
                    self.lose_coordinator();
                }
                code.is_retriable()
            }
            Ok(_) | Err(SendError::Unsupported | SendError::TooOld) => false,
            Err(SendError::Disconnected | SendError::TimedOut) => {
                self.lose_coordinator();
                true
            }
        };
        if retry {
            self.partings[index].retry(now, &mut self.jitter);
        } else {
            self.partings.remove(index);
        }
    }

    /// A join goes another way than the leave after it, and may come later. A consumer group, which names no leader, takes it
    /// for that of a new member then: nobody would be that member, and its partitions would lie idle for a session. So it
    /// leaves once more. Kafka's client does not.
    pub(super) fn late_join_answered(&mut self, now: Instant, ticket: Ticket, answer: Option<&Response>) {
        self.join_sent.take_if(|sent| *sent == ticket);
        let Some(index) = self.late_joins.iter().position(|late| late.ticket == ticket) else { return };
        let LateJoin { member_id, reason, .. } = self.late_joins.swap_remove(index);
        if let Some(Response::JoinGroup(answer)) = answer
            && answer.error_code.is_ok()
            && answer.leader.is_empty()
            && answer.member_id == member_id
            && self.identity.member_id != member_id
        {
            self.part_from(now, member_id, reason);
        }
    }

    pub(super) fn part_deadline(&self) -> Option<Deadline> {
        let retry =
            self.partings.iter().filter(|p| p.ticket.is_none() && self.reach.is_known()).map(|p| p.retry_at);
        let retry = retry.min().map(|at| Deadline { at, why: Why::Retry });
        let end = self.partings.iter().map(|p| p.deadline).min().map(|at| Deadline { at, why: Why::Leave });
        [retry, end].into_iter().flatten().min_by_key(|d| d.at)
    }

    pub(super) fn fresh_backoff(&self) -> Backoff {
        Backoff::new(self.config.retry_backoff, self.config.retry_backoff_max)
    }
}
