//! The producer in virtual time, against a broker that keeps sequence numbers as Kafka's does and fails at will.

use super::{Command, Event, ProducerRecord, RecordMetadata, Sender};
use crate::{
    Error,
    cluster::{ConnId, backoff::Jitter},
    config::{ProducerBuilder, ProducerConfig},
    machine::{Machine, MachineOutput},
};
use bytes::{Bytes, BytesMut};
use std::{collections::BTreeMap, time::Duration};
use tontine_group::Instant;
use tontine_wire::{
    ErrorCode, Uuid,
    api::{ApiKey, Request, Response, api_versions, init_producer_id, metadata, produce},
    frame,
    records::RecordBatch,
};

/// What happens to the next produce request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Fine,
    /// Stored, but the answer is lost with the connection.
    AnswerLost,
    /// The connection is lost before anything is stored.
    Lost,
    Refused(ErrorCode),
}

struct World {
    sender: Sender<u64, u64>,
    now: Instant,
    wake: Option<Instant>,
    stopped: bool,
    /// Answers on their way to the sender.
    answers: Vec<(Instant, ConnId, Bytes)>,
    delivered: Vec<(u64, Result<RecordMetadata, Error>)>,
    flushed: Vec<u64>,
    fates: Box<dyn FnMut() -> Fate>,
    logs: BTreeMap<i32, Vec<u64>>,
    /// Producer id, epoch and next sequence number of each partition.
    sequences: BTreeMap<(i32, i64), (i16, i32)>,
    epoch: i16,
    requests: Vec<usize>,
    partitions: i32,
    topic_error: ErrorCode,
    latency: Duration,
    largest_batch: usize,
}

fn config(settings: &[(&str, &str)]) -> ProducerConfig {
    let builder = ProducerBuilder::default().bootstrap_servers("one:1");
    settings.iter().fold(builder, |b, (k, v)| b.set(k, v)).checked().unwrap()
}

impl World {
    fn new(settings: &[(&str, &str)]) -> Self {
        Self {
            sender: Sender::new(config(settings), 3).unwrap(),
            now: Instant::from_origin(Duration::from_secs(10)),
            wake: None,
            stopped: false,
            answers: Vec::new(),
            delivered: Vec::new(),
            flushed: Vec::new(),
            fates: Box::new(|| Fate::Fine),
            logs: BTreeMap::new(),
            sequences: BTreeMap::new(),
            epoch: 0,
            requests: Vec::new(),
            partitions: 2,
            topic_error: ErrorCode::NONE,
            latency: Duration::from_millis(1),
            largest_batch: usize::MAX,
        }
    }

