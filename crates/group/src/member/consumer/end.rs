//! How a membership ends without being asked to: expelled, fenced by a twin, refused for good, or for not polling.
//!
//! Each leads to a state in which what is owned is lost, never given up in order: somebody else may have it already.

use super::{Consumer, Places, State};
use crate::{
    Cause, Instant,
    member::{MemberError, MembershipOperation},
};
use tontine_wire::ErrorCode;

impl Consumer {
    /// The coordinator does not know the member or its epoch any more. The member joins again, under the same id, after the
    /// loss was told.
    pub(super) fn expelled(&mut self, now: Instant, code: ErrorCode) {
        let cause = Cause::Fenced { code };
        self.may_be_member = false;
        self.forget_epoch();
        self.rejoin_at = now + self.rejoin_backoff.fail_freely(2, &mut self.jitter);
        if let State::Leaving(leaving) = &mut self.state {
            leaving.orderly = false;
            return;
        }
        self.rejoin = Some(cause.clone());
        self.go(State::Unjoined, Some(cause));
    }

    /// Another member has the instance id, and the coordinator stays with it.
    pub(super) fn fenced_by_twin(&mut self, code: ErrorCode) {
        let instance = self.config.instance_id.clone().unwrap_or_default();
        self.fenced = true;
        self.may_be_member = false;
        let error = match code {
            ErrorCode::UNRELEASED_INSTANCE_ID => MemberError::InstanceInUse { instance },
            _ => MemberError::InstanceFenced { instance },
        };
        self.give_up(error);
    }

    /// The coordinator will not have this member. What it may still have of it, it is told to let go.
    pub(super) fn give_up(&mut self, error: MemberError) {
        if let State::Leaving(leaving) = &mut self.state {
            leaving.orderly = false;
            self.forget_epoch();
            // For good, so it is told while it leaves as well: the application may subscribe again, and would wait for ever.
            if self.fenced {
                self.report_error(error);
            }
            return;
        }
        let instance = self.config.instance_id.clone().unwrap_or_default();
        let cause = if self.fenced {
            Cause::InstanceFenced { instance }
        } else {
            Cause::Requested { reason: error.to_string() }
        };
        // Whoever was refused the join need not say farewell.
        self.may_be_member &= self.epoch.is_some();
        self.forget_epoch();
        self.report_error(error);
        self.go(State::Failed, Some(cause));
    }

    /// The application does not poll: its partitions are for those that do.
    pub(super) fn poll_deadline_missed(&mut self, now: Instant) {
        let cause = Cause::PollDeadline { silent: now - self.last_poll };
        if self.may_be_member {
            self.say_farewell(now, MembershipOperation::Default);
        }
        self.forget_epoch();
        self.may_join = false;
        self.rejoin = Some(cause.clone());
        self.go(State::Unjoined, Some(cause));
    }

    /// Outside of the group from now on; answers to what was sent before change nothing.
    pub(super) fn forget_epoch(&mut self) {
        self.epoch = None;
        self.told = Places::default();
        self.said = None;
        self.report = false;
        self.rejoin = None;
        self.names_until = None;
        self.ask_names_at = None;
        self.heart.stop();
    }
}
