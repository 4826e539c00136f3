//! The whole cluster as one value that is driven from outside: connections, requests and time go in, answers come out.
//!
//! It reads no clock and owns no socket. A driver calls `handle_*`, then drains [`BrokerState::poll_output`] until it
//! says [`BrokerOutput::Wait`]. Each connection must hand in its next request only after the last one was answered:
//! Kafka serves a connection one request at a time. Mirrors `KafkaApis` and what stands around it.

use crate::api;
use crate::api::unserved::Unserved;
use crate::cluster::{self, Node, NodeId};
use crate::config::{BrokerConfig, GroupConfig, Settings};
use crate::groups::Groups;
use crate::intercept::{Hook, Intercept, Verdict};
use crate::log::Log;
use crate::parked::{Parked, PartitionId};
use crate::random::Random;
use crate::sessions::Sessions;
use crate::settling::{Settling, Then};
use crate::store::{Chores, Store};
use crate::topics::TopicTable;
use crate::transactions::{Finishing, Transactions};
use crate::work::{LogKey, Work};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tontine_group::coordinator::{ClientInfo, Ticket, Transition};
use tontine_group::time::{Instant, soonest};
use tontine_wire::api::{ApiKey, Request, Response};
use tontine_wire::codec::Reader;
use tontine_wire::frame;
use tontine_wire::header::{RequestHeader, RequestStart};
use tontine_wire::{DecodeError, ErrorCode, Uuid};

/// A connection. The driver numbers them and never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Why the broker closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Closing {
    /// What came is no request.
    #[error("what came is no request: {0}")]
    Malformed(DecodeError),
    /// What is asked for is unknown, and so is the form of an answer to it.
    #[error(
        "API {key} in version {version} is not known here, and so no answer to it that a client could read: \
         the client is newer than Apache Kafka 4.4, or not a client of Kafka's"
    )]
    UnknownApi {
        /// The number of the API.
        key: i16,
        /// The version that was asked for.
        version: i16,
    },
    /// A producer that wants no answers has to learn of an error in this way.
    #[error("a produce request without an answer failed: {0}")]
    ProduceFailed(ErrorCode),
    /// What was asked for was done, but cannot be made durable, and the answer to the request has no room for that.
    #[error("what was asked for could not be stored: {0}")]
    NotStored(ErrorCode),
    /// The node was stopped, or told to cut its connections.
    #[error("the node was stopped")]
    NodeStopped,
    /// A test wanted it.
    #[error("an intercepted request was to be disconnected")]
    Intercepted,
}

/// What the driver must do. Drain until `Wait`.
#[derive(Debug)]
#[must_use]
pub enum BrokerOutput {
    /// Send this answer; [`frame::encode_response`] makes the bytes.
    Reply {
        /// Where to.
        conn: ConnId,
        /// The version of the request.
        version: i16,
        /// The number of the request.
        correlation_id: i32,
        /// The answer.
        response: Response,
    },
    /// Send these bytes, a whole answer to something that is not spoken here.
    Frame {
        /// Where to.
        conn: ConnId,
        /// The answer, its length included.
        frame: Bytes,
    },
    /// The request is done and has no answer: the next one may come.
    Silent {
        /// Of which connection.
        conn: ConnId,
    },
    /// Close the connection; the state knows it no more.
    Disconnect {
        /// Which one.
        conn: ConnId,
        /// Why.
        why: Closing,
    },
    /// A group changed its state. Nothing to do; for logs and reports.
    Transition(Transition),
    /// Run this, at best on another thread, and hand in what comes of it: [`BrokerState::handle_done`].
    Work(Work),
    /// Nothing left to do until this time, or until something comes in.
    Wait(Option<Instant>),
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) node: NodeId,
    host: String,
    client: Arc<ClientInfo>,
    /// The request that is answered later: there is at most one.
    waiting: Option<Ticket>,
}

/// One request on its way.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) now: Instant,
    pub(crate) conn: ConnId,
    pub(crate) node: NodeId,
    pub(crate) version: i16,
    pub(crate) correlation_id: i32,
    pub(crate) client: Arc<ClientInfo>,
}

