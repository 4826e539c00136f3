//! One broker that answers as the test says, a desk, and a clock that the test moves.

use super::super::*;
use crate::{
    config::ConsumerBuilder,
    desk::{Desk, Turn},
};
use std::{collections::BTreeMap, time::Duration};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        ApiKey, Request,
        api_versions::{ApiVersion, ApiVersionsResponse},
        consumer_group_heartbeat::{self, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
        fetch::{FetchRequest, FetchResponse, FetchableTopicResponse, NodeEndpoint, PartitionData},
        find_coordinator::{Coordinator, FindCoordinatorResponse},
        heartbeat::HeartbeatResponse,
        join_group::JoinGroupResponse,
        leave_group::LeaveGroupResponse,
        list_offsets::{ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse},
        metadata::{
            MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
        },
        offset_commit::{OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic},
        offset_fetch::{OffsetFetchResponse, OffsetFetchResponseGroup},
        sync_group::SyncGroupResponse,
    },
    consumer_protocol::{Assignment, TopicPartitions},
    frame,
    records::{BatchBuilder, Compression},
};

/// What the cluster is like, and what it does next.
pub(super) struct World {
    pub(super) topic_id: Uuid,
    /// The leader of each partition of topic `t`.
    pub(super) leaders: Vec<i32>,
    /// What partitions answer fetches with, once each, before they are empty.
    pub(super) errors: BTreeMap<i32, Vec<PartitionData>>,
    pub(super) endpoints: Vec<NodeEndpoint>,
    /// How many records each partition has.
    pub(super) ends: Vec<i64>,
    pub(super) commit_errors: Vec<ErrorCode>,
    pub(super) heartbeat_error: ErrorCode,
    /// What the member is to have, with the consumer protocol.
    pub(super) dealt: Vec<i32>,
    pub(super) top_level: Vec<ErrorCode>,
    pub(super) held: Option<ApiKey>,
    /// The topic was deleted.
    pub(super) gone: bool,
    pub(super) seen: Vec<(i32, Request)>,
    /// What is done to the next answer with records.
    pub(super) edit: Option<Edit>,
}

/// Changes an answer to a fetch before it is sent.
pub(super) type Edit = Box<dyn Fn(&mut FetchResponse)>;

pub(super) struct Rig {
    pub(super) state: ConsumerState,
    pub(super) desk: Desk,
    pub(super) now: Instant,
    /// The node of each connection.
    pub(super) conns: BTreeMap<ConnId, i32>,
    pub(super) world: World,
    /// Requests without an answer, and since when.
    pub(super) waiting: Vec<(ConnId, Bytes, Instant)>,
    /// Seeds of damage to the next answers to fetches.
    pub(super) damage: Vec<u64>,
    /// What the desk has still to hear, while it hears nothing.
    pub(super) unheard: Option<Vec<Event>>,
}

pub(super) fn name(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

pub(super) fn batch(first: i64, count: i64) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for _ in 0..count {
        builder.append(0, None, Some(b"v"), []).unwrap();
    }
    builder.build(first)
}

