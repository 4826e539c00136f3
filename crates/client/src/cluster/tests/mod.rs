//! The cluster in virtual time, against brokers that are scripted frame by frame.

mod swarm;

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

#[test]
fn nothing_is_opened_until_something_is_asked() {
    let mut world = World::new(&[("one", 1)]);
    world.pass(Duration::from_secs(3600));
    assert!(world.opened.is_empty());
}

#[test]
fn metadata_is_asked_for_the_topics_of_interest_and_then_known() {
    let world = World::known();
    assert_eq!(world.cluster.metadata().leader(&t0()), Some(1));
    assert_eq!(world.cluster.metadata().topic_name(Uuid::from_u128(7)).map(|n| &**n), Some("t"));
    assert_eq!(world.cluster.max_version(None, ApiKey::Metadata), Some(13));
    assert_eq!(world.cluster.max_version(Some(2), ApiKey::Metadata), None, "that broker was never met");
}

#[test]
fn the_connection_to_a_bootstrap_server_becomes_that_of_the_broker_it_was() {
    let mut world = World::known();
    world.send(Target::Any, list_groups::ListGroupsRequest::default(), ms(1000));
    world.cluster.send(
        world.now,
        Target::Node(1),
        Lane::Other,
        list_groups::ListGroupsRequest::default().into(),
        ms(1),
    );
    world.drain();
    let opened: Vec<_> = world.opened.iter().map(|(_, host, _)| host.as_str()).collect();
    assert!(opened.len() <= 2, "only the group's lane is new: {opened:?}");
    assert_eq!(world.take(ApiKey::ListGroups).0, world.opened[0].0);
}

#[test]
fn a_broker_that_does_not_know_the_first_version_is_asked_again_in_one_it_names() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.refresh_metadata(world.now);
    world.drain();
    let conn = world.opened[0].0;
    world.connected(conn);
    let (_, header, _) = world.take(ApiKey::ApiVersions);
    assert_eq!(header.version, 4);
    let own = api_versions::ApiVersion { api_key: 18, min_version: 0, max_version: 2 };
    let refusal = api_versions::ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: vec![own],
        ..Default::default()
    };
    world.answer(conn, 0, header.correlation_id, refusal);
    let (_, header, _) = world.take(ApiKey::ApiVersions);
    assert_eq!(header.version, 2);
    world.answer(conn, 2, header.correlation_id, everything());
    world.take(ApiKey::Metadata);
}

#[test]
fn an_old_broker_is_asked_in_the_versions_it_speaks_and_refused_clearly_when_there_are_none() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.send(world.now, Target::Any, Lane::Other, heartbeat().into(), ms(1000));
    world.drain();
    world.connected(world.opened[0].0);
    let old = api_versions::ApiVersion { api_key: 3, min_version: 0, max_version: 5 };
    let answer = api_versions::ApiVersionsResponse { api_keys: vec![old], ..Default::default() };
    world.reply(ApiKey::ApiVersions, answer);
    assert_eq!(world.take(ApiKey::Metadata).1.version, 5);
    assert_eq!(world.error(), "the broker at one:1 does not know Heartbeat");
}

#[test]
fn one_living_bootstrap_server_among_dead_and_black_holed_ones_is_found_quickly() {
    for seed in 0..40 {
        let bootstrap = (1..=6u16).map(|i| (format!("b{i}"), i)).collect();
        let mut world = World::with(ClusterSettings { bootstrap, ..ClusterSettings::default() }, seed);
        let start = world.now;
        world.cluster.refresh_metadata(world.now);
        world.drain();
        let mut seen = 0;
        while world.asked.is_empty() {
            while let Some((conn, host, _)) = world.opened.get(seen).cloned() {
                seen += 1;
                match host.as_str() {
                    "b1" => world.connected(conn),
                    "b2" | "b3" => world.refused(conn),
                    _ => {} // b4, b5 and b6 swallow everything
                }
            }
            world.pass(ms(10));
        }
        assert!(world.now - start <= ms(600), "seed {seed}: {:?}", world.now - start);
        world.reply(ApiKey::ApiVersions, everything());
        world.take(ApiKey::Metadata);
        let spare = world.opened.len() - 1;
        assert!(world.closed.len() <= spare, "attempts that are not needed any more are given up");
    }
}

