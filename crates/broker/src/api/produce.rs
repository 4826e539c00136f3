//! Produce: batches are checked, given offsets and appended. Mirrors `KafkaApis.handleProduceRequest`,
//! `ReplicaManager.appendRecords` and `LogValidator`.

use super::place::check_leader;
use crate::cluster::NodeId;
use crate::config::TopicSettings;
use crate::log::Appended;
use crate::state::{Answer, BrokerState, Call, Closing};
use crate::topics::{Topic, is_internal};
use crate::transactions::{Place, Transactions};
use crate::work::LogKey;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use tontine_wire::api::Response;
use tontine_wire::api::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceData,
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData, TopicProduceResponse,
};
use tontine_wire::records::{BatchError, Compression, RecordBatch};
use tontine_wire::{ErrorCode, Uuid};

/// From this version on, topics go by their ids.
const WITH_TOPIC_IDS: i16 = 13;
/// From this version on, zstd is allowed.
const WITH_ZSTD: i16 = 7;
const ALL_REPLICAS: i16 = -1;

/// Why a batch is refused.
#[derive(Debug, Default)]
struct Refused {
    code: ErrorCode,
    message: Option<String>,
    record_errors: Vec<BatchIndexAndErrorMessage>,
    current_leader: LeaderIdAndEpoch,
}

impl From<ErrorCode> for Refused {
    fn from(code: ErrorCode) -> Self {
        Self { code, ..Self::default() }
    }
}

impl Refused {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()), ..Self::default() }
    }
}

/// An accepted batch: where it went, and the time the broker gave it.
struct Accepted {
    appended: Appended,
    append_time: Option<i64>,
    log_start: i64,
}

pub(super) fn answer(state: &mut BrokerState, call: &Call, request: ProduceRequest) -> Answer {
    let acks = request.acks;
    let transactional = request.transactional_id;
    let mut touched = Vec::new();
    let responses: Vec<TopicProduceResponse> = request
        .topic_data
        .into_iter()
        .map(|topic| append_topic(state, call, acks, transactional.as_deref(), topic, &mut touched))
        .collect();
    for (partition, appended) in touched {
        state.records_came(call.now, partition, appended);
    }
    if acks == 0 {
        let mut errors = responses.iter().flat_map(|topic| &topic.partition_responses);
        return match errors.find(|partition| partition.error_code.is_err()) {
            Some(failed) => Answer::Close(Closing::ProduceFailed(failed.error_code)),
            None => Answer::Silent,
        };
    }
    let node_endpoints = endpoints(state, &responses);
    Answer::Now(ProduceResponse { responses, node_endpoints, ..Default::default() }.into())
}

/// The answer when what was appended could not be made durable; `None` for answers to other requests.
pub(crate) fn not_stored(response: &Response) -> Option<Response> {
    let Response::Produce(response) = response else { return None };
    let mut response = response.clone();
    let partitions = response.responses.iter_mut().flat_map(|topic| &mut topic.partition_responses);
    for partition in partitions.filter(|partition| !partition.error_code.is_err()) {
        partition.error_code = ErrorCode::KAFKA_STORAGE_ERROR;
        partition.base_offset = -1;
    }
    Some(response.into())
}

fn append_topic(
    state: &mut BrokerState,
    call: &Call,
    acks: i16,
    transactional: Option<&str>,
    data: TopicProduceData,
    touched: &mut Vec<((Uuid, i32), Appended)>,
) -> TopicProduceResponse {
    let name: Option<Arc<str>> = if call.version >= WITH_TOPIC_IDS {
        state.topics.name_of(data.topic_id).cloned()
    } else {
        Some(data.name.as_str().into())
    };
    let mut partition_responses = Vec::with_capacity(data.partition_data.len());
    for partition in data.partition_data {
        let index = partition.index;
        let result = match &name {
            None => Err(ErrorCode::UNKNOWN_TOPIC_ID.into()),
            Some(_) if !(ALL_REPLICAS..=1).contains(&acks) => Err(ErrorCode::INVALID_REQUIRED_ACKS.into()),
            Some(name) => append(state, call, acks, transactional, name, partition),
        };
        if let Ok((id, accepted)) = &result {
            touched.push(((*id, index), accepted.appended));
        }
        partition_responses.push(response(index, result.map(|(_, accepted)| accepted)));
    }
    TopicProduceResponse { name: data.name, topic_id: data.topic_id, partition_responses }
}

