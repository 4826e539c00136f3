//! Scripts for the machine in virtual time: one broker that answers as the test says, no socket, no clock.

use super::*;
use crate::{
    OffsetAndMetadata,
    config::ConsumerBuilder,
    desk::{Desk, Turn},
};
use std::{collections::BTreeMap, time::Duration};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        ApiKey, Request,
        api_versions::{ApiVersion, ApiVersionsResponse},
        fetch::{
            FetchRequest, FetchResponse, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
            PartitionData,
        },
        find_coordinator::{Coordinator, FindCoordinatorResponse},
        list_offsets::{ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse},
        metadata::{
            MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
        },
        offset_commit::{OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic},
        offset_fetch::{OffsetFetchResponse, OffsetFetchResponseGroup},
    },
    frame,
    records::{BatchBuilder, Compression},
};

/// What the cluster is like, and what it does next.
struct World {
    topic_id: Uuid,
    /// The leader of each partition of topic `t`.
    leaders: Vec<i32>,
    /// What partitions answer fetches with, once each, before they are empty.
    errors: BTreeMap<i32, Vec<PartitionData>>,
    endpoints: Vec<NodeEndpoint>,
    /// How many records each partition has.
    ends: Vec<i64>,
    commit_errors: Vec<ErrorCode>,
    top_level: Vec<ErrorCode>,
    held: Option<ApiKey>,
    /// The topic was deleted.
    gone: bool,
    seen: Vec<(i32, Request)>,
}

struct Rig {
    state: ConsumerState,
    desk: Desk,
    now: Instant,
    /// The node of each connection.
    conns: BTreeMap<ConnId, i32>,
    world: World,
    /// Requests without an answer, and since when.
    waiting: Vec<(ConnId, Bytes, Instant)>,
}

fn name(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn batch(first: i64, count: i64) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for _ in 0..count {
        builder.append(0, None, Some(b"v"), []).unwrap();
    }
    builder.build(first)
}

impl World {
    fn answer(&mut self, node: i32, request: &Request) -> Option<Response> {
        Some(match request {
            Request::ApiVersions(_) => versions().into(),
            Request::Metadata(_) => self.metadata().into(),
            Request::FindCoordinator(request) => FindCoordinatorResponse {
                coordinators: vec![Coordinator {
                    key: request.coordinator_keys.first().cloned().unwrap_or_default(),
                    node_id: 1,
                    host: "one".into(),
                    port: 1,
                    ..Coordinator::default()
                }],
                ..FindCoordinatorResponse::default()
            }
            .into(),
            Request::ListOffsets(request) => {
                let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
                    name: topic.name.clone(),
                    partitions: topic
                        .partitions
                        .iter()
                        .map(|p| ListOffsetsPartitionResponse {
                            partition_index: p.partition_index,
                            offset: if p.timestamp == -1 { self.ends[p.partition_index as usize] } else { 0 },
                            timestamp: -1,
                            ..ListOffsetsPartitionResponse::default()
                        })
                        .collect(),
                });
                ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }.into()
            }
            Request::OffsetCommit(request) => {
                let error_code = self.commit_errors.pop().unwrap_or_default();
                let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
                    name: topic.name.clone(),
                    partitions: topic
                        .partitions
                        .iter()
                        .map(|p| OffsetCommitResponsePartition {
                            partition_index: p.partition_index,
                            error_code,
                        })
                        .collect(),
                    ..OffsetCommitResponseTopic::default()
                });
                OffsetCommitResponse { topics: topics.collect(), ..OffsetCommitResponse::default() }.into()
            }
            Request::OffsetFetch(_) => OffsetFetchResponse {
                groups: vec![OffsetFetchResponseGroup {
                    group_id: "g".into(),
                    ..OffsetFetchResponseGroup::default()
                }],
                ..OffsetFetchResponse::default()
            }
            .into(),
            Request::Fetch(request) => return self.fetch(node, request).map(Into::into),
            other => panic!("{other:?}"),
        })
    }

    fn metadata(&self) -> MetadataResponse {
        if self.gone {
            let broker = MetadataResponseBroker {
                node_id: 1,
                host: "one".into(),
                port: 1,
                ..MetadataResponseBroker::default()
            };
            let topic = MetadataResponseTopic {
                name: Some("t".into()),
                error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ..MetadataResponseTopic::default()
            };
            return MetadataResponse {
                brokers: vec![broker],
                topics: vec![topic],
                ..MetadataResponse::default()
            };
        }
        let broker = |node_id, host: &str| MetadataResponseBroker {
            node_id,
            host: host.into(),
            port: node_id,
            ..MetadataResponseBroker::default()
        };
        let partition = |(index, leader): (usize, &i32)| MetadataResponsePartition {
            partition_index: index as i32,
            leader_id: *leader,
            leader_epoch: 1,
            ..MetadataResponsePartition::default()
        };
        MetadataResponse {
            brokers: vec![broker(1, "one"), broker(2, "two")],
            topics: vec![MetadataResponseTopic {
                name: Some("t".into()),
                topic_id: self.topic_id,
                partitions: self.leaders.iter().enumerate().map(partition).collect(),
                ..MetadataResponseTopic::default()
            }],
            ..MetadataResponse::default()
        }
    }

    /// Answers when there is something to say, and parks the fetch otherwise. Sessions are not kept.
    fn fetch(&mut self, node: i32, request: &FetchRequest) -> Option<FetchResponse> {
        if let Some(error_code) = self.top_level.pop() {
            return Some(FetchResponse { error_code, ..FetchResponse::default() });
        }
        let mut partitions = Vec::new();
        for asked in request.topics.iter().flat_map(|topic| &topic.partitions) {
            let index = asked.partition;
            if self.gone {
                let data = error(ErrorCode::UNKNOWN_TOPIC_ID);
                partitions.push(PartitionData { partition_index: index, ..data });
            } else if let Some(data) = self.errors.get_mut(&index).and_then(Vec::pop) {
                partitions.push(PartitionData { partition_index: index, ..data });
            } else if self.leaders[index as usize] == node && asked.fetch_offset < self.ends[index as usize] {
                let records = batch(asked.fetch_offset, self.ends[index as usize] - asked.fetch_offset);
                partitions.push(PartitionData {
                    partition_index: index,
                    high_watermark: self.ends[index as usize],
                    records: Some(records),
                    ..PartitionData::default()
                });
            }
        }
        let topic = FetchableTopicResponse {
            topic_id: self.topic_id,
            partitions,
            ..FetchableTopicResponse::default()
        };
        (!topic.partitions.is_empty()).then(|| FetchResponse {
            responses: vec![topic],
            node_endpoints: self.endpoints.clone(),
            ..FetchResponse::default()
        })
    }
}

