//! Fetch: whole batches from many partitions, waiting for them when there are none. Mirrors
//! `KafkaApis.handleFetchRequest` and `ReplicaManager.fetchMessages`.

use super::place::check_leader;
use crate::cluster::NodeId;
use crate::sessions::{Kind, NO_SESSION, Opening};
use crate::state::{Answer, BrokerState, Call};
use crate::topics::{Partition, Topic};
use bytes::Bytes;
use std::sync::Arc;
use tontine_group::Instant;
use tontine_group::time::Duration;
use tontine_wire::api::fetch::{
    AbortedTransaction, EpochEndOffset, FetchPartition, FetchRequest, FetchResponse, FetchableTopicResponse,
    LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use tontine_wire::{ErrorCode, Uuid};

const READ_COMMITTED: i8 = 1;
/// From this version on, topics go by their ids.
const WITH_TOPIC_IDS: i16 = 13;

/// How a request names a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TopicKey {
    Id(Uuid),
    Name(Arc<str>),
}

/// One partition that is fetched.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    topic: TopicKey,
    wanted: FetchPartition,
}

impl Item {
    /// What tells it from others in a session.
    pub(crate) fn key(&self) -> (TopicKey, i32) {
        (self.topic.clone(), self.wanted.partition)
    }
}

/// A fetch that was taken in and may be waiting.
#[derive(Debug)]
pub(crate) struct Fetch {
    node: NodeId,
    version: i16,
    kind: Kind,
    items: Vec<Item>,
    max_bytes: usize,
    /// Only what lies before the first transaction that is not over.
    committed: bool,
}

/// What was read for a whole fetch.
struct Reading {
    data: Vec<PartitionData>,
    bytes: usize,
    /// Something that has to be told at once: an error, or that the consumer's epoch ended earlier.
    urgent: bool,
    partitions: Vec<(Uuid, i32)>,
}

pub(super) fn answer(state: &mut BrokerState, call: &Call, request: FetchRequest) -> Answer {
    let with_ids = call.version >= WITH_TOPIC_IDS;
    let max_wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let min_bytes = usize::try_from(request.min_bytes).unwrap_or(0);
    let max_bytes = usize::try_from(request.max_bytes).unwrap_or(0).min(state.settings.fetch_max_bytes);
    // Nobody gets more than the limit, so nobody waits for more, nor for anything where it is the room that is small.
    let room = state.largest_answer();
    let min_bytes = if room < max_bytes { min_bytes.min(1) } else { min_bytes.min(max_bytes) };
    let max_bytes = max_bytes.min(room);
    let committed = request.isolation_level == READ_COMMITTED;
    let opening = opening(request, with_ids);
    let opened = state.sessions.entry(call.node).or_default().open(call.now, opening);
    let (kind, items) = match opened {
        Ok(opened) => opened,
        Err(error_code) => return Answer::Now(FetchResponse { error_code, ..Default::default() }.into()),
    };
    let fetch = Fetch { node: call.node, version: call.version, kind, items, max_bytes, committed };
    let reading = read(state, &fetch);
    if max_wait.is_zero()
        || state.winding_down
        || fetch.items.is_empty()
        || reading.urgent
        || reading.bytes >= min_bytes
    {
        return Answer::Now(respond(state, call.now, fetch, reading).into());
    }
    let ticket = state.park_call(call, None);
    let missing = min_bytes - reading.bytes;
    state.parked.park(ticket, fetch, call.now + max_wait, reading.partitions, missing);
    Answer::Later
}

/// Reads again and answers, whatever there is now.
pub(crate) fn finish(state: &mut BrokerState, now: Instant, mut fetch: Fetch) -> FetchResponse {
    fetch.max_bytes = fetch.max_bytes.min(state.largest_answer());
    let reading = read(state, &fetch);
    respond(state, now, fetch, reading)
}

fn opening(request: FetchRequest, with_ids: bool) -> Opening {
    let mut items = Vec::new();
    for topic in request.topics {
        let key = if with_ids { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(topic.topic.into()) };
        items.extend(topic.partitions.into_iter().map(|wanted| Item { topic: key.clone(), wanted }));
    }
    let mut forgotten = Vec::new();
    for topic in request.forgotten_topics_data {
        let key = if with_ids { TopicKey::Id(topic.topic_id) } else { TopicKey::Name(topic.topic.into()) };
        forgotten.extend(topic.partitions.into_iter().map(|partition| (key.clone(), partition)));
    }
    Opening {
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        items,
        forgotten,
        uses_topic_ids: with_ids,
    }
}

