//! Offsets: those of partitions by time, and those that groups have committed.

use super::{
    Admin, Each,
    caller::{Operation, checked},
};
use crate::{Error, OffsetAndMetadata, TopicPartition, cluster::Target};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tontine_wire::{
    ErrorCode,
    api::{list_offsets, offset_commit, offset_delete, offset_fetch},
};

/// Which offset of a partition is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first record's.
    Earliest,
    /// The next record's.
    Latest,
    /// The first record's that is not older than this, in milliseconds since 1970.
    Timestamp(i64),
    /// The record's with the largest timestamp.
    MaxTimestamp,
}

/// An offset that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    /// The offset; `None` when no record is that young.
    pub offset: Option<i64>,
    /// The record's timestamp, when the offset is that of a record.
    pub timestamp: Option<i64>,
    /// The epoch of the leader that wrote the record.
    pub leader_epoch: Option<i32>,
}

/// The last version of offset requests that names topics instead of giving their ids.
const LAST_WITH_NAMES: i16 = 9;

impl OffsetSpec {
    fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::Timestamp(ms) => ms.max(0),
        }
    }
}

/// How far a search for offsets has come.
#[derive(Default)]
struct Progress {
    open: BTreeMap<TopicPartition, OffsetSpec>,
    found: Each<TopicPartition, ListedOffset>,
}

impl Progress {
    /// Takes what an answer settles; an error is left when something has to be asked again.
    fn take(&mut self, answer: Result<Each<TopicPartition, ListedOffset>, Error>) -> Result<(), Error> {
        let mut last = Ok(());
        for (tp, result) in answer? {
            match result {
                Err(error) if error.is_retriable() => last = Err(error),
                result => {
                    self.open.remove(&tp);
                    self.found.insert(tp, result);
                }
            }
        }
        last
    }
}

impl Admin {
    /// Finds offsets of partitions. Each partition's leader is asked.
    pub async fn list_offsets(
        &self,
        wanted: impl IntoIterator<Item = (TopicPartition, OffsetSpec)>,
    ) -> Result<Each<TopicPartition, ListedOffset>, Error> {
        let op = self.caller.operation("listing offsets");
        let progress = Mutex::new(Progress { open: wanted.into_iter().collect(), found: Each::new() });
        let progress = || progress.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = || async {
            let (mut last, open) = (Ok(()), progress().open.clone());
            for (leader, asked) in self.by_leader(&open).await? {
                let answer = self.list_offsets_of(&op, leader, &asked).await;
                last = last.and(progress().take(answer));
            }
            last
        };
        let ended = self.caller.retry(&op, attempt).await;
        let Progress { open, mut found } = std::mem::take(&mut *progress());
        if let Err(error) = ended {
            found.extend(open.into_keys().map(|tp| (tp, Err(error.clone()))));
        }
        Ok(found)
    }

    async fn by_leader(
        &self,
        open: &BTreeMap<TopicPartition, OffsetSpec>,
    ) -> Result<BTreeMap<i32, BTreeMap<TopicPartition, OffsetSpec>>, Error> {
        let topics: std::collections::BTreeSet<&str> = open.keys().map(TopicPartition::topic).collect();
        let topics = self.describe_topics(topics).await?;
        let mut by_leader: BTreeMap<i32, BTreeMap<_, _>> = BTreeMap::new();
        for (tp, spec) in open {
            let topic = match topics.get(tp.topic()) {
                Some(Ok(topic)) => topic,
                Some(Err(error)) => return Err(error.clone()),
                None => return Err(unknown(tp)),
            };
            let partition = topic.partitions.get(&tp.partition()).ok_or_else(|| unknown(tp))?;
            let no_leader =
                || Error::broker(ErrorCode::LEADER_NOT_AVAILABLE, format!("offsets of {tp}"), None);
            by_leader.entry(partition.leader.ok_or_else(no_leader)?).or_default().insert(tp.clone(), *spec);
        }
        Ok(by_leader)
    }

