//! The words that scripts are written in: a group on topic `t`, what is done to it, and what was seen of it.

pub(crate) use std::time::Duration;
pub(crate) use tontine::{
    TopicPartition,
    state::StepKind::{self, Assigned, Lost, Revoked},
};
pub(crate) use tontine_sim::{
    Life,
    script::{Fate, MemberSetup, Order, Script, plan},
    workload::{Commits, Plan, Protocol},
};
pub(crate) use tontine_wire::{ErrorCode, api::ApiKey};

use tontine_sim::script::Mark;

/// A script's group.
pub(crate) struct Stage {
    pub(crate) script: Script,
    pub(crate) protocol: Protocol,
    written: i64,
    mark: Mark,
    lives: Vec<Life>,
}

/// Plays on both protocols: the topic `t` has this many partitions, and 30 records.
pub(crate) fn on_both(plan: &Plan, partitions: i32, play: impl Fn(&mut Stage)) {
    on(Protocol::Classic, plan, partitions, &play);
    on(Protocol::Consumer, plan, partitions, &play);
}

/// Plays on one protocol.
pub(crate) fn on(protocol: Protocol, plan: &Plan, partitions: i32, play: impl Fn(&mut Stage)) {
    // Shown when something does not hold.
    println!("on the {} protocol", protocol.name());
    let script = Script::new(1, plan.clone(), &[("t".to_owned(), partitions)]);
    let mark = script.mark();
    let mut stage = Stage { script, protocol, written: 0, mark, lives: Vec::new() };
    stage.write(30);
    play(&mut stage);
    stage.ends_well();
}

