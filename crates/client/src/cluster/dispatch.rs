//! Where a request goes: to which broker, over which connection, in which version; and which broker is tried when any
//! will do.

use super::{
    ClusterOutput, ConnId, Lane, SendError, Target, Ticket,
    backoff::backoff,
    connection::{Connection, Phase, expects_answer},
    machine::Cluster,
    nodes::{Node, NodeKey},
    versions,
};
use std::time::Duration;
use tontine_group::{Instant, time::soonest};
use tontine_wire::api::{ApiKey, Response, produce::ProduceResponse};

/// When any broker will do, the next one is tried after this long without a connection. An address that swallows
/// packets then costs this much, not the whole connection timeout.
const STAGGER: Duration = Duration::from_millis(150);

/// A broker that leaves a request unanswered for this long is not chosen when another one is there.
const SILENT: Duration = Duration::from_secs(2);

/// What is to be done with a request now.
enum Route {
    Send(ConnId),
    /// Nothing to do before this time, unless something comes in.
    Wait(Option<Instant>),
    Fail(SendError),
}

impl Cluster {
    /// Sends one request if it can be sent; tells when to try again otherwise.
    pub(super) fn try_to_send(&mut self, now: Instant, ticket: Ticket) -> Option<Instant> {
        let pending = self.requests.get(&ticket)?;
        let (target, lane) = (pending.target.clone(), pending.lane);
        match self.route(now, &target, lane) {
            Route::Send(conn) => {
                self.write(now, ticket, conn);
                None
            }
            Route::Wait(until) => until,
            Route::Fail(error) => {
                self.finish(now, ticket, Err(error));
                None
            }
        }
    }

    fn route(&mut self, now: Instant, target: &Target, lane: Lane) -> Route {
        let brokers = self.metadata.brokers();
        match target {
            Target::Any => self.route_to_any(now, lane),
            Target::Controller => match self.metadata.controller() {
                Some(id) if brokers.contains_key(&id) => self.route_to(now, NodeKey::Broker(id), lane),
                Some(_) | None if brokers.is_empty() => Route::Wait(None),
                Some(_) | None => self.route_to_any(now, lane),
            },
            Target::Node(id) if self.nodes.contains_key(&NodeKey::Broker(*id)) => {
                self.route_to(now, NodeKey::Broker(*id), lane)
            }
            Target::Node(_) if brokers.is_empty() => Route::Wait(None),
            Target::Node(id) => {
                self.want_metadata(now);
                let why = format!("broker {id} is not among the brokers of the cluster").into();
                Route::Fail(SendError::Disconnected { why })
            }
            Target::Coordinator(group) => match self.lookups.get(group).and_then(|l| l.node) {
                Some(id) => self.route_to(now, NodeKey::Broker(id), lane),
                None => Route::Wait(
                    self.lookups.get(group).filter(|l| l.under_way.is_none()).map(|l| l.not_before),
                ),
            },
        }
    }

    fn route_to(&mut self, now: Instant, key: NodeKey, lane: Lane) -> Route {
        if let Some(conn) = self.routes.get(&(key, lane)) {
            let Some(connection) = self.connections.get_mut(conn) else { return Route::Wait(None) };
            connection.speculative = false;
            if connection.muted_until > now {
                return Route::Wait(Some(connection.muted_until));
            }
            return if connection.is_ready() { Route::Send(*conn) } else { Route::Wait(None) };
        }
        match self.nodes.get(&key) {
            Some(node) if node.retry_at > now => Route::Wait(Some(node.retry_at)),
            Some(_) => {
                self.open(now, key, lane, false);
                Route::Wait(None)
            }
            None => Route::Wait(None),
        }
    }

    fn route_to_any(&mut self, now: Instant, lane: Lane) -> Route {
        let candidates = self.candidates();
        let silent = |c: &Connection| c.waiting_since().is_some_and(|t| now - t >= SILENT);
        let of = |key: &NodeKey| {
            self.routes.get(&(*key, lane)).and_then(|id| Some((*id, self.connections.get(id)?)))
        };
        let usable = |c: &Connection| c.is_ready() && !c.retiring && c.muted_until <= now;
        let ready = candidates.iter().filter_map(of).filter(|(_, c)| usable(c));
        let best = ready.min_by_key(|(_, c)| (silent(c), c.load())).map(|(id, c)| (id, silent(c)));
        if let Some((conn, false)) = best {
            return Route::Send(conn);
        }
        let under_way =
            candidates.iter().filter_map(of).filter(|(_, c)| !c.is_ready()).map(|(_, c)| c.opened).max();
        let muted = candidates.iter().filter_map(of).map(|(_, c)| c.muted_until).filter(|at| *at > now).min();
        let next = under_way.map(|opened| opened + STAGGER);
        if let Some(next) = next.filter(|next| *next > now) {
            return Route::Wait(Some(next));
        }
        match (self.next_to_try(now, &candidates, lane), best) {
            (Ok(key), _) => {
                self.open(now, key, lane, true);
                Route::Wait(Some(now + STAGGER))
            }
            (Err(_), Some((conn, _))) if under_way.is_none() => Route::Send(conn),
            (Err(retry_at), _) => Route::Wait(soonest(retry_at, muted)),
        }
    }

