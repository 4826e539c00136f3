//! How a turn ends: what groups decided becomes appends and replies, appends end and let replies go, timers fire.
//!
//! Here is the rule that no reply leaves before its records are durable, and nowhere else.

use super::{
    AppendId, Coordinator, GroupState, Output, Ticket, Transition,
    append::{After, InFlight, response_error},
    classic::ClassicGroup,
    consumer,
    durable::Group,
    effects::{Decided, Effects},
    offsets::expire,
    record::Record,
    refuse::spoil,
    timers::TimerKey,
    volatile::Serving,
};
use crate::{
    cause::Cause,
    time::{Duration, Instant},
    topics::Topics,
};
use std::sync::Arc;
use tontine_wire::{ErrorCode, api::Response, group_records::GroupMetadataKey};

impl Coordinator {
    /// The log has been read to its end: sessions of the members found in it begin.
    pub fn loaded(&mut self, now: Instant) {
        self.volatile.serving = Serving::Active;
        let classic = |group: &Group| match group {
            Group::Classic(stored) => (!stored.members.is_empty()).then_some(Some(stored.converted)),
            Group::Consumer(stored) => (!stored.members.is_empty()).then_some(None),
        };
        let groups = self.durable.groups().filter_map(|(id, group)| Some((id.clone(), classic(group)?)));
        for (id, classic) in groups.collect::<Vec<_>>() {
            let Some(converted) = classic else {
                self.load_consumer(now, &id);
                continue;
            };
            self.with_group(now, &id, |group, fx| {
                group.shrink_if_too_large(fx);
                if converted {
                    group.rebalance(fx, Cause::CoordinatorMoved);
                }
            });
        }
        self.volatile
            .timers
            .arm(now + self.config.offsets_retention_check_interval, TimerKey::OffsetsCleanup);
    }

    /// Another broker is the coordinator from now on: everything parked is answered with `NOT_COORDINATOR`.
    pub fn resign(&mut self, now: Instant) {
        for append in self.volatile.appends.abandon() {
            self.send_spoiled(append.replies, ErrorCode::NOT_COORDINATOR);
        }
        for id in self.volatile.classic.keys().cloned().collect::<Vec<_>>() {
            self.dissolve(now, &id, ErrorCode::NOT_COORDINATOR);
        }
        for deferred in std::mem::take(&mut self.volatile.deferred).into_values().flatten() {
            self.turn_away(deferred.ticket, deferred.version, &deferred.request, ErrorCode::NOT_COORDINATOR);
        }
        self.volatile.serving = Serving::Resigned;
        self.volatile.timers = Default::default();
        self.volatile.consumer.clear();
    }

    /// An append is durable, or failed. Records of a failed append must not be in the log.
    pub fn handle_appended(&mut self, now: Instant, id: AppendId, result: Result<(), ErrorCode>) {
        self.volatile.appends.end(id, result);
        while let Some((append, result)) = self.volatile.appends.take_ended() {
            self.append_ended(now, append, result);
        }
        self.resume_deferred(now);
    }

    fn append_ended(&mut self, now: Instant, append: InFlight, result: Result<(), ErrorCode>) {
        let result = result.map_err(response_error);
        let before = self.consumer_state(&append.after);
        let epochs = self.epochs_before(&append.after);
        match result {
            Ok(()) => {
                append.records.iter().for_each(|record| self.durable.apply(record));
                self.send(append.replies);
                if let After::Downgraded { group, .. } = &append.after
                    && let Some(mut live) = self.volatile.consumer.remove(group)
                {
                    // Before the sessions of the classic members begin: timers are known by group, member and time.
                    live.stop(&mut self.volatile.timers, group);
                }
                self.guard_sessions(now, &append.records);
            }
            Err(code) => self.send_spoiled(append.replies, code),
        }
        self.tell_of_consumer(before, &append.after);
        self.follow_up(now, append.after, result, &epochs);
    }

    /// The epochs of the members of a group that stops being one of the consumer protocol.
    fn epochs_before(&self, after: &After) -> Vec<(Arc<str>, i32)> {
        let After::Downgraded { group, .. } = after else { return Vec::new() };
        let members = self.consumer_group(group).map(|stored| &stored.members);
        members.into_iter().flatten().map(|(id, member)| (id.clone(), member.epoch)).collect()
    }

