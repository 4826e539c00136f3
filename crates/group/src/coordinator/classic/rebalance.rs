//! How a rebalance of a classic group goes: when one begins, how long it waits for whom, and how it ends.
//!
//! It does not say why one begins; requests and timeouts do. Mirrors `prepareRebalance`, `maybeCompleteJoinPhase` and
//! `completeClassicGroupJoin` of `GroupMetadataManager`.

use super::{
    ClassicGroup, Initial, Phase, Syncing,
    join::{Joined, join_answer},
};
use crate::{
    cause::Cause,
    coordinator::{
        effects::Effects,
        output::{Output, Transition},
        timers::TimerKey,
    },
    time::{Duration, Instant},
};
use std::{collections::BTreeSet, sync::Arc};
use tontine_wire::ErrorCode;

/// A wait for absent static members is taken up again at most this often, however short the timeout they asked for.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);

impl ClassicGroup {
    /// Begins a rebalance, or lets the one that is going on know that something changed.
    pub(in crate::coordinator) fn rebalance(&mut self, fx: &mut Effects<'_>, cause: Cause) {
        match &self.phase {
            Phase::Empty | Phase::Completing { .. } | Phase::Stable { .. } => self.prepare(fx, cause),
            Phase::Preparing { .. } => self.complete_if_all_joined(fx),
            Phase::Dead => {}
        }
    }

