//! How a membership ends without being asked to: expelled, fenced by a twin, or for not polling.
//!
//! Each leads to a state in which what is owned is lost, never given up in order: somebody else may have it already.

use super::{Classic, Identity, State, audit::Audit, leave::LateJoin};
use crate::{
    Cause, Instant,
    member::{MemberError, parting::Parting, reason},
};
use tontine_wire::ErrorCode;

impl Classic {
    /// The coordinator does not know the member or its generation any more. The member joins again after the loss was told.
    pub(super) fn expelled(&mut self, code: ErrorCode) {
        let keeps_id = code == ErrorCode::ILLEGAL_GENERATION;
        let cause = Cause::Fenced { code };
        if let State::Leaving(leaving) = &mut self.state {
            (leaving.orderly, leaving.round) = (false, None);
            self.forget_generation(keeps_id);
            return;
        }
        self.forget_generation(keeps_id);
        self.rejoin = Some(cause.clone());
        self.go(State::Unjoined, Some(cause));
    }

    /// Another member with this instance id took over. It would be thrown out in turn if this one joined again, so this is
    /// the end: nothing is sent any more, and what is owned is lost when the consumer is closed.
    pub(super) fn fenced_by_twin(&mut self) {
        let instance = self.config.instance_id.clone().unwrap_or_default();
        self.fenced = true;
        self.forget_generation(false);
        // Told while it leaves as well: the application may subscribe again, and would wait for ever.
        self.report(MemberError::InstanceFenced { instance: instance.clone() });
        if let State::Leaving(leaving) = &mut self.state {
            (leaving.orderly, leaving.round) = (false, None);
            return;
        }
        self.go(State::Fenced, Some(Cause::InstanceFenced { instance }));
    }

    /// The application does not poll: its partitions are for those that do. A static member only falls silent, so that it
    /// finds its place again, under its id, when it comes back within its session.
    pub(super) fn poll_deadline_missed(&mut self, now: Instant) {
        let cause = Cause::PollDeadline { silent: now - self.last_poll };
        if self.config.instance_id.is_none() && !self.identity.member_id.is_empty() {
            self.leave_behind(now, reason::of_cause(&cause));
        }
        self.forget_generation(self.config.instance_id.is_some());
        self.may_join = false;
        self.rejoin = Some(cause.clone());
        self.go(State::Unjoined, Some(cause));
    }

    /// Sends LeaveGroup for the present member id, whatever becomes of this member meanwhile.
    pub(super) fn leave_behind(&mut self, now: Instant, reason: String) {
        let member_id = self.identity.member_id.clone();
        if let Some(ticket) = self.join_sent.take() {
            self.late_joins.push(LateJoin { ticket, member_id: member_id.clone(), reason: reason.clone() });
        }
        self.part_from(now, member_id, reason);
    }

    /// Sends LeaveGroup for a member id.
    pub(super) fn part_from(&mut self, now: Instant, member_id: String, reason: String) {
        let deadline = now + self.config.request_timeout;
        self.partings.push(Parting::new(member_id, reason, now, deadline, self.fresh_backoff()));
    }

    /// Outside of every generation from now on; answers to what was sent under it change nothing.
    pub(super) fn forget_generation(&mut self, keeps_id: bool) {
        let member_id = if keeps_id { std::mem::take(&mut self.identity.member_id) } else { String::new() };
        self.identity = Identity { member_id, generation: None };
        self.heart.stop();
        self.watch = None;
        self.rejoin = None;
        self.audit = Audit::Idle;
        self.tell_interest();
    }
}
