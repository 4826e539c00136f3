//! Finding the partition that a request means, on the node that it reached. Mirrors `ReplicaManager.getPartitionOrError`
//! and `Partition.checkCurrentLeaderEpoch`.

use crate::cluster::NodeId;
use crate::state::BrokerState;
use crate::topics::Partition;
use tontine_wire::ErrorCode;

/// The epoch that a client sends when it knows none.
const NO_EPOCH: i32 = -1;

impl BrokerState {
    /// The partition, when `node` leads it.
    pub(super) fn led(&self, node: NodeId, topic: &str, index: i32) -> Result<&Partition, ErrorCode> {
        self.led_in_epoch(node, topic, index, NO_EPOCH)
    }

    /// The partition, when `node` leads it in the epoch that the client knows.
    pub(super) fn led_in_epoch(
        &self,
        node: NodeId,
        topic: &str,
        index: i32,
        epoch: i32,
    ) -> Result<&Partition, ErrorCode> {
        let partition = self
            .topics
            .get(topic)
            .and_then(|topic| topic.partition(index))
            .ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        check_leader(partition, node, epoch)?;
        Ok(partition)
    }
}

/// Whether `node` leads the partition in the epoch that the client knows.
pub(super) fn check_leader(partition: &Partition, node: NodeId, epoch: i32) -> Result<(), ErrorCode> {
    if partition.replicas.contains(&node) && epoch != NO_EPOCH {
        match epoch.cmp(&partition.leader_epoch) {
            std::cmp::Ordering::Less => return Err(ErrorCode::FENCED_LEADER_EPOCH),
            std::cmp::Ordering::Greater => return Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
            std::cmp::Ordering::Equal => {}
        }
    }
    if partition.leader == Some(node) { Ok(()) } else { Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) }
}