    /// Members that the log knows are alive here too, or nobody would notice when they fall silent.
    fn guard_sessions(&mut self, now: Instant, records: &[Record]) {
        for record in records {
            if let Record::GroupMetadata(key, Some(value)) = record
                && !value.members.is_empty()
            {
                self.with_group(now, &key.group, |_, _| {});
            }
        }
    }

    fn follow_up(
        &mut self,
        now: Instant,
        after: After,
        result: Result<(), ErrorCode>,
        epochs: &[(Arc<str>, i32)],
    ) {
        match after {
            After::Nothing => {}
            After::Moved { group, .. } if result.is_err() => self.guard_consumers(now, &group),
            After::Moved { .. } => {}
            After::Downgraded { group, cause } => {
                self.downgraded(now, &group, cause, result.map(|()| epochs))
            }
            After::Created(id) => match result {
                Ok(()) => self.with_live(now, &id, |group, _| group.creating = None),
                Err(code) => self.dissolve(now, &id, code),
            },
            After::Synced { group: id, generation } => {
                let stored = match self.durable.group(&id) {
                    Some(Group::Classic(stored)) => Some(stored.clone()),
                    Some(Group::Consumer(_)) | None => None,
                };
                let result = result.and(stored.ok_or(ErrorCode::UNKNOWN_SERVER_ERROR));
                self.with_live(now, &id, |group, fx| {
                    group.synced(fx, generation, result.as_ref().map_err(|code| *code));
                });
            }
            After::Replaced(id, replaced) => {
                self.with_live(now, &id, |group, fx| group.replaced(fx, *replaced, result));
            }
            After::Deleted(ids) => ids.iter().for_each(|id| self.deleted(now, id, result)),
        }
    }

    /// A consumer group is a classic one now; those who stay in it come together once more, if the record says that they have to.
    fn downgraded(
        &mut self,
        now: Instant,
        group: &Arc<str>,
        cause: Cause,
        result: Result<&[(Arc<str>, i32)], ErrorCode>,
    ) {
        let Ok(epochs) = result else { return self.guard_consumers(now, group) };
        let stored = self.durable.group(group);
        let owes = matches!(stored, Some(Group::Classic(stored)) if stored.converted);
        self.with_group(now, group, |group, fx| {
            group.came_from_epochs(epochs);
            if owes {
                group.prepare(fx, cause);
            }
        });
    }

    fn deleted(&mut self, now: Instant, id: &Arc<str>, result: Result<(), ErrorCode>) {
        match result {
            Ok(()) => {
                self.volatile.consumer.remove(id);
                self.dissolve(now, id, ErrorCode::UNKNOWN_MEMBER_ID);
            }
            Err(_) => self.with_live(now, id, |group, _| group.revive()),
        }
    }

