//! Commits as the membership sees them: when one may go out, and what it means that the coordinator refused it.
//!
//! A commit may go out at any time, under the present epoch: no step of a rebalance forbids it. One that crossed with a
//! change of epoch is refused as stale and can be sent again. Mirrors `CommitRequestManager`'s error handling.

use super::Consumer;
use crate::{Instant, ids::Membership, member::CommitRefusal};
use tontine_wire::ErrorCode;

impl Consumer {
    pub(in crate::member) fn may_commit(&self) -> Result<Membership, CommitRefusal> {
        if self.fenced {
            return Err(CommitRefusal::Fenced);
        }
        self.membership().ok_or(CommitRefusal::NotAMember)
    }

    pub(in crate::member) fn commit_refused(
        &mut self,
        now: Instant,
        membership: &Membership,
        code: ErrorCode,
    ) -> Option<CommitRefusal> {
        let current = self.epoch == Some(membership.generation);
        match code {
            ErrorCode::STALE_MEMBER_EPOCH if current => {
                // The answer that brings the newer epoch is on its way, or was lost: saying everything brings it again.
                if !self.heart.is_waiting() {
                    self.said = None;
                    self.speak = true;
                }
                Some(CommitRefusal::RebalanceInProgress)
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION | ErrorCode::GROUP_ID_NOT_FOUND
                if current =>
            {
                self.expelled(now, code);
                Some(CommitRefusal::NotAMember)
            }
            ErrorCode::FENCED_INSTANCE_ID if current => {
                self.fenced_by_twin(code);
                Some(CommitRefusal::Fenced)
            }
            ErrorCode::STALE_MEMBER_EPOCH
            | ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::ILLEGAL_GENERATION
            | ErrorCode::GROUP_ID_NOT_FOUND
            | ErrorCode::FENCED_INSTANCE_ID => Some(self.refusal_of_the_past()),
            _ => None,
        }
    }

    /// The commit went out under an earlier epoch, which says nothing about the present one.
    fn refusal_of_the_past(&self) -> CommitRefusal {
        match (self.fenced, self.epoch) {
            (true, _) => CommitRefusal::Fenced,
            (false, Some(_)) => CommitRefusal::RebalanceInProgress,
            (false, None) => CommitRefusal::NotAMember,
        }
    }
}
