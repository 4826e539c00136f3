//! What answers and failures mean: for metadata, for lookups, for brokers that are gone, and for whoever asked.

use super::{
    ClusterOutput, ConnId, Lane, SendError, Target, Ticket, TopicsOfInterest,
    backoff::backoff,
    coordinator::{self, Lookup},
    machine::{Cluster, Owner, Pending},
    nodes::{Node, NodeKey},
};
use std::sync::Arc;
use tontine_group::Instant;
use tontine_wire::{
    ErrorCode,
    api::{Response, metadata as wire},
};

impl Cluster {
    /// A request is over.
    pub(super) fn finish(&mut self, now: Instant, ticket: Ticket, result: Result<Response, SendError>) {
        let Some(pending) = self.forget(ticket) else { return };
        match pending.owner {
            Owner::User => self.output.push_back(ClusterOutput::Response { ticket, result }),
            Owner::Metadata => self.metadata_answered(now, result),
            Owner::Lookup(group) => self.lookup_answered(now, &group, result),
        }
    }

    /// Takes a request off the books; an answer that still comes is not reported.
    pub(super) fn forget(&mut self, ticket: Ticket) -> Option<Pending> {
        self.waiting.remove(&ticket);
        let pending = self.requests.remove(&ticket)?;
        if let Some(connection) = pending.conn.and_then(|conn| self.connections.get_mut(&conn)) {
            connection.abandon(ticket);
        }
        Some(pending)
    }

    /// Why a request is still waiting, as far as anybody knows.
    pub(super) fn cause_of_delay(&self, pending: &Pending) -> Option<Arc<str>> {
        if let Some(connection) = pending.conn.and_then(|conn| self.connections.get(&conn)) {
            let address = self.nodes.get(&connection.node).map(Node::address)?;
            return Some(format!("the broker at {address} is connected but silent").into());
        }
        let own = match &pending.target {
            Target::Any | Target::Controller => None,
            Target::Node(id) => self.nodes.get(&NodeKey::Broker(*id)).and_then(|n| n.last_error.clone()),
            Target::Coordinator(group) => self.lookups.get(group).and_then(|l| l.last_error.clone()),
        };
        own.or_else(|| self.last_error.clone()).or_else(|| self.still_connecting())
    }

    fn still_connecting(&self) -> Option<Arc<str>> {
        let connection = self.connections.values().find(|c| !c.is_ready())?;
        let address = self.nodes.get(&connection.node).map(Node::address)?;
        Some(match connection.is_connecting() {
            true => format!("still connecting to {address}").into(),
            false => format!("{address} takes connections but does not answer as a broker does").into(),
        })
    }

    /// Asks for metadata when that is due.
    pub(super) fn start_refresh(&mut self, now: Instant) {
        if self.refresh.due(&self.settings).is_none_or(|due| due > now) {
            return;
        }
        let topics = match &self.topics {
            TopicsOfInterest::All => None,
            TopicsOfInterest::Names(names) => {
                let one = |n: &Arc<str>| wire::MetadataRequestTopic {
                    name: Some(n.to_string()),
                    ..Default::default()
                };
                Some(names.iter().map(one).collect())
            }
        };
        let allow_auto_topic_creation = self.settings.allow_auto_topic_creation && topics.is_some();
        let request = wire::MetadataRequest { topics, allow_auto_topic_creation, ..Default::default() };
        let patience = self.refresh.patience(&self.settings);
        let ticket =
            self.enqueue(now, Owner::Metadata, Target::Any, Lane::Other, request.into(), patience, i16::MAX);
        self.refresh.sent(now, ticket, self.topics.clone());
    }