    /// The brokers that are asked when any will do: those of the cluster; the bootstrap servers before any is known, and
    /// again when none of them can be reached.
    fn candidates(&self) -> Vec<NodeKey> {
        let known = self.metadata.brokers().keys().map(|id| NodeKey::Broker(*id));
        let mut candidates: Vec<NodeKey> = known.filter(|key| self.nodes.contains_key(key)).collect();
        let is_hopeless = |key: &NodeKey| self.nodes.get(key).is_none_or(|n| n.failures > 0);
        if candidates.is_empty() || (self.settings.rebootstrap && candidates.iter().all(is_hopeless)) {
            candidates.extend(self.nodes.keys().filter(|k| matches!(k, NodeKey::Bootstrap(_))));
        }
        candidates
    }

    /// The candidate without a connection that failed least; or when the first one may be tried again.
    fn next_to_try(
        &mut self,
        now: Instant,
        candidates: &[NodeKey],
        lane: Lane,
    ) -> Result<NodeKey, Option<Instant>> {
        let idle = candidates.iter().filter(|key| !self.routes.contains_key(&(**key, lane)));
        let mut best: Option<(u32, Vec<NodeKey>)> = None;
        let mut retry_at = None;
        for key in idle {
            let Some(node) = self.nodes.get(key) else { continue };
            if node.retry_at > now {
                retry_at = soonest(retry_at, Some(node.retry_at));
                continue;
            }
            match &mut best {
                Some((failures, keys)) if *failures == node.failures => keys.push(*key),
                Some((failures, _)) if *failures < node.failures => {}
                Some(_) | None => best = Some((node.failures, vec![*key])),
            }
        }
        let keys = best.map(|(_, keys)| keys).unwrap_or_default();
        let chosen = self.jitter.below(keys.len());
        keys.get(chosen).copied().ok_or(retry_at)
    }

    /// Opens the connection that requests of this kind to this broker will need, unless there is one: when they come it has
    /// introduced itself already.
    pub fn prepare(&mut self, now: Instant, node: i32, lane: Lane) {
        let key = NodeKey::Broker(node);
        let can_be_tried = self.nodes.get(&key).is_some_and(|node| node.retry_at <= now);
        if can_be_tried && !self.routes.contains_key(&(key, lane)) {
            self.open(now, key, lane, false);
            self.settle(now);
        }
    }

    fn open(&mut self, now: Instant, key: NodeKey, lane: Lane, speculative: bool) {
        let Some(node) = self.nodes.get(&key) else { return };
        let (host, port, failures) = (node.host.clone(), node.port, node.failures);
        let (base, max) = (self.settings.setup_timeout, self.settings.setup_timeout_max);
        // The first attempt takes the timeout as it is set; jitter is for those that follow a failure.
        let setup = match failures {
            0 => base.min(max),
            n => backoff(base, max, n.saturating_add(1), &mut self.jitter),
        };
        let conn = self.next_conn();
        let mut connection = Connection::new(now, key, lane, setup);
        connection.speculative = speculative;
        self.connections.insert(conn, connection);
        self.routes.insert((key, lane), conn);
        self.output.push_back(ClusterOutput::Connect { conn, host, port });
    }

    /// A connection is ready: attempts that were made in case this one fails are given up.
    pub(super) fn connection_ready(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get(&conn) else { return };
        let (key, lane) = (connection.node, connection.lane);
        if let (Phase::Ready(versions), Some(node)) = (&connection.phase, self.nodes.get_mut(&key)) {
            node.succeeded(versions.clone());
        }
        let is_spare = |c: &Connection| c.speculative && c.lane == lane && !c.is_ready();
        let spare: Vec<_> = self.connections.iter().filter(|(_, c)| is_spare(c)).map(|(id, _)| *id).collect();
        for conn in spare {
            self.close_quietly(conn);
        }
    }

    fn write(&mut self, now: Instant, ticket: Ticket, conn: ConnId) {
        let (Some(pending), Some(connection)) =
            (self.requests.get_mut(&ticket), self.connections.get_mut(&conn))
        else {
            return;
        };
        let Phase::Ready(versions) = &connection.phase else { return };
        let version = match versions.choose(pending.api, pending.at_most) {
            Ok(version) => version,
            Err(why) => {
                let address = self.nodes.get(&connection.node).map(Node::address).unwrap_or_default();
                let why = format!("the broker at {address} {why}").into();
                return self.finish(now, ticket, Err(SendError::Unsupported { why }));
            }
        };
        if let Some(least) =
            pending.request.as_ref().and_then(versions::needs).filter(|least| version < *least)
        {
            let address = self.nodes.get(&connection.node).map(Node::address).unwrap_or_default();
            let api = pending.api.name();
            let why = format!(
                "the broker at {address} speaks {api} up to version {version}, and this request needs {least}"
            );
            return self.finish(now, ticket, Err(SendError::TooOld { why: why.into() }));
        }
        self.waiting.remove(&ticket);
        pending.conn = Some(conn);
        let Some(request) = pending.request.take() else { return };
        // A caller in a hurry does not make the broker slow: the connection is given request.timeout.ms at least. A
        // heartbeat is not such a caller: one that is not answered in time means that the next ones will not be either,
        // and the session would be over before request.timeout.ms.
        let expires = match pending.api {
            ApiKey::Heartbeat | ApiKey::ConsumerGroupHeartbeat => pending.deadline,
            _ => pending.deadline.max(now + self.settings.request_timeout),
        };
        let bytes = connection.write(now, ticket, &request, version, expires, &self.settings.client_id);
        self.output.push_back(ClusterOutput::Write { conn, bytes });
        if !expects_answer(&request) {
            self.finish(now, ticket, Ok(Response::Produce(ProduceResponse::default())));
        }
    }
}
