//! Heartbeat: whether a member is still one, and whether it has to join again. Mirrors `classicGroupHeartbeat`.

use super::{ClassicGroup, Phase};
use crate::coordinator::effects::Effects;
use tontine_wire::{ErrorCode, api::heartbeat::HeartbeatRequest};

impl ClassicGroup {
    /// The error code that answers a heartbeat.
    pub(in crate::coordinator) fn heartbeat(
        &mut self,
        fx: &mut Effects<'_>,
        request: &HeartbeatRequest,
    ) -> ErrorCode {
        if matches!(self.phase, Phase::Dead) {
            return ErrorCode::COORDINATOR_NOT_AVAILABLE;
        }
        if let Err(code) = self.validate(&request.member_id, request.group_instance_id.as_deref()) {
            return code;
        }
        if request.generation_id != self.generation {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        self.renew_session(fx, &request.member_id);
        match &self.phase {
            Phase::Empty | Phase::Dead => ErrorCode::UNKNOWN_MEMBER_ID,
            Phase::Preparing { .. } => ErrorCode::REBALANCE_IN_PROGRESS,
            Phase::Completing { .. } | Phase::Stable { .. } => ErrorCode::NONE,
        }
    }

    /// A sign of life. A member whose first join is parked has longer than its session and keeps that.
    pub(super) fn renew_session(&mut self, fx: &mut Effects<'_>, id: &str) {
        if self.members.get(id).is_some_and(|m| !m.is_new) {
            self.restart_session(fx, id);
        }
    }
}
