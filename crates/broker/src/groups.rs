//! Group coordinators: one for each partition of `__consumer_offsets`, on the node that leads the partition.
//!
//! What a group decides is [`tontine_group::coordinator`]'s business. Here its records become batches of the log, its
//! requests find it, and it moves: the new leader reads the log again. Mirrors `GroupCoordinatorService` and
//! `CoordinatorRuntime`.

use crate::cluster::NodeId;
use crate::config::{GroupConfig, Settings};
use crate::gather::Gathering;
use crate::log::outcome;
use crate::settling::Then;
use crate::state::{Answer, BrokerOutput, BrokerState, Call};
use crate::topics::OFFSETS_TOPIC;
use crate::transactions::batch_of;
use crate::work::LogKey;
use std::collections::BTreeMap;
use tontine_group::Instant;
use tontine_group::coordinator::{
    AppendId, Coordinator, CoordinatorConfig, GroupRecord, GroupView, Output, Ticket,
};
use tontine_wire::ErrorCode;
use tontine_wire::api::txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};
use tontine_wire::api::{Request, Response};
use tontine_wire::records::{ControlType, RecordBatch};

/// One coordinator.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) coordinator: Coordinator,
    pub(crate) node: NodeId,
    pub(crate) wait: Option<Instant>,
    /// No two coordinators have the same number.
    pub(crate) incarnation: u64,
}

/// All coordinators that run, by partition of `__consumer_offsets`.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) shards: BTreeMap<i32, Shard>,
    pub(crate) gathering: Gathering,
}

impl Groups {
    /// When the next coordinator wants to be called.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.shards.values().filter_map(|shard| shard.wait).min()
    }
}

pub(crate) fn coordinator_config(settings: &Settings, unix_ms_at_origin: i64) -> CoordinatorConfig {
    CoordinatorConfig {
        group_min_session_timeout: settings.group_min_session_timeout,
        group_max_session_timeout: settings.group_max_session_timeout,
        group_initial_rebalance_delay: settings.group_initial_rebalance_delay,
        group_max_size: settings.group_max_size,
        consumer_session_timeout: settings.group_consumer_session_timeout,
        consumer_heartbeat_interval: settings.group_consumer_heartbeat_interval,
        consumer_heartbeat_pace: settings.group_consumer_heartbeat_pace,
        consumer_assignment_interval: settings.group_consumer_assignment_interval,
        consumer_assignors: settings.group_consumer_assignors,
        consumer_migration_policy: settings.group_consumer_migration_policy,
        consumer_group_max_size: settings.group_consumer_max_size,
        offset_metadata_max_bytes: settings.offset_metadata_max_bytes,
        offsets_retention: settings.offsets_retention,
        offsets_retention_check_interval: settings.offsets_retention_check_interval,
        unix_ms_at_origin,
        ..CoordinatorConfig::default()
    }
}

/// Java's `String.hashCode`, on which the place of a group hangs.
fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The partition of `__consumer_offsets` in which a group is kept; mirrors `Utils.abs(groupId.hashCode) % partitions`.
pub(crate) fn partition_of(group: &str, partitions: i32) -> i32 {
    (java_hash(group) & i32::MAX) % partitions.max(1)
}

impl BrokerState {
    /// The partition of `__consumer_offsets` in which a group is kept.
    pub(crate) fn shard_of(&self, group: &str) -> i32 {
        let partitions = self.topics.get(OFFSETS_TOPIC).map(|topic| topic.partitions.len());
        let partitions = partitions.and_then(|count| i32::try_from(count).ok());
        partition_of(group, partitions.unwrap_or(self.settings.offsets_topic_partitions))
    }

    /// The node that coordinates a group.
    pub fn coordinator_of(&self, group: &str) -> Option<NodeId> {
        self.topics.get(OFFSETS_TOPIC)?.partition(self.shard_of(group))?.leader
    }

    /// Every group that a running coordinator knows.
    pub fn groups(&self) -> Vec<GroupView> {
        self.groups.shards.values().flat_map(|shard| shard.coordinator.groups()).collect()
    }

    /// Whether `node` may answer for a partition of `__consumer_offsets`.
    pub(crate) fn check_coordinator(
        &mut self,
        now: Instant,
        node: NodeId,
        shard: i32,
    ) -> Result<(), ErrorCode> {
        self.create_offsets_topic(now);
        match self
            .topics
            .get(OFFSETS_TOPIC)
            .and_then(|topic| topic.partition(shard))
            .map(|known| known.leader)
        {
            Some(Some(leader)) if leader == node => Ok(()),
            Some(Some(_)) => Err(ErrorCode::NOT_COORDINATOR),
            Some(None) | None => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        }
    }

    /// Hands a request about one group to its coordinator.
    pub(crate) fn ask_coordinator(&mut self, call: &Call, group: &str, request: Request) -> Answer {
        let shard = self.shard_of(group);
        if let Err(code) = self.check_coordinator(call.now, call.node, shard) {
            return Answer::Now(crate::api::refuse(&request, call.version, code));
        }
        let ticket = self.park_call(call, Some(shard));
        self.ask(call, shard, ticket, request);
        Answer::Later
    }