    fn metadata_answered(&mut self, now: Instant, result: Result<Response, SendError>) {
        let asked = self.refresh.take();
        match result {
            Ok(Response::Metadata(answer)) if answer.error_code == ErrorCode::REBOOTSTRAP_REQUIRED => {
                self.metadata_failed(now, "the broker asked to start again from bootstrap.servers".into());
                self.start_again(now);
            }
            Ok(Response::Metadata(answer)) if answer.error_code.is_err() => {
                self.metadata_failed(
                    now,
                    format!("asking for metadata: the broker answered {}", answer.error_code).into(),
                );
            }
            Ok(Response::Metadata(answer)) if answer.brokers.is_empty() => {
                self.metadata_failed(now, "a broker named no brokers in its answer".into());
            }
            Ok(Response::Metadata(answer)) => self.take_metadata(now, answer, &asked),
            Ok(_) => self.metadata_failed(now, "a broker answered something else than metadata".into()),
            Err(error) => self.metadata_failed(now, error.to_string().into()),
        }
    }

    fn metadata_failed(&mut self, now: Instant, why: Arc<str>) {
        self.last_error.get_or_insert(why);
        if self.refresh.failed(now, &self.settings, &mut self.jitter) {
            self.start_again(now);
        }
    }

    fn take_metadata(&mut self, now: Instant, answer: wire::MetadataResponse, asked: &TopicsOfInterest) {
        let interest = |name: &str| self.topics.holds(name);
        let stays = |name: &str| self.topics.holds(name) && !asked.holds(name);
        let changed = self.metadata.update(answer, interest, stays);
        self.is_partial = match &self.topics {
            TopicsOfInterest::All => *asked != TopicsOfInterest::All,
            TopicsOfInterest::Names(names) => {
                names.iter().any(|name| !asked.holds(name) && self.metadata.topic(name).is_none())
            }
        };
        self.refresh.succeeded(now, changed);
        self.last_error = None;
        if self.metadata.is_unsettled() {
            self.want_metadata(now);
        }
        self.update_nodes(now);
        self.leave_bootstrap();
        self.output.push_back(ClusterOutput::MetadataChanged);
    }

    /// Brokers may have moved to other addresses.
    fn update_nodes(&mut self, now: Instant) {
        let brokers: Vec<_> =
            self.metadata.brokers().values().map(|b| (b.id, b.host.clone(), b.port)).collect();
        for (id, host, port) in brokers {
            self.place_node(now, id, &host, port);
        }
    }

    fn place_node(&mut self, now: Instant, id: i32, host: &str, port: u16) {
        let key = NodeKey::Broker(id);
        if self.nodes.get(&key).is_some_and(|n| n.is_at(host, port)) {
            return;
        }
        let old: Vec<ConnId> =
            self.connections.iter().filter(|(_, c)| c.node == key).map(|(id, _)| *id).collect();
        for conn in old {
            let why = format!("broker {id} moved to {host}:{port}").into();
            self.close_for(now, conn, |_| SendError::Disconnected { why });
        }
        self.nodes.insert(key, Node::new(host, port));
    }

    pub(super) fn learn_broker(&mut self, id: i32, host: String, port: u16) {
        if self.nodes.get(&NodeKey::Broker(id)).is_none_or(|n| !n.is_at(&host, port)) {
            self.nodes.insert(NodeKey::Broker(id), Node::new(host.clone(), port));
        }
        self.metadata.learn_broker(id, host, port);
    }

    /// Connections to bootstrap servers become those of the brokers that they turned out to be; others are closed when
    /// nothing is under way on them.
    fn leave_bootstrap(&mut self) {
        let is_bootstrap = |key: &NodeKey| matches!(key, NodeKey::Bootstrap(_));
        let routes: Vec<_> =
            self.routes.iter().filter(|((k, _), _)| is_bootstrap(k)).map(|(r, c)| (*r, *c)).collect();
        for ((key, lane), conn) in routes {
            let Some(new) = self.broker_at(key).filter(|new| !self.routes.contains_key(&(*new, lane))) else {
                self.retire(conn);
                continue;
            };
            if let (Some(old), Some(node)) =
                (self.nodes.get(&key).and_then(|n| n.versions.clone()), self.nodes.get_mut(&new))
            {
                node.succeeded(old);
            }
            if let Some(connection) = self.connections.get_mut(&conn) {
                connection.node = new;
            }
            self.routes.remove(&(key, lane));
            self.routes.insert((new, lane), conn);
        }
    }

