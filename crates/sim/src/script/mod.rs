//! A world that a script drives: nothing happens by chance but delays, and only what the script says is done to it.
//!
//! The production machines, the invariants and the audit are those of the drawn runs. Time is virtual: a script that waits
//! for a session to expire takes milliseconds.

mod interventions;
mod seen;

use crate::{
    Fact, Life,
    client::Wish,
    cuts::Cuts,
    random::Random,
    report::Failure,
    workload::{Commits, Plan, Profile, Protocol, Protocols},
    world::{Happening, World},
};
use std::{collections::BTreeSet, time::Duration};
use tontine::TopicPartition;

pub use crate::{
    client::{Handler, Listener},
    fate::Fate,
    orders::Order,
};
pub use seen::Mark;

/// The world of a script.
pub struct Script {
    world: World,
    seed: u64,
    produced: u64,
}

/// A member that a script starts.
pub struct MemberSetup {
    /// How it commits.
    pub commits: Commits,
    /// `group.protocol`.
    pub protocol: Protocol,
    /// `group.instance.id`.
    pub instance: Option<String>,
    /// What is done with each record.
    pub handler: Option<Handler>,
    /// What the listener does.
    pub listener: Option<Listener>,
}

/// What holds in a script unless it says otherwise.
pub fn plan() -> Plan {
    Plan {
        nodes: 2,
        members: 0,
        most_members: usize::MAX,
        partitions: 1,
        protocols: Protocols::Classic,
        assignor: "cooperative-sticky",
        patterns: 0,
        statics: false,
        session: 10_000,
        heartbeat: 1_000,
        max_poll: 10_000,
        max_poll_records: 500,
        troubles: Vec::new(),
        pace: 1_000,
        duration: Duration::ZERO,
        produce: 100,
        delay: 1,
        disk: None,
        transactions: None,
    }
}

impl Script {
    /// A world with these topics, and no members yet.
    pub fn new(seed: u64, plan: Plan, topics: &[(String, i32)]) -> Self {
        let mut world = World::of(plan, Random::new(seed), None);
        (world.foreign_records, world.healed, world.producing) = (true, true, false);
        world.wanted = topics.iter().map(|(name, _)| name.as_str().into()).collect();
        for (name, partitions) in topics {
            world.create(name, *partitions);
        }
        world.listen_to_the_judge();
        Self { world, seed, produced: 0 }
    }

    /// Starts a member; it subscribes to every topic.
    pub fn member(&mut self, setup: MemberSetup) -> Life {
        let profile = Profile {
            commits: setup.commits,
            commits_on_revoke: setup.commits != Commits::Auto,
            protocol: setup.protocol,
            pattern: false,
            read_committed: false,
            instance: setup.instance,
            work: 1,
            callback: 0,
            poll: 500,
            skew: 0,
        };
        let life = self.world.start_as(profile);
        if let Some(client) = self.world.clients.get_mut(&life) {
            (client.handler, client.listener) = (setup.handler, setup.listener);
        }
        life
    }

    /// Lets this much time pass.
    pub fn pass(&mut self, time: Duration) {
        let end = self.world.now + time;
        self.world.run_until(end);
    }

    /// Writes a record; without a partition the next one in turn. Where it went, or nothing when there is no such topic.
    pub fn write(
        &mut self,
        topic: &str,
        partition: Option<i32>,
        key: Option<&[u8]>,
        value: &[u8],
    ) -> Option<(i32, i64)> {
        let count = u64::try_from(self.world.broker.partitions(topic)?).unwrap_or(1).max(1);
        let next = i32::try_from(self.produced % count).unwrap_or(0);
        self.produced += 1;
        let name = TopicPartition::new(topic, partition.unwrap_or(next));
        let offset = self.world.write_values(&name, [(key, value)])?;
        Some((name.partition, offset))
    }

    /// The member's process dies without a word.
    pub fn kill(&mut self, life: Life) {
        self.world.kill(life);
    }

