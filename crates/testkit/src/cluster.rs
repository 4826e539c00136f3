//! What a test body gets: a broker or a cluster to talk to, names of its own, and levers for what happens to nodes.

use crate::apache::ApacheKafka;
use crate::plain::PlainClient;
use crate::raw::RawConnection;
use crate::suite::Settings;
use crate::{Failure, failure, wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tontine_broker::Broker;
use tontine_wire::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;

/// What a body runs against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The embedded broker, in this process.
    Embedded,
    /// Apache Kafka, as processes.
    Apache,
}

/// A broker, or a cluster of three.
#[derive(Debug)]
pub struct Cluster {
    backend: Backend,
    /// Makes names unlike those of every other test and every other run.
    run: u64,
    names: AtomicU32,
}

#[derive(Debug)]
enum Backend {
    Embedded(Broker),
    Apache(Arc<ApacheKafka>),
}

impl Cluster {
    /// A fresh embedded broker of one node, or of three, with these settings besides its usual ones.
    pub async fn embedded(nodes: usize, more: Settings) -> Result<Self, Failure> {
        let settings = [
            ("group.min.session.timeout.ms", "500"),
            ("group.consumer.min.heartbeat.interval.ms", "100"),
            ("group.consumer.min.session.timeout.ms", "1000"),
            ("group.consumer.heartbeat.interval.ms", "300"),
            ("offsets.topic.num.partitions", "3"),
            ("auto.create.topics.enable", "false"),
        ];
        let builder = settings
            .iter()
            .chain(more)
            .fold(Broker::builder(), |builder, (key, value)| builder.config(key, value));
        let broker = builder.nodes(nodes).start().await.map_err(|e| failure!("no embedded broker: {e}"))?;
        Ok(Self::new(Backend::Embedded(broker)))
    }

    /// Apache Kafka, which other tests use as well; one of three nodes is healed first.
    pub async fn apache(kafka: Arc<ApacheKafka>) -> Result<Self, Failure> {
        let cluster = Self::new(Backend::Apache(kafka));
        if cluster.node_ids().len() > 1 {
            cluster.heal().await?;
        }
        Ok(cluster)
    }

    fn new(backend: Backend) -> Self {
        Self { backend, run: crate::random() & 0xff_ffff, names: AtomicU32::new(0) }
    }

    /// What this is.
    pub fn kind(&self) -> Kind {
        match self.backend {
            Backend::Embedded(_) => Kind::Embedded,
            Backend::Apache(_) => Kind::Apache,
        }
    }

    /// `host:port` of every node, with commas between.
    pub fn bootstrap_servers(&self) -> String {
        match &self.backend {
            Backend::Embedded(broker) => broker.bootstrap_servers(),
            Backend::Apache(kafka) => kafka.bootstrap_servers(),
        }
    }

    /// The ids of all nodes, running or not.
    pub fn node_ids(&self) -> Vec<i32> {
        match &self.backend {
            Backend::Embedded(broker) => broker.nodes(),
            Backend::Apache(kafka) => kafka.node_ids(),
        }
    }

