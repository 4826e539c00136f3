//! A static member that comes back under a new member id: it takes the place, the assignment and, where it held it, the
//! lead of its former self, without a rebalance if the group is stable and nothing that matters changed.
//!
//! Mirrors `updateStaticMemberThenRebalanceOrCompleteJoin` and KIP-345, KIP-814.

use super::{
    ClassicGroup, Phase,
    join::{Join, Joined, join_answer, join_refused},
    member::Member,
};
use crate::{
    cause::Cause,
    coordinator::{append::After, effects::Effects, session::Session},
};
use std::sync::Arc;
use tontine_wire::ErrorCode;

/// From this version on a leader can be told that it leads and must not assign.
const SKIP_ASSIGNMENT_SINCE: i16 = 9;

/// A replacement that is on its way to the log.
#[derive(Debug)]
pub(in crate::coordinator) struct Replaced {
    /// The member as it was, to put it back if the log refuses.
    former: Member,
    id: Arc<str>,
    generation: i32,
    /// Whom the group called leader before.
    former_leader: String,
}

impl ClassicGroup {
    /// Puts `id` in the place of `old`.
    pub(super) fn replace_static(&mut self, fx: &mut Effects<'_>, old: Arc<str>, id: Arc<str>, join: Join) {
        let former_leader = self.leader_id();
        let Some(former) = self.swap(fx, &old, &id) else { return };
        self.update(fx, &id, &join);
        self.park_join(fx, &id, join.parked());
        self.restart_session(fx, &id);
        let cause = Cause::StaticMemberReplaced {
            instance: former.instance_id.as_deref().unwrap_or_default().to_owned(),
        };
        match &self.phase {
            Phase::Stable { .. } if self.select_protocol() == self.protocol => {
                let replaced = Replaced { former, id, generation: self.generation, former_leader };
                fx.decided.records.push(self.record());
                fx.decided.after = After::Replaced(self.id.clone(), Box::new(replaced));
                self.announce(fx, self.state(), cause);
            }
            // The leader may have assigned to the old id already: everybody has to come together again.
            Phase::Completing { .. } | Phase::Stable { .. } => self.prepare(fx, cause),
            Phase::Preparing { .. } => self.complete_if_all_joined(fx),
            Phase::Empty | Phase::Dead => {}
        }
    }

    /// Renames a member. Requests of the old id that are parked learn that they are fenced.
    fn swap(&mut self, fx: &mut Effects<'_>, old: &Arc<str>, id: &Arc<str>) -> Option<Member> {
        self.answer_join_with_error(fx, old, old, ErrorCode::FENCED_INSTANCE_ID);
        self.answer_sync_with_error(fx, old, ErrorCode::FENCED_INSTANCE_ID);
        let mut former = self.members.remove(old)?;
        former.session.stop(fx.timers, &self.id, old);
        if let Some(instance) = &former.instance_id {
            self.instances.insert(instance.clone(), id.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(id.clone());
        }
        if let Phase::Stable { syncing: Some(syncing) } | Phase::Completing { syncing, .. } = &mut self.phase
            && syncing.missing.remove(old)
        {
            syncing.missing.insert(id.clone());
        }
        let now = Member { id: id.clone(), session: Session::default(), is_new: false, ..former.clone() };
        self.members.insert(id.clone(), now);
        Some(former)
    }

    /// The log has the new id, or refused it.
    pub(in crate::coordinator) fn replaced(
        &mut self,
        fx: &mut Effects<'_>,
        replaced: Replaced,
        result: Result<(), ErrorCode>,
    ) {
        match result {
            Ok(()) => self.welcome_back(fx, &replaced),
            Err(code) => self.put_back(fx, replaced, code),
        }
    }

    fn welcome_back(&mut self, fx: &mut Effects<'_>, replaced: &Replaced) {
        let stable = matches!(self.phase, Phase::Stable { .. }) && self.generation == replaced.generation;
        let leads = self.is_leader(&replaced.id);
        let leader = self.leader_id();
        // In a rebalance that began meanwhile the join counts, and is answered with the others.
        let Some(member) = self.members.get_mut(&replaced.id).filter(|_| stable) else { return };
        let Some(parked) = member.join.take() else { return };
        self.joined -= 1;
        let skips = parked.version >= SKIP_ASSIGNMENT_SINCE && leads;
        // A client that cannot be told to skip must not think that it leads.
        let leader =
            if parked.version >= SKIP_ASSIGNMENT_SINCE { leader } else { replaced.former_leader.clone() };
        if let Some(ticket) = parked.ticket {
            let answer = Joined { leader, with_members: skips, skip_assignment: skips };
            fx.unpark(ticket, join_answer(self, &replaced.id, parked.version, answer));
        }
    }

    /// The log does not know the new id, so nobody does.
    fn put_back(&mut self, fx: &mut Effects<'_>, replaced: Replaced, code: ErrorCode) {
        let Some(member) = self.members.get_mut(&replaced.id) else { return };
        // A generation that began meanwhile has welcomed the new id.
        let Some(parked) = member.join.take() else { return };
        self.joined -= 1;
        if let Some(ticket) = parked.ticket {
            fx.unpark(ticket, join_refused("", code, parked.version));
        }
        let old = replaced.former.id.clone();
        if self.swap(fx, &replaced.id, &old).is_none() {
            return;
        }
        if let Some(member) = self.members.get_mut(&old) {
            self.support.remove(&member.protocols);
            member.protocols = replaced.former.protocols;
            member.rebalance_timeout = replaced.former.rebalance_timeout;
            member.session_timeout = replaced.former.session_timeout;
            self.support.add(&member.protocols);
        }
        self.restart_session(fx, &old);
        self.complete_if_all_joined(fx);
    }
}