    /// The member's process stands still, as by SIGSTOP.
    pub fn stall(&mut self, life: Life, time: Duration) {
        let until = self.world.now + time;
        if let Some(client) = self.world.clients.get_mut(&life) {
            client.frozen_until = until.max(client.frozen_until);
        }
        self.world.record(Fact::Done(format!("{life} stands still for {} ms", time.as_millis())));
    }

    /// The member does not poll for longer than it may.
    pub fn work_too_long(&mut self, life: Life) {
        self.wish(life, Wish::Slow);
    }

    /// The member closes in good order.
    pub fn close(&mut self, life: Life) {
        self.wish(life, Wish::Close);
    }

    fn wish(&mut self, life: Life, wish: Wish) {
        if let Some(client) = self.world.clients.get_mut(&life) {
            client.wish = wish;
        }
        self.world.record(Fact::Done(format!("{life} is told: {wish:?}")));
        self.world.interrupt(life);
    }

    /// Every connection of the member is lost.
    pub fn cut(&mut self, life: Life) {
        let ids: Vec<_> =
            self.world.links.iter().filter(|(_, link)| link.life == life).map(|(id, _)| *id).collect();
        let now = self.world.now;
        ids.into_iter().for_each(|id| self.world.schedule(now, Happening::Closed(id)));
        self.world.record(Fact::Done(format!("every connection of {life} is lost")));
    }

    /// A topic grows.
    pub fn add_partitions(&mut self, topic: &str, count: i32) {
        self.world.grow(topic, count);
    }

    /// One more topic.
    pub fn create(&mut self, topic: &str, partitions: i32) {
        self.world.wanted.insert(topic.into());
        self.world.create(topic, partitions);
    }

    /// A topic is deleted, and another one of its name created.
    pub fn recreate(&mut self, topic: &str, partitions: i32) {
        self.world.forget(topic);
        self.world.create(topic, partitions);
    }

    /// Another node becomes the coordinator.
    pub fn move_coordinator(&mut self) {
        let now = self.world.broker.coordinator_of(crate::world::GROUP);
        let others = self.world.broker.nodes().keys().copied().find(|id| Some(*id) != now);
        if let Some(node) = others {
            self.world.coordinate_at(node);
        }
    }

    /// Waits until the group is at rest and everything that was written has been handed out.
    pub fn settle(&mut self) {
        self.world.settle(self.world.patience());
    }

    /// Whether the member still lives.
    pub fn is_alive(&self, life: Life) -> bool {
        self.world.clients.contains_key(&life)
    }

    /// What the member has.
    pub fn assignment(&self, life: Life) -> BTreeSet<TopicPartition> {
        self.world.holders.held_by(life)
    }

    /// What the group has committed.
    pub fn committed(&self, partition: &TopicPartition) -> Option<i64> {
        self.world.broker.committed_offsets(crate::world::GROUP).get(partition).copied()
    }

    /// Says what the logs hold, and puts the members' own logs together.
    pub fn audit(&mut self) {
        self.world.judge_logs();
    }

    /// Everything that every log holds has to have been handed out by now.
    pub fn nothing_is_lost(&mut self) {
        self.world.say_logs();
    }

    /// What did not hold, if anything.
    pub fn failure(&self) -> Option<Failure> {
        self.world.failure.as_ref().map(|(invariant, why)| Failure {
            seed: self.seed,
            cuts: Cuts::default(),
            invariant,
            why: why.clone(),
            history: self.world.history.clone(),
        })
    }

    /// How long a session is.
    pub fn session(&self) -> Duration {
        Duration::from_millis(self.world.plan.session)
    }

    /// How long a member may be without a poll.
    pub fn max_poll_interval(&self) -> Duration {
        Duration::from_millis(self.world.plan.max_poll)
    }

    /// How many members live and are not about to leave.
    pub fn members(&self) -> usize {
        self.world.clients.values().filter(|client| !client.is_leaving()).count()
    }
}