    fn send(&mut self, token: u64, record: ProducerRecord) {
        let record = ProducerRecord { value: Some(token.to_be_bytes().to_vec().into()), ..record };
        self.sender.handle_command(self.now, Command::Send { record, timestamp: 5, token });
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            match self.sender.poll_output() {
                MachineOutput::Connect { conn, .. } => {
                    self.sender.handle_connected(self.now, conn);
                }
                MachineOutput::Write { conn, bytes } => self.write(conn, &bytes),
                MachineOutput::Close { .. } | MachineOutput::Plan(_) => {}
                MachineOutput::Event(Event::Delivered(token, result)) => self.delivered.push((token, result)),
                MachineOutput::Event(Event::Flushed(token)) => self.flushed.push(token),
                MachineOutput::Wait(wake) => {
                    self.wake = wake;
                    return;
                }
                MachineOutput::Stop => {
                    self.stopped = true;
                    return;
                }
            }
        }
    }

    fn write(&mut self, conn: ConnId, bytes: &[u8]) {
        let frame = frame::split_frame(&mut BytesMut::from(bytes), 1 << 24).unwrap().unwrap();
        let (header, request) = frame::decode_request(frame).unwrap();
        let response = match request {
            Request::ApiVersions(_) => versions().into(),
            Request::Metadata(_) => self.metadata().into(),
            Request::InitProducerId(_) => {
                self.epoch += 1;
                let producer_epoch = self.epoch;
                init_producer_id::InitProducerIdResponse {
                    producer_id: 7,
                    producer_epoch,
                    ..Default::default()
                }
                .into()
            }
            Request::Produce(request) if request.acks == 0 => return drop(self.produce(request)),
            Request::Produce(request) => match self.produce(request) {
                Some(response) => response.into(),
                None => {
                    self.answers.retain(|(_, c, _)| *c != conn);
                    return self.sender.handle_disconnected(self.now, conn, "reset".to_owned());
                }
            },
            other => panic!("{other:?}"),
        };
        let response: Response = response;
        let bytes = frame::encode_response(header.version, header.correlation_id, &response);
        self.answers.push((self.now + self.latency, conn, bytes.slice(4..)));
    }

    fn metadata(&self) -> metadata::MetadataResponse {
        let broker = metadata::MetadataResponseBroker {
            node_id: 1,
            host: "one".to_owned(),
            port: 1,
            ..Default::default()
        };
        let partition = |partition_index| metadata::MetadataResponsePartition {
            partition_index,
            leader_id: 1,
            leader_epoch: 0,
            ..Default::default()
        };
        let topic = metadata::MetadataResponseTopic {
            error_code: self.topic_error,
            name: Some("t".to_owned()),
            topic_id: Uuid::from_u128(1),
            partitions: (0..self.partitions).filter(|_| self.topic_error.is_ok()).map(partition).collect(),
            ..Default::default()
        };
        metadata::MetadataResponse { brokers: vec![broker], topics: vec![topic], ..Default::default() }
    }

    fn produce(&mut self, request: produce::ProduceRequest) -> Option<produce::ProduceResponse> {
        let fate = (self.fates)();
        if fate == Fate::Lost {
            return None;
        }
        let mut answer = produce::TopicProduceResponse { topic_id: Uuid::from_u128(1), ..Default::default() };
        let mut records = 0;
        for data in request.topic_data.into_iter().flat_map(|t| t.partition_data) {
            let bytes = data.records.unwrap();
            let batch = RecordBatch::parse(&mut bytes.clone()).unwrap().unwrap();
            records += batch.record_count() as usize;
            let result = match fate {
                Fate::Refused(code) => Err(code),
                _ => self.append(data.index, &batch),
            };
            answer.partition_responses.push(produce::PartitionProduceResponse {
                index: data.index,
                error_code: result.err().unwrap_or_default(),
                base_offset: result.unwrap_or(-1),
                ..Default::default()
            });
        }
        self.requests.push(records);
        let answer = produce::ProduceResponse { responses: vec![answer], ..Default::default() };
        (fate != Fate::AnswerLost).then_some(answer)
    }

    fn append(&mut self, partition: i32, batch: &RecordBatch) -> Result<i64, ErrorCode> {
        if batch.size() > self.largest_batch {
            return Err(ErrorCode::MESSAGE_TOO_LARGE);
        }
        let count = batch.record_count() as i32;
        if batch.producer_id() >= 0 {
            let (epoch, next) = *self.sequences.get(&(partition, batch.producer_id())).unwrap_or(&(-1, 0));
            let (batch_epoch, sequence) = (batch.producer_epoch(), batch.base_sequence());
            match () {
                () if batch_epoch < epoch => return Err(ErrorCode::INVALID_PRODUCER_EPOCH),
                () if batch_epoch == epoch && sequence < next => {
                    return Err(ErrorCode::DUPLICATE_SEQUENCE_NUMBER);
                }
                // Of a producer that it has never seen a broker takes any number, as Kafka does.
                () if epoch < 0 => {}
                () if sequence != if batch_epoch == epoch { next } else { 0 } => {
                    return Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
                }
                () => {}
            };
            self.sequences.insert((partition, batch.producer_id()), (batch_epoch, sequence + count));
        }
        let log = self.logs.entry(partition).or_default();
        let base = log.len() as i64;
        for record in batch.records().unwrap().iter() {
            log.push(u64::from_be_bytes(record.unwrap().value().unwrap().try_into().unwrap()));
        }
        Ok(base)
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.drain();
        for _ in 0..1_000_000 {
            let answer = self.answers.iter().map(|(at, ..)| *at).min();
            let next = tontine_group::time::soonest(answer, self.wake).filter(|at| *at <= end);
            let Some(next) = next else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if answer == Some(next) {
                let at = self.answers.iter().position(|(at, ..)| *at == next).unwrap();
                let (_, conn, bytes) = self.answers.remove(at);
                self.sender.handle_frame(self.now, conn, bytes);
            } else {
                self.sender.handle_timeout(self.now);
            }
            self.drain();
        }
        panic!("the sender wants to be woken without end");
    }

    fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    fn errors(&self) -> Vec<String> {
        self.delivered.iter().filter_map(|(_, r)| r.as_ref().err()).map(ToString::to_string).collect()
    }
}

