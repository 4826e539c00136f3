//! A broker that runs: its addresses, the commands of the test cluster, and what tests want to look at.

use super::builder::Builder;
use super::listener;
use super::shared::Shared;
use crate::cluster::{ClusterError, NodeId};
use crate::creation::NewTopic;
use crate::intercept::Verdict;
use crate::state::BrokerState;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tontine_group::TopicPartition;
use tontine_group::coordinator::GroupView;
use tontine_wire::api::Request;
use tontine_wire::header::RequestHeader;
use tontine_wire::{ErrorCode, Uuid};

#[derive(Debug)]
struct Port {
    address: SocketAddr,
    task: Option<JoinHandle<()>>,
}

/// A running broker, or a test cluster of several nodes. It stops when it is dropped.
///
/// The commands that name a node are for clusters started with [`Builder::nodes`].
#[derive(Debug)]
pub struct Broker {
    shared: Arc<Shared>,
    ports: Mutex<BTreeMap<NodeId, Port>>,
    timers: Vec<JoinHandle<()>>,
}

impl Broker {
    /// A broker in the making.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn run(shared: Arc<Shared>, listeners: BTreeMap<NodeId, TcpListener>) -> Self {
        let timers =
            vec![tokio::spawn(shared.clone().keep_time()), tokio::spawn(shared.clone().close_idle())];
        let mut ports = BTreeMap::new();
        for (id, listener) in listeners {
            // The address of a socket that listens is known; without it the node could only not be started again.
            if let Ok(address) = listener.local_addr() {
                let task = tokio::spawn(listener::accept(shared.clone(), id, listener));
                ports.insert(id, Port { address, task: Some(task) });
            }
        }
        Self { shared, ports: Mutex::new(ports), timers }
    }

    /// `bootstrap.servers` for clients: the addresses of all nodes.
    pub fn bootstrap_servers(&self) -> String {
        let address = |node: &crate::cluster::Node| format!("{}:{}", node.host, node.port);
        self.shared.look(|state| state.nodes().values().map(address).collect::<Vec<_>>().join(","))
    }

    /// The address of one node.
    pub fn address(&self, node: NodeId) -> Option<String> {
        self.shared.look(|state| state.nodes().get(&node).map(|node| format!("{}:{}", node.host, node.port)))
    }

    /// The ids of the nodes.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.shared.look(|state| state.nodes().keys().copied().collect())
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> String {
        self.shared.look(|state| state.cluster_id().to_owned())
    }

    /// Creates a topic.
    pub fn create_topic(&self, topic: &NewTopic) -> Result<Uuid, (ErrorCode, String)> {
        let (created, durable) = self.shared.with_durable(|state, now| state.create_topic(now, topic));
        let not_durable = || (ErrorCode::KAFKA_STORAGE_ERROR, "the topic cannot be made durable".to_owned());
        created.and_then(|id| if durable { Ok(id) } else { Err(not_durable()) })
    }

    /// Deletes a topic.
    pub fn delete_topic(&self, name: &str) -> Result<(), ErrorCode> {
        let (deleted, durable) = self.shared.with_durable(|state, now| state.delete_topic(now, name));
        deleted.and(if durable { Ok(()) } else { Err(ErrorCode::KAFKA_STORAGE_ERROR) })
    }

    /// Stops a node: its port is closed, its connections are cut, others take over what it led.
    pub async fn stop_node(&self, node: NodeId) -> Result<(), ClusterError> {
        if let Some(task) = self.with_port(node, |port| port.task.take())?.inspect(JoinHandle::abort) {
            // An aborted task ends with an error that says so.
            let _ = task.await;
        }
        self.shared.with(|state, now| state.stop_node(now, node))
    }

    /// Starts a node again, on its old port.
    pub async fn start_node(&self, node: NodeId) -> Result<(), StartNodeError> {
        let (address, running) = self.with_port(node, |port| (port.address, port.task.is_some()))?;
        if running {
            return Ok(());
        }
        let bound = listener::bind_again(&address.ip().to_string(), address.port()).await;
        let bound = bound.map_err(|source| StartNodeError::Listen { address, source })?;
        self.shared.with(|state, now| state.start_node(now, node))?;
        let task = tokio::spawn(listener::accept(self.shared.clone(), node, bound));
        self.with_port(node, |port| port.task = Some(task))?;
        Ok(())
    }

    fn with_port<R>(&self, node: NodeId, act: impl FnOnce(&mut Port) -> R) -> Result<R, ClusterError> {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        ports.get_mut(&node).map(act).ok_or(ClusterError::UnknownNode(node))
    }

    /// Makes `node` the leader of a partition; it must hold a replica.
    pub fn move_leader(&self, topic: &str, partition: i32, node: NodeId) -> Result<(), ClusterError> {
        self.shared.with(|state, now| state.move_leader(now, topic, partition, node))
    }

    /// Gives every partition back to its preferred leader, where that one is up.
    pub fn elect_preferred_leaders(&self) {
        self.shared.with(BrokerState::elect_preferred_leaders);
    }

    /// Makes `node` the coordinator of a group.
    pub fn move_coordinator(&self, group: &str, node: NodeId) -> Result<(), ClusterError> {
        self.shared.with(|state, now| state.move_coordinator(now, group, node))
    }

    /// Elects a leader uncleanly: the records from `offset` on are lost, a new epoch begins.
    pub fn lose_records(&self, topic: &str, partition: i32, offset: i64) -> Result<(), ClusterError> {
        self.shared.with(|state, now| state.lose_records(now, topic, partition, offset))
    }

    /// Cuts every connection of a node; clients may come back at once.
    pub fn disconnect_all(&self, node: NodeId) {
        self.shared.with(|state, now| state.disconnect_all(now, node));
    }

    /// Makes a node take connections and requests and answer nothing, or ends that.
    pub fn set_black_hole(&self, node: NodeId, on: bool) -> Result<(), ClusterError> {
        self.shared.with(|state, _| state.set_black_hole(node, on))
    }

    /// Sets a hook that sees every request first. It runs while the broker is locked: it must not call the broker.
    pub fn intercept(&self, hook: impl FnMut(NodeId, &RequestHeader, &Request) -> Verdict + Send + 'static) {
        self.shared.with(|state, _| state.set_intercept(Some(Box::new(hook))));
    }

    /// Takes the hook away. What it holds stays held until [`Broker::release_held`].
    pub fn clear_intercept(&self) {
        self.shared.with(|state, _| state.set_intercept(None));
    }

    /// How many requests the hook holds.
    pub fn held(&self) -> usize {
        self.shared.look(BrokerState::held)
    }

    /// Serves the requests that the hook held.
    pub fn release_held(&self) {
        self.shared.with(BrokerState::release_held);
    }

    /// The node that coordinates a group; `None` before anybody asked for a coordinator.
    pub fn coordinator_of(&self, group: &str) -> Option<NodeId> {
        self.shared.look(|state| state.coordinator_of(group))
    }

    /// A group as its coordinator sees it.
    pub fn group(&self, group: &str) -> Option<GroupView> {
        self.shared.look(|state| state.groups().into_iter().find(|view| *view.id == *group))
    }

    /// All groups.
    pub fn groups(&self) -> Vec<GroupView> {
        self.shared.look(BrokerState::groups)
    }

    /// What a group has committed.
    pub fn committed_offsets(&self, group: &str) -> BTreeMap<TopicPartition, i64> {
        self.shared.look(|state| state.committed_offsets(group))
    }

    /// The offset that the next record of a partition will get.
    pub fn log_end_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        self.shared.look(|state| state.log_offsets(topic, partition)).map(|(_, end)| end)
    }

    /// The first offset of a partition that can be read.
    pub fn log_start_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        self.shared.look(|state| state.log_offsets(topic, partition)).map(|(start, _)| start)
    }

    /// The leader of a partition and its epoch.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(NodeId, i32)> {
        self.shared.look(|state| state.leader(topic, partition))
    }

    /// How many partitions a topic has.
    pub fn partitions(&self, topic: &str) -> Option<usize> {
        self.shared.look(|state| state.partitions(topic))
    }

    /// How many fetches wait for records.
    pub fn parked_fetches(&self) -> usize {
        self.shared.look(BrokerState::parked_fetches)
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.shared.connections()
    }

    /// Stops in good order: requests that came are answered, the data directory is closed. When this returns, the ports
    /// are free.
    pub async fn stop(mut self) {
        let mut tasks = std::mem::take(&mut self.timers);
        let ports = std::mem::take(&mut *self.ports.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.extend(ports.into_values().filter_map(|port| port.task));
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            // An aborted task ends with an error that says so.
            let _ = task.await;
        }
        self.shared.finish().await;
        self.shared.close_all();
        let shared = self.shared.clone();
        // Making a lot of data durable takes its time.
        let _ = tokio::task::spawn_blocking(move || shared.close_store()).await;
    }

    /// Where records are kept; `None` when they are in memory.
    pub fn data_dir(&self) -> Option<String> {
        self.shared.look(BrokerState::data_dir)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let ports = self.ports.get_mut().unwrap_or_else(PoisonError::into_inner);
        let listeners = ports.values().filter_map(|port| port.task.as_ref());
        for task in self.timers.iter().chain(listeners) {
            task.abort();
        }
        self.shared.close_all();
        self.shared.close_store();
    }
}

/// Why a stopped node does not start again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartNodeError {
    /// There is no such node.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Its port is taken.
    #[error("cannot listen on {address} again: {source}")]
    Listen {
        /// The node's address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}