#[test]
fn a_request_that_fails_says_what_went_wrong_meanwhile() {
    let mut world = World::new(&[("127.0.0.1", 9)]);
    world.cluster.send(world.now, Target::Any, Lane::Other, heartbeat().into(), ms(1000));
    world.drain();
    let conn = world.opened[0].0;
    world.refused(conn);
    for _ in 0..100 {
        world.pass(ms(10));
        while let Some((conn, ..)) = world.opened.get(1).cloned() {
            world.opened.remove(1);
            world.refused(conn);
        }
    }
    assert_eq!(
        world.error(),
        "Heartbeat had no answer within 1s: could not connect to 127.0.0.1:9: connection refused"
    );
}

#[test]
fn attempts_to_reach_a_dead_broker_become_rarer_but_never_stop() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.refresh_metadata(world.now);
    let mut times = Vec::new();
    for _ in 0..6_000 {
        world.drain();
        while let Some((conn, ..)) = world.opened.pop() {
            times.push(world.now);
            world.refused(conn);
        }
        world.pass(ms(10));
    }
    let gaps: Vec<Duration> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[0] >= ms(40) && gaps[0] <= ms(80), "{gaps:?}");
    assert!(gaps.iter().all(|g| *g <= ms(1_220)), "{gaps:?}");
    assert!(gaps[8..].iter().all(|g| *g >= ms(790)), "{gaps:?}");
    assert!(gaps.len() > 45);
}

#[test]
fn an_address_that_swallows_everything_is_given_up_after_the_setup_timeout() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.send(world.now, Target::Any, Lane::Other, heartbeat().into(), ms(12_000));
    world.pass(ms(9_900));
    assert!(world.closed.is_empty());
    world.pass(ms(200));
    assert_eq!(world.closed.len(), 1);
    world.pass(ms(2_000));
    assert_eq!(
        world.error(),
        "Heartbeat had no answer within 12s: could not connect to one:1 within 10s: no answer"
    );
}

#[test]
fn a_request_in_time_trouble_fails_but_its_connection_lives_until_request_timeout() {
    let mut world = World::known();
    let ticket = world.send(Target::Node(1), heartbeat(), ms(500));
    let conn = world.accept();
    world.pass(ms(600));
    let results = world.results();
    assert_eq!(results[0].0, ticket);
    assert!(
        matches!(&results[0].1, Err(SendError::TimedOut { why: Some(why), .. }) if why.contains("silent")),
        "{results:?}"
    );
    assert!(!world.closed.contains(&conn));
    world.pass(ms(29_500));
    assert!(world.closed.contains(&conn), "nothing was answered for request.timeout.ms");
    assert!(world.results().is_empty(), "a request has one result");
}

#[test]
fn a_late_answer_to_a_request_that_was_given_up_is_dropped() {
    let mut world = World::known();
    let ticket = world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.accept();
    world.cluster.cancel(world.now, ticket);
    let second = world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert!(world.results().is_empty());
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.results()[0].0, second);
}

#[test]
fn rubbish_closes_the_connection_with_a_clear_error_and_never_panics() {
    let pieces: [&[u8]; 5] = [b"", b"\0", b"\0\0\0\x01", b"\0\0\0\x63\0\0\0\0", b"HTTP/1.1 400 Bad Request"];
    for rubbish in pieces {
        let mut world = World::known();
        world.send(Target::Node(1), heartbeat(), ms(5_000));
        let second = world.send(Target::Node(1), heartbeat(), ms(5_000));
        let conn = world.accept();
        world.bytes(conn, rubbish);
        assert!(world.closed.contains(&conn), "{rubbish:?}");
        let results = world.results();
        assert!(
            matches!(&results[0].1, Err(SendError::Malformed { why }) if why.contains("one:1")),
            "{results:?}"
        );
        assert_eq!(results[1].0, second);
        assert!(matches!(results[1].1, Err(SendError::Disconnected { .. })));
    }
}

