//! The machine of a producer: takes records, finds their partitions, sends batches to leaders, tries again.
//!
//! Pure. `D` is handed back with the fate of a record, `F` when a flush is done. Mirrors Kafka's `Sender`,
//! `RecordAccumulator` and the idempotent part of `TransactionManager`.

use super::{
    batch::{Batch, Entry, Identity, Queue},
    partitioner::Sticky,
    record::{ProducerRecord, RecordMetadata},
};
use crate::{
    Error,
    cluster::{
        Cluster, ClusterOutput, ConnId, Lane, Target, Ticket,
        backoff::{Jitter, backoff},
    },
    config::ProducerConfig,
    machine::{Machine, MachineOutput},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};
use tontine_group::{Instant, TopicPartition, time::soonest};
use tontine_wire::{ErrorCode, api::init_producer_id, records::Compression};

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
    pub(super) unplaced: BTreeMap<Arc<str>, VecDeque<(Instant, Entry<D>)>>,
    /// How many answers to a question for metadata have come.
    pub(super) looks: u64,
    pub(super) topics: BTreeSet<Arc<str>>,
    pub(super) sticky: Sticky,
    pub(super) next_order: u64,
    /// Everything up to this order leaves without lingering.
    pub(super) hurry: u64,
    flushes: Vec<(u64, F)>,
    pub(super) abandoned: bool,
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
    pub(super) fn number(self) -> i16 {
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
