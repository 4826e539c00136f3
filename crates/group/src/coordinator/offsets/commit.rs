//! OffsetCommit: which partitions of a commit are stored, and what each is answered.
//!
//! Whether the group takes commits of this member at all is decided before. Mirrors `handleOffsetCommit` of `KafkaApis`
//! and `commitOffset` of `OffsetMetadataManager`.

use crate::{
    coordinator::{config::CoordinatorConfig, record::Record},
    topics::Topics,
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::offset_commit::{
        OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
        OffsetCommitResponsePartition, OffsetCommitResponseTopic,
    },
    group_records::{OffsetCommitKey, OffsetCommitValue},
};

/// Topics are named by id from this version on.
const TOPIC_IDS_SINCE: i16 = 10;

/// A commit after a look at which of its partitions exist.
pub(in crate::coordinator) struct Commit {
    request: OffsetCommitRequest,
    topics: Vec<Known>,
}

/// A topic of a commit: its name and its id, or what is wrong with it, and how many partitions it has.
struct Known {
    topic: Result<(String, Uuid), ErrorCode>,
    partitions: i32,
}

impl Commit {
    pub(in crate::coordinator) fn new(request: OffsetCommitRequest, version: i16, topics: &Topics) -> Self {
        let known = request.topics.iter().map(|topic| Known::find(topic, version, topics)).collect();
        Self { request, topics: known }
    }

    pub(in crate::coordinator) fn request(&self) -> &OffsetCommitRequest {
        &self.request
    }

    /// Whether one partition at least exists: only then the group is asked.
    pub(in crate::coordinator) fn concerns_the_group(&self) -> bool {
        let mut topics = self.request.topics.iter().zip(&self.topics);
        topics.any(|(topic, known)| topic.partitions.iter().any(|p| known.check(p).is_ok()))
    }

    /// The answer, and the records to write before it. `allowed` is what the group says of the member.
    pub(in crate::coordinator) fn decide(
        &self,
        allowed: Result<(), ErrorCode>,
        config: &CoordinatorConfig,
        wall_ms: i64,
    ) -> (OffsetCommitResponse, Vec<Record>) {
        let mut records = Vec::new();
        let topics = self.request.topics.iter().zip(&self.topics).map(|(topic, known)| {
            let partitions = topic.partitions.iter().map(|partition| {
                let stored = known.check(partition).and_then(|(name, id)| {
                    allowed?;
                    check_metadata(partition, config)?;
                    records.push(self.record(name, id, partition, wall_ms));
                    Ok(())
                });
                OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: stored.err().unwrap_or(ErrorCode::NONE),
                }
            });
            OffsetCommitResponseTopic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions: partitions.collect(),
            }
        });
        let topics = topics.collect();
        (OffsetCommitResponse { topics, ..Default::default() }, records)
    }

    fn record(
        &self,
        topic: &str,
        topic_id: Uuid,
        partition: &OffsetCommitRequestPartition,
        wall_ms: i64,
    ) -> Record {
        let key = OffsetCommitKey {
            group: self.request.group_id.clone(),
            topic: topic.to_owned(),
            partition: partition.partition_index,
        };
        let mut value = OffsetCommitValue {
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.committed_metadata.clone().unwrap_or_default(),
            commit_timestamp: wall_ms,
            expire_timestamp: -1,
            topic_id,
        };
        if self.request.retention_time_ms >= 0 {
            // The record that can say this can say neither epoch nor id.
            value.expire_timestamp = wall_ms.saturating_add(self.request.retention_time_ms);
            (value.leader_epoch, value.topic_id) = (-1, Uuid::ZERO);
        }
        Record::OffsetCommit(key, Some(value))
    }
}

impl Known {
    fn find(topic: &OffsetCommitRequestTopic, version: i16, topics: &Topics) -> Self {
        let by_id = version >= TOPIC_IDS_SINCE;
        let name =
            if by_id { topics.name_of(topic.topic_id).map(|n| &**n) } else { Some(topic.name.as_str()) };
        match name.and_then(|name| topics.get_key_value(name)) {
            Some((name, found)) => {
                Self { topic: Ok((name.to_string(), found.id)), partitions: found.partitions }
            }
            None if by_id => Self { topic: Err(ErrorCode::UNKNOWN_TOPIC_ID), partitions: 0 },
            None => Self { topic: Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), partitions: 0 },
        }
    }

    fn check(&self, partition: &OffsetCommitRequestPartition) -> Result<(&str, Uuid), ErrorCode> {
        let (name, id) = self.topic.as_ref().map_err(|code| *code)?;
        if (0..self.partitions).contains(&partition.partition_index) {
            return Ok((name, *id));
        }
        Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    }
}

fn check_metadata(
    partition: &OffsetCommitRequestPartition,
    config: &CoordinatorConfig,
) -> Result<(), ErrorCode> {
    let size = partition.committed_metadata.as_ref().map_or(0, String::len);
    if size <= config.offset_metadata_max_bytes { Ok(()) } else { Err(ErrorCode::OFFSET_METADATA_TOO_LARGE) }
}
