//! What tests and reports want to know of a cluster without asking it over a socket.

use crate::cluster::NodeId;
use crate::state::BrokerState;
use crate::topics::{OFFSETS_TOPIC, Partition};
use std::collections::BTreeMap;
use tontine_group::TopicPartition;
use tontine_group::coordinator::Record;
use tontine_wire::records::{ControlType, RecordBatch};

impl BrokerState {
    fn partition(&self, topic: &str, partition: i32) -> Option<&Partition> {
        self.topics.get(topic)?.partition(partition)
    }

    /// The first offset of a partition and the one behind its last record.
    pub fn log_offsets(&self, topic: &str, partition: i32) -> Option<(i64, i64)> {
        self.partition(topic, partition).map(|partition| (partition.log.start(), partition.log.end()))
    }

    /// Whether a partition is there for good: nothing that one takes before is answered for.
    pub fn is_stored(&self, topic: &str, partition: i32) -> bool {
        self.partition(topic, partition).is_some_and(|known| self.unstored(known.stored) == Ok(None))
    }

    /// The leader of a partition and its epoch; `None` when it has no leader.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(NodeId, i32)> {
        let partition = self.partition(topic, partition)?;
        Some((partition.leader?, partition.leader_epoch))
    }

    /// How many partitions a topic has.
    pub fn partitions(&self, topic: &str) -> Option<usize> {
        self.topics.get(topic).map(|topic| topic.partitions.len())
    }

    /// The batches of a partition, oldest first.
    pub fn batches(&self, topic: &str, partition: i32) -> Vec<RecordBatch> {
        self.partition(topic, partition)
            .map(|partition| partition.log.batches().collect())
            .unwrap_or_default()
    }

    /// What a group has committed, read from the log that its coordinator writes.
    pub fn committed_offsets(&self, group: &str) -> BTreeMap<TopicPartition, i64> {
        let mut committed = BTreeMap::new();
        let mut pending: BTreeMap<i64, Vec<(TopicPartition, i64)>> = BTreeMap::new();
        for batch in self.batches(OFFSETS_TOPIC, self.shard_of(group)) {
            if batch.is_control() {
                let ended = pending.remove(&batch.producer_id()).unwrap_or_default();
                if crate::log::outcome(&batch) == Some(ControlType::Commit) {
                    committed.extend(ended);
                }
                continue;
            }
            let Ok(records) = batch.records() else { continue };
            for record in records.iter().filter_map(Result::ok) {
                let Some(key) = record.key_bytes() else { continue };
                if let Ok(Some(Record::OffsetCommit(key, value))) = Record::decode(key, record.value_bytes())
                    && key.group == group
                {
                    let partition = TopicPartition::new(key.topic.as_str(), key.partition);
                    match value {
                        Some(value) if batch.is_transactional() => {
                            pending.entry(batch.producer_id()).or_default().push((partition, value.offset));
                            None
                        }
                        Some(value) => committed.insert(partition, value.offset),
                        None => committed.remove(&partition),
                    };
                }
            }
        }
        committed
    }
}
