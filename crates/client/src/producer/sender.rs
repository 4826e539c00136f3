//! The machine of a producer: takes records, finds their partitions, sends batches to leaders, tries again.
//!
//! Pure. `D` is handed back with the fate of a record, `F` when a flush is done. Mirrors Kafka's `Sender`,
//! `RecordAccumulator` and the idempotent part of `TransactionManager`.

use super::{
    batch::{Batch, Entry, Identity, Queue, next_sequence},
    partitioner::{self, Sticky},
    record::{ProducerRecord, RecordMetadata},
};
use crate::{
    Error,
    cluster::{
        Cluster, ClusterOutput, ConnId, Lane, Target, Ticket, TopicsOfInterest,
        backoff::{Jitter, backoff},
    },
    config::ProducerConfig,
    machine::{Machine, MachineOutput},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tontine_group::{Instant, TopicPartition, time::soonest};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{ApiKey, init_producer_id, produce},
    records::Compression,
};

/// What a producer is asked.
#[derive(Debug)]
pub enum Command<D, F> {
    /// Send a record.
    Send {
        /// Which.
        record: ProducerRecord,
        /// Its timestamp.
        timestamp: i64,
        /// Handed back with its fate.
        token: D,
    },
    /// Send everything now, and tell when what was given before is done.
    Flush(F),
}

/// What a producer tells.
#[derive(Debug)]
pub enum Event<D, F> {
    /// A record is stored, or never will be.
    Delivered(D, Result<RecordMetadata, Error>),
    /// A flush is done.
    Flushed(F),
}

/// The machine of a producer.
#[derive(Debug)]
pub struct Sender<D, F> {
    pub(super) config: ProducerConfig,
    pub(super) compression: Compression,
    pub(super) cluster: Cluster,
    pub(super) jitter: Jitter,
    pub(super) now: Instant,
    pub(super) queues: BTreeMap<TopicPartition, Queue<D>>,
    pub(super) under_way: BTreeMap<Ticket, Sent<D>>,
    pub(super) identity: Known,
    pub(super) events: VecDeque<Event<D, F>>,
    unplaced: BTreeMap<Arc<str>, VecDeque<(Instant, Entry<D>)>>,
    /// How many answers to a question for metadata have come.
    looks: u64,
    topics: BTreeSet<Arc<str>>,
    sticky: Sticky,
    next_order: u64,
    /// Everything up to this order leaves without lingering.
    hurry: u64,
    flushes: Vec<(u64, F)>,
    abandoned: bool,
    is_dirty: bool,
    wake: Option<Instant>,
}

/// A request that has been sent.
#[derive(Debug)]
pub(super) struct Sent<D> {
    pub(super) node: i32,
    pub(super) batches: Vec<(TopicPartition, Batch<D>)>,
}

/// What is known of the producer's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// None is needed.
    Anonymous,
    /// One has to be asked for, in place of the old one if there is one, not before this time.
    Needed { old: Option<Identity>, attempts: u32, not_before: Instant },
    /// It is being asked for.
    Asked { old: Option<Identity>, attempts: u32, ticket: Ticket },
    /// This is it.
    Is(Identity),
}

impl<D, F> Sender<D, F> {
    /// A producer with these settings.
    pub fn new(config: ProducerConfig, seed: u64) -> Result<Self, Error> {
        let mut settings = config.cluster_settings()?;
        settings.allow_auto_topic_creation = config.allow_auto_create_topics;
        let identity = match config.idempotent() {
            true => Known::Needed { old: None, attempts: 0, not_before: Instant::ZERO },
            false => Known::Anonymous,
        };
        Ok(Self {
            compression: config.compression_type.into(),
            cluster: Cluster::new(settings, seed),
            jitter: Jitter::new(seed.wrapping_add(1)),
            now: Instant::ZERO,
            queues: BTreeMap::new(),
            under_way: BTreeMap::new(),
            identity,
            events: VecDeque::new(),
            unplaced: BTreeMap::new(),
            looks: 0,
            topics: BTreeSet::new(),
            sticky: Sticky::default(),
            next_order: 1,
            hurry: 0,
            flushes: Vec::new(),
            abandoned: false,
            is_dirty: false,
            wake: None,
            config,
        })
    }