#[test]
fn rubbish_instead_of_versions_is_no_endless_loop() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.refresh_metadata(world.now);
    world.drain();
    world.connected(world.opened[0].0);
    for _ in 0..2 {
        let (conn, header, _) = world.take(ApiKey::ApiVersions);
        let refusal = api_versions::ApiVersionsResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            ..Default::default()
        };
        world.answer(conn, 0, header.correlation_id, refusal);
    }
    assert_eq!(world.closed.len(), 1);
    assert!(world.asked.is_empty());
}

#[test]
fn an_answer_that_nobody_asked_for_closes_the_connection() {
    let mut world = World::known();
    let conn = world.opened[0].0;
    world.answer(conn, 4, 77, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.closed, [conn]);
}

#[test]
fn each_lane_has_a_connection_of_its_own() {
    let mut world = World::known();
    for lane in [Lane::Fetch, Lane::Group, Lane::Join, Lane::Fetch] {
        world.cluster.send(world.now, Target::Node(2), lane, heartbeat().into(), ms(1000));
        world.drain();
    }
    assert_eq!(world.opened.iter().filter(|(_, host, _)| host == "two").count(), 3);
}

#[test]
fn a_request_for_a_broker_that_cannot_be_reached_fails_at_once_and_asks_for_metadata() {
    let mut world = World::known();
    world.pass(ms(10_000));
    world.send(Target::Node(2), heartbeat(), ms(5_000));
    let conn = world.opened.last().unwrap().0;
    world.refused(conn);
    assert_eq!(world.error(), "could not connect to two:2: connection refused");
    assert!(world.cluster.is_backing_off(world.now, 2));
    world.pass(ms(5));
    world.take(ApiKey::Metadata);
    world.send(Target::Node(3), heartbeat(), ms(5_000));
    assert_eq!(world.error(), "broker 3 is not among the brokers of the cluster");
}

#[test]
fn a_coordinator_is_looked_up_retried_and_then_used() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    let ticket = world.send(Target::Coordinator(group.clone()), heartbeat(), ms(5_000));
    let start = world.now;
    for _ in 0..3 {
        world.reply(ApiKey::FindCoordinator, coordinator(-1, "", ErrorCode::COORDINATOR_NOT_AVAILABLE));
        assert!(world.asked.is_empty(), "there is a pause before the next try");
        world.pass(ms(1_300));
    }
    assert!(world.now - start >= ms(500));
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    assert_eq!(world.told, [ClusterOutput::CoordinatorFound { group: group.clone() }]);
    assert_eq!(world.cluster.coordinator("g"), Some(2));
    world.accept();
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.results()[0].0, ticket);
}

#[test]
fn a_coordinator_that_moved_is_looked_up_again_by_the_next_request() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    world.cluster.find_coordinator(world.now, &group);
    world.drain();
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    world.cluster.coordinator_lost(world.now, "g");
    world.send(Target::Coordinator(group), heartbeat(), ms(5_000));
    world.reply(ApiKey::FindCoordinator, coordinator(1, "one", ErrorCode::NONE));
    assert_eq!(world.opened.last().unwrap().1, "one");
}