fn versions() -> ApiVersionsResponse {
    let key = |key: &ApiKey| ApiVersion {
        api_key: *key as i16,
        min_version: *key.versions().start(),
        max_version: *key.versions().end(),
    };
    ApiVersionsResponse { api_keys: ApiKey::ALL.iter().map(key).collect(), ..ApiVersionsResponse::default() }
}

impl Rig {
    /// Partitions of `t` assigned by hand, read from the beginning.
    fn new(leaders: &[i32], settings: &[(&str, &str)]) -> Self {
        let mut builder = ConsumerBuilder::default()
            .bootstrap_servers("one:1")
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false");
        for (key, value) in settings {
            builder = builder.set(key, value);
        }
        let settings = ConsumerSettings::new(builder, 0).unwrap();
        let desk = Desk::new(&settings);
        let world = World {
            topic_id: Uuid::from_u128(7),
            leaders: leaders.to_vec(),
            errors: BTreeMap::new(),
            endpoints: Vec::new(),
            ends: vec![0; leaders.len()],
            commit_errors: Vec::new(),
            top_level: Vec::new(),
            held: None,
            gone: false,
            seen: Vec::new(),
        };
        let state = ConsumerState::new(settings, 1);
        Self { state, desk, now: Instant::ZERO, conns: BTreeMap::new(), world, waiting: Vec::new() }
    }

    fn assigned(leaders: &[i32], settings: &[(&str, &str)]) -> Self {
        let mut rig = Self::new(leaders, settings);
        rig.desk.assign(Instant::ZERO, (0..leaders.len() as i32).map(name).collect()).unwrap();
        rig
    }

    /// Carries everything between the three until nothing moves any more; when to wake up.
    fn settle(&mut self) -> Option<Instant> {
        loop {
            for command in self.desk.commands().collect::<Vec<_>>() {
                self.state.handle_command(self.now, command);
            }
            match self.state.poll_output() {
                MachineOutput::Connect { conn, port, .. } => {
                    self.conns.insert(conn, i32::from(port));
                    self.state.handle_connected(self.now, conn);
                }
                MachineOutput::Write { conn, bytes } => {
                    let (_, request) = frame::decode_request(bytes.slice(4..)).unwrap();
                    self.world.seen.push((self.conns[&conn], request));
                    self.waiting.push((conn, bytes.slice(4..), self.now));
                }
                MachineOutput::Close { conn } => drop(self.conns.remove(&conn)),
                MachineOutput::Plan(planning) => self.state.handle_plan(self.now, planning.run()),
                MachineOutput::Event(event) => self.desk.hear(self.now, event),
                MachineOutput::Stop => return None,
                MachineOutput::Wait(at) => {
                    if !self.serve() {
                        return at;
                    }
                }
            }
        }
    }

