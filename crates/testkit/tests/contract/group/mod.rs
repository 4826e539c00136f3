//! A group at work: records keep coming while members come, go, crash and stall. Whatever happens, the promises hold.

mod at_work;
mod closing;
mod failover;
mod fenced;
mod mid_rebalance;
mod topics;
mod upgrade;

use crate::mode::Mode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tontine_group::TopicPartition;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{History, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Member, Plan};
use tontine_testkit::suite::Suite;
use tontine_testkit::{Failure, failure};

pub fn register(suite: &mut Suite) {
    for mode in Mode::ALL {
        at_work::register(suite, mode);
        fenced::register(suite, mode);
        topics::register(suite, mode);
        failover::register(suite, mode);
        closing::register(suite, mode);
    }
    for mode in Mode::CLASSIC {
        mid_rebalance::register(suite, mode);
    }
    upgrade::register(suite);
}

pub const SOON: Duration = Duration::from_secs(60);

/// A task that writes until it is told to stop.
struct Producer {
    on: Arc<AtomicBool>,
    task: JoinHandle<Result<(), Failure>>,
}

/// One topic that a producer keeps writing to, and a group that reads it.
pub struct Work {
    pub cluster: Cluster,
    pub mode: Mode,
    pub history: History,
    pub group: String,
    pub topic: String,
    pub partitions: Vec<TopicPartition>,
    producer: Option<Producer>,
}

impl Work {
    /// A topic of `partitions` partitions, nothing in it yet.
    pub async fn new(cluster: Cluster, mode: Mode, partitions: i32) -> Result<Self, Failure> {
        let topic = cluster.topic("orders", partitions).await?;
        let group = cluster.unique("group");
        cluster.until_coordinated(&group).await?;
        if mode == Mode::Consumer {
            cluster.hurry_group(&group).await?;
            cluster.until_dealt(&group, &[&topic], partitions as usize).await?;
        }
        let partitions = (0..partitions).map(|p| TopicPartition::new(topic.as_str(), p)).collect();
        Ok(Self { cluster, mode, history: History::new(), group, topic, partitions, producer: None })
    }

    /// Starts a producer that writes to every partition until it is told to stop.
    pub fn produce_on_and_on(&mut self) {
        let on = Arc::new(AtomicBool::new(true));
        let (running, client) = (on.clone(), self.cluster.plain());
        let (topic, partitions) = (self.topic.clone(), self.partitions.len() as i32);
        let task = tokio::spawn(async move {
            while running.load(Ordering::Relaxed) {
                client.fill(&topic, partitions, 5).await?;
                tontine_testkit::wait::while_nothing_happens(Duration::from_millis(20)).await;
            }
            Ok(())
        });
        self.producer = Some(Producer { on, task });
    }

    pub fn plan(&self) -> Plan {
        self.plan_for(&[&self.topic])
    }

    pub fn plan_for(&self, topics: &[&str]) -> Plan {
        self.mode.plan(Plan::new(&self.cluster.bootstrap_servers(), &self.group, topics))
    }

    /// With the consumer protocol sessions are the coordinator's to decide: they are short from now on.
    pub async fn shorten_sessions(&self) -> Result<(), Failure> {
        if self.mode == Mode::Consumer {
            self.shorten_sessions_to(1_000).await?;
        }
        Ok(())
    }

    pub async fn shorten_sessions_to(&self, ms: u32) -> Result<(), Failure> {
        self.cluster.shorten_sessions(&self.group, ms).await
    }

    pub fn member(&self, name: &str) -> Result<Member, Failure> {
        Member::start(&self.history, name, self.plan())
    }

    /// Waits until the members share the topic, `least` partitions or more each.
    pub async fn until_shared(&self, members: &[&str], least: usize) -> Result<(), Failure> {
        self.history.until_shared(&self.partitions, members, least, SOON).await
    }

    /// Waits until this many more records than now have been delivered.
    pub async fn until_more(&self, count: usize) -> Result<(), Failure> {
        self.until_more_within(count, SOON).await
    }

    /// [`Work::until_more`] with a deadline of its own.
    pub async fn until_more_within(&self, count: usize, deadline: Duration) -> Result<(), Failure> {
        let before = self.delivered();
        self.history.until_delivered(&self.topic, before + count, deadline).await
    }

    pub fn delivered(&self) -> usize {
        tontine_testkit::history::delivered(&self.history.events(), &self.topic).len()
    }

    /// Writes into the history what a second client sees as committed.
    pub async fn note_committed(&self) -> Result<(), Failure> {
        let asked = self.history.now();
        let committed = self.cluster.plain().committed_in(&self.group, &self.topic).await?;
        let named =
            |(partition, offset): (i32, i64)| (TopicPartition::new(self.topic.as_str(), partition), offset);
        let offsets = committed.into_iter().map(named).collect();
        self.history.member("second client").write(What::Seen { asked, offsets });
        Ok(())
    }

    /// Stops the producer, waits until all it wrote is delivered, and returns the evidence of the whole run.
    pub async fn finish(&mut self) -> Result<Evidence, Failure> {
        if let Some(Producer { on, task }) = self.producer.take() {
            on.store(false, Ordering::Relaxed);
            task.await.map_err(|e| failure!("the producer died: {e}"))??;
        }
        let ends = self.cluster.plain().end_offsets(&self.topic).await?;
        let total: i64 = ends.values().sum();
        self.history.until_delivered(&self.topic, total as usize, SOON).await?;
        Ok(Evidence::of(&self.history).produced_up_to(&self.topic, &ends))
    }
}
