//! OffsetDelete: which offsets of a group are deleted. Those of topics that members use are not. Mirrors
//! `deleteOffsets` of `OffsetMetadataManager`.

use super::tombstone;
use crate::{
    TopicPartition,
    coordinator::{durable::Durable, record::Record},
    topics::Topics,
};
use tontine_wire::{
    ErrorCode,
    api::offset_delete::{
        OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
    },
};

/// Whether one of the partitions exists: only then the group is asked.
pub(in crate::coordinator) fn concerns_the_group(request: &OffsetDeleteRequest, topics: &Topics) -> bool {
    let exists =
        |topic: &str, partition| topics.partitions(topic).is_some_and(|n| (0..n).contains(&partition));
    request.topics.iter().any(|t| t.partitions.iter().any(|p| exists(&t.name, p.partition_index)))
}

/// The answer, and the records to write before it. `subscribed` says which topics the group's members use.
pub(in crate::coordinator) fn decide(
    durable: &Durable,
    topics: &Topics,
    request: &OffsetDeleteRequest,
    subscribed: impl Fn(&str) -> bool,
) -> (OffsetDeleteResponse, Vec<Record>) {
    let mut records = Vec::new();
    let answered = request.topics.iter().map(|topic| {
        let used = subscribed(&topic.name);
        let known = topics.partitions(&topic.name).unwrap_or(0);
        let partitions = topic.partitions.iter().map(|partition| {
            let index = partition.partition_index;
            let error_code = if !(0..known).contains(&index) {
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            } else if used {
                ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC
            } else {
                let partition = TopicPartition::new(topic.name.as_str(), index);
                let stored = durable.offset(&request.group_id, &partition);
                records.extend(stored.map(|_| tombstone(&request.group_id, &partition)));
                ErrorCode::NONE
            };
            OffsetDeleteResponsePartition { partition_index: index, error_code }
        });
        OffsetDeleteResponseTopic { name: topic.name.clone(), partitions: partitions.collect() }
    });
    let topics = answered.collect();
    (OffsetDeleteResponse { topics, ..Default::default() }, records)
}