/// How a request is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// At once.
    Now(Response),
    /// Through a ticket from [`BrokerState::park_call`].
    Later,
    /// Not at all.
    Silent,
    /// By closing the connection.
    Close(Closing),
}

#[derive(Debug)]
struct Pending {
    conn: ConnId,
    version: i16,
    correlation_id: i32,
    shard: Option<i32>,
}

#[derive(Debug)]
struct Held {
    conn: ConnId,
    header: RequestHeader,
    request: Request,
}

/// A cluster of brokers.
#[derive(Debug)]
pub struct BrokerState {
    pub(crate) config: BrokerConfig,
    pub(crate) settings: Settings,
    pub(crate) cluster_id: String,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) topics: TopicTable,
    pub(crate) groups: Groups,
    pub(crate) group_configs: BTreeMap<String, GroupConfig>,
    pub(crate) parked: Parked,
    pub(crate) sessions: BTreeMap<NodeId, Sessions>,
    pub(crate) connections: BTreeMap<ConnId, Connection>,
    pub(crate) outputs: VecDeque<BrokerOutput>,
    pub(crate) random: Random,
    pub(crate) next_producer_id: i64,
    pub(crate) unix_ms_at_origin: i64,
    pub(crate) store: Option<Store>,
    pub(crate) chores: Chores,
    pub(crate) winding_down: bool,
    pub(crate) closed: bool,
    pub(crate) transactions: Transactions,
    /// When marks of transactions are tried again.
    pub(crate) unfinished_at: Option<Instant>,
    pub(crate) finishing: Finishing,
    pub(crate) settling: Settling,
    pending: BTreeMap<Ticket, Pending>,
    next_ticket: u64,
    intercept: Intercept,
    held: Vec<Held>,
    next_retention: Instant,
    answer_room: usize,
}

/// However many clients do not read their answers, the next one gets as much as this.
const LEAST_ANSWER: usize = 16 << 10;

impl BrokerState {
    /// A cluster of these nodes. The seed makes ids; `unix_ms_at_origin` is the wall clock at [`Instant::ZERO`].
    pub fn new(
        config: BrokerConfig,
        nodes: BTreeMap<NodeId, Node>,
        seed: u64,
        unix_ms_at_origin: i64,
    ) -> Self {
        let mut random = Random::new(seed);
        let settings = config.settings();
        Self {
            cluster_id: random.uuid().to_string(),
            next_retention: Instant::ZERO + settings.retention_check_interval,
            settings,
            config,
            nodes,
            topics: TopicTable::default(),
            groups: Groups::default(),
            group_configs: BTreeMap::new(),
            parked: Parked::default(),
            sessions: BTreeMap::new(),
            connections: BTreeMap::new(),
            outputs: VecDeque::new(),
            random,
            next_producer_id: 0,
            unix_ms_at_origin,
            store: None,
            chores: Chores::default(),
            winding_down: false,
            closed: false,
            transactions: Transactions::default(),
            unfinished_at: None,
            finishing: Finishing::default(),
            settling: Settling::default(),
            pending: BTreeMap::new(),
            next_ticket: 0,
            intercept: Intercept::default(),
            held: Vec::new(),
            answer_room: usize::MAX,
        }
    }

    /// How many bytes of answers the driver has room for: fetches are answered with less when clients do not read what
    /// they asked for.
    pub fn set_answer_room(&mut self, bytes: usize) {
        self.answer_room = bytes;
    }

