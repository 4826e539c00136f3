//! What happens to the group: which trouble comes when follows from the seed.

use crate::{Outcome, arguments::Arguments, member::Member, random::Random, tally::Tally};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, sleep_until};
use tontine_testkit::{
    cluster::Cluster,
    foreign::ForeignMember,
    history::{self, History},
    java::{JavaMember, JavaSettings},
};

/// How long a member may be silent.
pub const SESSION_MS: u32 = 10_000;
const MEMBERS: usize = 6;
const JAVA_MEMBERS: usize = 2;

/// The group and its cluster.
pub struct World<'c> {
    cluster: &'c Cluster,
    members: Vec<Member>,
    java: Vec<ForeignMember>,
    history: History,
    topic: String,
    random: Random,
    tally: Arc<Tally>,
    repairs: Vec<(Instant, Repair)>,
}

/// What ends a trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Start(usize),
    Continue(usize),
    Flow(usize),
    Node(i32),
    Thaw(usize),
}

impl<'c> World<'c> {
    /// Everybody starts.
    pub fn start(
        arguments: &Arguments,
        cluster: &'c Cluster,
        topic: &str,
        group: &str,
        audit_dir: &Path,
        tally: &Arc<Tally>,
    ) -> Outcome<Self> {
        let servers = cluster.bootstrap_servers();
        let mut members = Vec::new();
        for n in 0..MEMBERS {
            let words = consume(arguments, topic, group);
            let name = format!("member-{n}");
            members.push(Member::new(name, &servers, words, audit_dir.to_owned(), tally.clone())?);
        }
        members.iter().try_for_each(Member::start)?;
        let history = History::new();
        let mut java = Vec::new();
        for n in 0..if arguments.on_kafka { JAVA_MEMBERS } else { 0 } {
            let settings = JavaSettings::new(&servers, group, &[topic]);
            let settings = match arguments.protocol.as_str() {
                "consumer" => settings.consumer_protocol(),
                _ => {
                    settings.set("session.timeout.ms", &SESSION_MS.to_string()).assignor("cooperative-sticky")
                }
            };
            java.push(JavaMember::start(&history, &format!("java-{n}"), &settings)?);
        }
        let random = Random::new(arguments.seed);
        let (topic, tally) = (topic.to_owned(), tally.clone());
        Ok(Self { cluster, members, java, history, topic, random, tally, repairs: Vec::new() })
    }

    /// One trouble after the other, for so long.
    pub async fn make_trouble(&mut self, span: Duration) -> Outcome {
        let end = Instant::now() + span;
        // They get together first.
        let mut next = Instant::now() + Duration::from_secs(5);
        while next < end {
            while let Some(due) = self.repairs.iter().map(|(at, _)| *at).filter(|at| *at <= next).min() {
                sleep_until(due).await;
                self.repair(due).await?;
            }
            sleep_until(next).await;
            self.trouble().await?;
            next = Instant::now() + Duration::from_millis(self.random.between(500, 4_000));
        }
        Ok(())
    }

    async fn trouble(&mut self) -> Outcome {
        let who = self.random.below(MEMBERS as u64) as usize;
        match self.random.below(10) {
            0..=2 => {
                self.members[who].end("KILL").await?;
                self.plan(Repair::Start(who), "member killed", 0, 8_000);
            }
            3..=4 => {
                self.members[who].signal("STOP");
                self.plan(Repair::Continue(who), "member stopped for a while", 1_000, 25_000);
            }
            5..=6 => {
                self.members[who].proxy.cut();
                self.tally.trouble("connections cut");
            }
            7 => {
                self.members[who].proxy.stall();
                self.plan(Repair::Flow(who), "connections stalled", 500, 15_000);
            }
            8 if !self.java.is_empty() => {
                let who = who % JAVA_MEMBERS;
                self.java[who].freeze()?;
                self.plan(Repair::Thaw(who), "Java member stopped for a while", 1_000, 20_000);
            }
            _ => self.kill_a_node().await?,
        }
        Ok(())
    }

    /// One node at a time: two of three are needed.
    async fn kill_a_node(&mut self) -> Outcome {
        if self.repairs.iter().any(|(_, repair)| matches!(repair, Repair::Node(_))) {
            return Ok(());
        }
        let nodes = self.cluster.node_ids();
        let node = nodes[self.random.below(nodes.len() as u64) as usize];
        self.cluster.kill_node(node).await?;
        self.plan(Repair::Node(node), "node killed", 2_000, 12_000);
        Ok(())
    }

    fn plan(&mut self, repair: Repair, trouble: &'static str, low: u64, high: u64) {
        self.tally.trouble(trouble);
        let at = Instant::now() + Duration::from_millis(self.random.between(low, high));
        self.repairs.push((at, repair));
    }

    /// Ends the troubles whose time is over.
    async fn repair(&mut self, now: Instant) -> Outcome {
        let due: Vec<_> = self.repairs.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, repair) in due {
            match repair {
                Repair::Start(who) => self.members[who].start()?,
                Repair::Continue(who) => self.members[who].signal("CONT"),
                Repair::Flow(who) => self.members[who].proxy.flow(),
                Repair::Thaw(who) => self.java[who].thaw()?,
                Repair::Node(node) => self.cluster.start_node(node).await?,
            }
        }
        self.restart_the_ended()
    }

    /// A process that gave up, since nobody answered it for a minute, is started again, as whoever runs a service does.
    pub fn restart_the_ended(&self) -> Outcome {
        let is_down = |n: usize| self.repairs.iter().any(|(_, repair)| *repair == Repair::Start(n));
        self.members
            .iter()
            .enumerate()
            .filter(|(n, _)| !is_down(*n))
            .try_for_each(|(_, member)| member.start())
    }

    /// Ends all troubles.
    pub async fn heal(&mut self) -> Outcome {
        let last = Instant::now() + Duration::from_secs(3_600);
        self.repair(last).await?;
        Ok(self.cluster.heal().await?)
    }

    /// Everybody closes.
    pub async fn end(&self) -> Outcome {
        for member in &self.members {
            member.end("TERM").await?;
        }
        for member in &self.java {
            member.close().await?;
        }
        // What was written to a pipe is read by a thread of its own.
        sleep(Duration::from_millis(500)).await;
        self.count_java();
        Ok(())
    }

    /// Counts what the Java members have read so far.
    pub fn count_java(&self) {
        self.tally.delivered_elsewhere(history::delivered(&self.history.events(), &self.topic));
    }
}

fn consume(arguments: &Arguments, topic: &str, group: &str) -> Vec<String> {
    let mut words = vec!["consume", "-t", topic, "-g", group, "--from", "earliest", "--format", "text"];
    let session = format!("session.timeout.ms={SESSION_MS}");
    words.extend(["--protocol", &arguments.protocol]);
    if arguments.protocol == "classic" {
        words.extend(["--assignor", "cooperative-sticky", "-X", &session]);
    }
    words.into_iter().map(str::to_owned).collect()
}