    /// The time of [`Output::Wait`] has come. Spurious calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        for (at, key) in self.volatile.timers.take_due(now) {
            match key {
                TimerKey::Session { group, member } => {
                    self.consumer_session(now, at, &group, &member);
                    self.with_live(now, &group, |group, fx| group.session_timeout(fx, at, &member));
                }
                TimerKey::Join { group } => {
                    self.with_live(now, &group, |group, fx| group.join_timeout(fx, at))
                }
                TimerKey::Sync { group } => {
                    self.with_live(now, &group, |group, fx| group.sync_timeout(fx, at))
                }
                TimerKey::Duty { group, member, duty } => self.consumer_duty(now, at, &group, &member, duty),
                TimerKey::Target { group } => self.consumer_target(now, at, &group),
                TimerKey::OffsetsCleanup => self.clean_up_offsets(now),
            }
        }
    }

    fn clean_up_offsets(&mut self, now: Instant) {
        let next = now + self.config.offsets_retention_check_interval.max(Duration::from_secs(1));
        self.volatile.timers.arm(next, TimerKey::OffsetsCleanup);
        let (wall_ms, retention) = (self.wall_ms(now), self.config.offsets_retention.as_millis());
        let retention = i64::try_from(retention).unwrap_or(i64::MAX);
        let mut ids: Vec<Arc<str>> = self.durable.groups().map(|(id, _)| id.clone()).collect();
        ids.retain(|id| !self.volatile.appends.touch(id));
        for id in ids {
            if self.consumer_group(&id).is_some() {
                self.clean_up_consumer(&id, wall_ms, retention);
                continue;
            }
            let mut gone = false;
            self.with_group_and_durable(now, &id, |durable, group, fx| {
                let (records, none_left) = expire::expired(durable, group, wall_ms, retention);
                fx.decided.records = records;
                gone = none_left && group.is_unused();
                if gone {
                    group.kill();
                    fx.decided.records.push(group_tombstone(&group.id));
                    fx.decided.after = After::Deleted(vec![group.id.clone()]);
                }
            });
        }
    }

    fn clean_up_consumer(&mut self, id: &Arc<str>, wall_ms: i64, retention_ms: i64) {
        let Some(group) = self.consumer_group(id) else { return };
        let (mut records, none_left) =
            expire::expired_of_consumer(&self.durable, id, group, wall_ms, retention_ms);
        if none_left && group.members.is_empty() {
            records.extend(Self::consumer_tombstones(id));
        }
        let after = After::Moved { group: id.clone(), cause: Cause::Coordinator };
        self.carry_out(None, Decided { records, after, ..Decided::default() });
    }

    /// The state of the consumer group that an append is about.
    fn consumer_state(&self, after: &After) -> Option<GroupState> {
        let After::Moved { group, .. } = after else { return None };
        Some(match self.durable.group(group) {
            Some(Group::Consumer(stored)) => consumer::state(stored),
            Some(Group::Classic(stored)) if !stored.members.is_empty() => GroupState::Stable,
            Some(Group::Classic(_)) | None => GroupState::Empty,
        })
    }

    /// Tells of a consumer group that is in another state, or another epoch, than before.
    fn tell_of_consumer(&mut self, before: Option<GroupState>, after: &After) {
        let (Some(from), After::Moved { group, cause }) = (before, after) else { return };
        let stored = self.consumer_group(group);
        let (to, generation) =
            stored.map_or((GroupState::Dead, 0), |stored| (consumer::state(stored), stored.epoch));
        if from != to {
            let transition = Transition { group: group.clone(), from, to, generation, cause: cause.clone() };
            self.out.push_back(Output::Transition(transition));
        }
    }

    /// Topics changed. `topics` are all topics that exist: offsets of any other topic, or of another topic of the same
    /// name, are deleted.
    pub fn handle_topics(&mut self, now: Instant, topics: &Topics) {
        if self.volatile.serving == Serving::Active {
            let records = expire::of_deleted_topics(&self.durable, topics);
            self.carry_out(None, Decided { records, ..Decided::default() });
            self.consumer_topics(now, topics);
        }
    }

    /// The connection that a request came from is gone: it needs no answer any more.
    pub fn handle_disconnected(&mut self, now: Instant, ticket: Ticket) {
        self.volatile.appends.forget(ticket);
        self.volatile.deferred.values_mut().for_each(|waiting| waiting.retain(|d| d.ticket != ticket));
        if let Some((group, member)) = self.volatile.parked.remove(&ticket) {
            self.with_live(now, &group, |group, fx| group.disconnected(fx, &member, ticket));
        }
    }

    /// The wall clock, milliseconds since 1970.
    pub(super) fn wall_ms(&self, now: Instant) -> i64 {
        let elapsed = i64::try_from(now.since_origin().as_millis()).unwrap_or(i64::MAX);
        self.config.unix_ms_at_origin.saturating_add(elapsed)
    }

    /// Lets a classic group decide something, and carries it out. A group that only the log knows comes alive first.
    /// Answers whether there is such a group.
    pub(super) fn with_group(
        &mut self,
        now: Instant,
        id: &str,
        decide: impl FnOnce(&mut ClassicGroup, &mut Effects<'_>),
    ) -> bool {
        self.with_group_and_durable(now, id, |_, group, fx| decide(group, fx))
    }

    /// [`Self::with_group`] for decisions that need to know what the log says.
    pub(super) fn with_group_and_durable(
        &mut self,
        now: Instant,
        id: &str,
        decide: impl FnOnce(&super::Durable, &mut ClassicGroup, &mut Effects<'_>),
    ) -> bool {
        if !self.volatile.classic.contains_key(id) && !self.bring_to_life(now, id) {
            return false;
        }
        self.with_live_and_durable(now, id, decide);
        true
    }

    fn bring_to_life(&mut self, now: Instant, id: &str) -> bool {
        let Some((id, Group::Classic(stored))) = self.durable.groups_entry(id) else { return false };
        let (id, stored) = (id.clone(), stored.clone());
        let mut fx = self.effects(now);
        let group = ClassicGroup::from_stored(&mut fx, &id, &stored);
        self.volatile.classic.insert(id, group);
        true
    }

    fn effects(&mut self, now: Instant) -> Effects<'_> {
        Effects {
            wall_ms: self.wall_ms(now),
            now,
            config: &self.config,
            timers: &mut self.volatile.timers,
            parked: &mut self.volatile.parked,
            ids: &mut self.volatile.ids,
            out: &mut self.out,
            decided: Decided::default(),
        }
    }

    /// Lets a group decide something if it is alive.
    fn with_live(
        &mut self,
        now: Instant,
        id: &str,
        decide: impl FnOnce(&mut ClassicGroup, &mut Effects<'_>),
    ) {
        self.with_live_and_durable(now, id, |_, group, fx| decide(group, fx));
    }

    fn with_live_and_durable(
        &mut self,
        now: Instant,
        id: &str,
        decide: impl FnOnce(&super::Durable, &mut ClassicGroup, &mut Effects<'_>),
    ) {
        let wall_ms = self.wall_ms(now);
        let Some(group) = self.volatile.classic.get_mut(id) else { return };
        let mut fx = Effects {
            wall_ms,
            now,
            config: &self.config,
            timers: &mut self.volatile.timers,
            parked: &mut self.volatile.parked,
            ids: &mut self.volatile.ids,
            out: &mut self.out,
            decided: Decided::default(),
        };
        decide(&self.durable, group, &mut fx);
        let (decided, creating) = (fx.decided, group.creating);
        self.carry_out(creating, decided);
    }

    /// Makes a group that nobody knows yet and lets it decide. It exists when its first record does; a group that
    /// refuses its first member has never been. `ends` are the
    /// records that end a group of the other protocol of that name.
    pub(super) fn with_new_group(
        &mut self,
        now: Instant,
        id: &str,
        mut ends: Vec<Record>,
        decide: impl FnOnce(&mut ClassicGroup, &mut Effects<'_>),
    ) {
        let id: Arc<str> = id.into();
        let mut group = ClassicGroup::new(id.clone(), self.wall_ms(now));
        let first = group.record_of_new();
        let mut fx = self.effects(now);
        decide(&mut group, &mut fx);
        let mut decided = fx.decided;
        if group.is_used() {
            ends.extend(std::mem::take(&mut decided.records));
            ends.push(first);
            decided.records = ends;
            decided.after = After::Created(id.clone());
            group.creating = self.carry_out(None, decided);
            self.volatile.classic.insert(id, group);
        } else {
            self.carry_out(None, decided);
        }
    }

    /// Appends the records and lets the replies wait for them; without records the replies leave at once, unless the
    /// group itself is on its way to the log.
    pub(super) fn carry_out(&mut self, creating: Option<AppendId>, decided: Decided) -> Option<AppendId> {
        let Decided { records, replies, after } = decided;
        if records.is_empty() {
            for reply in replies {
                let free = match creating {
                    Some(id) => self.volatile.appends.hold(id, reply),
                    None => Some(reply),
                };
                self.send(free);
            }
            return None;
        }
        let encoded = records.iter().map(Record::encode).collect();
        let id = self.volatile.appends.begin(records, replies, after);
        self.out.push_back(Output::Append { id, records: encoded });
        Some(id)
    }

    fn send(&mut self, replies: impl IntoIterator<Item = (Ticket, Response)>) {
        let reply = |(ticket, response)| Output::Reply { ticket, response };
        self.out.extend(replies.into_iter().map(reply));
    }

    fn send_spoiled(&mut self, replies: Vec<(Ticket, Response)>, code: ErrorCode) {
        self.send(
            replies.into_iter().map(|(ticket, response)| (ticket, spoil(response, code))).collect::<Vec<_>>(),
        );
    }

    /// Ends a live group; its parked requests are answered with this error.
    pub(super) fn dissolve(&mut self, now: Instant, id: &Arc<str>, code: ErrorCode) {
        let Some(mut group) = self.volatile.classic.remove(id) else { return };
        let mut fx = self.effects(now);
        group.dissolve(&mut fx, code);
        let replies = fx.decided.replies;
        self.send(replies);
    }
}

/// The record that ends a classic group.
pub(super) fn group_tombstone(id: &str) -> Record {
    Record::GroupMetadata(GroupMetadataKey { group: id.to_owned() }, None)
}
