//! A group in virtual time, and what a test does to it.

use crate::member::{Member, MemberId};
use std::{collections::BTreeSet, time::Duration};
use tontine::TopicPartition;
use tontine_sim::{script, script::Script, workload::Plan};

/// A group in the making.
#[must_use = "nothing runs before `start`"]
pub struct GroupTestBuilder {
    plan: Plan,
    topics: Vec<(String, i32)>,
    seed: u64,
}

impl GroupTestBuilder {
    /// A topic. Every member subscribes to every topic.
    pub fn topic(mut self, name: impl Into<String>, partitions: i32) -> Self {
        self.topics.push((name.into(), partitions));
        self
    }

    /// `partition.assignment.strategy` of everybody: range, roundrobin, sticky or cooperative-sticky, which it is unless
    /// said otherwise.
    pub fn assignor(mut self, name: &'static str) -> Self {
        self.plan.assignor = name;
        self
    }

    /// `session.timeout.ms`: 10 seconds unless said otherwise.
    pub fn session_timeout(mut self, time: Duration) -> Self {
        self.plan.session = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// `max.poll.interval.ms`: 10 seconds unless said otherwise.
    pub fn max_poll_interval(mut self, time: Duration) -> Self {
        self.plan.max_poll = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// `max.poll.records`.
    pub fn max_poll_records(mut self, most: u64) -> Self {
        self.plan.max_poll_records = most;
        self
    }

    /// Draws other delays on the network.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Starts the brokers.
    pub fn start(self) -> GroupTest {
        GroupTest { script: Script::new(self.seed, self.plan, &self.topics) }
    }
}

/// A group of members and its brokers, in virtual time. Whatever does not hold ends the test with a sentence and the timeline.
pub struct GroupTest {
    script: Script,
}

impl GroupTest {
    /// A group in the making.
    #[allow(clippy::new_ret_no_self, reason = "the topics come first")]
    pub fn new() -> GroupTestBuilder {
        GroupTestBuilder { plan: script::plan(), topics: Vec::new(), seed: 1 }
    }

    /// Starts a member.
    pub fn member(&mut self, member: Member) -> MemberId {
        let id = self.script.member(member.0);
        self.check();
        MemberId(id)
    }

    /// Writes a record to the partitions in turn; where it went.
    pub fn write(&mut self, topic: &str, value: impl AsRef<[u8]>) -> (i32, i64) {
        self.write_to(topic, None, value)
    }

    /// Writes a record to a partition; where it went.
    pub fn write_to(
        &mut self,
        topic: &str,
        partition: impl Into<Option<i32>>,
        value: impl AsRef<[u8]>,
    ) -> (i32, i64) {
        match self.script.write(topic, partition.into(), None, value.as_ref()) {
            Some(place) => place,
            None => panic!("there is no such partition of topic `{topic}` to write to"),
        }
    }

    /// Lets this much time pass.
    pub fn pass(&mut self, time: Duration) {
        self.script.pass(time);
        self.check();
    }

    /// The member's process dies without a word: its session has to expire.
    pub fn kill(&mut self, member: MemberId) {
        self.script.kill(member.0);
        self.check();
    }

    /// The member closes in good order.
    pub fn close(&mut self, member: MemberId) {
        self.script.close(member.0);
        self.check();
    }

    /// The member's process stands still for this long, as by SIGSTOP, and goes on as if nothing had happened.
    pub fn stall(&mut self, member: MemberId, time: Duration) {
        self.script.stall(member.0, time);
        self.check();
    }

    /// The member stands still until its session is over and others have its partitions; then it goes on.
    pub fn expire_session(&mut self, member: MemberId) {
        let time = self.script.session() * 3 / 2;
        self.stall(member, time);
        self.pass(time);
    }

    /// The member does not poll for longer than `max.poll.interval.ms`, and loses its partitions.
    pub fn exceed_poll_interval(&mut self, member: MemberId) {
        self.script.work_too_long(member.0);
        self.pass(self.script.max_poll_interval() * 3 / 2);
    }

    /// Every connection of the member is lost.
    pub fn cut_connections(&mut self, member: MemberId) {
        self.script.cut(member.0);
        self.check();
    }

    /// A topic grows to this many partitions.
    pub fn add_partitions(&mut self, topic: &str, count: i32) {
        self.script.add_partitions(topic, count);
        self.check();
    }

    /// Another broker becomes the group's coordinator.
    pub fn move_coordinator(&mut self) {
        self.script.move_coordinator();
        self.check();
    }

    /// Waits until the group rests: every partition has one owner, and everything written so far was handed out.
    pub fn until_stable(&mut self) {
        self.script.settle();
        self.check();
    }

    /// Waits until everything that was written has been handed out, and proves that nothing was skipped.
    pub fn deliver_all(&mut self) {
        self.until_stable();
        self.script.nothing_is_lost();
        self.audit();
    }

    /// Puts together what the members wrote down. [`GroupTest::deliver_all`] and the end of the test do it, too.
    pub fn audit(&mut self) {
        self.script.audit();
        self.check();
    }

    /// What the member has.
    pub fn assignment(&self, member: MemberId) -> BTreeSet<TopicPartition> {
        self.script.assignment(member.0)
    }

    /// What the group has committed.
    pub fn committed(&self, topic: &str, partition: i32) -> Option<i64> {
        self.script.committed(&TopicPartition::new(topic, partition))
    }

    fn check(&self) {
        if let Some(failure) = self.script.failure() {
            panic!("{}", failure.in_a_test());
        }
    }
}

impl Drop for GroupTest {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.audit();
        }
    }
}
