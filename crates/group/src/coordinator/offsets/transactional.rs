//! Offsets that are committed within a transaction: they wait, invisible, until the transaction ends.
//!
//! The driver writes the records into the log in a transactional batch and tells of them with
//! [`Coordinator::replay_transactional`], and of the end with [`Coordinator::end_transaction`], live as in a replay: so
//! reading the log again gives the same. Mirrors `TxnOffsetCommit` and the pending offsets of `OffsetMetadataManager`.

use super::commit::Commit;
use crate::{
    coordinator::{
        Coordinator, consumer,
        record::{GroupRecord, Record, RecordError},
        volatile::Serving,
    },
    time::Instant,
    topics::Topics,
};
use bytes::Bytes;
use tontine_wire::{
    ErrorCode,
    api::{
        offset_commit::{
            OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
        },
        txn_offset_commit::{
            TxnOffsetCommitRequest, TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition,
            TxnOffsetCommitResponseTopic,
        },
    },
};

/// The version of OffsetCommit with the same rules for members: topics by name, epochs allowed.
const AS_COMMIT: i16 = 9;

impl Coordinator {
    /// Decides a TxnOffsetCommit: the answer, and the records that have to be in the log before it leaves.
    pub fn txn_offset_commit(
        &mut self,
        now: Instant,
        request: &TxnOffsetCommitRequest,
        topics: &Topics,
    ) -> (TxnOffsetCommitResponse, Vec<GroupRecord>) {
        let wall_ms = self.wall_ms(now);
        let commit = Commit::new(as_commit(request), AS_COMMIT, topics);
        let allowed = match self.volatile.serving {
            Serving::Active => self.validate_transactional(now, commit.request(), topics),
            Serving::Loading => Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            Serving::Resigned => Err(ErrorCode::NOT_COORDINATOR),
        };
        let (response, records) = commit.decide(allowed, &self.config, wall_ms);
        (as_transactional(response), records.iter().map(Record::encode).collect())
    }

    /// Who commits in a transaction need not be a member; who says that it is one must be.
    fn validate_transactional(
        &mut self,
        now: Instant,
        request: &OffsetCommitRequest,
        topics: &Topics,
    ) -> Result<(), ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        if generation < 0 && request.member_id.is_empty() && request.group_instance_id.is_none() {
            return Ok(());
        }
        if let Some(group) = self.consumer_group(&request.group_id) {
            return match consumer::validate_commit(group, request, AS_COMMIT, topics) {
                Err(ErrorCode::STALE_MEMBER_EPOCH) => Err(ErrorCode::ILLEGAL_GENERATION),
                other => other,
            };
        }
        let mut allowed = Err(ErrorCode::ILLEGAL_GENERATION);
        self.with_group(now, &request.group_id, |group, fx| allowed = group.validate_commit(fx, request));
        match allowed {
            // The transaction was begun under this generation and may end under it.
            Err(ErrorCode::REBALANCE_IN_PROGRESS) => Ok(()),
            other => other,
        }
    }

    /// Takes one record of a transaction that is not over.
    pub fn replay_transactional(
        &mut self,
        producer_id: i64,
        key: Bytes,
        value: Option<Bytes>,
    ) -> Result<(), RecordError> {
        if let Some(Record::OffsetCommit(key, Some(value))) = Record::decode(key, value)? {
            self.durable.add_pending(producer_id, key, value);
        }
        Ok(())
    }

    /// A transaction is over: what it committed counts, or never was.
    pub fn end_transaction(&mut self, producer_id: i64, committed: bool) {
        self.durable.end_pending(producer_id, committed);
    }
}

fn as_commit(request: &TxnOffsetCommitRequest) -> OffsetCommitRequest {
    let topics = request.topics.iter().map(|topic| OffsetCommitRequestTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitRequestPartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                committed_metadata: partition.committed_metadata.clone(),
            })
            .collect(),
    });
    OffsetCommitRequest {
        group_id: request.group_id.clone(),
        generation_id_or_member_epoch: request.generation_id_or_member_epoch,
        member_id: request.member_id.clone(),
        group_instance_id: request.group_instance_id.clone(),
        topics: topics.collect(),
        ..Default::default()
    }
}

fn as_transactional(response: OffsetCommitResponse) -> TxnOffsetCommitResponse {
    let topics = response.topics.into_iter().map(|topic| TxnOffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| TxnOffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: partition.error_code,
            })
            .collect(),
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