    async fn list_offsets_of(
        &self,
        op: &Operation,
        leader: i32,
        asked: &BTreeMap<TopicPartition, OffsetSpec>,
    ) -> Result<Each<TopicPartition, ListedOffset>, Error> {
        let mut topics: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (tp, spec) in asked {
            let (partition_index, timestamp) = (tp.partition(), spec.timestamp());
            let one =
                list_offsets::ListOffsetsPartition { partition_index, timestamp, current_leader_epoch: -1 };
            topics.entry(tp.topic()).or_default().push(one);
        }
        let topic = |(name, partitions): (&str, _)| list_offsets::ListOffsetsTopic {
            name: name.to_owned(),
            partitions,
        };
        let request = list_offsets::ListOffsetsRequest {
            replica_id: -1,
            isolation_level: 0,
            topics: topics.into_iter().map(topic).collect(),
            timeout_ms: self.caller.request_timeout_ms(),
        };
        let answer = self.caller.call(op, Target::Node(leader), request).await?;
        let mut each = Each::new();
        for topic in answer.topics {
            for p in topic.partitions {
                let tp = TopicPartition::new(topic.name.as_str(), p.partition_index);
                let result =
                    checked(p.error_code, &format!("offsets of {tp}"), None).map(|()| ListedOffset {
                        offset: (p.offset >= 0).then_some(p.offset),
                        timestamp: (p.timestamp >= 0).then_some(p.timestamp),
                        leader_epoch: (p.leader_epoch >= 0).then_some(p.leader_epoch),
                    });
                each.insert(tp, result);
            }
        }
        Ok(each)
    }

    /// What a group has committed: for these partitions, or for all when `partitions` is `None`. Partitions without a
    /// committed offset are left out.
    pub async fn list_group_offsets(
        &self,
        group: &str,
        partitions: Option<&[TopicPartition]>,
    ) -> Result<BTreeMap<TopicPartition, OffsetAndMetadata>, Error> {
        let context = format!("reading the offsets of group `{group}`");
        let op = self.caller.operation(context.clone());
        let id: Arc<str> = group.into();
        let request = offset_fetch_request(group, partitions);
        self.caller
            .retry(&op, || async {
                let target = Target::Coordinator(id.clone());
                let answer = self.caller.call_at_most(&op, target, request.clone(), LAST_WITH_NAMES).await?;
                let mut committed = BTreeMap::new();
                let (code, partitions) = flat(answer);
                self.caller.coordinated(&id, code, &context)?;
                for (tp, code, offset) in partitions {
                    self.caller.coordinated(&id, code, &format!("{context}, {tp}"))?;
                    if offset.offset >= 0 {
                        committed.insert(tp, offset);
                    }
                }
                Ok(committed)
            })
            .await
    }

    /// Sets what a group has committed. The group must have no members.
    pub async fn alter_group_offsets(
        &self,
        group: &str,
        offsets: impl IntoIterator<Item = (TopicPartition, OffsetAndMetadata)>,
    ) -> Result<Each<TopicPartition, ()>, Error> {
        let context = format!("setting the offsets of group `{group}`");
        let op = self.caller.operation(context.clone());
        let id: Arc<str> = group.into();
        let request = offset_commit_request(group, offsets);
        self.caller
            .retry(&op, || async {
                let target = Target::Coordinator(id.clone());
                let answer = self.caller.call_at_most(&op, target, request.clone(), LAST_WITH_NAMES).await?;
                let mut each = Each::new();
                for topic in answer.topics {
                    for p in topic.partitions {
                        let tp = TopicPartition::new(topic.name.as_str(), p.partition_index);
                        let result = self.caller.coordinated(&id, p.error_code, &format!("{context}, {tp}"));
                        if p.error_code.is_retriable()
                            && p.error_code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
                        {
                            result?;
                        } else {
                            each.insert(tp, result);
                        }
                    }
                }
                Ok(each)
            })
            .await
    }