#[test]
fn a_coordinator_that_cannot_be_reached_is_given_up_while_the_request_goes_on_waiting() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    let ticket = world.send(Target::Coordinator(group.clone()), heartbeat(), ms(50_000));
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    world.told.clear();
    let conn = world.opened.last().unwrap().0;
    world.refused(conn);
    assert_eq!(world.told, [ClusterOutput::CoordinatorLost { group }]);
    world.reply(ApiKey::FindCoordinator, coordinator(1, "one", ErrorCode::NONE));
    world.accept();
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.results()[0].0, ticket);
}

#[test]
fn a_lookup_that_is_refused_for_good_fails_whoever_waits() {
    let mut world = World::known();
    world.send(Target::Coordinator("g".into()), heartbeat(), ms(5_000));
    world.reply(ApiKey::FindCoordinator, coordinator(-1, "", ErrorCode::GROUP_AUTHORIZATION_FAILED));
    assert_eq!(
        world.error(),
        "looking for the coordinator of group `g`: the broker answered GROUP_AUTHORIZATION_FAILED"
    );
}

#[test]
fn leader_epochs_never_go_backwards_but_a_recreated_topic_starts_afresh() {
    let mut world = World::known();
    let refresh = |world: &mut World, answer: wire::MetadataResponse| {
        world.pass(ms(5_000));
        world.cluster.refresh_metadata(world.now);
        world.drain();
        world.reply(ApiKey::Metadata, answer);
        world.cluster.metadata().partition(&t0()).map(|p| (p.leader, p.leader_epoch)).unwrap()
    };
    assert_eq!(refresh(&mut world, two_brokers(2, 6)), (Some(2), Some(6)));
    assert_eq!(refresh(&mut world, two_brokers(1, 5)), (Some(2), Some(6)));
    let mut recreated = two_brokers(1, 0);
    recreated.topics[0].topic_id = Uuid::from_u128(8);
    assert_eq!(refresh(&mut world, recreated), (Some(1), Some(0)));
    assert!(world.cluster.update_leader(&t0(), 2, 1, None));
    assert!(!world.cluster.update_leader(&t0(), 1, 1, None), "the same epoch is no news");
    assert!(!world.cluster.update_leader(&t0(), 9, 4, None), "nobody knows where broker 9 is");
    assert!(world.cluster.update_leader(&t0(), 9, 4, Some(("nine".to_owned(), 9))));
}

#[test]
fn many_wishes_for_metadata_become_few_requests() {
    let mut world = World::known();
    world.pass(ms(10_000));
    let mut asked = 0;
    for _ in 0..1_000 {
        world.cluster.refresh_metadata(world.now);
        world.pass(ms(10));
        while world.asked.iter().any(|(_, h, _)| h.key == ApiKey::Metadata) {
            asked += 1;
            world.reply(ApiKey::Metadata, two_brokers(1, 5));
        }
    }
    assert!((10..=20).contains(&asked), "{asked} in ten seconds");
}

#[test]
fn new_topics_are_asked_for_at_once_and_old_metadata_now_and_then() {
    let mut world = World::known();
    world.cluster.set_topics(world.now, names(&["t", "u"]));
    world.drain();
    let (conn, header, request) = world.take(ApiKey::Metadata);
    assert!(matches!(request, Request::Metadata(m) if m.topics.as_ref().map(Vec::len) == Some(2)));
    world.answer(conn, header.version, header.correlation_id, two_brokers(1, 5));
    world.asked.clear();
    world.pass(Duration::from_secs(299));
    assert!(world.asked.is_empty());
    world.pass(Duration::from_secs(2));
    world.take(ApiKey::Metadata);
}

#[test]
fn a_topic_that_does_not_exist_is_asked_for_until_it_does() {
    let mut world = World::known();
    world.cluster.set_topics(world.now, names(&["later"]));
    world.drain();
    for _ in 0..5 {
        let mut answer = two_brokers(1, 5);
        answer.topics[0].name = Some("later".to_owned());
        answer.topics[0].partitions.clear();
        answer.topics[0].error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
        world.reply(ApiKey::Metadata, answer);
        assert!(world.asked.is_empty());
        world.pass(ms(1_250));
    }
    world.take(ApiKey::Metadata);
}

