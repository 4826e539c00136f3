//! Heartbeat: whether a member is still one, and whether it has to join again. Mirrors `classicGroupHeartbeat`.

use super::{ClassicGroup, Member, Phase};
use crate::coordinator::effects::Effects;
use std::sync::Arc;
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
        if !self.is_generation_of(&request.member_id, request.generation_id) {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        self.renew_session(fx, &request.member_id);
        match &self.phase {
            Phase::Empty | Phase::Dead => ErrorCode::UNKNOWN_MEMBER_ID,
            Phase::Preparing { .. } => ErrorCode::REBALANCE_IN_PROGRESS,
            Phase::Completing { .. } | Phase::Stable { .. } => ErrorCode::NONE,
        }
    }

    /// Whether this is the generation that the member may know.
    pub(super) fn is_generation_of(&self, id: &str, generation: i32) -> bool {
        let before = || self.members.get(id).and_then(|member| member.epoch_before);
        generation == self.generation || before() == Some(generation)
    }

    /// The generation that a member knows for sure.
    pub(in crate::coordinator) fn generation_of(&self, member: &Member) -> i32 {
        member.epoch_before.unwrap_or_else(|| self.generation())
    }

    /// The group was one of the other protocol until now, in which members had these epochs.
    pub(in crate::coordinator) fn came_from_epochs(&mut self, epochs: &[(Arc<str>, i32)]) {
        for (id, epoch) in epochs.iter().filter(|(_, epoch)| *epoch != self.generation) {
            if let Some(member) = self.members.get_mut(id) {
                member.epoch_before = Some(*epoch);
            }
        }
    }

    /// A sign of life. A member whose first join is parked has longer than its session and keeps that.
    pub(super) fn renew_session(&mut self, fx: &mut Effects<'_>, id: &str) {
        if self.members.get(id).is_some_and(|m| !m.is_new) {
            self.restart_session(fx, id);
        }
    }
}
