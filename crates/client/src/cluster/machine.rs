//! The machine itself: what is asked of it, what comes in, and what it wants done.
//!
//! Every input changes the books and then calls [`Cluster::settle`], which sends what can be sent and works out when to
//! look again. Where a request goes is decided in `dispatch`, what an answer means in `answers`.

use super::{
    ClusterOutput, ClusterSettings, ConnId, Lane, Metadata, SendError, Target, Ticket, TopicsOfInterest,
    backoff::Jitter,
    connection::{Connection, Phase},
    coordinator::Lookup,
    nodes::{Node, NodeKey},
    refresh::Refresh,
    versions,
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tontine_group::{Instant, TopicPartition, time::soonest};
use tontine_wire::api::{ApiKey, Request};

/// The cluster as one client sees it.
#[derive(Debug)]
pub struct Cluster {
    pub(super) settings: ClusterSettings,
    pub(super) jitter: Jitter,
    pub(super) metadata: Metadata,
    pub(super) topics: TopicsOfInterest,
    pub(super) refresh: Refresh,
    /// The latest answer was asked for before something became of interest that is still not known.
    pub(super) is_partial: bool,
    pub(super) lookups: BTreeMap<Arc<str>, Lookup>,
    pub(super) nodes: BTreeMap<NodeKey, Node>,
    pub(super) connections: BTreeMap<ConnId, Connection>,
    pub(super) routes: BTreeMap<(NodeKey, Lane), ConnId>,
    /// Requests without an answer, and those of them that are not sent yet.
    pub(super) requests: BTreeMap<Ticket, Pending>,
    pub(super) waiting: BTreeSet<Ticket>,
    /// The last failure of any broker, in words.
    pub(super) last_error: Option<Arc<str>>,
    pub(super) output: VecDeque<ClusterOutput>,
    pub(super) wake: Option<Instant>,
    next_conn: u64,
    next_ticket: u64,
}

/// A request without an answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    pub(super) target: Target,
    pub(super) lane: Lane,
    /// Taken when it is sent.
    pub(super) request: Option<Request>,
    pub(super) api: ApiKey,
    pub(super) at_most: i16,
    pub(super) timeout: Duration,
    pub(super) deadline: Instant,
    pub(super) conn: Option<ConnId>,
}

/// Who waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    User,
    Metadata,
    Lookup(Arc<str>),
}

impl Cluster {
    /// Knows nothing yet and opens nothing until something is asked. `seed` spreads jitter and the choice of brokers.
    pub fn new(settings: ClusterSettings, seed: u64) -> Self {
        let bootstrap = settings.bootstrap.iter().enumerate();
        Self {
            nodes: bootstrap
                .map(|(i, (host, port))| (NodeKey::Bootstrap(i), Node::new(host, *port)))
                .collect(),
            settings,
            jitter: Jitter::new(seed),
            metadata: Metadata::default(),
            topics: TopicsOfInterest::default(),
            refresh: Refresh::default(),
            is_partial: false,
            lookups: BTreeMap::new(),
            connections: BTreeMap::new(),
            routes: BTreeMap::new(),
            requests: BTreeMap::new(),
            waiting: BTreeSet::new(),
            last_error: None,
            output: VecDeque::new(),
            wake: None,
            next_conn: 0,
            next_ticket: 0,
        }
    }

    /// Sends a request to where it belongs, as soon as there is a connection; its answer comes as
    /// [`ClusterOutput::Response`]. Fields of all versions may be filled in: each version takes its own.
    ///
    /// A request for a given node fails as soon as that node turns out not to be reachable; the others go on looking
    /// for a way until `timeout` is over.
    pub fn send(
        &mut self,
        now: Instant,
        target: Target,
        lane: Lane,
        request: Request,
        timeout: Duration,
    ) -> Ticket {
        self.send_at_most(now, target, lane, request, timeout, i16::MAX)
    }

