//! The cluster in virtual time, against brokers that are scripted frame by frame.

mod answers;
mod coordinator;
mod metadata;
mod reach;
mod swarm;
mod versions;

use super::*;
use crate::cluster::ClusterOutput::{Close, Connect, Write};
use bytes::BytesMut;
use std::collections::BTreeMap;
use tontine_group::TopicPartition;
use tontine_wire::{
    Uuid,
    api::{
        ApiKey, Request, api_versions, find_coordinator, heartbeat, list_groups, metadata as wire, produce,
    },
    frame,
    header::RequestHeader,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A cluster, the time, and everything that it wanted done so far.
struct World {
    cluster: Cluster,
    now: Instant,
    opened: Vec<(ConnId, String, u16)>,
    asked: Vec<(ConnId, RequestHeader, Request)>,
    closed: Vec<ConnId>,
    told: Vec<ClusterOutput>,
    wake: Option<Instant>,
}

impl World {
    fn new(bootstrap: &[(&str, u16)]) -> Self {
        let bootstrap = bootstrap.iter().map(|(h, p)| ((*h).to_owned(), *p)).collect();
        Self::with(ClusterSettings { bootstrap, ..ClusterSettings::default() }, 1)
    }

    fn with(settings: ClusterSettings, seed: u64) -> Self {
        Self {
            cluster: Cluster::new(settings, seed),
            now: Instant::from_origin(Duration::from_secs(100)),
            opened: Vec::new(),
            asked: Vec::new(),
            closed: Vec::new(),
            told: Vec::new(),
            wake: None,
        }
    }

    fn drain(&mut self) {
        loop {
            match self.cluster.poll_output() {
                Connect { conn, host, port } => self.opened.push((conn, host, port)),
                Write { conn, bytes } => {
                    let frame =
                        frame::split_frame(&mut BytesMut::from(&bytes[..]), 1 << 20).unwrap().unwrap();
                    let (header, request) = frame::decode_request(frame).unwrap();
                    self.asked.push((conn, header, request));
                }
                Close { conn } => self.closed.push(conn),
                ClusterOutput::Wait(wake) => {
                    self.wake = wake;
                    return;
                }
                told => self.told.push(told),
            }
        }
    }

    /// Lets time pass, waking the cluster whenever it wants to be woken.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.drain();
        for _ in 0..100_000 {
            match self.wake.filter(|w| *w <= end) {
                Some(wake) => {
                    self.now = self.now.max(wake);
                    self.cluster.handle_timeout(self.now);
                    self.drain();
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("the cluster wants to be woken without end");
    }

    fn connected(&mut self, conn: ConnId) {
        self.cluster.handle_connected(self.now, conn);
        self.drain();
    }

    fn refused(&mut self, conn: ConnId) {
        self.cluster.handle_disconnected(self.now, conn, "connection refused");
        self.drain();
    }

    fn bytes(&mut self, conn: ConnId, bytes: &[u8]) {
        self.cluster.handle_frame(self.now, conn, Bytes::copy_from_slice(bytes));
        self.drain();
    }

    fn answer(&mut self, conn: ConnId, version: i16, correlation: i32, response: impl Into<Response>) {
        let bytes = frame::encode_response(version, correlation, &response.into());
        self.bytes(conn, &bytes[4..]);
    }

    /// Takes the next request of this API off the list.
    fn take(&mut self, api: ApiKey) -> (ConnId, RequestHeader, Request) {
        let at = self
            .asked
            .iter()
            .position(|(_, h, _)| h.key == api)
            .unwrap_or_else(|| panic!("no {api:?} was asked"));
        self.asked.remove(at)
    }

    fn reply(&mut self, api: ApiKey, response: impl Into<Response>) -> ConnId {
        let (conn, header, _) = self.take(api);
        self.answer(conn, header.version, header.correlation_id, response);
        conn
    }

    /// Opens the last connection that was asked for and says which versions are spoken there.
    fn accept(&mut self) -> ConnId {
        let conn = self.opened.last().expect("a connection was asked for").0;
        self.connected(conn);
        self.reply(ApiKey::ApiVersions, everything());
        conn
    }

    fn results(&mut self) -> Vec<(Ticket, Result<Response, SendError>)> {
        let told = std::mem::take(&mut self.told);
        let (results, rest) = told.into_iter().partition(|t| matches!(t, ClusterOutput::Response { .. }));
        self.told = rest;
        let results: Vec<ClusterOutput> = results;
        results
            .into_iter()
            .filter_map(|r| match r {
                ClusterOutput::Response { ticket, result } => Some((ticket, result)),
                _ => None,
            })
            .collect()
    }

    fn error(&mut self) -> String {
        let results = self.results();
        assert_eq!(results.len(), 1, "{results:?}");
        results[0].1.clone().unwrap_err().to_string()
    }

    /// Two brokers are known, and the connection to one of them is left over from the start.
    fn known() -> Self {
        let mut world = Self::new(&[("one", 1)]);
        world.cluster.set_topics(world.now, names(&["t"]));
        world.drain();
        world.accept();
        world.reply(ApiKey::Metadata, two_brokers(1, 5));
        world.told.clear();
        world
    }

    fn send(&mut self, target: Target, request: impl Into<Request>, timeout: Duration) -> Ticket {
        let ticket = self.cluster.send(self.now, target, Lane::Group, request.into(), timeout);
        self.drain();
        ticket
    }
}

fn everything() -> api_versions::ApiVersionsResponse {
    let one = |k: &ApiKey| api_versions::ApiVersion {
        api_key: *k as i16,
        min_version: *k.versions().start(),
        max_version: *k.versions().end(),
    };
    api_versions::ApiVersionsResponse {
        api_keys: ApiKey::ALL.iter().map(one).collect(),
        ..Default::default()
    }
}

fn names(names: &[&str]) -> TopicsOfInterest {
    TopicsOfInterest::Names(names.iter().map(|n| Arc::from(*n)).collect())
}

fn two_brokers(leader: i32, leader_epoch: i32) -> wire::MetadataResponse {
    let broker = |node_id, host: &str| wire::MetadataResponseBroker {
        node_id,
        host: host.to_owned(),
        port: node_id,
        ..Default::default()
    };
    let partition = wire::MetadataResponsePartition { leader_id: leader, leader_epoch, ..Default::default() };
    wire::MetadataResponse {
        brokers: vec![broker(1, "one"), broker(2, "two")],
        cluster_id: Some("c".to_owned()),
        controller_id: 2,
        topics: vec![wire::MetadataResponseTopic {
            name: Some("t".to_owned()),
            topic_id: Uuid::from_u128(7),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn coordinator(node_id: i32, host: &str, error_code: ErrorCode) -> find_coordinator::FindCoordinatorResponse {
    let host = host.to_owned();
    let one = find_coordinator::Coordinator {
        key: "g".to_owned(),
        node_id,
        host,
        port: node_id,
        error_code,
        ..Default::default()
    };
    find_coordinator::FindCoordinatorResponse { coordinators: vec![one], ..Default::default() }
}

fn heartbeat() -> heartbeat::HeartbeatRequest {
    heartbeat::HeartbeatRequest { group_id: "g".to_owned(), ..Default::default() }
}

fn t0() -> TopicPartition {
    TopicPartition::new("t", 0)
}
