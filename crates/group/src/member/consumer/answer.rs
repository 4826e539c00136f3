//! What the answer to a heartbeat means.
//!
//! An answer counts only for the heartbeat that is under way; one to a heartbeat that was given up, or that comes after the
//! member has begun to leave, changes nothing. Mirrors `AbstractHeartbeatRequestManager.onErrorResponse` and
//! `AbstractMembershipManager.onHeartbeatSuccess`, but three errors are not the end of a member as they are there:
//! `GROUP_ID_NOT_FOUND` sends an established member back to the join, `UNRELEASED_INSTANCE_ID` is what a restarted static
//! member hears until its former session is over, and an error that this version does not know but that can pass is waited
//! for.

use super::{Consumer, Places, Reconciling, State, Unreleased};
use crate::{
    Cause, Instant,
    ids::Membership,
    member::{Event, GroupProtocol, MemberError, SendError, Warning},
};
use std::time::Duration;
use tontine_wire::{
    ErrorCode,
    api::{Response, consumer_group_heartbeat::ConsumerGroupHeartbeatResponse},
};

const API: &str = "ConsumerGroupHeartbeat";

/// How much longer than a session a static member waits for the end of its former one: with the default it is the longest
/// session that a broker allows by default.
const FORMER_SESSION_GRACE: Duration = Duration::from_secs(15);

/// How long after a warning that it waits for that it warns again, at least.
const WARNING_GAP: Duration = Duration::from_secs(15);

impl Consumer {
    pub(super) fn heartbeat_answered(
        &mut self,
        now: Instant,
        sent_under: &Membership,
        result: Result<Response, SendError>,
    ) {
        // Whoever joins says that it has no epoch; after that the epoch is that of the heartbeat.
        let current = self.epoch.unwrap_or(0) == sent_under.generation;
        match result {
            Ok(Response::ConsumerGroupHeartbeat(answer)) if !current => {
                if answer.error_code.is_ok() {
                    self.heart.heard(now);
                }
            }
            Ok(Response::ConsumerGroupHeartbeat(answer)) if answer.error_code.is_ok() => {
                self.heard(now, &answer);
            }
            Ok(Response::ConsumerGroupHeartbeat(answer)) => {
                self.said = None;
                self.refused(now, answer.error_code, answer.error_message.unwrap_or_default());
            }
            Ok(_) => {
                self.failed(now);
                let what = "it is the answer to another request".to_owned();
                self.report_error(MemberError::Nonsense { api: API, what });
            }
            Err(SendError::Unsupported) => {
                self.said = None;
                self.not_supported();
            }
            // Only a regular expression asks for more than the first version has.
            Err(SendError::TooOld) => {
                self.said = None;
                self.give_up(MemberError::RegexUnsupported);
            }
            Err(SendError::Disconnected | SendError::TimedOut) => {
                self.failed(now);
                self.lose_coordinator();
            }
        }
    }

    /// Tries again after a while, with everything.
    fn failed(&mut self, now: Instant) {
        self.said = None;
        self.heart.failed(now, &mut self.jitter);
    }

    fn heard(&mut self, now: Instant, answer: &ConsumerGroupHeartbeatResponse) {
        if !self.is_in_group() || answer.member_epoch <= 0 {
            return;
        }
        self.unreleased = None;
        self.heart.heard(now);
        if self.epoch.is_some() {
            self.rejoin_backoff.reset();
        }
        if let Ok(interval @ 1..) = u64::try_from(answer.heartbeat_interval_ms) {
            self.heart.set_interval(now, Duration::from_millis(interval));
        }
        let joined = matches!(self.state, State::Joining);
        let moved = self.epoch.replace(answer.member_epoch) != Some(answer.member_epoch);
        let told = answer.assignment.as_ref().map(Places::read);
        let changed = told.as_ref().is_some_and(|told| *told != self.told);
        if joined {
            self.heart.expect(now);
        }
        if joined || moved || changed {
            self.heart.quicken(now, &mut self.jitter);
        }
        if let State::Leaving(_) = self.state {
            return;
        }
        if joined || changed {
            self.take_assignment(now, told.unwrap_or_default(), joined);
        }
    }