    /// Hands a request to one coordinator, which answers the ticket now or later.
    pub(crate) fn ask(&mut self, call: &Call, shard: i32, ticket: Ticket, request: Request) {
        self.load(call.now, shard, call.node);
        let Some(running) = self.groups.shards.get_mut(&shard) else { return };
        let topics = self.topics.summary();
        if !Coordinator::serves(request.key()) {
            let refusal = crate::api::refuse_unserved(&request);
            return self.answer_ticket(ticket, refusal);
        }
        // It serves this API, so it does not refuse to take the request.
        let _ =
            running.coordinator.handle_request(call.now, ticket, &call.client, call.version, request, topics);
        self.pump(call.now, shard);
    }

    /// Reads a partition of `__consumer_offsets` into a coordinator, unless one runs already.
    fn load(&mut self, now: Instant, index: i32, node: NodeId) {
        if self.groups.shards.contains_key(&index) {
            return;
        }
        let config = coordinator_config(&self.settings, self.unix_ms_at_origin);
        let mut coordinator = Coordinator::new(config, self.random.next());
        if let Some(partition) = self.topics.get(OFFSETS_TOPIC).and_then(|topic| topic.partition(index)) {
            for batch in partition.log.batches() {
                replay(&mut coordinator, &batch);
            }
        }
        for (group, config) in &self.group_configs {
            if self.shard_of(group) == index {
                coordinator.set_group_settings(group, config.settings());
            }
        }
        coordinator.loaded(now);
        coordinator.handle_topics(now, self.topics.summary());
        let incarnation = self.ticket().0;
        self.groups.shards.insert(index, Shard { coordinator, node, wait: None, incarnation });
        self.pump(now, index);
    }

    /// A partition of `__consumer_offsets` has another leader: the old coordinator resigns, the new one reads the log.
    pub(crate) fn coordinator_moved(&mut self, now: Instant, index: i32, leader: Option<NodeId>) {
        if let Some(shard) = self.groups.shards.get_mut(&index) {
            shard.coordinator.resign(now);
            self.pump(now, index);
            self.groups.shards.remove(&index);
        }
        let has_groups = self
            .topics
            .get(OFFSETS_TOPIC)
            .and_then(|topic| topic.partition(index))
            .is_some_and(|partition| partition.log.end() > 0);
        if let (Some(node), true) = (leader, has_groups) {
            self.load(now, index, node);
        }
    }

    /// A group has other settings from now on.
    pub(crate) fn set_group_config(&mut self, group: &str, config: GroupConfig) {
        let shard = self.shard_of(group);
        if let Some(running) = self.groups.shards.get_mut(&shard) {
            running.coordinator.set_group_settings(group, config.settings());
        }
        if config.is_empty() {
            self.group_configs.remove(group);
        } else {
            self.group_configs.insert(group.to_owned(), config);
        }
    }

    /// Topics came or went.
    pub(crate) fn tell_coordinators_of_topics(&mut self, now: Instant) {
        let shards: Vec<i32> = self.groups.shards.keys().copied().collect();
        for index in shards {
            if let Some(shard) = self.groups.shards.get_mut(&index) {
                shard.coordinator.handle_topics(now, self.topics.summary());
            }
            self.pump(now, index);
        }
    }

    /// Calls the coordinators whose time has come.
    pub(crate) fn time_out_groups(&mut self, now: Instant) {
        let due = |shard: &Shard| shard.wait.is_some_and(|at| at <= now);
        let shards: Vec<i32> =
            self.groups.shards.iter().filter(|(_, shard)| due(shard)).map(|(index, _)| *index).collect();
        for index in shards {
            if let Some(shard) = self.groups.shards.get_mut(&index) {
                shard.coordinator.handle_timeout(now);
            }
            self.pump(now, index);
        }
    }

    /// Carries out what a coordinator wants.
    pub(crate) fn pump(&mut self, now: Instant, index: i32) {
        loop {
            let Some(shard) = self.groups.shards.get_mut(&index) else { return };
            match shard.coordinator.poll_output() {
                Output::Append { id, records } => {
                    let incarnation = shard.incarnation;
                    match self.append_group_records(now, index, &records) {
                        Ok(Some((key, change))) => {
                            let then = Then::Group { shard: index, incarnation, id };
                            self.when_durable(now, [(key, change)].into(), then);
                        }
                        Ok(None) => self.take_appended(now, index, id, Ok(())),
                        Err(code) => self.take_appended(now, index, id, Err(code)),
                    }
                }
                Output::Reply { ticket, response } => self.group_replied(ticket, response),
                Output::Transition(transition) => {
                    self.outputs.push_back(BrokerOutput::Transition(transition));
                }
                Output::Wait(wait) => {
                    shard.wait = wait;
                    return;
                }
            }
        }
    }