    fn accept(&mut self, record: ProducerRecord, timestamp: i64, token: D) {
        if self.topics.insert(record.topic.clone()) {
            self.cluster.set_topics(self.now, TopicsOfInterest::Names(self.topics.clone()));
        }
        let order = self.next_order;
        self.next_order += 1;
        let topic = record.topic.clone();
        let entry = Entry { order, record, timestamp, token, looked_at: None };
        // Records of a topic that waits for metadata must not be overtaken by later ones.
        if self.unplaced.contains_key(&topic) {
            let deadline = self.now + self.config.max_block;
            self.unplaced.entry(topic).or_default().push_back((deadline, entry));
        } else if let Some(entry) = self.place(entry) {
            let deadline = self.now + self.config.max_block;
            self.unplaced.entry(topic).or_default().push_back((deadline, entry));
        }
    }

    /// Puts a record into the queue of its partition; gives it back while the topic is not known.
    fn place(&mut self, mut entry: Entry<D>) -> Option<Entry<D>> {
        let metadata = self.cluster.metadata();
        let usable =
            metadata.topic(&entry.record.topic).filter(|t| t.error.is_ok() && !t.partitions.is_empty());
        let Some(topic) = usable else { return Some(entry) };
        let size = entry.record.size();
        let limit = usize::try_from(self.config.batch_size).unwrap_or(0);
        let count = topic.partitions.len();
        let partition = match (entry.record.partition, &entry.record.key) {
            (Some(partition), _) => partition,
            (None, Some(key)) => partitioner::for_key(key, count),
            (None, None) => self.sticky.choose(topic, size, limit.max(1), &mut self.jitter),
        };
        if !topic.partitions.contains_key(&partition) {
            // The topic may have grown since the last look. An answer that was on its way already proves nothing, so
            // it takes a second one to be sure.
            let looked_at = *entry.looked_at.get_or_insert(self.looks);
            if self.looks < looked_at + 2 {
                self.cluster.refresh_metadata(self.now);
                return Some(entry);
            }
            let what =
                format!("topic `{}` has partitions 0 to {}, no partition {partition}", topic.name, count - 1);
            self.events.push_back(Event::Delivered(entry.token, Err(Error::misuse(what))));
            return None;
        }
        let tp = TopicPartition::new(topic.name.clone(), partition);
        let deadline = self.now + self.config.delivery_timeout;
        self.queues.entry(tp).or_default().push(self.now, entry, size, limit, deadline);
        None
    }

    fn place_waiting(&mut self) {
        for topic in self.unplaced.keys().cloned().collect::<Vec<_>>() {
            let refused = self.cluster.metadata().topic(&topic).map(|t| t.error);
            let refused = refused.filter(|code| code.is_err() && !code.is_retriable());
            let Some(mut waiting) = self.unplaced.remove(&topic) else { continue };
            while let Some((deadline, entry)) = waiting.pop_front() {
                if let Some(code) = refused {
                    let error = Error::broker(code, format!("sending to topic `{topic}`"), None);
                    self.events.push_back(Event::Delivered(entry.token, Err(error)));
                } else if deadline <= self.now {
                    let error = self.no_metadata(&topic);
                    self.events.push_back(Event::Delivered(entry.token, Err(error)));
                } else if let Some(entry) = self.place(entry) {
                    waiting.push_front((deadline, entry));
                    break;
                }
            }
            if !waiting.is_empty() {
                self.unplaced.insert(topic, waiting);
            }
        }
    }

    fn no_metadata(&self, topic: &str) -> Error {
        let why = match self.cluster.metadata().topic(topic) {
            Some(t) if t.error.is_err() => {
                Some(format!("the broker answered {} for the topic", t.error).into())
            }
            Some(_) | None => self.cluster.last_error(),
        };
        let what = format!("finding the leaders of topic `{topic}`");
        Error::Timeout { what, after: self.config.max_block, why }
    }