    /// Lets the broker answer what it can; whether it did.
    fn serve(&mut self) -> bool {
        let mut served = false;
        for (conn, bytes, since) in std::mem::take(&mut self.waiting) {
            let (header, request) = frame::decode_request(bytes.clone()).unwrap();
            let Some(node) = self.conns.get(&conn).copied() else { continue };
            let held = self.world.held == Some(header.key);
            let late = header.key == ApiKey::Fetch && self.now.saturating_since(since).as_millis() >= 500;
            let empty = || late.then(|| FetchResponse::default().into());
            match if held { None } else { self.world.answer(node, &request).or_else(empty) } {
                Some(response) => {
                    served = true;
                    let bytes = frame::encode_response(header.version, header.correlation_id, &response);
                    self.state.handle_frame(self.now, conn, bytes.slice(4..));
                }
                None => self.waiting.push((conn, bytes, since)),
            }
        }
        served
    }

    /// Polls for this long in virtual time; the places of the records, and the first error.
    fn poll(&mut self, ms: u64) -> (Vec<(i32, i64)>, Option<Error>) {
        let (until, mut seen, mut failed) = (self.now + Duration::from_millis(ms), Vec::new(), None);
        self.desk.begin_poll(self.now).unwrap();
        loop {
            let wake = self.settle();
            match self.desk.next(self.now) {
                Turn::Records(records) => seen.extend(records.iter().map(|r| (r.partition(), r.offset()))),
                Turn::Failed(error) => {
                    failed.get_or_insert(error);
                    if self.now >= until {
                        return (seen, failed);
                    }
                    self.now += Duration::from_millis(50);
                    self.state.handle_timeout(self.now);
                }
                Turn::Callback(..) => self.desk.callback_done(self.now, false),
                Turn::CommitEnded(..) => {}
                Turn::Wait(_) if self.now >= until => return (seen, failed),
                Turn::Wait(at) => {
                    let parked = self.waiting.first().map(|(.., since)| *since + Duration::from_millis(500));
                    let parked = parked.filter(|at| *at > self.now);
                    let next = soonest(soonest(wake, at), parked).unwrap_or(until);
                    self.now = next.max(self.now + Duration::from_millis(1)).min(until);
                    self.state.handle_timeout(self.now);
                }
            }
        }
    }

    /// Lets this much time pass without a poll.
    fn pass(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while self.now < until {
            let wake = self.settle().unwrap_or(until);
            self.now = wake.max(self.now + Duration::from_millis(1)).min(until);
            self.state.handle_timeout(self.now);
        }
        self.settle();
    }

    fn requests(&mut self, key: ApiKey) -> Vec<(i32, Request)> {
        let (these, others) =
            std::mem::take(&mut self.world.seen).into_iter().partition(|(_, r)| r.key() == key);
        self.world.seen = others;
        these
    }
}

fn error(code: ErrorCode) -> PartitionData {
    PartitionData { error_code: code, ..PartitionData::default() }
}

#[test]
fn an_error_of_one_partition_is_tried_again_and_stops_no_other() {
    for code in [
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ErrorCode::FENCED_LEADER_EPOCH,
        ErrorCode::REPLICA_NOT_AVAILABLE,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::OFFSET_NOT_AVAILABLE,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::UNKNOWN_TOPIC_ID,
        ErrorCode::INCONSISTENT_TOPIC_ID,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
        ErrorCode::UNKNOWN_SERVER_ERROR,
    ] {
        let mut rig = Rig::assigned(&[1, 1], &[]);
        rig.world.ends = vec![2, 2];
        rig.world.errors.insert(0, vec![error(code), error(code)]);
        let (seen, failed) = rig.poll(3_000);
        assert!(failed.is_none(), "{code}: {failed:?}");
        assert_eq!(seen[..2], [(1, 0), (1, 1)], "{code}: the other one comes first");
        assert_eq!(seen[2..], [(0, 0), (0, 1)], "{code}");
    }
}