#[test]
fn when_no_broker_can_be_reached_the_bootstrap_servers_are_tried_again() {
    let mut world = World::known();
    let conn = world.opened[0].0;
    world.opened.clear();
    world.cluster.handle_disconnected(world.now, conn, "closed");
    let mut hosts = BTreeMap::new();
    for _ in 0..300 {
        world.drain();
        while let Some((conn, host, port)) = world.opened.pop() {
            *hosts.entry((host, port)).or_insert(0) += 1;
            world.refused(conn);
        }
        world.pass(ms(10));
    }
    assert!(hosts.contains_key(&("two".to_owned(), 2)), "{hosts:?}");
    assert!(hosts[&("one".to_owned(), 1)] > 3, "{hosts:?}");
}

#[test]
fn a_broker_can_ask_to_start_again_from_the_bootstrap_servers() {
    let mut world = World::known();
    world.cluster.refresh_metadata(world.now);
    world.pass(ms(200));
    let answer = wire::MetadataResponse { error_code: ErrorCode::REBOOTSTRAP_REQUIRED, ..Default::default() };
    world.reply(ApiKey::Metadata, answer);
    assert_eq!(world.closed.len(), 1);
    assert!(world.cluster.metadata().brokers().is_empty());
    world.opened.clear();
    world.pass(ms(1_300));
    assert_eq!(world.opened[0].1, "one");
}

#[test]
fn a_silent_broker_does_not_hold_up_the_lookup_of_others() {
    let mut world = World::known();
    world.pass(ms(10_000));
    world.cluster.refresh_metadata(world.now);
    world.drain();
    world.take(ApiKey::Metadata);
    world.pass(ms(6_500));
    assert_eq!(world.opened.last().unwrap().1, "two", "the answer is sought elsewhere");
    world.accept();
    world.reply(ApiKey::Metadata, two_brokers(2, 9));
    assert_eq!(world.cluster.metadata().leader(&t0()), Some(2));
}

#[test]
fn connections_that_nobody_uses_are_closed() {
    let mut world = World::known();
    let conn = world.opened[0].0;
    world.pass(ms(100_000));
    assert!(world.closed.is_empty());
    world.cluster.set_topics(world.now, names(&[]));
    world.cluster.settings.metadata_max_age = Duration::from_secs(10_000);
    world.pass(ms(541_000));
    assert_eq!(world.closed, [conn]);
}

#[test]
fn a_produce_without_acknowledgement_is_done_when_it_is_sent() {
    let mut world = World::known();
    world.send(Target::Node(1), produce::ProduceRequest { acks: 0, ..Default::default() }, ms(5_000));
    world.accept();
    world.take(ApiKey::Produce);
    assert!(matches!(world.results()[0].1, Ok(Response::Produce(_))));
}

#[test]
fn a_broker_that_moved_to_another_address_is_reached_there() {
    let mut world = World::known();
    world.pass(ms(5_000));
    world.cluster.refresh_metadata(world.now);
    world.drain();
    let mut answer = two_brokers(1, 5);
    answer.brokers[0].port = 11;
    world.reply(ApiKey::Metadata, answer);
    world.send(Target::Node(1), heartbeat(), ms(5_000));
    assert_eq!(world.opened.last().map(|(_, _, port)| *port), Some(11));
    assert_eq!(world.closed, [world.opened[0].0]);
}

#[test]
fn a_broker_that_wants_to_be_left_alone_is() {
    let mut world = World::known();
    world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.accept();
    world.reply(
        ApiKey::Heartbeat,
        heartbeat::HeartbeatResponse { throttle_time_ms: 300, ..Default::default() },
    );
    world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.pass(ms(290));
    assert!(world.asked.is_empty());
    world.pass(ms(20));
    world.take(ApiKey::Heartbeat);
}