    /// The most that a fetch is answered with now: half of the room, so that there is some for the next one.
    pub(crate) fn largest_answer(&self) -> usize {
        (self.answer_room / 2).max(LEAST_ANSWER)
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Other settings are in force from now on, for topics as well.
    pub(crate) fn set_config(&mut self, config: BrokerConfig) {
        self.settings = config.settings();
        for topic in self.topics.iter_mut() {
            topic.settings = topic.config.settings(&config);
        }
        self.config = config;
    }

    /// The wall clock, in milliseconds since 1970.
    pub(crate) fn unix_ms(&self, now: Instant) -> i64 {
        let elapsed = i64::try_from(now.since_origin().as_millis()).unwrap_or(i64::MAX);
        self.unix_ms_at_origin.saturating_add(elapsed)
    }

    /// Sets the hook that sees every request first, or takes it away.
    pub fn set_intercept(&mut self, hook: Option<Box<Hook>>) {
        self.intercept.set(hook);
    }

    /// How many requests the hook holds.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// How many fetches wait for records.
    pub fn parked_fetches(&self) -> usize {
        self.parked.len()
    }

    /// Serves the requests that the hook held, in the order in which they came.
    pub fn release_held(&mut self, now: Instant) {
        for held in std::mem::take(&mut self.held) {
            self.serve(now, held.conn, held.header, held.request);
        }
    }

    /// Somebody connected to a node from this host.
    pub fn handle_connected(&mut self, now: Instant, conn: ConnId, node: NodeId, host: impl Into<String>) {
        let _ = now;
        let host = format!("/{}", host.into());
        let client = Arc::new(ClientInfo { client_id: String::new(), client_host: host.clone() });
        self.connections.insert(conn, Connection { node, host, client, waiting: None });
    }

    /// A connection is gone, and with it what was asked on it.
    pub fn handle_disconnected(&mut self, now: Instant, conn: ConnId) {
        let Some(connection) = self.connections.remove(&conn) else { return };
        self.held.retain(|held| held.conn != conn);
        let Some(ticket) = connection.waiting else { return };
        let pending = self.pending.remove(&ticket);
        self.parked.take(ticket);
        if let Some(index) = pending.and_then(|pending| pending.shard)
            && let Some(shard) = self.groups.shards.get_mut(&index)
        {
            shard.coordinator.handle_disconnected(now, ticket);
            self.pump(now, index);
        }
    }

    /// A frame came, without its length.
    pub fn handle_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes) {
        if self.closed {
            return;
        }
        if !self.connections.contains_key(&conn) || self.is_black_hole(conn) {
            return;
        }
        if let Some((correlation_id, response)) = self.unknown_api_versions(&frame) {
            self.outputs.push_back(BrokerOutput::Reply { conn, version: 0, correlation_id, response });
            return;
        }
        match frame::decode_request(frame.clone()) {
            Ok((header, request)) => self.handle_request(now, conn, header, request),
            Err(DecodeError::UnsupportedApi(_) | DecodeError::UnsupportedVersion { .. }) => {
                self.handle_unspoken(now, conn, frame);
            }
            Err(error) => self.close(now, conn, Closing::Malformed(error)),
        }
    }

    /// An API, or a version of one, that is not spoken here.
    fn handle_unspoken(&mut self, now: Instant, conn: ConnId, frame: Bytes) {
        let start = RequestStart::get(&mut Reader::new(frame.clone()));
        match start.and_then(|start| Ok((start, api::unserved::answer(frame)?))) {
            Ok((_, Unserved::Answer(frame))) => self.outputs.push_back(BrokerOutput::Frame { conn, frame }),
            Ok((_, Unserved::Silence)) => self.outputs.push_back(BrokerOutput::Silent { conn }),
            Ok((start, Unserved::Unknown)) => {
                let why = Closing::UnknownApi { key: start.key, version: start.version };
                self.close(now, conn, why);
            }
            Err(error) => self.close(now, conn, Closing::Malformed(error)),
        }
    }

    fn is_black_hole(&self, conn: ConnId) -> bool {
        let node = self.connections.get(&conn).and_then(|connection| self.nodes.get(&connection.node));
        node.is_some_and(|node| node.black_hole)
    }

    /// A client may ask for the versions in a version that is not known here: the answer comes in version 0 then.
    fn unknown_api_versions(&self, frame: &Bytes) -> Option<(i32, Response)> {
        if !frame.starts_with(&(ApiKey::ApiVersions as i16).to_be_bytes()) {
            return None;
        }
        let start = RequestStart::get(&mut Reader::new(frame.clone())).ok()?;
        let unknown =
            start.key == ApiKey::ApiVersions as i16 && !api::served(ApiKey::ApiVersions, start.version);
        unknown.then(|| (start.correlation_id, api::api_versions::unsupported().into()))
    }

