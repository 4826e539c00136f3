//! What a rebalance listener is told: every line of Kafka's tables, in all ways to rebalance, against Kafka's own answers.
//!
//! Topics `ca` (2 partitions) and `cb` (4), as in the runs that the tables were read from.

mod commits;
mod errors;
mod moves;
mod own_part;
mod time_out;

use crate::mode::Mode;
use std::time::Duration;
use tontine_testkit::Failure;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::ensure;
use tontine_testkit::history::{Event, History, shapes};
use tontine_testkit::member::{Member, Plan};
use tontine_testkit::suite::Suite;

pub fn register(suite: &mut Suite) {
    for mode in Mode::ALL {
        moves::register(suite, mode);
        own_part::register(suite, mode);
        time_out::register(suite, mode);
        commits::register(suite, mode);
        errors::register(suite, mode);
    }
}

/// How long anything here may take; most of it takes milliseconds.
const SOON: Duration = Duration::from_secs(60);

/// The topics `ca` and `cb`, and a group that reads them.
struct Stage {
    cluster: Cluster,
    mode: Mode,
    history: History,
    group: String,
    ca: String,
    cb: String,
}

impl Stage {
    async fn new(cluster: Cluster, mode: Mode) -> Result<Self, Failure> {
        let ca = cluster.topic("ca", 2).await?;
        let cb = cluster.topic("cb", 4).await?;
        let group = cluster.unique("group");
        cluster.until_coordinated(&group).await?;
        if mode == Mode::Consumer {
            cluster.hurry_group(&group).await?;
            cluster.until_dealt(&group, &[&ca, &cb], 6).await?;
        }
        Ok(Self { cluster, mode, history: History::new(), group, ca, cb })
    }

    fn plan(&self) -> Plan {
        self.plan_for(&[&self.ca, &self.cb])
    }

    fn plan_for(&self, topics: &[&str]) -> Plan {
        self.mode.plan(Plan::new(&self.cluster.bootstrap_servers(), &self.group, topics))
    }

    /// With the consumer protocol sessions are the coordinator's to decide: they are short from now on.
    async fn shorten_sessions(&self) -> Result<(), Failure> {
        if self.mode == Mode::Consumer {
            self.cluster.shorten_sessions(&self.group, 1_000).await?;
        }
        Ok(())
    }

    /// What a member that had all six partitions is called when a second one takes three of them.
    fn shares_with_newcomer(&self) -> &'static str {
        self.mode.pick3("A(6) R(6) A(3)", "A(6) R(3) A(0) A(0)", "A(6) R(3) A(0)")
    }

    fn member(&self, name: &str) -> Result<Member, Failure> {
        Member::start(&self.history, name, self.plan())
    }

    /// A member that owns all six partitions.
    async fn alone(&self, name: &str, plan: Plan) -> Result<Member, Failure> {
        let member = Member::start(&self.history, name, plan)?;
        self.until_shapes(name, 0, "A(6)").await?;
        Ok(member)
    }

    /// Two members with three partitions each, and how many callbacks each of them has seen.
    async fn pair(&self) -> Result<(Member, Member, usize, usize), Failure> {
        let a = self.alone("a", self.plan()).await?;
        let b = self.member("b")?;
        self.until_shapes("a", 0, self.shares_with_newcomer()).await?;
        self.until_newcomer("b", 3).await?;
        Ok((a, b, self.history.shapes("a").len(), self.history.shapes("b").len()))
    }

    async fn until_shapes(&self, member: &str, skip: usize, expected: &str) -> Result<(), Failure> {
        self.history.until_shapes(member, skip, expected, SOON).await
    }

    /// Waits until a newcomer has its share. In a cooperative group it is first told that it has nothing, unless the next
    /// round begins before the coordinator has its sync: then it never heard of the first. With the consumer protocol it
    /// is, unless what it waits for is free already.
    async fn until_newcomer(&self, member: &str, share: usize) -> Result<(), Failure> {
        let what = format!("the newcomer {member} is assigned {share} partitions");
        let last = format!("A({share})");
        let right = match self.mode {
            Mode::Eager => vec![vec![last.clone()]],
            Mode::Cooperative | Mode::Consumer => {
                vec![vec!["A(0)".to_owned(), last.clone()], vec![last.clone()]]
            }
        };
        let settled =
            |events: &[Event]| (shapes(events, member).last() == Some(&last)).then(|| shapes(events, member));
        let seen = self.history.until(&what, SOON, settled).await?;
        self.until_shapes(member, 0, &seen.join(" ")).await?;
        ensure!(right.contains(&seen), "the newcomer {member} was called {seen:?}\n{}", self.history.tail());
        Ok(())
    }

    async fn until_callbacks(&self, member: &str, skip: usize, expected: &str) -> Result<(), Failure> {
        self.history.until_callbacks(member, skip, expected, SOON).await
    }
}