    fn broker_at(&self, key: NodeKey) -> Option<NodeKey> {
        let node = self.nodes.get(&key)?;
        let broker = self.metadata.brokers().values().find(|b| node.is_at(&b.host, b.port))?;
        Some(NodeKey::Broker(broker.id))
    }

    fn retire(&mut self, conn: ConnId) {
        match self.connections.get_mut(&conn) {
            Some(connection) if connection.load() > 0 => connection.retiring = true,
            Some(_) => self.close_quietly(conn),
            None => {}
        }
    }

    /// Starts again from the bootstrap servers.
    fn start_again(&mut self, now: Instant) {
        let all: Vec<ConnId> = self.connections.keys().copied().collect();
        for conn in all {
            let why = "starting again from bootstrap.servers".into();
            self.close_for(now, conn, |_| SendError::Disconnected { why });
        }
        self.metadata.forget_brokers();
        self.nodes.retain(|key, _| matches!(key, NodeKey::Bootstrap(_)));
        let groups: Vec<Arc<str>> = self.lookups.keys().cloned().collect();
        for group in groups {
            self.lose_coordinator(&group);
        }
    }

    /// Starts the lookups that somebody waits for.
    pub(super) fn start_lookups(&mut self, now: Instant) {
        for ticket in &self.waiting {
            if let Some(Pending { target: Target::Coordinator(group), .. }) = self.requests.get(ticket) {
                self.lookups.entry(group.clone()).or_default().wished = true;
            }
        }
        let is_due =
            |l: &Lookup| l.wished && l.node.is_none() && l.under_way.is_none() && l.not_before <= now;
        let due: Vec<Arc<str>> =
            self.lookups.iter().filter(|(_, l)| is_due(l)).map(|(g, _)| g.clone()).collect();
        for group in due {
            let request = coordinator::request(&group);
            let patience = self.refresh.patience(&self.settings);
            let owner = Owner::Lookup(group.clone());
            let ticket = self.enqueue(now, owner, Target::Any, Lane::Other, request, patience, i16::MAX);
            if let Some(lookup) = self.lookups.get_mut(&group) {
                lookup.under_way = Some(ticket);
            }
        }
    }

    fn lookup_answered(&mut self, now: Instant, group: &Arc<str>, result: Result<Response, SendError>) {
        let found = match result {
            Ok(Response::FindCoordinator(answer)) => coordinator::read(answer),
            Ok(_) => Err((ErrorCode::UNKNOWN_SERVER_ERROR, None)),
            Err(error) => return self.lookup_failed(now, group, error.to_string().into()),
        };
        let context = format!("looking for the coordinator of group `{group}`");
        match found {
            Ok(found) => {
                if let Some(lookup) = self.lookups.get_mut(group) {
                    lookup.found(found.node);
                }
                self.place_node(now, found.node, &found.host, found.port);
                self.output.push_back(ClusterOutput::CoordinatorFound { group: group.clone() });
            }
            Err((code, _)) if code.is_retriable() => {
                self.lookup_failed(now, group, format!("{context}: the broker answered {code}").into());
            }
            Err((code, message)) => {
                self.lookup_refused(
                    now,
                    group,
                    SendError::Refused { code, context: context.into(), message },
                );
            }
        }
    }

    fn lookup_failed(&mut self, now: Instant, group: &Arc<str>, why: Arc<str>) {
        if let Some(lookup) = self.lookups.get_mut(group) {
            lookup.under_way = None;
            lookup.failed(now, why, &self.settings, &mut self.jitter);
        }
    }