fn versions() -> api_versions::ApiVersionsResponse {
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

fn to(partition: i32) -> ProducerRecord {
    ProducerRecord::to("t").partition(partition)
}

#[test]
fn records_are_delivered_in_order_with_their_offsets() {
    let mut world = World::new(&[]);
    for token in 0..1_000 {
        world.send(token, to(0));
    }
    world.seconds(1);
    assert_eq!(world.logs[&0], (0..1_000).collect::<Vec<_>>());
    for (token, result) in &world.delivered {
        assert_eq!(result.as_ref().unwrap().offset, Some(*token as i64));
    }
    assert_eq!(world.delivered.len(), 1_000);
    assert!(world.requests.len() < 20, "records travel together: {:?}", world.requests);
}

#[test]
fn records_linger_for_company_but_a_flush_is_not_kept_waiting() {
    let mut world = World::new(&[("linger.ms", "1000")]);
    world.send(0, to(0));
    world.pass(Duration::from_millis(900));
    assert!(world.delivered.is_empty());
    world.seconds(1);
    assert_eq!(world.delivered.len(), 1);
    world.send(1, to(0));
    world.sender.handle_command(world.now, Command::Flush(9));
    world.pass(Duration::from_millis(50));
    assert_eq!((world.delivered.len(), world.flushed.as_slice()), (2, &[9][..]));
}

#[test]
fn nothing_is_lost_doubled_or_reordered_whatever_fails() {
    for seed in 0..300 {
        let mut chance = Jitter::new(seed);
        let mut world = World::new(&[("linger.ms", "0"), ("batch.size", "120")]);
        let mut dice = Jitter::new(seed + 1_000_000);
        world.fates = Box::new(move || match dice.below(8) {
            0 => Fate::AnswerLost,
            1 => Fate::Lost,
            2 => Fate::Refused(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            3 => Fate::Refused(ErrorCode::NOT_ENOUGH_REPLICAS),
            _ => Fate::Fine,
        });
        for token in 0..300 {
            world.send(token, to((token % 2) as i32));
            world.pass(Duration::from_millis(chance.below(3) as u64));
        }
        world.fates = Box::new(|| Fate::Fine);
        world.seconds(20);
        assert_eq!(world.errors(), [] as [&str; 0], "seed {seed}");
        assert_eq!(world.delivered.len(), 300, "seed {seed}");
        for partition in 0..2 {
            let expected: Vec<u64> = (0..300).filter(|t| t % 2 == partition).collect();
            assert_eq!(world.logs[&(partition as i32)], expected, "seed {seed}");
        }
    }
}

/// A leader that has just been made refuses the first batch and takes the second, which was already on its way.
#[test]
fn a_broker_that_never_saw_the_producer_cannot_take_its_second_batch_before_the_first() {
    let mut world = World::new(&[("linger.ms", "0"), ("batch.size", "120")]);
    let mut fates = vec![Fate::Refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)];
    world.fates = Box::new(move || fates.pop().unwrap_or(Fate::Fine));
    for token in 0..20 {
        world.send(token, to(0));
    }
    world.seconds(2);
    assert_eq!(world.logs[&0], (0..20).collect::<Vec<_>>());
    assert_eq!(world.epoch, 1, "no other identity was needed");
}

#[test]
fn without_idempotence_order_is_kept_all_the_same() {
    for seed in 0..100 {
        let mut world =
            World::new(&[("linger.ms", "0"), ("batch.size", "120"), ("enable.idempotence", "false")]);
        let mut dice = Jitter::new(seed);
        world.fates = Box::new(move || match dice.below(4) {
            0 => Fate::Refused(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            _ => Fate::Fine,
        });
        for token in 0..100 {
            world.send(token, to(0));
            world.pass(Duration::from_millis(1));
        }
        world.seconds(60);
        assert_eq!(world.logs[&0], (0..100).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_batch_that_a_broker_finds_too_large_is_sent_in_halves() {
    let mut world = World::new(&[("batch.size", "5000"), ("linger.ms", "20")]);
    world.largest_batch = 400;
    for token in 0..100 {
        world.send(token, to(0));
    }
    world.seconds(5);
    assert_eq!(world.logs[&0], (0..100).collect::<Vec<_>>());
    assert_eq!(world.errors(), [] as [&str; 0]);
}

#[test]
fn a_broker_that_forgot_the_producer_gets_a_new_epoch() {
    let mut world = World::new(&[]);
    world.send(0, to(0));
    world.seconds(1);
    let mut fates = vec![Fate::Refused(ErrorCode::UNKNOWN_PRODUCER_ID)];
    world.fates = Box::new(move || fates.pop().unwrap_or(Fate::Fine));
    world.send(1, to(0));
    world.send(2, to(1));
    world.seconds(2);
    assert_eq!((world.logs[&0].as_slice(), world.logs[&1].as_slice()), (&[0, 1][..], &[2][..]));
    assert_eq!(world.epoch, 2);
}

#[test]
fn an_error_that_does_not_pass_is_told_and_what_follows_is_sent() {
    let mut world = World::new(&[]);
    world.send(0, to(0));
    world.seconds(1);
    let mut fates = vec![Fate::Refused(ErrorCode::INVALID_RECORD)];
    world.fates = Box::new(move || fates.pop().unwrap_or(Fate::Fine));
    world.send(1, to(0));
    world.seconds(1);
    world.send(2, to(0));
    world.seconds(1);
    assert_eq!(world.errors(), ["sending to t-0: the broker answered INVALID_RECORD"]);
    assert_eq!(world.logs[&0], [0, 2]);
}

#[test]
fn a_record_that_finds_no_way_in_time_says_what_went_wrong() {
    let mut world = World::new(&[("delivery.timeout.ms", "40000")]);
    world.fates = Box::new(|| Fate::Refused(ErrorCode::NOT_ENOUGH_REPLICAS));
    world.send(0, to(0));
    world.seconds(39);
    assert!(world.delivered.is_empty());
    world.seconds(2);
    let why =
        "sending to t-0 did not end within 40s: sending to t-0: the broker answered NOT_ENOUGH_REPLICAS";
    assert_eq!(world.errors(), [why]);
}

#[test]
fn a_topic_that_does_not_exist_is_waited_for_until_max_block() {
    let mut world = World::new(&[("max.block.ms", "5000")]);
    world.topic_error = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    world.send(0, to(0));
    world.seconds(4);
    assert!(world.delivered.is_empty());
    world.seconds(2);
    assert_eq!(world.errors().len(), 1);
    assert!(world.errors()[0].contains("UNKNOWN_TOPIC_OR_PARTITION"), "{:?}", world.errors());
    world.send(1, to(0));
    world.seconds(1);
    world.topic_error = ErrorCode::NONE;
    world.seconds(3);
    assert_eq!(world.logs[&0], [1], "it appeared later");
}

#[test]
fn a_topic_that_nobody_may_write_to_is_an_error_at_once() {
    let mut world = World::new(&[]);
    world.topic_error = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
    world.send(0, to(0));
    world.seconds(1);
    assert_eq!(world.errors(), ["sending to topic `t`: the broker answered TOPIC_AUTHORIZATION_FAILED"]);
}

#[test]
fn a_partition_that_does_not_exist_is_a_misuse() {
    let mut world = World::new(&[]);
    world.send(0, to(9));
    world.seconds(1);
    assert_eq!(world.errors(), ["topic `t` has partitions 0 to 1, no partition 9"]);
}

#[test]
fn records_without_a_key_stay_with_one_partition_for_a_batch() {
    let mut world = World::new(&[("batch.size", "1000")]);
    world.partitions = 8;
    for token in 0..2_000 {
        world.send(token, ProducerRecord::to("t"));
    }
    world.seconds(5);
    assert_eq!(world.logs.len(), 8, "all partitions get some");
    assert!(world.requests.iter().all(|r| *r > 5), "{:?}", world.requests);
}

#[test]
fn without_acknowledgement_records_count_as_delivered_when_they_are_sent() {
    let mut world = World::new(&[("acks", "0")]);
    world.send(0, to(0));
    world.seconds(1);
    assert_eq!(world.delivered[0].1.as_ref().unwrap().offset, None);
}

#[test]
fn an_abandoned_producer_delivers_what_it_has_and_stops() {
    let mut world = World::new(&[("linger.ms", "60000")]);
    world.send(0, to(0));
    world.sender.handle_abandoned(world.now);
    world.seconds(1);
    assert!(world.stopped);
    assert_eq!(world.logs[&0], [0]);
}