    /// Does what can be done now, and works out when to look again.
    fn pump(&mut self) {
        self.place_waiting();
        self.expire();
        self.ask_for_identity();
        let wake = self.send_what_is_ready();
        self.end_flushes();
        self.wake = soonest(wake, self.next_deadline());
    }

    fn expire(&mut self) {
        let mut unsure = false;
        for (tp, queue) in &mut self.queues {
            for batch in queue.expired(self.now) {
                // The broker may have it all the same: what follows cannot go on with the next sequence number.
                unsure |= batch.sequence.is_some();
                let (what, after) = (format!("sending to {tp}"), self.config.delivery_timeout);
                let why = queue.last_error.clone().or_else(|| self.cluster.last_error());
                let error = Error::Timeout { what, after, why };
                let failed = |e: Entry<D>| Event::Delivered(e.token, Err(error.clone()));
                self.events.extend(batch.entries.into_iter().map(failed));
            }
        }
        if unsure {
            self.renew_identity();
        }
    }

    fn ask_for_identity(&mut self) {
        let Known::Needed { old, attempts, not_before } = self.identity else { return };
        // With the new identity sequence numbers start again, so nothing of the old one may be under way.
        let is_needed = self.queues.values().any(|q| !q.waiting.is_empty()) && self.under_way.is_empty();
        if !is_needed || not_before > self.now {
            return;
        }
        let request = init_producer_id::InitProducerIdRequest {
            transaction_timeout_ms: i32::MAX,
            producer_id: old.map_or(-1, |i| i.id),
            producer_epoch: old.map_or(-1, |i| i.epoch),
            ..Default::default()
        };
        let timeout = self.config.request_timeout;
        let ticket = self.cluster.send(self.now, Target::Any, Lane::Other, request.into(), timeout);
        self.identity = Known::Asked { old, attempts, ticket };
    }

    fn send_what_is_ready(&mut self) -> Option<Instant> {
        let identity = match self.identity {
            Known::Anonymous => None,
            Known::Is(identity) => Some(identity),
            Known::Needed { not_before, .. } => return Some(not_before).filter(|at| *at > self.now),
            Known::Asked { .. } => return None,
        };
        let mut wake = None;
        let mut by_leader: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        for (tp, queue) in &self.queues {
            match self.ready(queue) {
                Ready::Now => match self.cluster.metadata().leader(tp) {
                    Some(leader) => by_leader.entry(leader).or_default().push(tp.clone()),
                    None => wake = soonest(wake, Some(self.now + self.config.retry_backoff)),
                },
                Ready::Later(at) => wake = soonest(wake, Some(at)),
                Ready::Not => {}
            }
        }
        for (leader, partitions) in by_leader {
            self.send_to(leader, partitions, identity);
        }
        let leaderless = |(tp, q): (&TopicPartition, &Queue<D>)| {
            !q.waiting.is_empty() && self.cluster.metadata().leader(tp).is_none()
        };
        if self.queues.iter().any(leaderless) {
            self.cluster.refresh_metadata(self.now);
        }
        wake
    }

    fn ready(&self, queue: &Queue<D>) -> Ready {
        // Without sequence numbers a broker cannot keep the order of several batches: one at a time.
        let most = if matches!(self.identity, Known::Anonymous) { 1 } else { self.max_in_flight() };
        let Some(batch) = queue.waiting.front() else { return Ready::Not };
        if queue.is_held() || queue.under_way >= most {
            return Ready::Not;
        }
        if queue.not_before > self.now {
            return Ready::Later(queue.not_before);
        }
        let is_full =
            batch.size >= usize::try_from(self.config.batch_size).unwrap_or(0) || queue.waiting.len() > 1;
        let at = batch.created + self.config.linger;
        if is_full || batch.attempts > 0 || batch.order() <= self.hurry || self.abandoned || at <= self.now {
            return Ready::Now;
        }
        Ready::Later(at)
    }

    fn max_in_flight(&self) -> usize {
        usize::try_from(self.config.max_in_flight).unwrap_or(1).max(1)
    }