pub(crate) fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A partition of the topic.
pub(crate) fn t(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

impl Stage {
    /// A member that commits after each poll and waits for it.
    pub(crate) fn member(&mut self) -> Life {
        self.member_that(Commits::Sync)
    }

    pub(crate) fn member_that(&mut self, commits: Commits) -> Life {
        self.enters(commits, None)
    }

    pub(crate) fn instance(&mut self, name: &str) -> Life {
        self.enters(Commits::Sync, Some(name.to_owned()))
    }

    fn enters(&mut self, commits: Commits, instance: Option<String>) -> Life {
        let setup = MemberSetup { commits, protocol: self.protocol, instance, handler: None, listener: None };
        let life = self.script.member(setup);
        self.lives.push(life);
        life
    }

    /// Two members that share everything and rest. What is seen counts from here on.
    pub(crate) fn two_at_rest(&mut self) -> (Life, Life) {
        let pair = (self.member(), self.member());
        self.rests();
        self.watch();
        pair
    }

    /// What is seen counts from here on.
    pub(crate) fn watch(&mut self) {
        self.mark = self.script.mark();
    }

    /// Since when.
    pub(crate) fn since(&self) -> Mark {
        self.mark
    }

    /// Writes records to the partitions in turn.
    pub(crate) fn write(&mut self, many: i64) {
        for _ in 0..many {
            let value = format!("record {}", self.written);
            self.script.write("t", None, None, value.as_bytes()).expect("the topic is there");
            self.written += 1;
        }
    }

    pub(crate) fn write_to(&mut self, partition: i32, many: i64) {
        for _ in 0..many {
            self.script.write("t", Some(partition), None, b"one more").expect("the partition is there");
            self.written += 1;
        }
    }

    /// Lets time pass in which a record comes to each partition in turn every few milliseconds.
    pub(crate) fn flows(&mut self, time: Duration, every: Duration) {
        let mut left = time;
        while !left.is_zero() {
            self.write(1);
            self.script.pass(every);
            left = left.saturating_sub(every);
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.script.pass(time);
    }

    /// The next request of this kind that the member makes.
    pub(crate) fn next(&mut self, whose: Life, key: ApiKey, fate: Fate) {
        self.script.meets(whose, key, fate);
    }

    /// The request by which a member joins.
    pub(crate) fn join(&self) -> ApiKey {
        match self.protocol {
            Protocol::Classic => ApiKey::JoinGroup,
            Protocol::Consumer | Protocol::Either => ApiKey::ConsumerGroupHeartbeat,
        }
    }

    /// The request by which a member gets its assignment.
    pub(crate) fn sync(&self) -> ApiKey {
        match self.protocol {
            Protocol::Classic => ApiKey::SyncGroup,
            Protocol::Consumer | Protocol::Either => ApiKey::ConsumerGroupHeartbeat,
        }
    }

    /// The request by which a member says that it lives.
    pub(crate) fn heartbeat(&self) -> ApiKey {
        match self.protocol {
            Protocol::Classic => ApiKey::Heartbeat,
            Protocol::Consumer | Protocol::Either => ApiKey::ConsumerGroupHeartbeat,
        }
    }

    /// How a refused member is told that it is none.
    pub(crate) fn unknown(&self) -> ErrorCode {
        ErrorCode::UNKNOWN_MEMBER_ID
    }

    pub(crate) fn tell(&mut self, whom: Life, order: Order) {
        self.script.tell(whom, order);
    }

    /// The group comes to rest, with one owner for everything and everything handed out.
    pub(crate) fn rests(&mut self) {
        self.script.settle();
        self.holds();
    }

    /// Every invariant has held so far.
    pub(crate) fn holds(&self) {
        if let Some(failure) = self.script.failure() {
            panic!("{}", failure.in_a_test());
        }
    }

    fn ends_well(&mut self) {
        assert_eq!(self.script.unmet(), Vec::<String>::new(), "what the script meant to meet never came");
        self.write(12);
        self.rests();
        self.script.nothing_is_lost();
        self.script.audit();
        self.holds();
    }

    /// How many partitions each of them has.
    pub(crate) fn shares<const N: usize>(&self, of: [Life; N]) -> [usize; N] {
        of.map(|life| self.script.assignment(life).len())
    }

    pub(crate) fn has(&self, who: Life) -> Vec<TopicPartition> {
        self.script.assignment(who).into_iter().collect()
    }

    /// Which calls the member's listener got; those without partitions do not count.
    pub(crate) fn heard(&self, who: Life) -> Vec<StepKind> {
        self.script.heard(who, self.mark).into_iter().map(|(kind, _)| kind).collect()
    }

    /// How many partitions the member has given up or lost.
    pub(crate) fn gave_up(&self, who: Life) -> usize {
        let heard = self.script.heard(who, self.mark).into_iter();
        heard.filter(|(kind, _)| *kind != Assigned).map(|(_, what)| what.len()).sum()
    }

    pub(crate) fn handed(&self, who: Life, what: &TopicPartition) -> Vec<i64> {
        self.script.handed(who, what, self.mark)
    }

    /// The first record of the partition that the member was handed.
    pub(crate) fn begins_at(&self, who: Life, what: &TopicPartition) -> Option<i64> {
        self.handed(who, what).first().copied()
    }

    pub(crate) fn commits(&self, what: &TopicPartition) -> Vec<i64> {
        self.script.commits(what, self.mark)
    }

    pub(crate) fn errors(&self, who: Life) -> Vec<&str> {
        self.script.errors(who, self.mark)
    }

    pub(crate) fn silence(&self, what: &TopicPartition) -> Duration {
        self.script.silence(what, self.mark)
    }

    pub(crate) fn rounds(&self) -> usize {
        self.script.rounds(self.mark)
    }

    /// How long after the mark's time `since` the member heard this.
    pub(crate) fn heard_after(
        &self,
        who: Life,
        kind: StepKind,
        since: tontine_group::Instant,
    ) -> Option<Duration> {
        self.script.first(who, kind, self.mark).map(|at| at.saturating_since(since))
    }

    /// How many records were handed out more than once, by whomever.
    pub(crate) fn doubles(&self, partitions: i32) -> usize {
        let each = (0..partitions).map(|partition| {
            let mut all: Vec<i64> =
                self.lives.iter().flat_map(|life| self.handed(*life, &t(partition))).collect();
            let before = all.len();
            all.sort_unstable();
            all.dedup();
            before - all.len()
        });
        each.sum()
    }
}