    /// Like [`Cluster::send`], in no higher version than this one.
    pub fn send_at_most(
        &mut self,
        now: Instant,
        target: Target,
        lane: Lane,
        request: Request,
        timeout: Duration,
        max_version: i16,
    ) -> Ticket {
        if self.metadata.brokers().is_empty() && !self.refresh.is_under_way() {
            self.refresh.want_at_once();
        }
        let ticket = self.enqueue(now, Owner::User, target, lane, request, timeout, max_version);
        self.settle(now);
        ticket
    }

    #[allow(clippy::too_many_arguments, reason = "one place fills all fields of a pending request")]
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        owner: Owner,
        target: Target,
        lane: Lane,
        request: Request,
        timeout: Duration,
        at_most: i16,
    ) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let (api, deadline) = (request.key(), now + timeout);
        let request = Some(request);
        let pending = Pending { owner, target, lane, request, api, at_most, timeout, deadline, conn: None };
        self.requests.insert(ticket, pending);
        self.waiting.insert(ticket);
        ticket
    }

    /// The answer to this request does not matter any more and is not reported.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket) {
        self.forget(ticket);
        self.settle(now);
    }

    /// Says which topics the metadata has to know. New ones are asked for at once.
    pub fn set_topics(&mut self, now: Instant, topics: TopicsOfInterest) {
        let is_new = match &topics {
            TopicsOfInterest::All => self.topics != TopicsOfInterest::All,
            TopicsOfInterest::Names(names) => names.iter().any(|n| self.metadata.topic(n).is_none()),
        };
        if is_new || self.metadata.brokers().is_empty() {
            self.refresh.want_at_once();
        }
        self.topics = topics;
        self.settle(now);
    }

    /// Which topics the metadata has to know.
    pub fn topics_of_interest(&self) -> &TopicsOfInterest {
        &self.topics
    }

    /// Whether the latest metadata says nothing of topics that became of interest while it was on its way. That they are
    /// missing from it means nothing; the next answer is coming. Mirrors the request versions of Kafka's `Metadata`.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Asks for fresh metadata: at once, or a little later when that was done a moment ago.
    pub fn refresh_metadata(&mut self, now: Instant) {
        self.want_metadata(now);
        self.settle(now);
    }

    /// Asks for fresh metadata without the pause that other wishes keep, for somebody who keeps pauses of their own and has
    /// heard of something new. While brokers do not answer, that pause counts all the same.
    pub fn refresh_metadata_at_once(&mut self, now: Instant) {
        self.refresh.want_at_once();
        self.settle(now);
    }

    pub(super) fn want_metadata(&mut self, now: Instant) {
        self.refresh.want(now, &self.settings, &mut self.jitter);
    }

    /// What is known of the cluster.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Takes over a leader that a fetch or a produce answer named, and where that broker is reached; `false` when this
    /// is not news.
    pub fn update_leader(
        &mut self,
        partition: &TopicPartition,
        leader: i32,
        epoch: i32,
        endpoint: Option<(String, u16)>,
    ) -> bool {
        let endpoint = endpoint.filter(|_| !self.metadata.brokers().contains_key(&leader));
        if endpoint.is_none() && !self.metadata.brokers().contains_key(&leader) {
            return false;
        }
        let is_news = self.metadata.learn_leader(partition, leader, epoch);
        if let Some((host, port)) = endpoint.filter(|_| is_news) {
            self.learn_broker(leader, host, port);
        }
        is_news
    }

    /// The last thing that went wrong with any broker, in words; none since metadata last arrived.
    pub fn last_error(&self) -> Option<Arc<str>> {
        self.last_error.clone()
    }

    /// Why nobody can say what the cluster looks like at this moment, in words.
    pub fn trouble(&self) -> Option<Arc<str>> {
        let lost = self.metadata.brokers().is_empty() || self.refresh.has_failed();
        self.last_error.clone().filter(|_| lost)
    }

    /// Looks the coordinator of a group up, unless it is known or being looked up.
    pub fn find_coordinator(&mut self, now: Instant, group: &Arc<str>) {
        self.lookups.entry(group.clone()).or_default().wished = true;
        self.settle(now);
    }

    /// The broker that coordinates a group, when it is known.
    pub fn coordinator(&self, group: &str) -> Option<i32> {
        self.lookups.get(group)?.node
    }

    /// A broker said that it does not coordinate this group.
    pub fn coordinator_lost(&mut self, now: Instant, group: &str) {
        if let Some(lookup) = self.lookups.get_mut(group) {
            lookup.node = None;
        }
        self.settle(now);
    }

    /// The highest version that both sides speak: of this broker, or of the brokers met so far. `None` when no broker
    /// has been met, or when there is no common version.
    pub fn max_version(&self, node: Option<i32>, api: ApiKey) -> Option<i16> {
        let of = |node: &Node| node.versions.as_ref().map(|v| v.choose(api, i16::MAX).ok());
        match node {
            Some(id) => of(self.nodes.get(&NodeKey::Broker(id))?)?,
            None => self.nodes.values().filter_map(of).min()?,
        }
    }

    /// Whether this broker failed a moment ago and is not tried again yet.
    pub fn is_backing_off(&self, now: Instant, node: i32) -> bool {
        self.nodes.get(&NodeKey::Broker(node)).is_some_and(|n| n.retry_at > now)
    }

    /// A connection is open.
    pub fn handle_connected(&mut self, now: Instant, conn: ConnId) {
        self.negotiate(now, conn, versions::FIRST_TRY);
        self.settle(now);
    }

    fn negotiate(&mut self, now: Instant, conn: ConnId, version: i16) {
        if let Some(connection) = self.connections.get_mut(&conn) {
            let timeout = self.settings.request_timeout;
            let bytes = connection.start_negotiating(now, timeout, &self.settings.client_id, version);
            self.output.push_back(ClusterOutput::Write { conn, bytes });
        }
    }

    /// A connection could not be opened, or was closed by the other side.
    pub fn handle_disconnected(&mut self, now: Instant, conn: ConnId, why: &str) {
        if let Some(connection) = self.connections.get(&conn) {
            let address = self.nodes.get(&connection.node).map(Node::address).unwrap_or_default();
            let why = match connection.phase {
                Phase::Connecting { .. } => format!("could not connect to {address}: {why}"),
                Phase::Negotiating { .. } | Phase::Ready(_) => {
                    format!("the connection to {address} was lost: {why}")
                }
            };
            self.drop_connection(now, conn, SendError::Disconnected { why: why.into() });
        }
        self.settle(now);
    }

    /// A frame has arrived.
    pub fn handle_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes) {
        if let Err(why) = self.take_frame(now, conn, frame) {
            self.close_for(now, conn, |address| SendError::Malformed {
                why: format!("the broker at {address} was cut off: {why}").into(),
            });
        }
        self.settle(now);
    }

    fn take_frame(&mut self, now: Instant, conn: ConnId, frame: Bytes) -> Result<(), String> {
        let Some(connection) = self.connections.get_mut(&conn) else { return Ok(()) };
        match &connection.phase {
            Phase::Connecting { .. } => Err("it spoke before it was spoken to".to_owned()),
            &Phase::Negotiating { version, .. } => {
                match connection.negotiate(version, frame)? {
                    Some(version) => self.negotiate(now, conn, version),
                    None => self.connection_ready(conn),
                }
                Ok(())
            }
            Phase::Ready(_) => {
                let (ticket, response) = connection.take_answer(now, frame)?;
                let done = connection.retiring && connection.load() == 0;
                if let Some(ticket) = ticket {
                    self.finish(now, ticket, Ok(response));
                }
                if done {
                    self.close_quietly(conn);
                }
                Ok(())
            }
        }
    }

    /// A time that `Wait` named has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.expire_requests(now);
        self.expire_connections(now);
        self.settle(now);
    }

    fn expire_requests(&mut self, now: Instant) {
        let due: Vec<Ticket> =
            self.requests.iter().filter(|(_, p)| p.deadline <= now).map(|(t, _)| *t).collect();
        for ticket in due {
            if let Some(pending) = self.requests.get(&ticket) {
                let (what, after) = (pending.api.name(), pending.timeout);
                let slow = self.slow_to_open(now, pending);
                let error = SendError::TimedOut { what, after, why: self.cause_of_delay(pending) };
                self.finish(now, ticket, Err(error));
                if let Some(conn) = slow {
                    self.close_for(now, conn, |address| SendError::Disconnected {
                        why: format!("the broker at {address} did not begin to answer within {after:?}")
                            .into(),
                    });
                }
            }
        }
    }

    /// The connection that a heartbeat waited for from its first moment to its last, and that is still not open: the next
    /// heartbeat would wait for it as well, and the session would be over before that is given up.
    fn slow_to_open(&self, now: Instant, pending: &Pending) -> Option<ConnId> {
        let Target::Coordinator(group) = &pending.target else { return None };
        if pending.api != ApiKey::Heartbeat || pending.conn.is_some() {
            return None;
        }
        let node = NodeKey::Broker(self.lookups.get(group)?.node?);
        let conn = *self.routes.get(&(node, pending.lane))?;
        let connection = self.connections.get(&conn).filter(|connection| !connection.is_ready())?;
        (now - connection.opened >= pending.timeout).then_some(conn)
    }

    fn expire_connections(&mut self, now: Instant) {
        let max_idle = self.settings.max_idle;
        let is_due = |c: &Connection| c.deadline(max_idle) <= now;
        let due: Vec<ConnId> =
            self.connections.iter().filter(|(_, c)| is_due(c)).map(|(id, _)| *id).collect();
        for conn in due {
            let Some(connection) = self.connections.get(&conn) else { continue };
            if connection.is_ready() && connection.load() == 0 {
                self.close_quietly(conn);
                continue;
            }
            let took = now - connection.waiting_since().unwrap_or(connection.opened);
            let connecting = connection.is_connecting();
            self.close_for(now, conn, |address| SendError::Disconnected {
                why: match connecting {
                    true => format!("could not connect to {address} within {took:?}: no answer").into(),
                    false => format!("the broker at {address} did not answer within {took:?}").into(),
                },
            });
        }
    }

    /// What to do next; drained until it answers `Wait`.
    pub fn poll_output(&mut self) -> ClusterOutput {
        self.output.pop_front().unwrap_or(ClusterOutput::Wait(self.wake))
    }

    /// When it is to be called, if there is nothing to carry out.
    pub fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// Whether there is something to carry out.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Sends what can be sent, and works out when to look again.
    pub(super) fn settle(&mut self, now: Instant) {
        self.start_refresh(now);
        self.start_lookups(now);
        let mut wake = None;
        for ticket in self.waiting.iter().copied().collect::<Vec<_>>() {
            wake = soonest(wake, self.try_to_send(now, ticket));
        }
        self.wake = soonest(wake, self.next_deadline());
    }

    fn next_deadline(&self) -> Option<Instant> {
        let requests = self.requests.values().map(|p| p.deadline).min();
        let connections = self.connections.values().map(|c| c.deadline(self.settings.max_idle)).min();
        let lookups = self.lookups.values().filter(|l| self.is_due_later(l)).map(|l| l.not_before).min();
        let own = soonest(self.refresh.due(&self.settings), lookups);
        soonest(soonest(requests, connections), own)
    }

    fn is_due_later(&self, lookup: &Lookup) -> bool {
        lookup.node.is_none() && lookup.under_way.is_none() && lookup.wished
    }

    pub(super) fn next_conn(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId(self.next_conn)
    }
}