    /// Another assignment than before: what is under way towards the old one is overtaken by it.
    fn take_assignment(&mut self, now: Instant, told: Places, joined: bool) {
        self.told = told;
        let tell = joined || matches!(&self.state, State::Reconciling(reconciling) if reconciling.tell);
        self.find_names(now);
        let cause = (!joined).then_some(Cause::Coordinator);
        self.go(State::Reconciling(Reconciling { tell }), cause);
    }

    fn refused(&mut self, now: Instant, code: ErrorCode, message: String) {
        let established = self.epoch.is_some();
        if !code.needs_coordinator() {
            self.heart.refused(now);
        }
        match code {
            ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND
                if established =>
            {
                self.expelled(now, code);
            }
            // A join cannot be fenced: something is not as it should be, and may pass.
            ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID => {
                self.heart.failed(now, &mut self.jitter);
            }
            ErrorCode::UNRELEASED_INSTANCE_ID if self.may_wait_for_former_self(now) => {
                self.heart.failed(now, &mut self.jitter);
            }
            ErrorCode::FENCED_INSTANCE_ID | ErrorCode::UNRELEASED_INSTANCE_ID => self.fenced_by_twin(code),
            ErrorCode::UNSUPPORTED_VERSION => self.not_supported(),
            ErrorCode::GROUP_ID_NOT_FOUND => self.not_of_this_protocol(code, message),
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                self.heart.failed(now, &mut self.jitter);
                self.report_error(MemberError::Refused { api: API, code });
            }
            code if code.needs_coordinator() => {
                self.heart.failed(now, &mut self.jitter);
                self.lose_coordinator();
            }
            code if code.is_retriable() => self.heart.failed(now, &mut self.jitter),
            code => self.give_up(MemberError::Rejected { api: API, code, message }),
        }
    }

    fn may_wait_for_former_self(&mut self, now: Instant) -> bool {
        let waiting = self.unreleased.get_or_insert(Unreleased { since: now, warn_at: now });
        let until = waiting.since + self.config.session_timeout + FORMER_SESSION_GRACE;
        let waits = now < until;
        if waits && now >= waiting.warn_at {
            let waited = now - waiting.since;
            waiting.warn_at = now + WARNING_GAP.max(waited.saturating_mul(2));
            let instance = self.config.instance_id.clone().unwrap_or_default();
            let warning = Warning::InstanceHeld { instance, waited, left: until - now };
            self.outbox.event(Event::Warned(warning));
        }
        waits
    }

    /// The broker does not have the protocol, or it is switched off. Kafka's client gives up as well, unless it is told
    /// what to do instead.
    fn not_supported(&mut self) {
        self.give_way_or_up(MemberError::ProtocolUnsupported);
    }

    /// The group is a classic one, with members, and the broker does not move it: the only way into it is that of its
    /// members.
    fn not_of_this_protocol(&mut self, code: ErrorCode, message: String) {
        let message = format!(
            "{message} The group has members of the classic protocol: set group.protocol=classic, or consumer,classic to \
             speak whichever the group does, or wait until they have left"
        );
        self.give_way_or_up(MemberError::Rejected {
            api: API,
            code,
            message: message.trim_start().to_owned(),
        });
    }

    fn give_way_or_up(&mut self, error: MemberError) {
        let leaving = matches!(self.state, State::Leaving(_));
        if leaving || self.config.protocol != GroupProtocol::ConsumerOrClassic {
            return self.give_up(error);
        }
        self.unsupported = true;
        self.outbox.event(Event::Warned(Warning::FallsBack { why: error.to_string() }));
    }
}
