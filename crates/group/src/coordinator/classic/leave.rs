//! LeaveGroup: members go, by themselves or sent away by an administrator, several at once and with one rebalance.
//!
//! Mirrors `classicGroupLeaveToClassicGroup`.

use super::{ClassicGroup, Phase};
use crate::{cause::Cause, coordinator::effects::Effects};
use tontine_wire::{
    ErrorCode,
    api::leave_group::{MemberIdentity, MemberResponse},
};

impl ClassicGroup {
    /// Takes out the members of a LeaveGroup, and says of each whether it was one.
    pub(in crate::coordinator) fn leave(
        &mut self,
        fx: &mut Effects<'_>,
        members: &[MemberIdentity],
    ) -> Result<Vec<MemberResponse>, ErrorCode> {
        if matches!(self.phase, Phase::Dead) {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        let mut cause = None;
        let mut responses = Vec::new();
        for member in members {
            let result = self.leave_one(fx, member);
            if let Ok(id) = &result {
                let reason = member.reason.clone().unwrap_or_default();
                cause.get_or_insert(Cause::MemberLeft { member: id.clone(), reason });
            }
            responses.push(MemberResponse {
                member_id: member.member_id.clone(),
                group_instance_id: member.group_instance_id.clone(),
                error_code: result.err().unwrap_or(ErrorCode::NONE),
            });
        }
        if let Some(cause) = cause {
            self.go_on_without(fx, cause);
        }
        Ok(responses)
    }

    fn leave_one(&mut self, fx: &mut Effects<'_>, member: &MemberIdentity) -> Result<String, ErrorCode> {
        let instance = member.group_instance_id.as_deref();
        if member.member_id.is_empty() {
            // An administrator knows instances, not member ids.
            let id = instance.and_then(|instance| self.instances.get(instance)).cloned();
            let id = id.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
            self.remove(fx, &id);
            return Ok(id.to_string());
        }
        if !self.forget_pending(fx, &member.member_id) {
            self.validate(&member.member_id, instance)?;
            self.remove(fx, &member.member_id);
        }
        Ok(member.member_id.clone())
    }

    /// Somebody is gone: the others share anew, or need not wait any longer.
    pub(super) fn go_on_without(&mut self, fx: &mut Effects<'_>, cause: Cause) {
        match &self.phase {
            Phase::Completing { .. } | Phase::Stable { .. } => self.prepare(fx, cause),
            Phase::Preparing { .. } => self.complete_if_all_joined(fx),
            Phase::Empty | Phase::Dead => {}
        }
    }
}