    fn take_appended(&mut self, now: Instant, index: i32, id: AppendId, result: Result<(), ErrorCode>) {
        if let Some(shard) = self.groups.shards.get_mut(&index) {
            shard.coordinator.handle_appended(now, id, result);
        }
    }

    /// What a coordinator appended is durable, or cannot become so.
    pub(crate) fn group_appended(
        &mut self,
        now: Instant,
        index: i32,
        incarnation: u64,
        id: AppendId,
        result: Result<(), ErrorCode>,
    ) {
        if self.groups.shards.get(&index).is_some_and(|shard| shard.incarnation == incarnation) {
            self.take_appended(now, index, id, result);
            self.pump(now, index);
        }
    }

    fn group_replied(&mut self, ticket: Ticket, response: Response) {
        if let Some((ticket, merged)) = self.groups.gathering.part(ticket, response) {
            self.answer_ticket(ticket, merged);
        }
    }

    fn append_group_records(
        &mut self,
        now: Instant,
        index: i32,
        records: &[GroupRecord],
    ) -> Result<Option<(LogKey, u64)>, ErrorCode> {
        let batch = batch_of(records, self.unix_ms(now), None).ok_or(ErrorCode::MESSAGE_TOO_LARGE)?;
        self.append_internal(now, OFFSETS_TOPIC, index, batch)
    }

    /// Stores offsets that wait for the end of a transaction, then lets the coordinator know of them.
    pub(crate) fn store_pending_offsets(
        &mut self,
        call: &Call,
        index: i32,
        request: &TxnOffsetCommitRequest,
    ) -> Result<TxnOffsetCommitResponse, ErrorCode> {
        self.load(call.now, index, call.node);
        let shard = self.groups.shards.get_mut(&index).ok_or(ErrorCode::NOT_COORDINATOR)?;
        let topics = self.topics.summary();
        let (response, records) = shard.coordinator.txn_offset_commit(call.now, request, topics);
        let producer = (request.producer_id, request.producer_epoch);
        let batch = batch_of(&records, self.unix_ms(call.now), Some(producer));
        if !records.is_empty() {
            let batch = batch.ok_or(ErrorCode::MESSAGE_TOO_LARGE)?;
            self.append_internal(call.now, OFFSETS_TOPIC, index, batch)
                .map_err(|_| ErrorCode::COORDINATOR_NOT_AVAILABLE)?;
        }
        if let Some(shard) = self.groups.shards.get_mut(&index) {
            for record in records {
                // They were made here, so they can be read.
                let _ = shard.coordinator.replay_transactional(producer.0, record.key, record.value);
            }
        }
        self.pump(call.now, index);
        Ok(response)
    }

    /// Appends to one of Kafka's own topics. Answers what has to be durable before this is answered for.
    pub(crate) fn append_internal(
        &mut self,
        now: Instant,
        name: &str,
        index: i32,
        batch: RecordBatch,
    ) -> Result<Option<(LogKey, u64)>, ErrorCode> {
        let now_ms = self.unix_ms(now);
        let topic = self.topics.get_mut(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let id = topic.id;
        let oldest_tombstone = now_ms.saturating_sub(topic.settings.delete_retention_ms);
        let partition = topic.partition_mut(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if partition.leader.is_none() {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        let stored = partition.stored;
        let unstored = self.unstored(stored)?.map(|change| (LogKey::Journal, change));
        let topic = self.topics.get_mut(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let partition = topic.partition_mut(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let appended = partition.log.append(batch, partition.leader_epoch, None, now_ms)?;
        let key = LogKey::Partition(id, index);
        self.compact_if_grown(key, oldest_tombstone);
        self.records_came(now, (id, index), appended);
        Ok(appended.pending.map(|change| (key, change)).or(unstored))
    }
}

/// Hands the records of a batch to a coordinator. What cannot be read is stepped over, as Kafka does with types it does
/// not know: a group that was written by somebody else must not keep all the others from loading.
fn replay(coordinator: &mut Coordinator, batch: &RecordBatch) {
    if batch.is_control() {
        if let Some(outcome) = outcome(batch) {
            coordinator.end_transaction(batch.producer_id(), outcome == ControlType::Commit);
        }
        return;
    }
    let Ok(records) = batch.records() else { return };
    for record in records.iter().filter_map(Result::ok) {
        let Some(key) = record.key_bytes() else { continue };
        if batch.is_transactional() {
            let _ = coordinator.replay_transactional(batch.producer_id(), key, record.value_bytes());
        } else {
            let _ = coordinator.replay(key, record.value_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_lies_where_java_would_put_it() {
        assert_eq!(
            java_hash("billing"),
            "billing".chars().fold(0i32, |h, c| h.wrapping_mul(31).wrapping_add(c as i32))
        );
        assert_eq!(java_hash("polygenelubricants"), i32::MIN);
        assert_eq!(partition_of("polygenelubricants", 50), 0);
        assert_eq!(java_hash("hello"), 99_162_322);
    }
}