    /// Sends requests to one leader: each has one batch of every partition, as far as the size allows.
    fn send_to(&mut self, leader: i32, mut partitions: Vec<TopicPartition>, identity: Option<Identity>) {
        let limit = usize::try_from(self.config.max_request_size).unwrap_or(0);
        while !partitions.is_empty() {
            let loaded = self.under_way.values().filter(|s| s.node == leader).count();
            if loaded >= self.max_in_flight() {
                return;
            }
            let mut batches = Vec::new();
            let mut size = 0;
            for tp in &partitions {
                let Some(queue) = self.queues.get_mut(tp) else { continue };
                let moved = queue.under_way > 0 && queue.sent_to != leader;
                let fits = |b: &Batch<D>| !moved && (size == 0 || size + b.size <= limit);
                if !queue.waiting.front().is_some_and(fits) {
                    continue;
                }
                let Some(mut batch) = queue.waiting.pop_front() else { continue };
                size += batch.size;
                if identity.is_some() && batch.sequence.is_none() {
                    batch.sequence = Some(queue.next_sequence);
                    queue.next_sequence = next_sequence(queue.next_sequence, batch.entries.len());
                }
                batch.attempts += 1;
                queue.under_way += 1;
                queue.sent_to = leader;
                batches.push((tp.clone(), batch));
            }
            if batches.is_empty() {
                return;
            }
            self.send_request(leader, batches, identity);
            partitions.retain(|tp| self.queues.get(tp).is_some_and(|q| matches!(self.ready(q), Ready::Now)));
        }
    }

    fn send_request(
        &mut self,
        leader: i32,
        batches: Vec<(TopicPartition, Batch<D>)>,
        identity: Option<Identity>,
    ) {
        let mut topics: BTreeMap<Arc<str>, Vec<produce::PartitionProduceData>> = BTreeMap::new();
        let mut sent = Vec::new();
        let mut left = self.config.request_timeout;
        for (tp, batch) in batches {
            match batch.build(self.compression, identity) {
                Ok(bytes) => {
                    let data = produce::PartitionProduceData { index: tp.partition, records: Some(bytes) };
                    topics.entry(tp.topic.clone()).or_default().push(data);
                    left = left.min(batch.deadline - self.now);
                    sent.push((tp, batch));
                }
                Err(error) => self.give_up(&tp, batch, &error),
            }
        }
        if sent.is_empty() {
            return;
        }
        let mut has_ids = true;
        let mut topic_data = Vec::new();
        for (name, partition_data) in topics {
            let topic_id = self.cluster.metadata().topic(&name).map_or(Uuid::ZERO, |t| t.id);
            has_ids &= !topic_id.is_zero();
            topic_data.push(produce::TopicProduceData { name: name.to_string(), topic_id, partition_data });
        }
        let timeout_ms = i32::try_from(self.config.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let acks = self.config.acks.number();
        let request = produce::ProduceRequest { transactional_id: None, acks, timeout_ms, topic_data };
        let at_most = if has_ids { i16::MAX } else { LAST_WITH_NAMES };
        let left = left.max(Duration::from_millis(1));
        let target = Target::Node(leader);
        let ticket =
            self.cluster.send_at_most(self.now, target, Lane::Produce, request.into(), left, at_most);
        self.under_way.insert(ticket, Sent { node: leader, batches: sent });
    }

    fn end_flushes(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        let queued = self.queues.values().filter_map(Queue::oldest);
        let sent = self.under_way.values().flat_map(|s| &s.batches).map(|(_, b)| b.order());
        let unplaced = self.unplaced.values().flatten().map(|(_, e)| e.order);
        let oldest = queued.chain(sent).chain(unplaced).min().unwrap_or(u64::MAX);
        let done: Vec<_> = self.flushes.extract_if(.., |(order, _)| *order < oldest).collect();
        self.events.extend(done.into_iter().map(|(_, token)| Event::Flushed(token)));
    }

    fn next_deadline(&self) -> Option<Instant> {
        let queued = self.queues.values().filter_map(Queue::next_deadline).min();
        let unplaced = self.unplaced.values().filter_map(|w| w.front()).map(|(at, _)| *at).min();
        soonest(queued, unplaced)
    }

    fn is_idle(&self) -> bool {
        self.unplaced.is_empty() && self.under_way.is_empty() && self.queues.values().all(Queue::is_idle)
    }

    pub(super) fn pause(&mut self, attempts: u32) -> Instant {
        self.now
            + backoff(self.config.retry_backoff, self.config.retry_backoff_max, attempts, &mut self.jitter)
    }

    fn touch(&mut self, now: Instant) {
        self.now = now;
        self.is_dirty = true;
    }

    /// Passes on what the cluster wants done; `None` when it wants nothing any more.
    fn poll_cluster(&mut self) -> Result<MachineOutput<Event<D, F>>, Option<Instant>> {
        loop {
            match self.cluster.poll_output() {
                ClusterOutput::Connect { conn, host, port } => {
                    return Ok(MachineOutput::Connect { conn, host, port });
                }
                ClusterOutput::Write { conn, bytes } => return Ok(MachineOutput::Write { conn, bytes }),
                ClusterOutput::Close { conn } => return Ok(MachineOutput::Close { conn }),
                ClusterOutput::Response { ticket, result } => {
                    self.is_dirty = true;
                    self.answered(ticket, result);
                }
                ClusterOutput::MetadataChanged => {
                    self.looks += 1;
                    self.is_dirty = true;
                }
                ClusterOutput::CoordinatorFound { .. }
                | ClusterOutput::CoordinatorLost { .. }
                | ClusterOutput::CoordinatorRefused { .. } => {}
                ClusterOutput::Wait(until) => return Err(until),
            }
        }
    }
}

/// The last version of Produce that names topics instead of giving their ids.
const LAST_WITH_NAMES: i16 = 12;
const _: () = assert!(ApiKey::Produce as i16 == 0);

enum Ready {
    Now,
    Later(Instant),
    Not,
}

impl<D: Send + 'static, F: Send + 'static> Machine for Sender<D, F> {
    type Command = Command<D, F>;
    type Event = Event<D, F>;