    /// Forgets what a group has committed for these partitions. No member may be subscribed to their topics.
    pub async fn delete_group_offsets(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<Each<TopicPartition, ()>, Error> {
        let context = format!("deleting offsets of group `{group}`");
        let op = self.caller.operation(context.clone());
        let id: Arc<str> = group.into();
        let partition = |partition_index| offset_delete::OffsetDeleteRequestPartition { partition_index };
        let topic = |(name, partitions): (String, Vec<i32>)| offset_delete::OffsetDeleteRequestTopic {
            name,
            partitions: partitions.into_iter().map(partition).collect(),
        };
        let topics = by_topic(partitions).into_iter().map(topic).collect();
        let request = offset_delete::OffsetDeleteRequest { group_id: group.to_owned(), topics };
        self.caller
            .retry(&op, || async {
                let answer = self.caller.call(&op, Target::Coordinator(id.clone()), request.clone()).await?;
                self.caller.coordinated(&id, answer.error_code, &context)?;
                let mut each = Each::new();
                for topic in answer.topics {
                    for p in topic.partitions {
                        let tp = TopicPartition::new(topic.name.as_str(), p.partition_index);
                        let result = checked(p.error_code, &format!("{context}, {tp}"), None);
                        each.insert(tp, result);
                    }
                }
                Ok(each)
            })
            .await
    }
}

fn unknown(tp: &TopicPartition) -> Error {
    let context = format!("offsets of {tp}: there is no such partition");
    Error::broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, context, None)
}

/// Partitions by their topic, as most requests want them.
pub(super) fn by_topic(partitions: &[TopicPartition]) -> BTreeMap<String, Vec<i32>> {
    let mut topics: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for tp in partitions {
        topics.entry(tp.topic().to_owned()).or_default().push(tp.partition());
    }
    topics
}

/// The request, with the fields of all its versions.
fn offset_fetch_request(
    group: &str,
    partitions: Option<&[TopicPartition]>,
) -> offset_fetch::OffsetFetchRequest {
    let topics = partitions.map(by_topic);
    let single = |(name, partition_indexes): (&String, &Vec<i32>)| offset_fetch::OffsetFetchRequestTopic {
        name: name.clone(),
        partition_indexes: partition_indexes.clone(),
    };
    let batched = |(name, partition_indexes): (&String, &Vec<i32>)| offset_fetch::OffsetFetchRequestTopics {
        name: name.clone(),
        partition_indexes: partition_indexes.clone(),
        ..Default::default()
    };
    let one = offset_fetch::OffsetFetchRequestGroup {
        group_id: group.to_owned(),
        topics: topics.as_ref().map(|t| t.iter().map(batched).collect()),
        ..Default::default()
    };
    offset_fetch::OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: topics.as_ref().map(|t| t.iter().map(single).collect()),
        groups: vec![one],
        require_stable: false,
    }
}

type Fetched = (TopicPartition, ErrorCode, OffsetAndMetadata);

/// The answer of any version, for the one group that was asked about.
fn flat(answer: offset_fetch::OffsetFetchResponse) -> (ErrorCode, Vec<Fetched>) {
    let committed = |offset, epoch: i32, metadata: Option<String>| OffsetAndMetadata {
        offset,
        leader_epoch: (epoch >= 0).then_some(epoch),
        metadata: metadata.unwrap_or_default(),
    };
    let mut all = Vec::new();
    let mut code = answer.error_code;
    for topic in answer.topics {
        for p in topic.partitions {
            let tp = TopicPartition::new(topic.name.as_str(), p.partition_index);
            all.push((tp, p.error_code, committed(p.committed_offset, p.committed_leader_epoch, p.metadata)));
        }
    }
    for group in answer.groups {
        code = group.error_code;
        for topic in group.topics {
            for p in topic.partitions {
                let tp = TopicPartition::new(topic.name.as_str(), p.partition_index);
                all.push((
                    tp,
                    p.error_code,
                    committed(p.committed_offset, p.committed_leader_epoch, p.metadata),
                ));
            }
        }
    }
    (code, all)
}

fn offset_commit_request(
    group: &str,
    offsets: impl IntoIterator<Item = (TopicPartition, OffsetAndMetadata)>,
) -> offset_commit::OffsetCommitRequest {
    let mut topics: BTreeMap<Arc<str>, Vec<_>> = BTreeMap::new();
    for (tp, committed) in offsets {
        topics.entry(tp.topic.clone()).or_default().push(offset_commit::OffsetCommitRequestPartition {
            partition_index: tp.partition(),
            committed_offset: committed.offset,
            committed_leader_epoch: committed.leader_epoch.unwrap_or(-1),
            committed_metadata: Some(committed.metadata),
        });
    }
    let topic = |(name, partitions): (Arc<str>, _)| offset_commit::OffsetCommitRequestTopic {
        name: name.to_string(),
        partitions,
        ..Default::default()
    };
    offset_commit::OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: topics.into_iter().map(topic).collect(),
        ..Default::default()
    }
}
