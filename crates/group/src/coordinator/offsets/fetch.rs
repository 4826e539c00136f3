//! OffsetFetch: what a group has committed, in the form of one group (versions up to 7) or of several.
//!
//! Reads only what is durable. A partition without an offset is answered -1 and no error, whether it exists or not.
//! Mirrors `fetchOffsets` of `OffsetMetadataManager`.

use crate::{
    TopicPartition,
    coordinator::durable::{CommittedOffset, Durable},
    topics::Topics,
};
use std::collections::BTreeMap;
use tontine_wire::{
    ErrorCode, Uuid,
    api::offset_fetch::{
        OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
        OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
        OffsetFetchResponseTopic, OffsetFetchResponseTopics,
    },
};

/// Several groups in one request from this version on.
const BATCHED_SINCE: i16 = 8;
/// Topics are named by id from this version on.
const TOPIC_IDS_SINCE: i16 = 10;

/// Answers an OffsetFetch of any version.
pub(in crate::coordinator) fn fetch(
    durable: &Durable,
    topics: &Topics,
    request: OffsetFetchRequest,
    version: i16,
) -> OffsetFetchResponse {
    let stable = request.require_stable;
    let offsets = Offsets { durable, topics, by_id: version >= TOPIC_IDS_SINCE, stable };
    if version >= BATCHED_SINCE {
        let groups = request.groups.iter().map(|group| offsets.of_group(group)).collect();
        return OffsetFetchResponse { groups, ..Default::default() };
    }
    let wanted = request.topics.map(|topics| {
        let topic = |t: tontine_wire::api::offset_fetch::OffsetFetchRequestTopic| OffsetFetchRequestTopics {
            name: t.name,
            topic_id: Uuid::ZERO,
            partition_indexes: t.partition_indexes,
        };
        topics.into_iter().map(topic).collect()
    });
    let group = OffsetFetchRequestGroup { group_id: request.group_id, topics: wanted, ..Default::default() };
    let topics = offsets.of_group(&group).topics.into_iter().map(single_topic).collect();
    OffsetFetchResponse { topics, ..Default::default() }
}

struct Offsets<'a> {
    durable: &'a Durable,
    topics: &'a Topics,
    by_id: bool,
    /// An offset that a transaction may be about to change is none.
    stable: bool,
}

impl Offsets<'_> {
    fn of_group(&self, group: &OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
        let topics = match &group.topics {
            Some(wanted) => wanted.iter().map(|topic| self.of_topic(&group.group_id, topic)).collect(),
            None => self.all(&group.group_id),
        };
        OffsetFetchResponseGroup { group_id: group.group_id.clone(), topics, ..Default::default() }
    }

    fn of_topic(&self, group: &str, wanted: &OffsetFetchRequestTopics) -> OffsetFetchResponseTopics {
        let name =
            if self.by_id { self.topics.name_of(wanted.topic_id).map(|n| &**n) } else { Some(&*wanted.name) };
        let partitions = wanted.partition_indexes.iter().map(|&partition| match name {
            None => absent(partition, ErrorCode::UNKNOWN_TOPIC_ID),
            Some(name) if self.is_unstable(group, name, partition) => {
                absent(partition, ErrorCode::UNSTABLE_OFFSET_COMMIT)
            }
            Some(name) => {
                let found = self.durable.offset(group, &TopicPartition::new(name, partition));
                match found.filter(|offset| self.is_of_present_topic(name, offset)) {
                    Some(offset) => present(partition, offset),
                    None => absent(partition, ErrorCode::NONE),
                }
            }
        });
        OffsetFetchResponseTopics {
            name: wanted.name.clone(),
            topic_id: wanted.topic_id,
            partitions: partitions.collect(),
        }
    }

    fn all(&self, group: &str) -> Vec<OffsetFetchResponseTopics> {
        let mut by_topic = BTreeMap::<&str, Vec<OffsetFetchResponsePartitions>>::new();
        for (partition, offset) in self.durable.offsets(group) {
            if self.is_of_present_topic(&partition.topic, offset) {
                let answer = match self.is_unstable(group, &partition.topic, partition.partition) {
                    true => absent(partition.partition, ErrorCode::UNSTABLE_OFFSET_COMMIT),
                    false => present(partition.partition, offset),
                };
                by_topic.entry(&partition.topic).or_default().push(answer);
            }
        }
        let topics = by_topic.into_iter().filter_map(|(name, partitions)| {
            let topic_id = if self.by_id { self.topics.get(name)?.id } else { Uuid::ZERO };
            Some(OffsetFetchResponseTopics { name: name.to_owned(), topic_id, partitions })
        });
        topics.collect()
    }

    fn is_unstable(&self, group: &str, topic: &str, partition: i32) -> bool {
        self.stable && self.durable.is_pending(group, topic, partition)
    }

    /// An offset of a topic that was deleted and made anew under the same name says nothing.
    fn is_of_present_topic(&self, name: &str, offset: &CommittedOffset) -> bool {
        let present = self.topics.get(name).map_or(Uuid::ZERO, |topic| topic.id);
        present == offset.topic_id || present.is_zero() || offset.topic_id.is_zero()
    }
}

fn present(partition_index: i32, offset: &CommittedOffset) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: offset.offset,
        committed_leader_epoch: offset.leader_epoch,
        metadata: Some(offset.metadata.clone()),
        error_code: ErrorCode::NONE,
    }
}

fn absent(partition_index: i32, error_code: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(String::new()),
        error_code,
    }
}

fn single_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic {
    let partition = |p: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: p.partition_index,
        committed_offset: p.committed_offset,
        committed_leader_epoch: p.committed_leader_epoch,
        metadata: p.metadata,
        error_code: p.error_code,
    };
    OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    }
}
