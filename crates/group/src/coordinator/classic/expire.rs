//! Timeouts: members that are silent too long, ids that nobody uses, members that do not fetch their assignment, and
//! requests whose connection is gone.
//!
//! Mirrors `expireClassicGroupMemberHeartbeat` and `expirePendingSync`.

use super::{ClassicGroup, Phase};
use crate::{
    cause::Cause,
    coordinator::{effects::Effects, output::Ticket, session::SessionCheck},
    time::Instant,
};
use std::sync::Arc;

impl ClassicGroup {
    /// A session timer fired.
    pub(in crate::coordinator) fn session_timeout(
        &mut self,
        fx: &mut Effects<'_>,
        at: Instant,
        member: &Arc<str>,
    ) {
        if let Some(session) = self.pending.get_mut(member) {
            if session.fired(fx.timers, fx.now, at, &self.id, member) == SessionCheck::Expired {
                self.pending.remove(member);
                self.complete_if_all_joined(fx);
            }
            return;
        }
        let Some(found) = self.members.get_mut(member) else { return };
        let check = found.session.fired(fx.timers, fx.now, at, &self.id, member);
        if check == SessionCheck::Expired && !found.may_be_silent() {
            self.remove(fx, member);
            self.go_on_without(fx, Cause::SessionExpired { member: member.to_string() });
        }
    }

    /// The time to fetch assignments is over.
    pub(in crate::coordinator) fn sync_timeout(&mut self, fx: &mut Effects<'_>, at: Instant) {
        let syncing = match &mut self.phase {
            Phase::Completing { syncing, .. } => Some(syncing),
            Phase::Stable { syncing } => syncing.as_mut(),
            Phase::Empty | Phase::Preparing { .. } | Phase::Dead => None,
        };
        let Some(syncing) = syncing.filter(|s| s.until == at) else { return };
        let missing = std::mem::take(&mut syncing.missing);
        let Some(member) = missing.first().map(|id| id.to_string()) else { return };
        for id in &missing {
            self.remove(fx, id);
        }
        self.prepare(fx, Cause::SyncTimeout { member });
    }

    /// Nobody waits for the answer of this member's parked request any more. The request still counts, as in Kafka,
    /// which does not notice; but the member has to show up within its session.
    pub(in crate::coordinator) fn disconnected(
        &mut self,
        fx: &mut Effects<'_>,
        member: &Arc<str>,
        ticket: Ticket,
    ) {
        let Some(found) = self.members.get_mut(member) else { return };
        for parked in [&mut found.join, &mut found.sync].into_iter().flatten() {
            if parked.ticket == Some(ticket) {
                parked.ticket = None;
            }
        }
        self.restart_session(fx, member);
    }

    /// A group found in the log that has become too large by a change of settings: it comes together again, and the
    /// last ones find no seat.
    pub(in crate::coordinator) fn shrink_if_too_large(&mut self, fx: &mut Effects<'_>) {
        if self.members.len() > fx.config.group_max_size && matches!(self.phase, Phase::Stable { .. }) {
            let reason = format!("more than {} members", fx.config.group_max_size);
            self.prepare(fx, Cause::Requested { reason });
        }
    }
}