impl World {
    pub(super) fn answer(&mut self, node: i32, request: &Request) -> Option<Response> {
        Some(match request {
            Request::ApiVersions(_) => versions().into(),
            Request::Metadata(_) => self.metadata().into(),
            Request::JoinGroup(_) => JoinGroupResponse {
                generation_id: 1,
                protocol_type: Some("consumer".into()),
                protocol_name: Some("range".into()),
                leader: "another".into(),
                member_id: "me".into(),
                ..JoinGroupResponse::default()
            }
            .into(),
            Request::SyncGroup(_) => {
                SyncGroupResponse { assignment: self.everything(), ..Default::default() }.into()
            }
            Request::Heartbeat(_) => {
                HeartbeatResponse { error_code: self.heartbeat_error, ..Default::default() }.into()
            }
            Request::ConsumerGroupHeartbeat(request) => self.deal(request).into(),
            Request::LeaveGroup(_) => LeaveGroupResponse::default().into(),
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
                let code_of = |topic: &str| match topic {
                    "gone" => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                    _ => error_code,
                };
                let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
                    name: topic.name.clone(),
                    partitions: topic
                        .partitions
                        .iter()
                        .map(|p| OffsetCommitResponsePartition {
                            partition_index: p.partition_index,
                            error_code: code_of(&topic.name),
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

    fn deal(&self, request: &ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        let topic = consumer_group_heartbeat::TopicPartitions {
            topic_id: self.topic_id,
            partitions: self.dealt.clone(),
        };
        ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: 1,
            heartbeat_interval_ms: 1_000,
            assignment: Some(consumer_group_heartbeat::Assignment { topic_partitions: vec![topic] }),
            ..Default::default()
        }
    }

    /// Every partition of `t`, as a share.
    fn everything(&self) -> Bytes {
        let partitions = (0..self.leaders.len() as i32).collect();
        let all = TopicPartitions { topic: "t".into(), partitions };
        Assignment { assigned_partitions: vec![all], user_data: None }.to_assignment(3)
    }

    pub(super) fn metadata(&self) -> MetadataResponse {
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
    pub(super) fn fetch(&mut self, node: i32, request: &FetchRequest) -> Option<FetchResponse> {
        if let Some(error_code) = self.top_level.pop() {
            return Some(FetchResponse { error_code, ..FetchResponse::default() });
        }
        if request.session_epoch > 0 {
            let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
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
            } else if asked.fetch_offset > self.ends[index as usize] {
                let data = error(ErrorCode::OFFSET_OUT_OF_RANGE);
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
        let mut response = (!topic.partitions.is_empty()).then(|| FetchResponse {
            responses: vec![topic],
            node_endpoints: self.endpoints.clone(),
            ..FetchResponse::default()
        })?;
        if let Some(edit) = self.edit.take() {
            edit(&mut response);
        }
        Some(response)
    }
}

pub(super) fn versions() -> ApiVersionsResponse {
    let key = |key: &ApiKey| ApiVersion {
        api_key: *key as i16,
        min_version: *key.versions().start(),
        max_version: *key.versions().end(),
    };
    ApiVersionsResponse { api_keys: ApiKey::ALL.iter().map(key).collect(), ..ApiVersionsResponse::default() }
}

impl Rig {
    /// Partitions of `t` assigned by hand, read from the beginning.
    pub(super) fn new(leaders: &[i32], settings: &[(&str, &str)]) -> Self {
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
            heartbeat_error: ErrorCode::NONE,
            dealt: Vec::new(),
            top_level: Vec::new(),
            held: None,
            gone: false,
            seen: Vec::new(),
            edit: None,
        };
        let state = ConsumerState::new(settings, 1);
        Self {
            state,
            desk,
            now: Instant::ZERO,
            conns: BTreeMap::new(),
            world,
            waiting: Vec::new(),
            damage: Vec::new(),
            unheard: None,
        }
    }

    pub(super) fn assigned(leaders: &[i32], settings: &[(&str, &str)]) -> Self {
        let mut rig = Self::new(leaders, settings);
        rig.desk.assign(Instant::ZERO, (0..leaders.len() as i32).map(name).collect()).unwrap();
        rig
    }

    /// Polls until a callback has to run.
    pub(super) fn poll_for_callback(&mut self) -> (StepKind, Vec<TopicPartition>) {
        self.desk.begin_poll(self.now).unwrap();
        for _ in 0..1_000 {
            self.settle();
            if let Turn::Callback(kind, partitions) = self.desk.next(self.now) {
                return (kind, partitions);
            }
            self.pass(1);
        }
        panic!("no callback");
    }

    /// Carries everything between the three until nothing moves any more; when to wake up.
    pub(super) fn settle(&mut self) -> Option<Instant> {
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
                MachineOutput::Event(event) => match &mut self.unheard {
                    Some(unheard) => unheard.push(event),
                    None => self.desk.hear(self.now, event),
                },
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
    pub(super) fn serve(&mut self) -> bool {
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
                    let mut bytes = bytes[4..].to_vec();
                    if header.key == ApiKey::Fetch {
                        self.damage.pop().into_iter().for_each(|seed| damage(&mut bytes, seed));
                    }
                    self.state.handle_frame(self.now, conn, bytes.into());
                }
                None => self.waiting.push((conn, bytes, since)),
            }
        }
        served
    }

    /// Polls for this long in virtual time; the places of the records, and the first error.
    pub(super) fn poll(&mut self, ms: u64) -> (Vec<(i32, i64)>, Option<Error>) {
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
    pub(super) fn pass(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while self.now < until {
            let wake = self.settle().unwrap_or(until);
            self.now = wake.max(self.now + Duration::from_millis(1)).min(until);
            self.state.handle_timeout(self.now);
        }
        self.settle();
    }

    pub(super) fn requests(&mut self, key: ApiKey) -> Vec<(i32, Request)> {
        let (these, others) =
            std::mem::take(&mut self.world.seen).into_iter().partition(|(_, r)| r.key() == key);
        self.world.seen = others;
        these
    }
}

pub(super) fn error(code: ErrorCode) -> PartitionData {
    PartitionData { error_code: code, ..PartitionData::default() }
}

/// Overwrites a few bytes behind the correlation id, or cuts the end off.
fn damage(bytes: &mut Vec<u8>, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below.max(1)
    };
    for _ in 0..=next(3) {
        let at = 4 + next(bytes.len() - 4);
        bytes[at] = [0, 1, 0x7f, 0x80, 0xff, next(256) as u8][next(6)];
    }
    if next(8) == 0 {
        bytes.truncate(4 + next(bytes.len() - 4));
    }
}