    /// A name that no other test uses.
    pub fn unique(&self, stem: &str) -> String {
        format!("{stem}-{:06x}-{}", self.run, self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// A second client.
    pub fn plain(&self) -> PlainClient {
        PlainClient::new(&self.bootstrap_servers())
    }

    /// A connection to the coordinator of a group, for requests by hand.
    pub async fn coordinator(&self, group: &str) -> Result<RawConnection, Failure> {
        self.plain().coordinator(group, "raw").await
    }

    /// Creates a topic with a name of its own; as many replicas as there are nodes.
    pub async fn topic(&self, stem: &str, partitions: i32) -> Result<String, Failure> {
        let name = self.unique(stem);
        self.plain().create_topic(&name, partitions, self.node_ids().len() as i16, &[]).await?;
        Ok(name)
    }

    /// Takes a node away at once, as a power cut does.
    pub async fn kill_node(&self, id: i32) -> Result<(), Failure> {
        match &self.backend {
            Backend::Embedded(broker) => stop(broker, id).await,
            Backend::Apache(kafka) => kafka.kill_node(id).await,
        }
    }

    /// Shuts a node down in order.
    pub async fn stop_node(&self, id: i32) -> Result<(), Failure> {
        match &self.backend {
            Backend::Embedded(broker) => stop(broker, id).await,
            Backend::Apache(kafka) => kafka.stop_node(id).await,
        }
    }

    /// Brings a node back.
    pub async fn start_node(&self, id: i32) -> Result<(), Failure> {
        match &self.backend {
            Backend::Embedded(broker) => {
                broker.start_node(id).await.map_err(|e| failure!("cannot start node {id}: {e}"))
            }
            Backend::Apache(kafka) => kafka.start_node(id).await,
        }
    }

    /// Brings every node back and waits until partitions are in sync again and led by their preferred leaders.
    pub async fn heal(&self) -> Result<(), Failure> {
        for id in self.node_ids() {
            self.start_node(id).await?;
        }
        self.plain().until_in_sync(Duration::from_secs(120)).await?;
        self.plain().elect_preferred_leaders().await
    }

    /// Has members of this group that speak the consumer protocol send heartbeats as often as those of the classic one do in
    /// tests. The embedded broker has it in its own settings.
    pub async fn hurry_group(&self, group: &str) -> Result<(), Failure> {
        self.set_of_group(
            group,
            &[("consumer.heartbeat.interval.ms", "300"), ("consumer.assignment.interval.ms", "0")],
        )
        .await
    }

    /// Waits until the coordinator of `group` deals that many partitions of these topics, with the consumer protocol. A topic
    /// that was created a moment ago may still be missing from Apache Kafka's assignments.
    pub async fn until_dealt(&self, group: &str, topics: &[&str], partitions: usize) -> Result<(), Failure> {
        if self.kind() == Kind::Embedded {
            return Ok(());
        }
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: group.to_owned(),
            member_id: self.unique("probe"),
            rebalance_timeout_ms: 60_000,
            subscribed_topic_names: Some(topics.iter().map(ToString::to_string).collect()),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        wait::until("the coordinator deals all partitions", Duration::from_secs(60), async || {
            let answer = self.coordinator(group).await.ok()?.call(1, request.clone()).await.ok()?;
            let dealt = answer.assignment.map(|a| a.topic_partitions).unwrap_or_default();
            let count: usize = dealt.iter().map(|topic| topic.partitions.len()).sum();
            (answer.error_code.is_ok() && count == partitions).then_some(())
        })
        .await?;
        request.member_epoch = -1;
        self.coordinator(group).await?.call(1, request).await.map(drop)
    }

    /// Makes sessions of the consumer protocol short in this group. See [`crate::suite::Suite::short_with`].
    pub async fn shorten_sessions(&self, group: &str, ms: u32) -> Result<(), Failure> {
        self.set_of_group(
            group,
            &[
                ("consumer.session.timeout.ms", ms.to_string().as_str()),
                ("consumer.heartbeat.interval.ms", "200"),
            ],
        )
        .await
    }

    async fn set_of_group(&self, group: &str, settings: &[(&str, &str)]) -> Result<(), Failure> {
        match &self.backend {
            Backend::Embedded(_) => Ok(()),
            Backend::Apache(_) => self.plain().set_of_group(group, settings).await,
        }
    }

    /// Waits until the coordinator of `group` answers for it: a new `__consumer_offsets` is loaded first.
    pub async fn until_coordinated(&self, group: &str) -> Result<(), Failure> {
        wait::within("the coordinator serves", Duration::from_secs(60), self.plain().describe_group(group))
            .await?
            .map(drop)
    }
}

async fn stop(broker: &Broker, id: i32) -> Result<(), Failure> {
    broker.stop_node(id).await.map_err(|e| failure!("cannot stop node {id}: {e}"))
}
