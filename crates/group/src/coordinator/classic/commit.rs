//! Whether somebody may commit offsets of a classic group, or delete them. Mirrors `ClassicGroup.validateOffsetCommit`.

use super::{ClassicGroup, Phase};
use crate::coordinator::effects::Effects;
use tontine_wire::{ErrorCode, api::offset_commit::OffsetCommitRequest};

impl ClassicGroup {
    /// Checks who commits. A commit is a sign of life.
    pub(in crate::coordinator) fn validate_commit(
        &mut self,
        fx: &mut Effects<'_>,
        request: &OffsetCommitRequest,
    ) -> Result<(), ErrorCode> {
        if matches!(self.phase, Phase::Dead) {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let empty = matches!(self.phase, Phase::Empty);
        let generation = request.generation_id_or_member_epoch;
        if generation < 0 && empty {
            // An administrator, or a client that uses offsets without a group.
            return Ok(());
        }
        let instance = request.group_instance_id.as_deref();
        if generation < 0 && request.member_id.is_empty() && instance.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.validate(&request.member_id, instance)?;
        if !self.is_generation_of(&request.member_id, generation) {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if matches!(self.phase, Phase::Completing { .. }) {
            // Positions of the old assignment under the new generation: nobody should commit now.
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.renew_session(fx, &request.member_id);
        Ok(())
    }

    /// Whether offsets may be deleted at all while there are members: only where it is known which topics they use.
    pub(in crate::coordinator) fn validate_offset_delete(&self) -> Result<(), ErrorCode> {
        match &self.phase {
            Phase::Empty => Ok(()),
            Phase::Dead => Err(ErrorCode::GROUP_ID_NOT_FOUND),
            Phase::Preparing { .. } | Phase::Completing { .. } | Phase::Stable { .. } => {
                if self.is_of_consumers() { Ok(()) } else { Err(ErrorCode::NON_EMPTY_GROUP) }
            }
        }
    }
}