fn find<'s>(state: &'s BrokerState, key: &TopicKey) -> Result<&'s Topic, ErrorCode> {
    match key {
        TopicKey::Name(name) => state.topics.get(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        TopicKey::Id(id) => {
            let name = state.topics.name_of(*id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
            state.topics.get(name).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
        }
    }
}

fn read(state: &BrokerState, fetch: &Fetch) -> Reading {
    let mut reading = Reading {
        data: Vec::with_capacity(fetch.items.len()),
        bytes: 0,
        urgent: false,
        partitions: Vec::new(),
    };
    for item in &fetch.items {
        let data = match find(state, &item.topic) {
            Err(code) => failed(&item.wanted, code),
            Ok(topic) => match topic.partition(item.wanted.partition) {
                None => failed(&item.wanted, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
                Some(partition) => {
                    reading.partitions.push((topic.id, item.wanted.partition));
                    read_partition(fetch, &item.wanted, partition, reading.bytes)
                }
            },
        };
        reading.bytes += data.records.as_ref().map_or(0, Bytes::len);
        reading.urgent |= data.error_code.is_err() || data.diverging_epoch.epoch >= 0;
        reading.data.push(data);
    }
    reading
}

fn read_partition(
    fetch: &Fetch,
    wanted: &FetchPartition,
    partition: &Partition,
    used: usize,
) -> PartitionData {
    if let Err(code) = check_leader(partition, fetch.node, wanted.current_leader_epoch) {
        let mut data = failed(wanted, code);
        if matches!(code, ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::FENCED_LEADER_EPOCH) {
            data.current_leader = leader_of(partition);
        }
        return data;
    }
    match read_records(fetch, wanted, partition, used) {
        Err(code) => failed(wanted, code),
        Ok((records, aborted, diverging_epoch)) => PartitionData {
            partition_index: wanted.partition,
            high_watermark: partition.log.high_watermark(),
            last_stable_offset: partition.log.last_stable(),
            log_start_offset: partition.log.start(),
            diverging_epoch,
            aborted_transactions: aborted,
            records: Some(records),
            ..Default::default()
        },
    }
}

/// The limits are soft: the first partition with records answers one batch however large it is.
fn read_records(
    fetch: &Fetch,
    wanted: &FetchPartition,
    partition: &Partition,
    used: usize,
) -> Result<(Bytes, Option<Vec<AbortedTransaction>>, EpochEndOffset), ErrorCode> {
    let log = &partition.log;
    if wanted.last_fetched_epoch >= 0 {
        let end = log.end_of_epoch(wanted.last_fetched_epoch).ok_or(ErrorCode::OFFSET_OUT_OF_RANGE)?;
        if end.epoch < wanted.last_fetched_epoch || end.end_offset < wanted.fetch_offset {
            let diverging = EpochEndOffset { epoch: end.epoch, end_offset: end.end_offset };
            return Ok((Bytes::new(), fetch.committed.then(Vec::new), diverging));
        }
    }
    let most =
        usize::try_from(wanted.partition_max_bytes).unwrap_or(0).min(fetch.max_bytes.saturating_sub(used));
    if !fetch.committed {
        return Ok((log.read(wanted.fetch_offset, most, used == 0)?, None, EpochEndOffset::default()));
    }
    let (records, aborted) = log.read_stable(wanted.fetch_offset, most, used == 0)?;
    let aborted = aborted
        .into_iter()
        .map(|aborted| AbortedTransaction { producer_id: aborted.producer_id, first_offset: aborted.first });
    Ok((records, Some(aborted.collect()), EpochEndOffset::default()))
}

fn leader_of(partition: &Partition) -> LeaderIdAndEpoch {
    LeaderIdAndEpoch { leader_id: partition.leader.unwrap_or(-1), leader_epoch: partition.leader_epoch }
}

/// Records are empty, not null: librdkafka does not take null.
fn failed(wanted: &FetchPartition, error_code: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index: wanted.partition,
        error_code,
        high_watermark: -1,
        records: Some(Bytes::new()),
        ..Default::default()
    }
}

fn respond(state: &mut BrokerState, now: Instant, fetch: Fetch, reading: Reading) -> FetchResponse {
    let node_endpoints = endpoints(state, fetch.version, &reading.data);
    let slots = state.settings.fetch_session_slots;
    let sessions = state.sessions.entry(fetch.node).or_default();
    let session_id = match fetch.kind {
        Kind::Sessionless => NO_SESSION,
        Kind::Full => {
            let with_ids = fetch.version >= WITH_TOPIC_IDS;
            sessions.begin(now, slots, &mut state.random, &fetch.items, with_ids)
        }
        Kind::Incremental(id) => id,
    };
    let mut response = FetchResponse { session_id, node_endpoints, ..Default::default() };
    for (item, data) in fetch.items.iter().zip(reading.data) {
        let news = session_id == NO_SESSION || sessions.tell(session_id, item, &data);
        if news || !matches!(fetch.kind, Kind::Incremental(_)) {
            push(&mut response.responses, item, data);
        }
    }
    response
}

/// Adds a partition to its topic, or begins the topic: partitions of one topic mostly come one after the other.
fn push(responses: &mut Vec<FetchableTopicResponse>, item: &Item, data: PartitionData) {
    let (id, name) = match &item.topic {
        TopicKey::Id(id) => (*id, ""),
        TopicKey::Name(name) => (Uuid::ZERO, &**name),
    };
    match responses.last_mut() {
        Some(last) if last.topic_id == id && last.topic == name => last.partitions.push(data),
        _ => responses.push(FetchableTopicResponse {
            topic: name.to_owned(),
            topic_id: id,
            partitions: vec![data],
        }),
    }
}

/// Where the leaders are that the answer names (KIP-951).
fn endpoints(state: &BrokerState, version: i16, data: &[PartitionData]) -> Vec<NodeEndpoint> {
    if version < 16 {
        return Vec::new();
    }
    let leaders: std::collections::BTreeSet<NodeId> =
        data.iter().map(|data| data.current_leader.leader_id).filter(|leader| *leader >= 0).collect();
    let endpoint = |node_id: NodeId| {
        let node = state.nodes.get(&node_id)?;
        let rack = node.rack.as_deref().map(str::to_owned);
        Some(NodeEndpoint { node_id, host: node.host.clone(), port: i32::from(node.port), rack })
    };
    leaders.into_iter().filter_map(endpoint).collect()
}
