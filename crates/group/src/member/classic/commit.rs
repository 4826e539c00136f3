//! Commits as the membership sees them: when one may go out, and what it means that the coordinator refused it.
//!
//! It neither sends nor keeps offsets. The rules are those of `ConsumerCoordinator`'s commit handlers, with one deliberate
//! difference: a commit refused for an old generation while a join is under way fails, and nothing else happens.

use super::{Classic, State};
use crate::{Cause, Instant, assignor::RebalanceProtocol, ids::Membership, member::CommitRefusal};
use tontine_wire::ErrorCode;

impl Classic {
    pub(in crate::member) fn may_commit(&self) -> Result<Membership, CommitRefusal> {
        if self.fenced {
            return Err(CommitRefusal::Fenced);
        }
        let membership = self.membership().ok_or(CommitRefusal::NotAMember);
        match (&self.state, self.protocol) {
            (State::Leaving(_), _) if self.state.syncing().is_some() => {
                Err(CommitRefusal::RebalanceInProgress)
            }
            (State::Joining(_), RebalanceProtocol::Cooperative) => {
                membership.map_err(|_| CommitRefusal::RebalanceInProgress)
            }
            // The join waits for commits under way, and the generation lasts until it is sent.
            (State::Joining(joining), RebalanceProtocol::Eager) if joining.request.is_none() => {
                membership.map_err(|_| CommitRefusal::RebalanceInProgress)
            }
            (State::Joining(_), RebalanceProtocol::Eager) | (State::Syncing(_), _) => {
                Err(CommitRefusal::RebalanceInProgress)
            }
            (
                State::Unjoined
                | State::Preparing
                | State::Applying(_)
                | State::Stable
                | State::Leaving(_)
                | State::Fenced,
                _,
            ) => membership,
        }
    }

    pub(in crate::member) fn commit_refused(
        &mut self,
        now: Instant,
        membership: &Membership,
        code: ErrorCode,
    ) -> Option<CommitRefusal> {
        let current = self.membership().as_ref() == Some(membership);
        match code {
            ErrorCode::REBALANCE_IN_PROGRESS => {
                if current && matches!(self.state, State::Stable | State::Applying(_)) {
                    self.want_rejoin(Cause::Coordinator);
                }
                Some(CommitRefusal::RebalanceInProgress)
            }
            // A consumer group does not look at the instance of who commits. Whether a twin took over, in which case this
            // member must not join again, only a heartbeat tells.
            ErrorCode::UNKNOWN_MEMBER_ID if current && self.may_have_a_twin() => {
                self.heart.hurry(now);
                Some(CommitRefusal::RebalanceInProgress)
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION if current => {
                if self.join_will_tell() {
                    return Some(CommitRefusal::RebalanceInProgress);
                }
                self.expelled(code);
                Some(CommitRefusal::NotAMember)
            }
            ErrorCode::FENCED_INSTANCE_ID if current => {
                self.fenced_by_twin();
                Some(CommitRefusal::Fenced)
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION | ErrorCode::FENCED_INSTANCE_ID => {
                Some(self.refusal_of_the_past())
            }
            _ => None,
        }
    }

    fn may_have_a_twin(&self) -> bool {
        self.config.instance_id.is_some() && matches!(self.state, State::Stable | State::Applying(_))
    }

    /// The commit went out under an earlier membership, which says nothing about the present one.
    fn refusal_of_the_past(&self) -> CommitRefusal {
        match (self.fenced, self.identity.generation) {
            (true, _) => CommitRefusal::Fenced,
            (false, Some(_)) => CommitRefusal::RebalanceInProgress,
            (false, None) => CommitRefusal::NotAMember,
        }
    }
}
