//! A running Apache Kafka of one node or three: start, readiness, and taking nodes away and bringing them back.

use super::jars::Jars;
use super::node::{self, Node};
use crate::raw::RawConnection;
use crate::{Failure, failure, wait};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tontine_wire::api::metadata::{MetadataRequest, MetadataResponse};

/// How long a cluster or a node may take to come up; a loaded machine of two cores needs half a minute for three.
const READY: Duration = Duration::from_secs(120);
const METADATA_VERSION: i16 = 12;

/// Apache Kafka, running; ended when dropped.
#[derive(Debug)]
pub struct ApacheKafka {
    jars: Jars,
    nodes: Mutex<Vec<Node>>,
    _folder: TempDir,
}

impl ApacheKafka {
    /// Starts a cluster of `count` nodes and waits until every one of them answers and knows all the others.
    pub async fn start(count: usize) -> Result<Self, Failure> {
        let jars = Jars::resolve()?;
        let folder =
            TempDir::with_prefix("tontine-kafka-").map_err(|e| failure!("no temporary folder: {e}"))?;
        let mut nodes = Vec::with_capacity(count);
        for id in 1..=count as i32 {
            nodes.push(Node::new(id, folder.path().join(format!("node{id}")))?);
        }
        let voters: Vec<String> =
            nodes.iter().map(|node| format!("{}@127.0.0.1:{}", node.id, node.controller_port)).collect();
        let cluster_id = node::random_uuid();
        for node in &mut nodes {
            node.prepare(&jars, &cluster_id, &voters.join(","), count)?;
            node.start(&jars)?;
        }
        let kafka = Self { jars, nodes: Mutex::new(nodes), _folder: folder };
        for id in 1..=count as i32 {
            kafka.until_ready(id, count).await?;
        }
        Ok(kafka)
    }

    /// `host:port` of every node, with commas between.
    pub fn bootstrap_servers(&self) -> String {
        self.nodes().iter().map(Node::address).collect::<Vec<_>>().join(",")
    }

    /// The jars it runs from; Java members use the same.
    pub fn jars(&self) -> &Jars {
        &self.jars
    }

    /// The ids of all nodes, running or not.
    pub fn node_ids(&self) -> Vec<i32> {
        self.nodes().iter().map(|node| node.id).collect()
    }

    /// Kills a node: the others notice when its session is over.
    pub async fn kill_node(&self, id: i32) -> Result<(), Failure> {
        let Some(process) = self.with_node(id, Node::take_process)? else { return Ok(()) };
        process.end("KILL", READY).await.map(drop)
    }

    /// Shuts a node down in order: it hands its partitions over first.
    pub async fn stop_node(&self, id: i32) -> Result<(), Failure> {
        let Some(process) = self.with_node(id, Node::take_process)? else { return Ok(()) };
        node::end_in_order(process).await
    }

    /// Starts a node again and waits until it answers and knows all the nodes that run.
    pub async fn start_node(&self, id: i32) -> Result<(), Failure> {
        self.with_node(id, |node| node.start(&self.jars))??;
        let running = self.nodes().iter().filter(|node| node.is_running()).count();
        self.until_ready(id, running).await
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Node>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_node<T>(&self, id: i32, act: impl FnOnce(&mut Node) -> T) -> Result<T, Failure> {
        let mut nodes = self.nodes();
        let node = nodes.iter_mut().find(|node| node.id == id);
        node.map(act).ok_or_else(|| failure!("there is no node {id}"))
    }

    async fn until_ready(&self, id: i32, count: usize) -> Result<(), Failure> {
        let address = self.with_node(id, |node| node.address())?;
        let what = format!("Apache Kafka node {id} answers Metadata with {count} brokers");
        let ready = wait::until(&what, READY, async || {
            let running = self.with_node(id, |node| node.is_running()).unwrap_or(false);
            if !running {
                return Some(Err(failure!("Apache Kafka node {id} ended by itself")));
            }
            let answer = ask_metadata(&address).await.ok()?;
            (answer.brokers.len() == count).then_some(Ok(()))
        });
        match ready.await.and_then(|ended| ended) {
            Ok(()) => Ok(()),
            Err(e) => Err(failure!("{e}\n{}", self.with_node(id, |node| node.log_tail())?)),
        }
    }
}

async fn ask_metadata(address: &str) -> Result<MetadataResponse, Failure> {
    let mut connection = RawConnection::connect(address, "tontine-testkit").await?;
    let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
    connection.call(METADATA_VERSION, request).await
}