fn response(index: i32, result: Result<Accepted, Refused>) -> PartitionProduceResponse {
    match result {
        Ok(accepted) => PartitionProduceResponse {
            index,
            base_offset: accepted.appended.base_offset,
            log_append_time_ms: accepted.append_time.unwrap_or(-1),
            log_start_offset: accepted.log_start,
            ..Default::default()
        },
        Err(refused) => PartitionProduceResponse {
            index,
            error_code: refused.code,
            base_offset: -1,
            record_errors: refused.record_errors,
            error_message: refused.message,
            current_leader: refused.current_leader,
            ..Default::default()
        },
    }
}

fn append(
    state: &mut BrokerState,
    call: &Call,
    acks: i16,
    transactional: Option<&str>,
    name: &str,
    data: PartitionProduceData,
) -> Result<(Uuid, Accepted), Refused> {
    if is_internal(name) {
        let message = format!("Cannot append to internal topic {name}");
        return Err(Refused::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    let now_ms = state.unix_ms(call.now);
    let up = state.nodes_up();
    let topic = state.topics.get_mut(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    check_place(topic, data.index, call.node, acks, &up)?;
    let stored = topic.partition(data.index).map_or(0, |partition| partition.stored);
    state.unstored(stored)?;
    let topic = state.topics.get_mut(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let batch = the_batch(data.records.unwrap_or_default())?;
    if batch.is_transactional() {
        check_transaction(&state.transactions, transactional, &batch, (name.to_owned(), data.index))?;
    }
    validate(&batch, &topic.settings, call.version, now_ms)?;
    let append_time = topic.settings.log_append_time.then_some(now_ms);
    let id = topic.id;
    let oldest_tombstone =
        topic.settings.compact.then(|| now_ms.saturating_sub(topic.settings.delete_retention_ms));
    let partition = topic.partition_mut(data.index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let appended = partition.log.append(batch, partition.leader_epoch, append_time, now_ms)?;
    let log_start = partition.log.start();
    if let Some(oldest) = oldest_tombstone {
        state.compact_if_grown(LogKey::Partition(id, data.index), oldest);
    }
    Ok((id, Accepted { appended, append_time, log_start }))
}

fn check_place(topic: &Topic, index: i32, node: NodeId, acks: i16, up: &[NodeId]) -> Result<(), Refused> {
    let partition = topic.partition(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if let Err(code) = check_leader(partition, node, -1) {
        let leader_id = partition.leader.unwrap_or(-1);
        let current_leader = LeaderIdAndEpoch { leader_id, leader_epoch: partition.leader_epoch };
        return Err(Refused { code, current_leader, ..Refused::default() });
    }
    let in_sync = partition.replicas.iter().filter(|replica| up.contains(replica)).count();
    if acks == ALL_REPLICAS && in_sync < topic.settings.min_insync_replicas {
        return Err(ErrorCode::NOT_ENOUGH_REPLICAS.into());
    }
    Ok(())
}

fn check_transaction(
    transactions: &Transactions,
    id: Option<&str>,
    batch: &RecordBatch,
    place: Place,
) -> Result<(), Refused> {
    let id = id.ok_or_else(|| {
        Refused::new(
            ErrorCode::INVALID_RECORD,
            "a batch of a transaction needs the request's transactional id",
        )
    })?;
    let producer = (batch.producer_id(), batch.producer_epoch());
    Ok(transactions.may_write(id, producer, &place)?)
}

/// The one batch that a partition's records must be.
fn the_batch(mut records: Bytes) -> Result<RecordBatch, Refused> {
    let batch = RecordBatch::parse(&mut records).map_err(refused_batch)?;
    match batch {
        Some(batch) if records.is_empty() => Ok(batch),
        Some(_) => Err(Refused::new(
            ErrorCode::INVALID_RECORD,
            "Produce requests with version 3 and above must contain exactly one record batch",
        )),
        None => Err(Refused::new(
            ErrorCode::INVALID_RECORD,
            "Produce requests with version 3 and above must have at least one whole record batch",
        )),
    }
}

fn refused_batch(error: BatchError) -> Refused {
    let code = match &error {
        BatchError::UnsupportedMagic { .. } => ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT,
        BatchError::UnknownCompression { .. } => ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
        BatchError::BadRecord { .. } | BatchError::BadHeader { .. } => ErrorCode::INVALID_RECORD,
        _ => ErrorCode::CORRUPT_MESSAGE,
    };
    Refused::new(code, error.to_string())
}

fn validate(batch: &RecordBatch, settings: &TopicSettings, version: i16, now_ms: i64) -> Result<(), Refused> {
    if batch.size() > settings.max_message_bytes {
        return Err(Refused::new(
            ErrorCode::MESSAGE_TOO_LARGE,
            format!(
                "The record batch size is {} bytes which exceeds the maximum configured value of {}.",
                batch.size(),
                settings.max_message_bytes
            ),
        ));
    }
    if batch.is_control() || batch.record_count() == 0 {
        return Err(Refused::new(
            ErrorCode::INVALID_RECORD,
            "clients may not write control records or empty batches",
        ));
    }
    if i64::from(batch.record_count()) != batch.next_offset() - batch.base_offset() {
        return Err(Refused::new(ErrorCode::INVALID_RECORD, "the batch has gaps between its offsets"));
    }
    if batch.compression() == Compression::Zstd && version < WITH_ZSTD {
        return Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE.into());
    }
    validate_records(batch, settings, now_ms)
}

/// What is inside a batch is looked at as well: what a broker took, every consumer must be able to read.
fn validate_records(batch: &RecordBatch, settings: &TopicSettings, now_ms: i64) -> Result<(), Refused> {
    let earliest = now_ms.saturating_sub(settings.timestamp_before_max_ms);
    let latest = now_ms.saturating_add(settings.timestamp_after_max_ms);
    let records = batch.records().map_err(refused_batch)?;
    let mut refused = Refused::default();
    for (index, record) in (0..).zip(records.iter()) {
        let record = record.map_err(refused_batch)?;
        let wrong = if settings.compact && record.key().is_none() {
            Some((ErrorCode::INVALID_RECORD, "Compacted topic cannot accept message without key"))
        } else if !settings.log_append_time && !(earliest..=latest).contains(&record.timestamp()) {
            Some((ErrorCode::INVALID_TIMESTAMP, "the timestamp is too far from the broker's clock"))
        } else {
            None
        };
        if let Some((code, why)) = wrong {
            refused.code = code;
            refused.message = Some("One or more records have been rejected".into());
            refused.record_errors.push(BatchIndexAndErrorMessage {
                batch_index: index,
                batch_index_error_message: Some(why.into()),
            });
        }
    }
    if refused.code.is_err() { Err(refused) } else { Ok(()) }
}

/// Where the leaders are that the answer names (KIP-951).
fn endpoints(state: &BrokerState, responses: &[TopicProduceResponse]) -> Vec<NodeEndpoint> {
    let partitions = responses.iter().flat_map(|topic| &topic.partition_responses);
    let leaders: BTreeSet<NodeId> = partitions
        .map(|partition| partition.current_leader.leader_id)
        .filter(|leader| *leader >= 0)
        .collect();
    let endpoint = |node_id: NodeId| {
        let node = state.nodes.get(&node_id)?;
        let rack = node.rack.as_deref().map(str::to_owned);
        Some(NodeEndpoint { node_id, host: node.host.clone(), port: i32::from(node.port), rack })
    };
    leaders.into_iter().filter_map(endpoint).collect()
}
