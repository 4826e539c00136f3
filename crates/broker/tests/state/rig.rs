//! A cluster, its connections and a clock that only the test moves.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tontine_broker::disk::SimulatedDisk;
use tontine_broker::{
    BrokerConfig, BrokerOutput, BrokerState, Closing, ConnId, NewTopic, Node, NodeId, StoreError, Work,
};
use tontine_group::Instant;
use tontine_wire::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData};
use tontine_wire::api::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use tontine_wire::api::{ApiKey, Call, Request, Response};
use tontine_wire::header::RequestHeader;
use tontine_wire::records::{BatchBuilder, Compression, RecordBatch};
use tontine_wire::{ErrorCode, Uuid, frame};

fn some_nodes(count: i32) -> BTreeMap<NodeId, Node> {
    (1..=count).map(|id| (id, Node::new("localhost", 9000 + id as u16))).collect()
}

/// Wall clock at the start of every test.
pub(crate) const START_MS: i64 = 1_700_000_000_000;

pub(crate) struct Rig {
    pub(crate) state: BrokerState,
    pub(crate) now: Instant,
    next_conn: u64,
    asked: BTreeMap<ConnId, (ApiKey, i16)>,
    answers: BTreeMap<ConnId, VecDeque<Response>>,
    pub(crate) closed: Vec<(ConnId, Closing)>,
    /// Answers to what is not spoken.
    pub(crate) frames: Vec<(ConnId, Bytes)>,
    /// Work that is not done before the test says so; `None`: it is done at once.
    pub(crate) work: Option<VecDeque<Work>>,
}

impl Rig {
    pub(crate) fn new(nodes: i32, configs: &[(&str, &str)]) -> Self {
        let mut config = BrokerConfig::new();
        for (key, value) in configs {
            let _ = config.set(key, value).unwrap();
        }
        Self::of(BrokerState::new(config, some_nodes(nodes), 7, START_MS))
    }

    /// One node that keeps everything on this disk; the seed differs from start to start.
    pub(crate) fn on(disk: &SimulatedDisk, seed: u64, configs: &[(&str, &str)]) -> Result<Self, StoreError> {
        Self::on_nodes(disk, seed, 1, configs)
    }

    /// As many nodes on this disk.
    pub(crate) fn on_nodes(
        disk: &SimulatedDisk,
        seed: u64,
        nodes: i32,
        configs: &[(&str, &str)],
    ) -> Result<Self, StoreError> {
        let mut config = BrokerConfig::new();
        for (key, value) in configs {
            let _ = config.set(key, value).unwrap();
        }
        let disk = Arc::new(disk.clone());
        let mut state = BrokerState::open(config, some_nodes(nodes), seed, START_MS, disk)?;
        state.work_off(Instant::ZERO);
        Ok(Self::of(state))
    }

    fn of(state: BrokerState) -> Self {
        Self {
            state,
            now: Instant::ZERO,
            next_conn: 0,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            closed: Vec::new(),
            frames: Vec::new(),
            work: None,
        }
    }

    /// One node with one topic.
    pub(crate) fn with_topic(name: &str, partitions: i32) -> Self {
        let mut rig = Self::new(1, &[]);
        rig.topic(name, partitions);
        rig
    }

    pub(crate) fn topic(&mut self, name: &str, partitions: i32) -> Uuid {
        self.create(&NewTopic::new(name, partitions)).unwrap()
    }

    /// Creates a topic and waits until that is durable.
    pub(crate) fn create(&mut self, topic: &NewTopic) -> Result<Uuid, (ErrorCode, String)> {
        let created = self.state.create_topic(self.now, topic);
        self.drain();
        created.and_then(|id| match self.state.metadata_is_pending() {
            true => Err((ErrorCode::KAFKA_STORAGE_ERROR, "it is not durable".into())),
            false => Ok(id),
        })
    }

    /// Deletes a topic and waits until that is durable.
    pub(crate) fn delete(&mut self, topic: &str) -> Result<(), ErrorCode> {
        let deleted = self.state.delete_topic(self.now, topic);
        self.drain();
        deleted.and_then(|()| match self.state.metadata_is_pending() {
            true => Err(ErrorCode::KAFKA_STORAGE_ERROR),
            false => Ok(()),
        })
    }

    pub(crate) fn connect(&mut self, node: NodeId) -> ConnId {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        self.state.handle_connected(self.now, conn, node, "127.0.0.1");
        conn
    }

    pub(crate) fn send(&mut self, conn: ConnId, version: i16, request: impl Into<Request>) {
        let request = request.into();
        let header =
            RequestHeader { key: request.key(), version, correlation_id: 1, client_id: Some("test".into()) };
        self.asked.insert(conn, (request.key(), version));
        let bytes = frame::encode_request(&header, &request).slice(4..);
        self.state.handle_frame(self.now, conn, bytes);
        self.drain();
    }