    /// A request came.
    pub fn handle_request(&mut self, now: Instant, conn: ConnId, header: RequestHeader, request: Request) {
        let Some(node) = self.connections.get(&conn).map(|connection| connection.node) else { return };
        if self.is_black_hole(conn) {
            return;
        }
        match self.intercept.judge(node, &header, &request) {
            Verdict::Pass => self.serve(now, conn, header, request),
            Verdict::Refuse(code) => {
                let response = api::refuse(&request, header.version, code);
                self.reply(conn, header.version, header.correlation_id, response);
            }
            Verdict::Answer(response) => self.reply(conn, header.version, header.correlation_id, *response),
            Verdict::Hold => self.held.push(Held { conn, header, request }),
            Verdict::Swallow => {}
            Verdict::Disconnect => self.close(now, conn, Closing::Intercepted),
        }
    }

    fn serve(&mut self, now: Instant, conn: ConnId, header: RequestHeader, request: Request) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let client_id = header.client_id.unwrap_or_default();
        if connection.client.client_id != client_id {
            connection.client = Arc::new(ClientInfo { client_id, client_host: connection.host.clone() });
        }
        let call = Call {
            now,
            conn,
            node: connection.node,
            version: header.version,
            correlation_id: header.correlation_id,
            client: connection.client.clone(),
        };
        self.settling.unsettled.clear();
        let refusal = self.refusal_of(&request, call.version);
        match api::serve(self, &call, request) {
            Answer::Now(response) if !self.settling.unsettled.is_empty() => {
                let needs = std::mem::take(&mut self.settling.unsettled);
                let refusal = api::not_stored(&response).or(refusal);
                let ticket = self.park_call(&call, None);
                self.when_durable(now, needs, Then::Answer { ticket, response, refusal });
            }
            Answer::Now(response) => self.reply(conn, call.version, call.correlation_id, response),
            Answer::Later => {}
            Answer::Silent => self.outputs.push_back(BrokerOutput::Silent { conn }),
            Answer::Close(why) => self.close(now, conn, why),
        }
    }

    /// What is said when the change that a request asks for cannot be made durable.
    fn refusal_of(&self, request: &Request, version: i16) -> Option<Response> {
        let changes = self.store.is_some() && api::changes_something(request.key());
        changes.then(|| api::refuse(request, version, ErrorCode::KAFKA_STORAGE_ERROR))
    }

    fn reply(&mut self, conn: ConnId, version: i16, correlation_id: i32, response: Response) {
        if self.connections.contains_key(&conn) {
            self.outputs.push_back(BrokerOutput::Reply { conn, version, correlation_id, response });
        }
    }

    fn close(&mut self, now: Instant, conn: ConnId, why: Closing) {
        if self.connections.contains_key(&conn) {
            self.outputs.push_back(BrokerOutput::Disconnect { conn, why });
            self.handle_disconnected(now, conn);
        }
    }

    /// A ticket of its own.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// The request is answered later, through this ticket.
    pub(crate) fn park_call(&mut self, call: &Call, shard: Option<i32>) -> Ticket {
        let ticket = self.ticket();
        let pending =
            Pending { conn: call.conn, version: call.version, correlation_id: call.correlation_id, shard };
        self.pending.insert(ticket, pending);
        if let Some(connection) = self.connections.get_mut(&call.conn) {
            connection.waiting = Some(ticket);
        }
        ticket
    }

    /// Answers a parked request; nothing happens when its connection is gone.
    pub(crate) fn answer_ticket(&mut self, ticket: Ticket, response: Response) {
        if let Some(pending) = self.pending.remove(&ticket) {
            if let Some(connection) = self.connections.get_mut(&pending.conn) {
                connection.waiting = None;
            }
            self.reply(pending.conn, pending.version, pending.correlation_id, response);
        }
    }

    /// Closes the connection of a parked request.
    pub(crate) fn close_ticket(&mut self, now: Instant, ticket: Ticket, why: Closing) {
        if let Some(pending) = self.pending.remove(&ticket) {
            self.close(now, pending.conn, why);
        }
    }

    /// A log.
    pub(crate) fn log(&self, key: LogKey) -> Option<&Log> {
        match key {
            LogKey::Journal => self.store.as_ref().map(|store| store.journal()),
            LogKey::Partition(id, index) => {
                let name = self.topics.name_of(id)?;
                self.topics.get(name)?.partition(index).map(|partition| &partition.log)
            }
        }
    }

    /// A log.
    pub(crate) fn log_mut(&mut self, key: LogKey) -> Option<&mut Log> {
        match key {
            LogKey::Journal => self.store.as_mut().map(|store| store.journal_mut()),
            LogKey::Partition(id, index) => {
                let name = self.topics.name_of(id)?.clone();
                self.topics.get_mut(&name)?.partition_mut(index).map(|partition| &mut partition.log)
            }
        }
    }

    /// Records that can be read came to a partition.
    pub(crate) fn appended(&mut self, now: Instant, partition: PartitionId, bytes: usize) {
        for ticket in self.parked.appended(partition, bytes) {
            self.finish_fetch(now, ticket);
        }
    }

    /// A partition got another leader, lost records, or is gone.
    pub(crate) fn partition_changed(&mut self, now: Instant, topic: Uuid, partition: i32) {
        for ticket in self.parked.of_partition((topic, partition)) {
            self.finish_fetch(now, ticket);
        }
    }

    /// Answers all fetches that wait.
    pub(crate) fn finish_fetches(&mut self, now: Instant) {
        for ticket in self.parked.all() {
            self.finish_fetch(now, ticket);
        }
    }

    fn finish_fetch(&mut self, now: Instant, ticket: Ticket) {
        if let Some(fetch) = self.parked.take(ticket) {
            let response = api::fetch::finish(self, now, fetch);
            self.answer_ticket(ticket, response.into());
        }
    }

    /// The time of [`BrokerOutput::Wait`] has come. Spurious calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        for ticket in self.parked.due(now) {
            self.finish_fetch(now, ticket);
        }
        self.time_out_groups(now);
        self.time_out_transactions(now);
        self.do_chores(now);
        if self.next_retention <= now {
            self.next_retention = now + self.settings.retention_check_interval;
            self.apply_retention(now);
            self.expire_transactions(now);
        }
    }

    fn apply_retention(&mut self, now: Instant) {
        let now_ms = self.unix_ms(now);
        let expiry = i64::try_from(self.settings.producer_id_expiration.as_millis()).unwrap_or(i64::MAX);
        let mut shortened = Vec::new();
        for topic in self.topics.iter_mut() {
            let oldest = topic.settings.retention_ms.map(|ms| now_ms.saturating_sub(ms));
            let bytes = topic.settings.retention_bytes.map(i64::unsigned_abs);
            for (index, partition) in (0..).zip(&mut topic.partitions) {
                let start = partition.log.start();
                if topic.settings.delete {
                    // What went wrong has been said; it is tried again the next time.
                    let _ = partition.log.retain(bytes, oldest);
                }
                if partition.log.start() > start {
                    shortened.push(LogKey::Partition(topic.id, index));
                }
                partition.log.expire_producers(now_ms.saturating_sub(expiry));
            }
        }
        for key in shortened {
            self.settling.want(key);
            self.sweep(key);
        }
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> BrokerOutput {
        let next = self.outputs.pop_front().or_else(|| self.next_work());
        next.unwrap_or_else(|| BrokerOutput::Wait(self.next_deadline()))
    }

    fn next_deadline(&self) -> Option<Instant> {
        let timers = soonest(self.parked.next_deadline(), self.groups.next_deadline());
        let timers = soonest(timers, self.next_transaction_deadline());
        soonest(soonest(timers, self.next_chore()), Some(self.next_retention))
    }

    /// Places replicas of new partitions on the nodes that are up.
    pub(crate) fn place(&self, first: usize, count: usize, factor: usize) -> Vec<Vec<NodeId>> {
        cluster::place(&self.nodes_up(), first, count, factor)
    }
}
