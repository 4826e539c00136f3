//! What happens to consumer groups without a request: members that are silent or late, targets that are due, topics that
//! change, groups that are found in the log, and writes that failed.

use super::{refresh, stored::ConsumerMember};
use crate::{
    cause::Cause,
    coordinator::{Coordinator, durable::Group, record::Record, session::SessionCheck, timers::Duty},
    time::{Duration, Instant},
    topics::Topics,
};
use std::{collections::BTreeSet, sync::Arc};

/// A timer that finds records on their way looks again so much later.
const AGAIN: Duration = Duration::from_millis(5);

/// After a failed write what was to be written is tried again so much later.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

impl Coordinator {
    /// A session timer of a consumer group fired.
    pub(in crate::coordinator) fn consumer_session(
        &mut self,
        now: Instant,
        at: Instant,
        group: &Arc<str>,
        member: &Arc<str>,
    ) {
        let timers = &mut self.volatile.timers;
        let Some(live) = self.volatile.consumer.get_mut(group) else { return };
        let Some(session) = live.sessions.get_mut(member) else { return };
        if session.fired(timers, now, at, group, member) != SessionCheck::Expired {
            return;
        }
        if self.is_writing(group) {
            let timers = &mut self.volatile.timers;
            if let Some(live) = self.volatile.consumer.get_mut(group) {
                live.renew_session(timers, group, member, now + AGAIN);
            }
            return;
        }
        self.expel(now, group, member, Cause::SessionExpired { member: member.to_string() });
    }

    /// A member has had time enough to do what it has to.
    pub(in crate::coordinator) fn consumer_duty(
        &mut self,
        now: Instant,
        at: Instant,
        group: &Arc<str>,
        member: &Arc<str>,
        duty: Duty,
    ) {
        let Some(live) = self.volatile.consumer.get_mut(group) else { return };
        if !live.is_late(member, duty, at) {
            return;
        }
        if self.is_writing(group) {
            let timers = &mut self.volatile.timers;
            if let Some(live) = self.volatile.consumer.get_mut(group) {
                live.expect(timers, group, member, duty, Some(now + AGAIN));
            }
            return;
        }
        let member_id = member.to_string();
        let cause = match duty {
            Duty::Release | Duty::Rejoin => Cause::RebalanceTimeout { member: member_id },
            Duty::Sync => Cause::SyncTimeout { member: member_id },
        };
        self.expel(now, group, member, cause);
    }

    fn expel(&mut self, now: Instant, group: &Arc<str>, member: &Arc<str>, cause: Cause) {
        let known = self.consumer_group(group).is_some_and(|stored| stored.members.contains_key(member));
        match self.volatile.topics.clone() {
            Some(topics) if known => {
                self.remove_consumers(now, group, std::slice::from_ref(member), &topics, None, cause);
            }
            // Its join never reached the log.
            Some(_) | None => {
                let timers = &mut self.volatile.timers;
                if let Some(live) = self.volatile.consumer.get_mut(group) {
                    live.forget(timers, group, member);
                }
            }
        }
    }

    /// Records about a group could not be written: members that were to go are still there and are
    /// looked after again, and so are topics and targets.
    pub(in crate::coordinator) fn guard_consumers(&mut self, now: Instant, group: &Arc<str>) {
        let stored = match self.durable.group(group) {
            Some(Group::Consumer(stored)) => stored,
            // It was to become a consumer group, and stays what it was.
            Some(Group::Classic(_)) => {
                if let Some(mut live) = self.volatile.consumer.remove(group) {
                    live.stop(&mut self.volatile.timers, group);
                }
                self.with_group(now, group, |_, _| {});
                return;
            }
            None => return,
        };
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        for member in stored.members.keys() {
            if !live.sessions.contains_key(member) {
                live.renew_session(timers, group, member, now + AFTER_FAILURE);
            }
        }
        live.look_after_target(timers, group, now + AFTER_FAILURE);
    }

    /// The time to compute a target, or to look at topics again, has come.
    pub(in crate::coordinator) fn consumer_target(&mut self, now: Instant, at: Instant, group: &Arc<str>) {
        let Some(live) = self.volatile.consumer.get_mut(group) else { return };
        if live.target_is_due(at) {
            self.refresh_consumer(now, group, Cause::Coordinator);
        }
    }

    fn refresh_consumer(&mut self, now: Instant, group: &Arc<str>, cause: Cause) {
        let wall_ms = self.wall_ms(now);
        let writing = self.is_writing(group);
        if writing && self.consumer_group(group).is_none() {
            return self.look_again(group, now + AGAIN);
        }
        let (Some(stored), Some(topics)) = (self.consumer_group(group), self.volatile.topics.as_ref()) else {
            return;
        };
        let compute = self.may_compute(group, stored, wall_ms);
        if !writing {
            let records = refresh::refresh(group, stored, topics, wall_ms, compute);
            let records: Vec<Record> = records.into_iter().map(Record::Consumer).collect();
            let late = compute.is_none() && (stored.epoch > stored.target_epoch || !records.is_empty());
            self.write(group, records, None, Some(cause));
            if !late {
                return;
            }
        }
        let wait = if writing { AGAIN } else { self.in_force(group).assignment_interval.max(AGAIN) };
        self.look_again(group, now + wait);
    }

    fn look_again(&mut self, group: &Arc<str>, at: Instant) {
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        live.look_after_target(timers, group, at);
    }

    /// Topics changed: all consumer groups look whether that concerns them.
    pub(in crate::coordinator) fn consumer_topics(&mut self, now: Instant, topics: &Topics) {
        self.remember_gone(topics);
        self.volatile.topics = Some(topics.clone());
        let consumers = self.durable.groups().filter(|(_, group)| matches!(group, Group::Consumer(_)));
        // And those that are about to be: what was decided about them knew the topics as they were.
        let all = consumers.map(|(id, _)| id).chain(self.volatile.consumer.keys());
        for id in all.cloned().collect::<BTreeSet<_>>() {
            self.refresh_consumer(now, &id, Cause::Coordinator);
        }
    }

    /// Members of the classic protocol go on with the names of topics that are no more.
    fn remember_gone(&mut self, topics: &Topics) {
        let is_mixed = |group: &Group| matches!(group, Group::Consumer(stored) if stored.tally.classic > 0);
        if self.volatile.appends.is_empty() && !self.durable.groups().any(|(_, group)| is_mixed(group)) {
            return self.volatile.gone.clear();
        }
        for (name, topic) in self.volatile.topics.iter().flat_map(Topics::iter) {
            if topics.get(name).is_none_or(|now| now.id != topic.id) {
                self.volatile.gone.insert(topic.id, name.clone());
            }
        }
    }

    /// A group that was found in the log: its members' sessions begin.
    pub(in crate::coordinator) fn load_consumer(&mut self, now: Instant, group: &Arc<str>) {
        let Some(stored) = self.consumer_group(group) else { return };
        let releases = |m: &ConsumerMember| {
            (m.state == super::stored::MemberState::Unrevoked && m.classic.is_none())
                .then_some(m.rebalance_timeout_ms)
        };
        let member =
            |(id, m): (&Arc<str>, &ConsumerMember)| (id.clone(), self.session_of(group, m), releases(m));
        let members: Vec<_> = stored.members.iter().map(member).collect();
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        for (member, session, release) in members {
            live.renew_session(timers, group, &member, now + session);
            let release = release.map(|ms| now + crate::coordinator::durable::millis(ms));
            live.expect(timers, group, &member, Duty::Release, release);
        }
        live.look_after_target(timers, group, now + AGAIN);
    }
}