#[test]
fn a_lack_of_rights_is_reported_and_what_others_have_still_comes() {
    let mut rig = Rig::assigned(&[1, 1], &[]);
    rig.world.ends = vec![1, 1];
    rig.world.errors.insert(0, vec![error(ErrorCode::TOPIC_AUTHORIZATION_FAILED)]);
    let (mut seen, failed) = rig.poll(2_000);
    assert_eq!(failed.unwrap().code(), Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    seen.sort_unstable();
    assert_eq!(seen, [(0, 0), (1, 0)], "rights came back");
}

#[test]
fn a_new_leader_named_in_the_answer_is_asked_without_waiting_for_metadata() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.poll(100);
    rig.world.ends = vec![1];
    rig.world.leaders = vec![2];
    rig.world.held = Some(ApiKey::Metadata);
    rig.world.endpoints =
        vec![NodeEndpoint { node_id: 2, host: "two".into(), port: 2, ..NodeEndpoint::default() }];
    let current_leader = LeaderIdAndEpoch { leader_id: 2, leader_epoch: 5 };
    let data = PartitionData { current_leader, ..error(ErrorCode::NOT_LEADER_OR_FOLLOWER) };
    rig.world.errors.insert(0, vec![data]);
    let started = rig.now;
    let (seen, _) = rig.poll(20);
    assert_eq!(seen, [(0, 0)]);
    assert!(rig.now.saturating_since(started) <= Duration::from_millis(20), "no backoff");
}

#[test]
fn an_offset_out_of_range_is_reset_or_reported_by_the_policy() {
    for policy in ["earliest", "none"] {
        let mut rig = Rig::new(&[1], &[("auto.offset.reset", policy)]);
        rig.desk.assign(Instant::ZERO, [name(0)].into()).unwrap();
        rig.desk.seek(&name(0), &OffsetAndMetadata::new(99)).unwrap();
        rig.world.ends = vec![2];
        rig.world.errors.insert(0, vec![error(ErrorCode::OFFSET_OUT_OF_RANGE)]);
        let (seen, failed) = rig.poll(500);
        match policy {
            "none" => {
                assert!(matches!(failed, Some(Error::OffsetOutOfRange { offset: 99, .. })), "{failed:?}")
            }
            _ => assert_eq!(seen, [(0, 0), (0, 1)]),
        }
    }
}

#[test]
fn a_forgotten_session_is_started_again_at_once() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.world.ends = vec![1];
    rig.world.top_level = vec![ErrorCode::INVALID_FETCH_SESSION_EPOCH, ErrorCode::FETCH_SESSION_ID_NOT_FOUND];
    let (seen, failed) = rig.poll(20);
    assert_eq!((seen, failed.is_none()), (vec![(0, 0)], true));
}

#[test]
fn a_seek_drops_what_is_under_way() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.poll(50);
    rig.world.ends = vec![10];
    rig.settle();
    rig.desk.seek(&name(0), &OffsetAndMetadata::new(8)).unwrap();
    let (seen, _) = rig.poll(50);
    assert_eq!(seen, [(0, 8), (0, 9)]);
}

#[test]
fn a_recreated_topic_starts_afresh() {
    let mut rig = Rig::assigned(&[1], &[("metadata.max.age.ms", "500")]);
    rig.world.ends = vec![5];
    assert_eq!(rig.poll(50).0.len(), 5);
    rig.world.topic_id = Uuid::from_u128(8);
    rig.world.ends = vec![7];
    rig.world.held = Some(ApiKey::Fetch);
    rig.poll(1_000);
    rig.world.held = None;
    let (seen, _) = rig.poll(2_000);
    assert_eq!(seen.first(), Some(&(0, 0)), "{seen:?}");
}

#[test]
fn a_full_queue_stops_its_own_partition_only() {
    let mut rig = Rig::assigned(&[1, 1], &[("max.partition.fetch.bytes", "1")]);
    rig.world.ends = vec![1, 1];
    rig.desk.begin_poll(rig.now).unwrap();
    rig.settle();
    // Both have data that nobody takes; more of partition 1 is asked for only once its own was taken.
    rig.requests(ApiKey::Fetch);
    rig.desk.set_paused(&[name(0)].into(), true).unwrap();
    assert_eq!(rig.poll(10).0, [(1, 0)]);
    rig.world.ends = vec![2, 2];
    assert_eq!(rig.poll(10).0, [(1, 1)]);
    let asked = rig.requests(ApiKey::Fetch);
    let partitions: Vec<_> = asked
        .iter()
        .flat_map(|(_, request)| match request {
            Request::Fetch(fetch) => {
                fetch.topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.partition)).collect()
            }
            _ => vec![],
        })
        .collect();
    assert!(partitions.iter().all(|p| *p == 1), "{partitions:?}");
    rig.desk.set_paused(&[name(0)].into(), false).unwrap();
    assert_eq!(rig.poll(10).0, [(0, 0), (0, 1)]);
}

