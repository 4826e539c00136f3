//! Heartbeats: sent in every state in which the coordinator expects them, whatever the application does.
//!
//! Whether they are on follows from the state, not from switches that have to be paired. They go on while a join is parked
//! and while callbacks run.

use super::{Classic, State, state::Round};
use crate::{
    Cause, Instant,
    ids::Membership,
    member::{Deadline, MemberError, SendError, Why},
};
use tontine_wire::{
    ErrorCode,
    api::{Response, heartbeat::HeartbeatRequest},
};

const API: &str = "Heartbeat";

impl Classic {
    pub(super) fn is_beating(&self) -> bool {
        let in_group = match self.state {
            State::Unjoined | State::Fenced => false,
            State::Preparing
            | State::Joining(_)
            | State::Syncing(_)
            | State::Applying(_)
            | State::Stable
            | State::Leaving(_) => true,
        };
        in_group && !self.fenced && self.identity.generation.is_some()
    }

    /// Sends a heartbeat if one is due, and looks for the coordinator if it is not known.
    pub(super) fn beat(&mut self, now: Instant) {
        if !self.is_beating() || !self.has_coordinator() || !self.heart.is_due(now) {
            return;
        }
        let Some(membership) = self.membership() else { return };
        let request = HeartbeatRequest {
            group_id: self.config.group_id.clone(),
            generation_id: membership.generation,
            member_id: membership.member_id.clone(),
            group_instance_id: membership.instance_id.clone(),
        };
        let ticket = self.outbox.send(request, Some(self.heart.timeout()));
        self.heart.sent(now, ticket, membership, &mut self.jitter);
    }

    pub(super) fn beat_deadline(&self) -> Option<Deadline> {
        if !self.is_beating() || !self.reach.is_known() {
            return None;
        }
        let session = Deadline { at: self.heart.session_end(), why: Why::Session };
        let beat = self.heart.next().map(|at| Deadline { at, why: Why::Heartbeat });
        Some(beat.into_iter().fold(session, |a, b| if b.at <= a.at { b } else { a }))
    }

    pub(super) fn heartbeat_answered(
        &mut self,
        now: Instant,
        sent_under: &Membership,
        result: Result<Response, SendError>,
    ) {
        let current = self.membership().as_ref() == Some(sent_under);
        match result {
            Ok(Response::Heartbeat(response)) => self.heartbeat_said(now, current, response.error_code),
            Ok(_) => self.heart.failed(now, &mut self.jitter),
            Err(SendError::Unsupported | SendError::TooOld) => {
                self.heart.failed(now, &mut self.jitter);
                self.report(MemberError::Unsupported { api: API });
            }
            Err(SendError::Disconnected | SendError::TimedOut) => {
                self.heart.failed(now, &mut self.jitter);
                self.lose_coordinator();
            }
        }
    }

    /// An answer to a heartbeat of an earlier generation only shows that the coordinator is there.
    fn heartbeat_said(&mut self, now: Instant, current: bool, code: ErrorCode) {
        match code {
            ErrorCode::NONE => self.heart.heard(now),
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.heart.heard(now);
                if current && matches!(self.state, State::Stable | State::Applying(_)) {
                    self.want_rejoin(Cause::Coordinator);
                }
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => {
                self.heart.refused(now);
                if current && !self.join_will_tell() {
                    self.expelled(code);
                } else if current && code == ErrorCode::UNKNOWN_MEMBER_ID {
                    self.note_unknown();
                }
            }
            ErrorCode::FENCED_INSTANCE_ID => {
                self.heart.refused(now);
                if current {
                    self.fenced_by_twin();
                }
            }
            code if code.needs_coordinator() => {
                self.heart.failed(now, &mut self.jitter);
                self.lose_coordinator();
            }
            code if code.is_retriable() => self.heart.failed(now, &mut self.jitter),
            code => {
                self.heart.failed(now, &mut self.jitter);
                self.report(MemberError::Refused { api: API, code });
            }
        }
    }

    /// A join on its way would be refused by a classic group now. A consumer group takes it for that of a new member, which
    /// owns nothing.
    fn note_unknown(&mut self) {
        if let State::Joining(joining) = &mut self.state {
            joining.unknown = true;
        }
    }

    /// Whether a join is on its way, whose answer decides about the membership.
    pub(super) fn join_will_tell(&self) -> bool {
        match &self.state {
            State::Joining(joining) => joining.request.is_some(),
            State::Leaving(leaving) => matches!(leaving.round, Some(Round::Joining(_))),
            _ => false,
        }
    }
}