    fn lookup_refused(&mut self, now: Instant, group: &Arc<str>, error: SendError) {
        self.lookups.remove(group);
        let waits = |p: &Pending| p.target == Target::Coordinator(group.clone()) && p.conn.is_none();
        let tickets: Vec<Ticket> = self.requests.iter().filter(|(_, p)| waits(p)).map(|(t, _)| *t).collect();
        for ticket in tickets {
            self.finish(now, ticket, Err(error.clone()));
        }
        self.output.push_back(ClusterOutput::CoordinatorRefused { group: group.clone(), error });
    }

    fn lose_coordinator(&mut self, group: &Arc<str>) {
        if let Some(lookup) = self.lookups.get_mut(group).filter(|l| l.node.is_some()) {
            lookup.node = None;
            self.output.push_back(ClusterOutput::CoordinatorLost { group: group.clone() });
        }
    }

    /// Closes a connection that nobody will miss.
    pub(super) fn close_quietly(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.remove(&conn) {
            self.routes.retain(|_, c| *c != conn);
            debug_assert_eq!(connection.load(), 0);
            self.output.push_back(ClusterOutput::Close { conn });
        }
    }

    /// Closes a connection because of what happened on it.
    pub(super) fn close_for(&mut self, now: Instant, conn: ConnId, error: impl FnOnce(&str) -> SendError) {
        let Some(connection) = self.connections.get(&conn) else { return };
        let address = self.nodes.get(&connection.node).map(Node::address).unwrap_or_default();
        self.output.push_back(ClusterOutput::Close { conn });
        self.drop_connection(now, conn, error(&address));
    }

    /// A connection is gone: whoever waited for it learns why, and its broker is left alone for a moment.
    pub(super) fn drop_connection(&mut self, now: Instant, conn: ConnId, error: SendError) {
        let Some(connection) = self.connections.remove(&conn) else { return };
        self.routes.retain(|_, c| *c != conn);
        let (key, lane, was_ready) = (connection.node, connection.lane, connection.is_ready());
        let why: Arc<str> = error.to_string().into();
        self.blame(now, key, why.clone());
        let cut_off = SendError::Disconnected { why };
        for (i, ticket) in connection.into_tickets().enumerate() {
            self.finish(now, ticket, Err(if i == 0 { error.clone() } else { cut_off.clone() }));
        }
        if let NodeKey::Broker(id) = key {
            if !was_ready {
                self.fail_waiting(now, id, lane, &error);
            }
            self.coordinator_gone(id, lane, was_ready);
            self.want_metadata(now);
        }
    }

    fn blame(&mut self, now: Instant, key: NodeKey, why: Arc<str>) {
        self.last_error = Some(why.clone());
        if let Some(node) = self.nodes.get_mut(&key) {
            let (base, max) = (self.settings.reconnect_backoff, self.settings.reconnect_backoff_max);
            node.failures = node.failures.saturating_add(1);
            node.retry_at = now + backoff(base, max, node.failures, &mut self.jitter);
            node.last_error = Some(why);
        }
    }

    /// Requests for a broker that cannot be reached fail at once: whoever sent them may know another way.
    fn fail_waiting(&mut self, now: Instant, id: i32, lane: Lane, error: &SendError) {
        let waits = |p: &Pending| p.target == Target::Node(id) && p.lane == lane && p.conn.is_none();
        let tickets: Vec<Ticket> = self.requests.iter().filter(|(_, p)| waits(p)).map(|(t, _)| *t).collect();
        for ticket in tickets {
            self.finish(now, ticket, Err(error.clone()));
        }
    }

    fn coordinator_gone(&mut self, id: i32, lane: Lane, was_ready: bool) {
        if was_ready && !matches!(lane, Lane::Group | Lane::Join) {
            return;
        }
        let groups: Vec<_> =
            self.lookups.iter().filter(|(_, l)| l.node == Some(id)).map(|(g, _)| g.clone()).collect();
        for group in groups {
            self.lose_coordinator(&group);
        }
    }
}

impl TopicsOfInterest {
    fn holds(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.contains(name),
        }
    }
}
