//! The course of a run: trouble, healing, coming to rest, rest, and a last wave of records that everybody must see soon.

use crate::{
    Outcome,
    client::{Client, Doing, Wish},
    cuts::Cuts,
    fact::{Fact, Life},
    network::Link,
    report::Failure,
    workload::Protocols,
    world::{GROUP, Happening, Stream, World},
};
use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};
use tontine_group::coordinator::GroupState;

/// How often it is looked whether the group has come to rest.
const LOOK: Duration = Duration::from_millis(250);
/// How long nothing may have changed, in addition to the time between two heartbeats: a member that has to rejoin has by
/// then heard of it.
const CALM: Duration = Duration::from_secs(3);
/// How long it is watched at rest.
const REST: Duration = Duration::from_secs(10);
/// How long the last wave may take.
const WAVE: Duration = Duration::from_secs(8);

impl World {
    /// Runs the whole history. A panic of any machine is a fault like any other: it has a seed and a timeline.
    pub(crate) fn live(mut self, seed: u64, cuts: &Cuts) -> Outcome {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.take_its_course())) {
            self.failure = Some(("nothing panics", said_by(&*panic)));
        }
        self.finish(seed, cuts)
    }

    fn take_its_course(&mut self) {
        self.create("t0", self.plan.partitions);
        for _ in 0..self.plan.members {
            self.start();
        }
        self.schedule(self.now, Happening::Produce);
        self.schedule(self.now, Happening::Trouble);
        self.start_producers();
        self.run_until(self.now + self.plan.duration);
        self.heal();
        self.settle(self.patience());
        self.producing = false;
        // What was written last may still be on its way.
        self.settle(self.patience());
        self.watch_rest();
        for name in self.partitions() {
            self.write_records(&name, 2);
        }
        self.settle(WAVE);
        self.say_positions();
        self.replay_the_log();
        self.start_from_the_disk();
    }

    /// Everything that may have to run out one after the other before the group can rest.
    pub(crate) fn patience(&self) -> Duration {
        let request = Duration::from_secs(8);
        // A member that comes in the place of one with the same instance waits for as long as a session is unless brokers
        // say otherwise, before it believes that the other one lives.
        let twin = self.plan.statics && self.plan.protocols != Protocols::Classic;
        let twin = Duration::from_secs(if twin { 45 } else { 0 });
        twin + Duration::from_millis(2 * self.plan.session + 3 * self.plan.max_poll) + 4 * request
    }

    pub(crate) fn settle(&mut self, within: Duration) {
        let (since, end) = (self.now, self.now + within);
        while self.failure.is_none() {
            if self.links.values().any(Link::is_doomed) {
                self.uneasy = self.now;
            }
            self.scan_all();
            match self.what_is_missing() {
                None => return self.record(Fact::Settled(self.now.saturating_since(since))),
                Some(why) if self.now >= end => {
                    let after = within.as_secs();
                    return self.record(Fact::Unsettled(format!("after {after} s {why}")));
                }
                Some(_) => {
                    self.leave_nobody_out();
                    self.run_until(self.now + LOOK);
                }
            }
        }
    }

    /// Somebody has to be there to read everything: the last one may have been told by now that a twin has taken over, who
    /// is dead.
    fn leave_nobody_out(&mut self) {
        if self.healed && self.clients.is_empty() {
            self.by_chance_of(Stream::Healing, Self::start);
        }
    }

    /// What has to come yet before the group is at rest, in words.
    fn what_is_missing(&self) -> Option<String> {
        if !self.producing
            && let Some(open) = self.open_transaction()
        {
            return Some(open);
        }
        self.what_is_seen_missing().or_else(|| self.what_the_coordinator_misses())
    }

    fn what_is_seen_missing(&self) -> Option<String> {
        if let Some(busy) = self.clients.values().find(|client| !self.is_at_work(client)) {
            return Some(format!("{} is still busy: {:?}", busy.life, busy.doing));
        }
        if let Some(link) = self.links.values().find(|link| link.is_doomed()) {
            return Some(format!("{} waits for an answer that never comes", link.life));
        }
        for name in self.partitions() {
            let holders = self.holders.of(&name).count();
            if holders != 1 {
                return Some(format!("{name} has {holders} owners"));
            }
            let end = self.broker.log_offsets(&name.topic, name.partition).map_or(0, |(_, end)| end);
            let seen = self.seen.get(&name).and_then(|ranges| ranges.get(&0)).copied().unwrap_or(0);
            // While records still come the last ones are always under way.
            let slack = if self.producing { 16 } else { 0 };
            if seen + slack < end {
                return Some(format!("{name} is read up to {seen} of {end}"));
            }
        }
        // A member that stood still, or whose dead connection nobody knows of, has its rejoining still before it.
        let woken = self.clients.values().map(|client| client.frozen_until).max().unwrap_or(self.changed);
        let calm = self.now.saturating_since(self.changed.max(woken).max(self.uneasy));
        if calm < Duration::from_millis(self.plan.heartbeat) + CALM {
            return Some(format!("the group changed {} ms ago", calm.as_millis()));
        }
        let generation = |client: &Client| client.desk.membership().map(|membership| membership.generation);
        let mut generations: Vec<_> = self.clients.values().map(|client| generation(client)).collect();
        generations.dedup();
        (generations.len() != 1 || generations == [None]).then(|| {
            let each = self
                .clients
                .values()
                .map(|client| format!("{} in {:?}, at {:?}", client.life, generation(client), client.doing));
            format!("members are in different generations: {}", each.collect::<Vec<_>>().join("; "))
        })
    }

    fn what_the_coordinator_misses(&self) -> Option<String> {
        let Some(group) = self.group() else {
            return Some("the group has no coordinator".into());
        };
        let knows = |client: &Client| {
            client.named.as_ref().is_some_and(|name| group.members.iter().any(|member| *member.id == **name))
        };
        if let Some(client) = self.clients.values().find(|client| !knows(client)) {
            return Some(format!("{} is not a member", client.life));
        }
        let (state, members) = (group.state, group.members.len());
        (state != GroupState::Stable || members != self.clients.len())
            .then(|| format!("the group is {state:?} and has {members} members"))
    }

    fn is_at_work(&self, client: &Client) -> bool {
        let works = match client.doing {
            // One that works for long is yet to miss its poll deadline.
            Doing::Working { until } => until <= self.now + LOOK,
            Doing::Polling { .. } | Doing::Committing { .. } => true,
            Doing::Callback { .. }
            | Doing::LastCommit { .. }
            | Doing::Leaving { .. }
            | Doing::Ending
            | Doing::Gone => false,
        };
        let told = client.wish != Wish::Nothing || !client.orders.is_empty();
        works && !told && client.frozen_until <= self.now
    }

    fn watch_rest(&mut self) {
        // Heartbeats right after a rebalance are quick: they are not rest yet.
        self.run_until(self.now + Duration::from_secs(3));
        (self.requests, self.joins) = (0, 0);
        self.run_until(self.now + REST);
        let (members, requests, joins) = (self.clients.len(), self.requests, self.joins);
        self.record(Fact::Rested { members, requests, joins, time: REST });
        self.say_what_is_kept();
    }

    fn say_what_is_kept(&mut self) {
        let nodes = self.broker.nodes().len();
        // Its clock may be slower, and what it waits for may have come this moment.
        let latest = Duration::from_millis(self.plan.heartbeat) + Duration::from_millis(100);
        let mut facts = Vec::new();
        for client in self.clients.values() {
            let (who, connections, unheard) = (client.life, client.links.len(), client.inbox.len());
            facts.push(Fact::Keeps { who, connections, unheard, nodes });
        }
        for (who, after) in self.soonest_wakes() {
            facts.push(Fact::Wakes(who, after, latest));
        }
        facts.into_iter().for_each(|fact| self.record(fact));
    }

    /// How soon each member wakes by itself, at the best of a few looks: one that waits for an answer has no timer but that of
    /// the request.
    fn soonest_wakes(&mut self) -> BTreeMap<Life, Option<Duration>> {
        let mut soonest: BTreeMap<Life, Option<Duration>> = BTreeMap::new();
        for _ in 0..4 {
            self.run_until(self.now + Duration::from_millis(170));
            for client in self.clients.values() {
                let after = client.timer.map(|at| at.saturating_since(self.now));
                let best = soonest.entry(client.life).or_default();
                *best = [*best, after].into_iter().flatten().min();
            }
        }
        soonest
    }

    /// Says where everybody stands: everything has been handed out.
    fn say_positions(&mut self) {
        let mut facts = Vec::new();
        for client in self.clients.values() {
            for (name, at) in client.desk.consumed() {
                if let Some((_, end)) = self.broker.log_offsets(&name.topic, name.partition) {
                    facts.push(Fact::Position(client.life, name, at.offset, end));
                }
            }
        }
        facts.into_iter().for_each(|fact| self.record(fact));
    }

    /// Another node becomes the coordinator, and has to know what the one before knew.
    fn replay_the_log(&mut self) {
        let now = self.broker.coordinator_of(GROUP);
        let Some(other) = self.broker.nodes().keys().copied().find(|id| Some(*id) != now) else { return };
        let live = self.what_the_log_should_hold();
        self.coordinate_at(other);
        let read = self.what_the_log_should_hold();
        self.record(Fact::Replayed { live, read });
    }

    /// Brokers that are started again have to know what the ones before knew.
    fn start_from_the_disk(&mut self) {
        if self.storage.is_none() || self.failure.is_some() {
            return;
        }
        let live = self.what_the_log_should_hold();
        self.restart_brokers();
        let read = self.what_the_log_should_hold();
        self.record(Fact::Replayed { live, read });
    }

    fn what_the_log_should_hold(&self) -> String {
        let Some(mut group) = self.group() else { return "nothing".into() };
        // Requests that wait are asked again.
        group.members.iter_mut().for_each(|member| (member.joining, member.syncing) = (false, false));
        format!("{group:?}, {:?}", self.broker.committed_offsets(GROUP))
    }

    /// Puts together what members wrote down.
    pub(crate) fn judge_logs(&mut self) {
        let verdict = self.audit.judge();
        self.counts.add("ownerships audited", u64::try_from(verdict.ownerships).unwrap_or(0));
        if let Some(problem) = verdict.problems.first() {
            self.record(Fact::Unfit(problem.to_string()));
        }
    }

    /// Says what every log holds: all of it has to have been handed out.
    pub(crate) fn say_logs(&mut self) {
        self.scan_all();
        self.check_offsets();
        for name in self.partitions() {
            if let Some((from, to)) = self.broker.log_offsets(&name.topic, name.partition) {
                self.record(Fact::Log(name, from, to));
            }
        }
    }

    fn finish(mut self, seed: u64, cuts: &Cuts) -> Outcome {
        if self.failure.is_none() {
            self.say_logs();
            self.judge_logs();
            self.record(Fact::End);
        }
        let failure = self.failure.take().map(|(invariant, why)| Failure {
            seed,
            cuts: cuts.clone(),
            invariant,
            why,
            history: self.history.clone(),
        });
        let time = self.now.since_origin();
        let trouble_ms = u64::try_from(self.plan.duration.as_millis()).unwrap_or(u64::MAX);
        let (troubles, members) = (self.troubles, self.plan.members);
        let (history, counts) = (self.history, self.counts);
        let (on_disk, has_transactions) = (self.storage.is_some(), self.plan.transactions.is_some());
        Outcome {
            seed,
            history,
            counts,
            time,
            troubles,
            trouble_ms,
            members,
            on_disk,
            has_transactions,
            failure,
        }
    }
}

/// What somebody who panicked said.
fn said_by(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word").to_owned()
}
