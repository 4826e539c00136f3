//! SyncGroup: the leader's assignment comes in and is stored, and each member gets its part.
//!
//! Mirrors `classicGroupSyncToClassicGroup`. The coordinator does not read assignments.

use super::{ClassicGroup, Phase, member::ParkedRequest};
use crate::{
    cause::Cause,
    coordinator::{
        append::After, durable::StoredClassic, effects::Effects, output::Ticket, timers::TimerKey,
    },
};
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::{
    ErrorCode,
    api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse},
};

/// A SyncGroup, read.
#[derive(Debug)]
pub(in crate::coordinator) struct Sync {
    pub(in crate::coordinator) ticket: Ticket,
    pub(in crate::coordinator) version: i16,
    pub(in crate::coordinator) request: SyncGroupRequest,
}

/// A sync that did not work.
pub(in crate::coordinator) fn sync_refused(code: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse { error_code: code, ..Default::default() }
}

impl ClassicGroup {
    /// Takes a SyncGroup.
    pub(in crate::coordinator) fn sync(&mut self, fx: &mut Effects<'_>, sync: Sync) {
        if let Err(code) = self.validate_sync(&sync.request) {
            return fx.reply(sync.ticket, sync_refused(code));
        }
        let Some(id) = self.members.get(sync.request.member_id.as_str()).map(|m| m.id.clone()) else {
            return;
        };
        match &self.phase {
            Phase::Completing { .. } => self.park_sync(fx, &id, sync),
            Phase::Stable { .. } => {
                self.note_synced(fx, &id);
                self.restart_session(fx, &id);
                let answer = self.sync_answer(&id);
                fx.reply(sync.ticket, answer);
            }
            Phase::Preparing { .. } => fx.reply(sync.ticket, sync_refused(ErrorCode::REBALANCE_IN_PROGRESS)),
            Phase::Empty | Phase::Dead => fx.reply(sync.ticket, sync_refused(ErrorCode::UNKNOWN_MEMBER_ID)),
        }
    }

    fn validate_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        if matches!(self.phase, Phase::Dead) {
            return Err(ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        self.validate(&request.member_id, request.group_instance_id.as_deref())?;
        if !self.is_generation_of(&request.member_id, request.generation_id) {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        // Versions before 5 do not say.
        let differs = |said: &Option<String>, is: &Option<String>| said.is_some() && said != is;
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        Ok(())
    }

    /// Lets a sync wait for the leader's, or for the log.
    fn park_sync(&mut self, fx: &mut Effects<'_>, id: &Arc<str>, sync: Sync) {
        self.answer_sync_with_error(fx, id, ErrorCode::REBALANCE_IN_PROGRESS);
        self.note_synced(fx, id);
        if let Some(member) = self.members.get_mut(id) {
            member.sync = Some(ParkedRequest { ticket: Some(sync.ticket), version: sync.version });
            fx.park(sync.ticket, &self.id, id);
        }
        let leads = self.is_leader(id);
        if let Phase::Completing { storing, .. } = &mut self.phase
            && leads
            && !std::mem::replace(storing, true)
        {
            self.store(fx, sync.request.assignments);
        }
    }

    /// Writes the leader's assignment. Members that it does not name get none; names that are not members, too.
    fn store(&mut self, fx: &mut Effects<'_>, assignments: Vec<SyncGroupRequestAssignment>) {
        let assignments: BTreeMap<&str, Bytes> =
            assignments.iter().map(|a| (a.member_id.as_str(), a.assignment.clone())).collect();
        fx.decided.records.push(self.record_with(&assignments));
        fx.decided.after = After::Synced { group: self.id.clone(), generation: self.generation };
    }

    /// The assignment of this generation is stored, or could not be. A group that has moved on meanwhile does not care.
    pub(in crate::coordinator) fn synced(
        &mut self,
        fx: &mut Effects<'_>,
        generation: i32,
        result: Result<&StoredClassic, ErrorCode>,
    ) {
        if generation != self.generation || !matches!(self.phase, Phase::Completing { .. }) {
            return;
        }
        match result {
            Ok(stored) => self.become_stable(fx, stored),
            Err(code) => {
                self.refuse_syncs(fx, code);
                self.prepare(fx, Cause::PersistFailed);
            }
        }
    }

    fn become_stable(&mut self, fx: &mut Effects<'_>, stored: &StoredClassic) {
        for (id, member) in &mut self.members {
            member.assignment = stored.members.get(id).map(|m| m.assignment.clone()).unwrap_or_default();
        }
        let from = self.state();
        if let Phase::Completing { syncing, .. } =
            std::mem::replace(&mut self.phase, Phase::Stable { syncing: None })
        {
            self.phase = Phase::Stable { syncing: Some(syncing) };
        }
        self.note_synced(fx, "");
        self.since_ms = fx.wall_ms;
        self.announce(fx, from, self.cause.clone());
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.answer_sync(fx, &id);
        }
    }

    fn answer_sync(&mut self, fx: &mut Effects<'_>, id: &Arc<str>) {
        let Some(parked) = self.members.get_mut(id).and_then(|m| m.sync.take()) else { return };
        if let Some(ticket) = parked.ticket {
            fx.unpark(ticket, self.sync_answer(id));
            // Its session may have run out while it waited, which was no fault of its own.
            self.restart_session(fx, id);
        }
    }

    fn sync_answer(&self, id: &str) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: self.members.get(id).map(|m| m.assignment.clone()).unwrap_or_default(),
            ..Default::default()
        }
    }

    /// Ends the parked sync of a member, if there is one, with an error.
    pub(super) fn answer_sync_with_error(&mut self, fx: &mut Effects<'_>, id: &str, code: ErrorCode) {
        let Some(parked) = self.members.get_mut(id).and_then(|m| m.sync.take()) else { return };
        if let Some(ticket) = parked.ticket {
            fx.unpark(ticket, sync_refused(code));
        }
    }

    /// The assignment does not come, or no longer counts: everybody who waits for it learns so, and nobody has one.
    pub(super) fn refuse_syncs(&mut self, fx: &mut Effects<'_>, code: ErrorCode) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.answer_sync_with_error(fx, &id, code);
            if let Some(member) = self.members.get_mut(&id) {
                member.assignment = Bytes::new();
            }
            self.restart_session(fx, &id);
        }
    }

    /// The member need not be waited for any more: it has come, or it is gone.
    pub(super) fn note_synced(&mut self, fx: &mut Effects<'_>, id: &str) {
        match &mut self.phase {
            Phase::Completing { syncing, .. } => drop(syncing.missing.remove(id)),
            Phase::Stable { syncing } => {
                let Some(waiting) = syncing else { return };
                waiting.missing.remove(id);
                if waiting.missing.is_empty() {
                    fx.timers.disarm(waiting.until, TimerKey::Sync { group: self.id.clone() });
                    *syncing = None;
                }
            }
            Phase::Empty | Phase::Preparing { .. } | Phase::Dead => {}
        }
    }
}