#[test]
fn a_commit_is_retried_while_that_can_help_and_never_overtaken() {
    let mut rig = Rig::assigned(&[1], &[("group.id", "g")]);
    let at = |offset| vec![(name(0), OffsetAndMetadata::new(offset))];
    rig.world.commit_errors = vec![
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::NOT_COORDINATOR,
        ErrorCode::REQUEST_TIMED_OUT,
    ];
    let first = rig.desk.commit(at(1), Duration::from_secs(60));
    let mut ended = None;
    while ended.is_none() {
        let wake = rig.settle().unwrap();
        rig.now = wake.max(rig.now + Duration::from_millis(1));
        rig.state.handle_timeout(rig.now);
        ended = rig.desk.take_commit(first);
    }
    assert!(ended.unwrap().is_ok());
    assert_eq!(rig.requests(ApiKey::OffsetCommit).len(), 4);
    rig.world.held = Some(ApiKey::OffsetCommit);
    rig.desk.call_later(|call| Ask::Commit {
        call,
        offsets: at(2),
        kind: CommitKind::Once,
        timeout: Duration::from_secs(60),
    });
    let last = rig.desk.commit(at(3), Duration::from_secs(60));
    rig.pass(1_000);
    let under_way =
        rig.waiting.iter().filter(|(_, b, _)| b[..2] == (ApiKey::OffsetCommit as i16).to_be_bytes()).count();
    assert_eq!(under_way, 1, "the second waits for the first");
    rig.world.held = None;
    rig.pass(1_000);
    assert!(rig.desk.take_commit(last).unwrap().is_ok());
    let order: Vec<_> = rig
        .requests(ApiKey::OffsetCommit)
        .into_iter()
        .filter_map(|(_, request)| match request {
            Request::OffsetCommit(commit) => Some(commit.topics[0].partitions[0].committed_offset),
            _ => None,
        })
        .collect();
    assert_eq!(order, [2, 3]);
}

#[test]
fn a_commit_for_a_topic_that_is_gone_fails_at_once() {
    let mut rig = Rig::new(&[1], &[("group.id", "g")]);
    rig.world.commit_errors = vec![ErrorCode::UNKNOWN_TOPIC_OR_PARTITION; 9];
    let gone = TopicPartition::new("gone", 0);
    let call = rig.desk.commit(vec![(gone, OffsetAndMetadata::new(1))], Duration::from_secs(60));
    rig.settle();
    let refusal = rig.desk.take_commit(call).unwrap().unwrap_err();
    assert_eq!(refusal.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
}

#[test]
fn a_commit_without_an_answer_ends_in_time() {
    let mut rig = Rig::new(&[1], &[("group.id", "g")]);
    rig.world.held = Some(ApiKey::OffsetCommit);
    let call = rig.desk.commit(vec![(name(0), OffsetAndMetadata::new(1))], Duration::from_secs(2));
    let mut refusal = None;
    while refusal.is_none() && rig.now < Instant::ZERO + Duration::from_secs(10) {
        let wake = rig.settle().unwrap();
        rig.now = wake.max(rig.now + Duration::from_millis(1));
        rig.state.handle_timeout(rig.now);
        rig.settle();
        refusal = rig.desk.take_commit(call);
    }
    assert!(matches!(refusal, Some(Err(Error::Timeout { .. }))), "{refusal:?}");
    assert!(rig.now < Instant::ZERO + Duration::from_secs(3));
}

#[test]
fn a_consumer_at_rest_does_nothing() {
    let mut rig = Rig::assigned(&[1, 2], &[]);
    rig.poll(1_000);
    rig.world.seen.clear();
    rig.poll(10_000);
    assert_eq!(rig.requests(ApiKey::Fetch).len(), 40, "two long polls a second and broker");
    assert!(rig.world.seen.is_empty(), "{:?}", rig.world.seen);
}

#[test]
fn a_deleted_topic_is_asked_for_more_and_more_rarely() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.poll(100);
    rig.world.gone = true;
    rig.world.seen.clear();
    let (seen, failed) = rig.poll(10_000);
    assert!(seen.is_empty() && failed.is_none(), "{failed:?}");
    assert!(rig.requests(ApiKey::Fetch).len() < 30, "no loop");
}