    fn handle_command(&mut self, now: Instant, command: Command<D, F>) {
        self.touch(now);
        match command {
            Command::Send { record, timestamp, token } => self.accept(record, timestamp, token),
            Command::Flush(token) => {
                self.hurry = self.next_order - 1;
                self.flushes.push((self.hurry, token));
            }
        }
    }

    fn handle_abandoned(&mut self, now: Instant) {
        self.touch(now);
        self.abandoned = true;
    }

    fn handle_connected(&mut self, now: Instant, conn: ConnId) {
        self.touch(now);
        self.cluster.handle_connected(now, conn);
    }

    fn handle_disconnected(&mut self, now: Instant, conn: ConnId, why: String) {
        self.touch(now);
        self.cluster.handle_disconnected(now, conn, &why);
    }

    fn handle_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes) {
        self.touch(now);
        self.cluster.handle_frame(now, conn, frame);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.touch(now);
        self.cluster.handle_timeout(now);
    }

    fn poll_output(&mut self) -> MachineOutput<Event<D, F>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return MachineOutput::Event(event);
            }
            let until = match self.poll_cluster() {
                Ok(output) => return output,
                Err(until) => until,
            };
            if std::mem::take(&mut self.is_dirty) {
                self.pump();
            } else if !self.events.is_empty() {
                continue;
            } else if self.abandoned && self.is_idle() {
                return MachineOutput::Stop;
            } else {
                return MachineOutput::Wait(soonest(until, self.wake));
            }
        }
    }
}

impl crate::config::Acks {
    fn number(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

impl From<crate::config::CompressionType> for Compression {
    fn from(kind: crate::config::CompressionType) -> Self {
        use crate::config::CompressionType as Kind;
        match kind {
            Kind::None => Self::None,
            Kind::Gzip => Self::Gzip,
            Kind::Snappy => Self::Snappy,
            Kind::Lz4 => Self::Lz4,
            Kind::Zstd => Self::Zstd,
        }
    }
}

/// Whether this code says that the broker lost track of the producer, or the producer of the broker.
pub(super) fn is_about_identity(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
            | ErrorCode::UNKNOWN_PRODUCER_ID
            | ErrorCode::INVALID_PRODUCER_EPOCH
            | ErrorCode::INVALID_PRODUCER_ID_MAPPING
    )
}
