//! A round that is under way when the member leaves: its answers are taken for as long as something is still owned.
//!
//! The last commit goes out under the old generation while the coordinator takes that. Once the group has come together
//! it takes only the new one, after the sync, so a leaver that owns something goes along to there. It applies no
//! assignment, begins no round, and does not join again; when its last callback has ended it leaves, wherever the round
//! stands. A leader sends its plan: the partitions it plans for itself move in the round that its leaving begins. Kafka's
//! client gives the round up, and what it had read since its last commit is read again by the next owner.

use super::{
    Classic, State,
    state::{Leaving, Round, SyncStep, Syncing},
};
use crate::{
    Instant,
    member::{SendError, Ticket},
};
use tontine_wire::{ErrorCode, api::Response};

impl Classic {
    /// Whether this member is on its way out and still takes the answers of a round.
    pub(in crate::member) fn follows_a_round(&self) -> bool {
        matches!(&self.state, State::Leaving(Leaving { round: Some(_), .. }))
    }

    /// The round to follow, if there is something left to commit: only cooperative members own anything in one.
    pub(super) fn take_round(&mut self) -> Option<Round> {
        if self.owned.is_empty() || self.identity.generation.is_none() {
            return None;
        }
        match &mut self.state {
            State::Joining(joining) => joining.request.map(Round::Joining),
            State::Syncing(Syncing { assignor, step }) => {
                let step = std::mem::replace(step, SyncStep::Ready { plan: Vec::new() });
                Some(Round::Syncing(Syncing { assignor: std::mem::take(assignor), step }))
            }
            _ => None,
        }
    }

    pub(super) fn followed_round_answered(
        &mut self,
        now: Instant,
        ticket: Ticket,
        result: Result<Response, SendError>,
    ) {
        let State::Leaving(leaving) = &mut self.state else { return };
        match &mut leaving.round {
            Some(Round::Joining(sent)) if *sent == ticket => {
                leaving.round = None;
                self.followed_join_answered(now, result);
            }
            Some(Round::Syncing(syncing)) if syncing.is_sent_as(ticket) => {
                syncing.unsend();
                self.followed_sync_answered(now, result);
            }
            Some(_) | None => {}
        }
    }

    fn followed_join_answered(&mut self, now: Instant, result: Result<Response, SendError>) {
        match result {
            Ok(Response::JoinGroup(response)) if response.error_code.is_err() => {
                self.followed_round_refused(response.error_code);
            }
            Ok(Response::JoinGroup(response)) if self.check_join(&response).is_ok() => {
                self.joined(now, response);
            }
            Ok(_) | Err(SendError::Unsupported | SendError::TooOld) => {}
            Err(SendError::Disconnected | SendError::TimedOut) => self.lose_coordinator(),
        }
    }

    /// What the share is does not matter any more; that there is one means that commits are taken again.
    fn followed_sync_answered(&mut self, now: Instant, result: Result<Response, SendError>) {
        let code = match result {
            Ok(Response::SyncGroup(response)) => response.error_code,
            Ok(_) | Err(SendError::Unsupported | SendError::TooOld) => ErrorCode::UNKNOWN_SERVER_ERROR,
            Err(SendError::Disconnected | SendError::TimedOut) => ErrorCode::COORDINATOR_NOT_AVAILABLE,
        };
        let another_round = code == ErrorCode::REBALANCE_IN_PROGRESS;
        if code.is_err() && !another_round && (code.needs_coordinator() || code.is_retriable()) {
            self.retry_later(now);
        } else if let State::Leaving(leaving) = &mut self.state {
            leaving.round = None;
        }
        match code {
            ErrorCode::NONE => self.heart.served(now),
            code => self.followed_round_refused(code),
        }
    }

    fn followed_round_refused(&mut self, code: ErrorCode) {
        match code {
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => self.expelled(code),
            ErrorCode::FENCED_INSTANCE_ID => self.fenced_by_twin(),
            code if code.needs_coordinator() => self.lose_coordinator(),
            _ => {}
        }
    }
}
