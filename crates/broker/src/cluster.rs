//! The nodes of the cluster, and who leads what.
//!
//! A test cluster lives in one process: its replicas share one log, so a follower never falls behind and the in-sync
//! replicas are those whose node is up. Mirrors what the KRaft controller decides about leaders.

use crate::state::{BrokerOutput, BrokerState, Closing};
use crate::topics::{OFFSETS_TOPIC, Partition};
use std::collections::BTreeMap;
use std::sync::Arc;
use tontine_group::Instant;
use tontine_wire::ErrorCode;

/// The id of a node.
pub type NodeId = i32;

/// A node as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The host that clients are told.
    pub host: String,
    /// The port that clients are told.
    pub port: u16,
    /// Where it stands.
    pub rack: Option<Arc<str>>,
    /// Whether it runs.
    pub up: bool,
    /// It takes connections and requests, and answers nothing.
    pub black_hole: bool,
}

impl Node {
    /// A node that runs.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, rack: None, up: true, black_hole: false }
    }
}

/// A command for the test cluster that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No node has this id.
    #[error("there is no node {0}")]
    UnknownNode(NodeId),
    /// The node is stopped.
    #[error("node {0} is stopped: start it first")]
    NodeDown(NodeId),
    /// The partition does not exist.
    #[error("there is no partition {1} of topic `{0}`")]
    UnknownPartition(String, i32),
    /// The data directory does not take it.
    #[error("the leader of `{0}-{1}` cannot be stored in the data directory: see the broker's log")]
    NotStored(String, i32),
    /// The node holds no replica.
    #[error("node {node} holds no replica of `{topic}-{partition}`: its replicas are on {replicas:?}")]
    NotAReplica {
        /// The node.
        node: NodeId,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Where the replicas are.
        replicas: Vec<NodeId>,
    },
}

/// Replicas for `count` partitions from number `first` on: leaders go round the nodes, followers come after their leader.
pub(crate) fn place(nodes: &[NodeId], first: usize, count: usize, factor: usize) -> Vec<Vec<NodeId>> {
    let factor = factor.min(nodes.len());
    (first..first + count)
        .map(|partition| {
            nodes.iter().cycle().skip(partition % nodes.len().max(1)).take(factor).copied().collect()
        })
        .collect()
}

impl BrokerState {
    /// The nodes by id.
    pub fn nodes(&self) -> &BTreeMap<NodeId, Node> {
        &self.nodes
    }