    pub(crate) fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.state.poll_output() {
                BrokerOutput::Reply { conn, version, correlation_id, response } => {
                    let (key, asked) = self.asked.get(&conn).copied().unwrap_or((response.key(), version));
                    assert_eq!(asked, version, "{key:?}");
                    let bytes = frame::encode_response(version, correlation_id, &response).slice(4..);
                    let response = frame::decode_response(key, version, bytes).unwrap();
                    self.answers.entry(conn).or_default().push_back(response);
                }
                BrokerOutput::Frame { conn, frame } => self.frames.push((conn, frame)),
                BrokerOutput::Disconnect { conn, why } => self.closed.push((conn, why)),
                BrokerOutput::Work(work) => match &mut self.work {
                    Some(kept) => kept.push_back(work),
                    None => self.state.handle_done(self.now, work.run()),
                },
                BrokerOutput::Silent { .. } | BrokerOutput::Transition(_) => {}
                BrokerOutput::Wait(deadline) => return deadline,
            }
        }
    }

    /// Does one piece of the work that was kept. Whether there was one.
    pub(crate) fn work_once(&mut self, at: usize) -> bool {
        let Some(kept) = self.work.as_mut().filter(|kept| !kept.is_empty()) else { return false };
        let at = at % kept.len();
        let work = kept.remove(at).unwrap();
        self.state.handle_done(self.now, work.run());
        self.drain();
        true
    }

    /// What has been answered on a connection, if anything.
    pub(crate) fn answer(&mut self, conn: ConnId) -> Option<Response> {
        self.answers.get_mut(&conn)?.pop_front()
    }

    pub(crate) fn answer_as<R: TryFrom<Response>>(&mut self, conn: ConnId) -> Option<R> {
        self.answer(conn).and_then(|response| R::try_from(response).ok())
    }

    /// Asks and takes the answer, which must come at once.
    pub(crate) fn ask<C: Call>(&mut self, conn: ConnId, version: i16, request: C) -> C::Response {
        self.send(conn, version, request);
        self.answer_as(conn).expect("answered at once")
    }

    /// Lets time pass, stopping wherever the state wants to be called.
    pub(crate) fn advance(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while let Some(at) = self.drain().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            self.state.handle_timeout(self.now);
        }
        self.now = end;
        self.state.handle_timeout(end);
        self.drain();
    }

    pub(crate) fn produce(
        &mut self,
        conn: ConnId,
        topic: &str,
        partition: i32,
        values: &[&str],
    ) -> PartitionProduceResponse {
        self.produce_bytes(conn, topic, partition, -1, batch(values))
    }

    pub(crate) fn produce_bytes(
        &mut self,
        conn: ConnId,
        topic: &str,
        partition: i32,
        acks: i16,
        records: Bytes,
    ) -> PartitionProduceResponse {
        let mut response = self.ask(conn, 9, produce_request(topic, partition, acks, records));
        response.responses.remove(0).partition_responses.remove(0)
    }

    /// Fetches one partition without waiting.
    pub(crate) fn fetch(&mut self, conn: ConnId, topic: &str, partition: i32, offset: i64) -> PartitionData {
        let mut response = self.ask(conn, 11, fetch_request(topic, &[(partition, offset)], 0));
        response.responses.remove(0).partitions.remove(0)
    }
}

pub(crate) fn produce_request(topic: &str, partition: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let partition_data = vec![PartitionProduceData { index: partition, records: Some(records) }];
    let topic = TopicProduceData { name: topic.into(), partition_data, ..Default::default() };
    ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() }
}

pub(crate) fn batch(values: &[&str]) -> Bytes {
    batch_at(START_MS, values)
}

pub(crate) fn batch_at(timestamp: i64, values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for (at, value) in (0..).zip(values) {
        builder.append(timestamp + at, Some(b"k"), Some(value.as_bytes()), []).unwrap();
    }
    builder.build(0)
}

pub(crate) fn fetch_request(topic: &str, partitions: &[(i32, i64)], max_wait_ms: i32) -> FetchRequest {
    let partitions = partitions
        .iter()
        .map(|(partition, fetch_offset)| FetchPartition {
            partition: *partition,
            fetch_offset: *fetch_offset,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        })
        .collect();
    let topic = FetchTopic { topic: topic.into(), partitions, ..Default::default() };
    FetchRequest { max_wait_ms, min_bytes: 1, max_bytes: 50 << 20, topics: vec![topic], ..Default::default() }
}

/// The same fetch with the topic's id instead of its name.
pub(crate) fn by_id(mut request: FetchRequest, id: Uuid) -> FetchRequest {
    for topic in &mut request.topics {
        topic.topic.clear();
        topic.topic_id = id;
    }
    request
}

/// Offsets and values of the records of an answer.
pub(crate) fn records(data: &PartitionData) -> Vec<(i64, String)> {
    let mut bytes = data.records.clone().expect("records are never null");
    let mut found = Vec::new();
    while let Some(batch) = RecordBatch::parse(&mut bytes).unwrap() {
        for record in batch.records().unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value().unwrap_or_default().to_vec()).unwrap();
            found.push((record.offset(), value));
        }
    }
    found
}

/// The partitions of an answer with the number of their records.
pub(crate) fn shape(response: &FetchResponse) -> Vec<(i32, usize)> {
    response
        .responses
        .iter()
        .flat_map(|topic| &topic.partitions)
        .map(|data| (data.partition_index, records(data).len()))
        .collect()
}