    /// Begins a rebalance: everybody has to join.
    pub(in crate::coordinator) fn prepare(&mut self, fx: &mut Effects<'_>, cause: Cause) {
        if matches!(self.phase, Phase::Completing { .. }) {
            self.refuse_syncs(fx, ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.disarm_phase(fx);
        let initial = matches!(self.phase, Phase::Empty).then(|| self.initial_delay(fx));
        let wait = initial.map_or(self.rebalance_timeout(), |initial| initial.delay);
        let until = fx.now + wait;
        fx.timers.arm(until, TimerKey::Join { group: self.id.clone() });
        self.enter(fx, Phase::Preparing { until, initial }, cause);
        let waits = if initial.is_some() { !wait.is_zero() } else { !self.all_joined() };
        if !waits {
            self.complete_join(fx);
        }
    }

    fn initial_delay(&self, fx: &Effects<'_>) -> Initial {
        let delay = fx.config.group_initial_rebalance_delay;
        Initial { delay, remaining: self.rebalance_timeout().saturating_sub(delay), more_came: false }
    }

    /// Somebody joined a group whose first rebalance is still waiting: it may wait once more.
    pub(super) fn note_more_came(&mut self) {
        if let Phase::Preparing { initial: Some(initial), .. } = &mut self.phase {
            initial.more_came = true;
        }
    }

    /// Ends the wait for joins when nobody is missing. The first rebalance of an empty group waits its time.
    pub(super) fn complete_if_all_joined(&mut self, fx: &mut Effects<'_>) {
        if matches!(self.phase, Phase::Preparing { initial: None, .. }) && self.all_joined() {
            self.complete_join(fx);
        }
    }

    /// Everybody is here, and nobody holds an id that was handed out and not used.
    fn all_joined(&self) -> bool {
        self.joined == self.members.len() && self.pending.is_empty()
    }

    /// The wait for joins has lasted long enough.
    pub(in crate::coordinator) fn join_timeout(&mut self, fx: &mut Effects<'_>, at: Instant) {
        let Phase::Preparing { until, initial } = &mut self.phase else { return };
        if *until != at {
            return;
        }
        if let Some(first) = initial
            && first.more_came
            && !first.remaining.is_zero()
        {
            let delay = fx.config.group_initial_rebalance_delay.min(first.remaining);
            let remaining = first.remaining.saturating_sub(first.delay);
            *first = Initial { delay, remaining, more_came: false };
            *until = fx.now + delay;
            fx.timers.arm(*until, TimerKey::Join { group: self.id.clone() });
            return;
        }
        self.complete_join(fx);
    }

    /// Ends the wait for joins: whoever is missing is out, the others form the next generation.
    fn complete_join(&mut self, fx: &mut Effects<'_>) {
        self.disarm_phase(fx);
        let cause = self.drop_absent_dynamic_members(fx);
        if !self.members.is_empty() && !self.elect_among_joined() {
            return self.wait_for_static_members(fx);
        }
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.members.values_mut().for_each(|member| member.epoch_before = None);
        if self.members.is_empty() { self.become_empty(fx, cause) } else { self.become_completing(fx, cause) }
    }

    /// Static members keep their place while they are away; their sessions decide.
    fn drop_absent_dynamic_members(&mut self, fx: &mut Effects<'_>) -> Cause {
        let absent = self.members.values().filter(|m| m.join.is_none() && m.instance_id.is_none());
        let absent: Vec<Arc<str>> = absent.map(|m| m.id.clone()).collect();
        for id in &absent {
            self.remove(fx, id);
        }
        match absent.first() {
            Some(id) => Cause::RebalanceTimeout { member: id.to_string() },
            None => self.cause.clone(),
        }
    }

    /// Keeps the leader if it joined, else takes the longest-standing member that did.
    fn elect_among_joined(&mut self) -> bool {
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        if leader.is_some_and(|m| m.join.is_some()) {
            return true;
        }
        let next = self.members.values().filter(|m| m.join.is_some()).min_by_key(|m| m.arrival);
        match next.map(|m| m.id.clone()) {
            Some(id) => {
                self.leader = Some(id);
                true
            }
            None => false,
        }
    }

    /// Only static members are left and none of them is here: one comes back, or the last session ends.
    fn wait_for_static_members(&mut self, fx: &mut Effects<'_>) {
        let until = fx.now + self.rebalance_timeout().max(SHORTEST_RETRY);
        fx.timers.arm(until, TimerKey::Join { group: self.id.clone() });
        self.phase = Phase::Preparing { until, initial: None };
    }

    fn become_empty(&mut self, fx: &mut Effects<'_>, cause: Cause) {
        self.protocol = None;
        self.leader = None;
        self.subscribed = self.read_subscriptions();
        self.enter(fx, Phase::Empty, cause);
        fx.decided.records.push(self.record());
    }

    fn become_completing(&mut self, fx: &mut Effects<'_>, cause: Cause) {
        self.protocol = self.select_protocol();
        self.subscribed = self.read_subscriptions();
        let until = fx.now + self.rebalance_timeout();
        fx.timers.arm(until, TimerKey::Sync { group: self.id.clone() });
        let missing: BTreeSet<Arc<str>> = self.members.keys().cloned().collect();
        let syncing = Syncing { until, missing: missing.clone() };
        self.enter(fx, Phase::Completing { syncing, storing: false }, cause);
        for id in &missing {
            self.answer_join(fx, id);
            self.restart_session(fx, id);
        }
    }

    /// Answers the parked join of a member with the generation that has just begun.
    fn answer_join(&mut self, fx: &mut Effects<'_>, id: &Arc<str>) {
        let answer =
            Joined { leader: self.leader_id(), with_members: self.is_leader(id), skip_assignment: false };
        let Some(member) = self.members.get_mut(id) else { return };
        member.is_new = false;
        let Some(parked) = member.join.take() else { return };
        self.joined -= 1;
        if let Some(ticket) = parked.ticket {
            fx.unpark(ticket, join_answer(self, id, parked.version, answer));
        }
    }

    /// Moves to another phase and says so.
    pub(super) fn enter(&mut self, fx: &mut Effects<'_>, phase: Phase, cause: Cause) {
        let from = self.state();
        self.phase = phase;
        self.since_ms = fx.wall_ms;
        self.cause = cause;
        self.announce(fx, from, self.cause.clone());
    }

    /// Tells of a transition.
    pub(super) fn announce(
        &self,
        fx: &mut Effects<'_>,
        from: crate::coordinator::output::GroupState,
        cause: Cause,
    ) {
        fx.out.push_back(Output::Transition(Transition {
            group: self.id.clone(),
            from,
            to: self.state(),
            generation: self.generation,
            cause,
        }));
    }
}