    /// The ids of the nodes that run.
    pub(crate) fn nodes_up(&self) -> Vec<NodeId> {
        self.nodes.iter().filter(|(_, node)| node.up).map(|(id, _)| *id).collect()
    }

    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.up)
    }

    /// The node that is named as the controller: any node takes the controller's requests.
    pub(crate) fn controller(&self) -> NodeId {
        self.nodes.iter().find(|(_, node)| node.up).map_or(-1, |(id, _)| *id)
    }

    pub(crate) fn racks(&self) -> BTreeMap<NodeId, Arc<str>> {
        self.nodes.iter().filter_map(|(id, node)| Some((*id, node.rack.clone()?))).collect()
    }

    /// Stops a node: its connections are cut, its partitions get other leaders, its groups other coordinators.
    pub fn stop_node(&mut self, now: Instant, id: NodeId) -> Result<(), ClusterError> {
        let node = self.nodes.get_mut(&id).ok_or(ClusterError::UnknownNode(id))?;
        node.up = false;
        self.disconnect_all(now, id);
        self.sessions.remove(&id);
        self.elect_leaders_that_are_up(now);
        Ok(())
    }

    /// Starts a node again. Partitions keep their leaders; those that had none get one.
    pub fn start_node(&mut self, now: Instant, id: NodeId) -> Result<(), ClusterError> {
        let node = self.nodes.get_mut(&id).ok_or(ClusterError::UnknownNode(id))?;
        node.up = true;
        self.elect(now, |partition, up| partition.leader.or_else(|| first_up(partition, up)));
        Ok(())
    }

    /// Sets where a node is reached, for drivers that listen on a port they did not choose.
    pub fn set_address(&mut self, id: NodeId, host: impl Into<String>, port: u16) {
        if let Some(node) = self.nodes.get_mut(&id) {
            (node.host, node.port) = (host.into(), port);
        }
    }

    /// Makes a node take everything and answer nothing, or ends that.
    pub fn set_black_hole(&mut self, id: NodeId, on: bool) -> Result<(), ClusterError> {
        self.nodes.get_mut(&id).ok_or(ClusterError::UnknownNode(id))?.black_hole = on;
        Ok(())
    }

    /// Cuts every connection of a node.
    pub fn disconnect_all(&mut self, now: Instant, id: NodeId) {
        let of_node = |(_, connection): &(_, &crate::state::Connection)| connection.node == id;
        let connections: Vec<_> = self.connections.iter().filter(of_node).map(|(conn, _)| *conn).collect();
        for conn in connections {
            self.outputs.push_back(BrokerOutput::Disconnect { conn, why: Closing::NodeStopped });
            self.handle_disconnected(now, conn);
        }
    }

    /// Makes `node` the leader of a partition.
    pub fn move_leader(
        &mut self,
        now: Instant,
        topic: &str,
        partition: i32,
        node: NodeId,
    ) -> Result<(), ClusterError> {
        if !self.nodes.get(&node).ok_or(ClusterError::UnknownNode(node))?.up {
            return Err(ClusterError::NodeDown(node));
        }
        let unknown = || ClusterError::UnknownPartition(topic.to_owned(), partition);
        let known =
            self.topics.get(topic).and_then(|topic| topic.partition(partition)).ok_or_else(unknown)?;
        if !known.replicas.contains(&node) {
            let replicas = known.replicas.clone();
            return Err(ClusterError::NotAReplica { node, topic: topic.to_owned(), partition, replicas });
        }
        let not_stored = |_| ClusterError::NotStored(topic.to_owned(), partition);
        self.set_leader(now, topic, partition, Some(node)).map_err(not_stored)
    }

    /// Elects a leader uncleanly: the records from `offset` on are lost, a new epoch begins.
    pub fn lose_records(
        &mut self,
        now: Instant,
        topic: &str,
        index: i32,
        offset: i64,
    ) -> Result<(), ClusterError> {
        let unknown = || ClusterError::UnknownPartition(topic.to_owned(), index);
        let known = self.topics.get_mut(topic).ok_or_else(unknown)?;
        let id = known.id;
        let partition = known.partition_mut(index).ok_or_else(unknown)?;
        partition.log.truncate_to(offset);
        partition.leader_epoch += 1;
        partition.log.begin_epoch(partition.leader_epoch);
        self.partition_changed(now, id, index);
        // A log that cannot be stored says so; the cluster of this process goes on.
        let _ = self.keep_at_once(now, topic);
        self.note_flushed(now);
        Ok(())
    }

    /// Gives every partition back to the first of its replicas that is up.
    pub fn elect_preferred_leaders(&mut self, now: Instant) {
        self.elect(now, |partition, up| match partition.replicas.first() {
            Some(preferred) if up.contains(preferred) => Some(*preferred),
            _ => partition.leader,
        });
    }

    /// Makes `node` the coordinator of a group, and of all groups that share its partition of `__consumer_offsets`.
    pub fn move_coordinator(&mut self, now: Instant, group: &str, node: NodeId) -> Result<(), ClusterError> {
        self.create_offsets_topic(now);
        self.move_leader(now, OFFSETS_TOPIC, self.shard_of(group), node)
    }

    fn elect(&mut self, now: Instant, choose: impl Fn(&Partition, &[NodeId]) -> Option<NodeId>) {
        let up = self.nodes_up();
        let mut changes = Vec::new();
        for topic in self.topics.iter() {
            for (index, partition) in (0..).zip(&topic.partitions) {
                let leader = choose(partition, &up);
                if leader != partition.leader {
                    changes.push((topic.name.clone(), index, leader));
                }
            }
        }
        let mut stored = true;
        for (topic, index, leader) in changes {
            stored &= self.set_leader(now, &topic, index, leader).is_ok();
        }
        if !stored {
            self.chores.elect_again(now);
        }
    }

    /// Gives partitions whose leader is not up another one.
    pub(crate) fn elect_leaders_that_are_up(&mut self, now: Instant) {
        self.elect(now, |partition, up| match partition.leader {
            Some(leader) if up.contains(&leader) => Some(leader),
            _ => first_up(partition, up),
        });
    }

    /// Changes the leader of one partition and everything that hangs on it, once that is stored: an epoch that clients know
    /// must not come again after a crash.
    pub(crate) fn set_leader(
        &mut self,
        now: Instant,
        topic: &str,
        index: i32,
        leader: Option<NodeId>,
    ) -> Result<(), ErrorCode> {
        let Some(partition) = self.partition_mut(topic, index) else { return Ok(()) };
        let before = (partition.leader, partition.leader_epoch);
        if before.0 == leader {
            return Ok(());
        }
        (partition.leader, partition.leader_epoch) = (leader, before.1 + 1);
        let kept = self.keep_at_once(now, topic);
        let Some(partition) = self.partition_mut(topic, index) else { return Ok(()) };
        if let Err(code) = kept {
            (partition.leader, partition.leader_epoch) = before;
            return Err(code);
        }
        partition.log.begin_epoch(partition.leader_epoch);
        let Some(id) = self.topics.get(topic).map(|topic| topic.id) else { return Ok(()) };
        if topic == OFFSETS_TOPIC {
            self.coordinator_moved(now, index, leader);
        }
        self.partition_changed(now, id, index);
        Ok(())
    }

    fn partition_mut(&mut self, topic: &str, index: i32) -> Option<&mut Partition> {
        self.topics.get_mut(topic)?.partition_mut(index)
    }
}

fn first_up(partition: &Partition, up: &[NodeId]) -> Option<NodeId> {
    partition.replicas.iter().find(|node| up.contains(node)).copied()
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn leaders_go_round_the_nodes() {
        assert_eq!(place(&[1, 2, 3], 0, 4, 2), [[1, 2], [2, 3], [3, 1], [1, 2]]);
        assert_eq!(place(&[1], 0, 2, 3), [[1], [1]]);
    }
}
