//! Transactional producers: each writes records and offsets all or nothing, and its process may stop in the middle, take too
//! long, or be replaced by a twin while it still believes that it is the one.
//!
//! They are the simulation's own clients, as plain as can be: one request after the other, each tried again until its answer
//! says what became of it. Sequence numbers make that harmless, as for any idempotent producer. What came of each
//! transaction is read from the logs (`scan`), and compared with what its producer was told.

use crate::{
    client::unix_ms,
    fact::Fact,
    random::Random,
    world::{Happening, Stream, World},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tontine::TopicPartition;
use tontine_broker::NodeId;
use tontine_wire::{
    ErrorCode,
    api::{
        Request, Response,
        add_offsets_to_txn::AddOffsetsToTxnRequest,
        add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic},
        end_txn::EndTxnRequest,
        find_coordinator::FindCoordinatorRequest,
        init_producer_id::InitProducerIdRequest,
        produce::{PartitionProduceData, ProduceRequest, TopicProduceData},
        txn_offset_commit::{
            TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
        },
    },
    records::{BatchBuilder, Compression},
};

/// The topic that they write to: it is never deleted.
const TOPIC: &str = "t0";

/// What transactional producers are like in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPlan {
    /// How many there are.
    pub producers: u64,
    /// `transaction.timeout.ms`.
    pub timeout: u64,
    /// How long there is between two requests of a producer, in milliseconds at most.
    pub pace: u64,
    /// How many members out of a hundred read only what is committed.
    pub read_committed: u64,
}

impl TransactionPlan {
    /// Draws producers; most runs have none.
    pub fn draw(random: &mut Random) -> Option<Self> {
        random.percent(25).then(|| Self {
            producers: random.between(1, 3),
            timeout: random.between(1, 5) * 1_000,
            pace: random.pick(&[5, 50, 400]).unwrap_or(50),
            read_committed: random.pick(&[50, 100, 100]).unwrap_or(100),
        })
    }
}

/// How a transaction is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Commit,
    Abort,
    /// The producer does nothing for longer than it may, and then wants to commit.
    TooLate,
    /// Its process dies; another one begins anew.
    Crash,
    /// Another one begins anew while it still lives, and wants to commit.
    Twin,
}

/// The next request.
#[derive(Clone, Debug)]
enum Step {
    Init,
    Begin,
    /// One more partition joins the transaction.
    Add(usize),
    /// Records go to it, exactly these if they may be there already.
    Write(usize, Option<Bytes>),
    AddOffsets,
    Offsets,
    End,
    /// A producer that was shut out tries to write and to commit all the same.
    Zombie,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    id: i64,
    epoch: i16,
}

#[derive(Debug)]
pub(crate) struct Producer {
    number: u64,
    turns: u64,
    step: Step,
    identity: Option<Identity>,
    /// The one before, which was never told that it is no more.
    zombie: Option<Identity>,
    sequences: BTreeMap<TopicPartition, i32>,
    places: Vec<TopicPartition>,
    /// What it was told is written, in this transaction.
    written: Vec<(TopicPartition, i64, i64)>,
    end: End,
    /// The offset that goes with the transaction, and whether it was sent.
    offset: i64,
    offset_sent: bool,
    /// It asked for the end, and does not know what came of it.
    asked_to_commit: bool,
    /// What the group of this producer may have committed by now.
    committed: BTreeSet<Option<i64>>,
}

impl Producer {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            turns: 0,
            step: Step::Init,
            identity: None,
            zombie: None,
            sequences: BTreeMap::new(),
            places: Vec::new(),
            written: Vec::new(),
            end: End::Commit,
            offset: 0,
            offset_sent: false,
            asked_to_commit: false,
            committed: [None].into(),
        }
    }

    fn name(&self) -> String {
        format!("x{}", self.number)
    }

    /// The group whose offsets go with its transactions. Nobody else commits for it.
    fn group(&self) -> String {
        format!("of {}", self.name())
    }

    /// Whether nothing of it is open.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.step, Step::Begin)
    }

    /// The transaction is over, in this way if that is known; `None` when it may be either.
    fn over(&mut self, committed: Option<bool>) {
        if std::mem::take(&mut self.offset_sent) {
            match committed {
                Some(true) => self.committed = [Some(self.offset)].into(),
                Some(false) => {}
                None => drop(self.committed.insert(Some(self.offset))),
            }
        }
        self.written.clear();
        self.asked_to_commit = false;
    }
}

/// What an answer says: nothing when there was none.
type Code = Option<ErrorCode>;

/// Whether another producer has taken its place, or its transaction took too long.
fn is_shut_out(code: ErrorCode) -> bool {
    [
        ErrorCode::PRODUCER_FENCED,
        ErrorCode::INVALID_PRODUCER_EPOCH,
        ErrorCode::INVALID_PRODUCER_ID_MAPPING,
        ErrorCode::INVALID_TXN_STATE,
    ]
    .contains(&code)
}

fn is_fine(code: Code) -> bool {
    code.is_some_and(ErrorCode::is_ok)
}

impl World {
    pub(crate) fn start_producers(&mut self) {
        let Some(plan) = self.plan.transactions else { return };
        for number in 0..plan.producers {
            self.producers.insert(number, Producer::new(number));
            self.schedule(self.now, Happening::Producer(number));
        }
    }

    /// Whether every transaction has ended.
    pub(crate) fn open_transaction(&self) -> Option<String> {
        let open = self.producers.values().find(|producer| !producer.is_idle())?;
        Some(format!("{} has an open transaction: {:?}", open.name(), open.step))
    }

    /// A producer does the next thing, and when it does the one after.
    pub(crate) fn producer(&mut self, number: u64) {
        let Some(mut producer) = self.producers.remove(&number) else { return };
        producer.turns += 1;
        let stream = Stream::Producer(number, producer.turns);
        let wait = self.by_chance_of(stream, |world| {
            let pace = world.plan.transactions.map_or(50, |plan| plan.pace);
            let pace = if world.healed { pace.max(20) } else { pace };
            world.take_step(&mut producer) + world.random.millis(1, pace)
        });
        let goes_on = self.producing || !producer.is_idle();
        self.producers.insert(number, producer);
        if goes_on {
            self.schedule(self.now + wait, Happening::Producer(number));
        }
    }

    /// What a producer does now; how long it does nothing then.
    fn take_step(&mut self, producer: &mut Producer) -> Duration {
        match producer.step.clone() {
            Step::Init => self.init(producer),
            Step::Begin => self.begin_transaction(producer),
            Step::Add(at) => {
                let code = self.add_partition(producer, at);
                if at == 0 && is_fine(code) {
                    // Now the one before is over, with all its marks.
                    self.check_offsets_of(producer);
                }
                self.go_on(producer, code, Step::Write(at, None));
            }
            Step::Write(at, batch) => self.write_transactional(producer, at, batch),
            Step::AddOffsets => {
                let code = self.add_offsets(producer);
                self.go_on(producer, code, Step::Offsets);
            }
            Step::Offsets => {
                producer.offset_sent = true;
                let code = self.send_offset(producer);
                self.go_on(producer, code, Step::End);
            }
            Step::End => return self.end(producer),
            Step::Zombie => self.live_on(producer),
        }
        Duration::ZERO
    }

    fn go_on(&mut self, producer: &mut Producer, code: Code, next: Step) {
        match code {
            Some(code) if code.is_ok() => producer.step = next,
            Some(code) if is_shut_out(code) => self.shut_out(producer),
            // No answer, or one that asks for patience: it is asked again.
            Some(_) | None => {}
        }
    }

    /// The transaction was ended by somebody else.
    fn shut_out(&mut self, producer: &mut Producer) {
        self.counts.count("transactions fenced or timed out");
        self.record(Fact::Done(format!("{} is shut out of its transaction", producer.name())));
        self.abandon(producer);
    }

    /// The producer begins anew in the middle of a transaction. Its commit may have got through before.
    fn abandon(&mut self, producer: &mut Producer) {
        let committed = if producer.asked_to_commit { None } else { Some(false) };
        if committed == Some(false) {
            self.promise(producer, false);
        }
        producer.over(committed);
        producer.step = Step::Init;
    }

    fn promise(&mut self, producer: &mut Producer, committed: bool) {
        for (what, from, to) in std::mem::take(&mut producer.written) {
            self.record(Fact::Promised(what, from, to, committed));
        }
    }

    /// Asks a node; now and then the answer is lost.
    fn ask_or_lose(&mut self, node: NodeId, version: i16, request: impl Into<Request>) -> Option<Response> {
        let answer = self.ask(node, version, request);
        let lost = !self.healed && self.random.percent(5);
        answer.filter(|_| !lost)
    }

    fn coordinator(&mut self, key_type: i8, key: String) -> Option<NodeId> {
        let node = self.broker.nodes().iter().find(|(_, node)| node.up).map(|(id, _)| *id)?;
        let request = FindCoordinatorRequest { key_type, coordinator_keys: vec![key], ..Default::default() };
        let Response::FindCoordinator(answer) = self.ask(node, 4, request)? else { return None };
        let found = answer.coordinators.first()?;
        found.error_code.is_ok().then_some(found.node_id)
    }

    /// Asks the coordinator of the producer's transactions.
    fn ask_coordinator_of(
        &mut self,
        producer: &Producer,
        version: i16,
        request: impl Into<Request>,
    ) -> Option<Response> {
        let node = self.coordinator(1, producer.name())?;
        self.ask_or_lose(node, version, request)
    }

    fn init(&mut self, producer: &mut Producer) {
        let timeout = self.plan.transactions.map_or(1_000, |plan| plan.timeout);
        let request = InitProducerIdRequest {
            transactional_id: Some(producer.name()),
            transaction_timeout_ms: i32::try_from(timeout).unwrap_or(i32::MAX),
            ..Default::default()
        };
        let Some(Response::InitProducerId(answer)) = self.ask_coordinator_of(producer, 4, request) else {
            return;
        };
        if answer.error_code.is_ok() {
            producer.identity = Some(Identity { id: answer.producer_id, epoch: answer.producer_epoch });
            producer.sequences.clear();
            producer.step = if producer.zombie.is_some() { Step::Zombie } else { Step::Begin };
        }
    }

    fn begin_transaction(&mut self, producer: &mut Producer) {
        if !self.producing {
            return;
        }
        let mut places: Vec<_> = self.partitions().into_iter().filter(|name| &*name.topic == TOPIC).collect();
        producer.places.clear();
        for _ in 0..self.random.between(1, 3) {
            if let Some(place) = self.random.pick(&places) {
                places.retain(|other| *other != place);
                producer.places.push(place);
            }
        }
        if producer.places.is_empty() {
            return;
        }
        let ends = [End::Commit, End::Commit, End::Commit, End::Abort, End::TooLate, End::Crash, End::Twin];
        let ends = if self.healed { ends.get(..4).unwrap_or_default() } else { &ends };
        producer.end = self.random.pick(ends).unwrap_or(End::Commit);
        producer.offset += 1;
        producer.step = Step::Add(0);
    }

    fn add_partition(&mut self, producer: &Producer, at: usize) -> Code {
        let (identity, place) = (producer.identity?, producer.places.get(at)?);
        let topic =
            AddPartitionsToTxnTopic { name: place.topic.to_string(), partitions: vec![place.partition] };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: producer.name(),
            v3_and_below_producer_id: identity.id,
            v3_and_below_producer_epoch: identity.epoch,
            v3_and_below_topics: vec![topic],
            ..Default::default()
        };
        let Response::AddPartitionsToTxn(answer) = self.ask_coordinator_of(producer, 3, request)? else {
            return None;
        };
        let topic = answer.results_by_topic_v3_and_below.first()?;
        Some(topic.results_by_partition.first()?.partition_error_code)
    }

    /// A batch of records that say to which partition they belong.
    fn batch(&mut self, producer: &Producer, identity: Identity, what: &TopicPartition) -> Option<Bytes> {
        let sequence = producer.sequences.get(what).copied().unwrap_or(0);
        let mut builder = BatchBuilder::new(Compression::None);
        builder.producer(identity.id, identity.epoch, sequence).transactional(true);
        let ms = unix_ms(self.now);
        for number in 0..self.random.between(1, 3) {
            let value = format!("{}{}, {number}", value_of(what), producer.name());
            builder.append(ms, None, Some(value.as_bytes()), []).ok()?;
        }
        Some(builder.build(0))
    }

    /// Sends a batch; the code and the offset of its first record.
    fn send(&mut self, name: String, what: &TopicPartition, batch: Bytes) -> Option<(ErrorCode, i64)> {
        let (node, _) = self.broker.leader(&what.topic, what.partition)?;
        let data = PartitionProduceData { index: what.partition, records: Some(batch) };
        let topic = TopicProduceData {
            name: what.topic.to_string(),
            partition_data: vec![data],
            ..Default::default()
        };
        let request = ProduceRequest {
            transactional_id: Some(name),
            acks: -1,
            timeout_ms: 1_000,
            topic_data: vec![topic],
        };
        let Response::Produce(answer) = self.ask_or_lose(node, 9, request)? else { return None };
        let partition = answer.responses.first()?.partition_responses.first()?;
        Some((partition.error_code, partition.base_offset))
    }

    fn write_transactional(&mut self, producer: &mut Producer, at: usize, batch: Option<Bytes>) {
        let (Some(identity), Some(what)) = (producer.identity, producer.places.get(at).cloned()) else {
            producer.step = Step::Init;
            return;
        };
        let is_again = batch.is_some();
        let Some(batch) = batch.or_else(|| self.batch(producer, identity, &what)) else { return };
        let many = count_of(&batch);
        let answer = self.send(producer.name(), &what, batch.clone());
        let Some((code, base)) = answer else {
            // Whether it is there is not known: exactly this is sent again.
            producer.step = Step::Write(at, Some(batch));
            return;
        };
        if code.is_ok() {
            *producer.sequences.entry(what.clone()).or_default() += many;
            let to = base + i64::from(many);
            producer.written.push((what.clone(), base, to));
            self.counts.add("records written in transactions", u64::from(many.unsigned_abs()));
            if self.storage.is_some() {
                self.record(Fact::Written(what, to));
            }
            producer.step = match producer.places.len() > at + 1 {
                true => Step::Add(at + 1),
                false => Step::AddOffsets,
            };
        } else if is_shut_out(code) {
            self.shut_out(producer);
        } else {
            // It was refused, so that nothing of it is there, unless an earlier answer was lost.
            producer.step = Step::Write(at, is_again.then_some(batch));
        }
    }

    fn add_offsets(&mut self, producer: &Producer) -> Code {
        let identity = producer.identity?;
        let request = AddOffsetsToTxnRequest {
            transactional_id: producer.name(),
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            group_id: producer.group(),
        };
        match self.ask_coordinator_of(producer, 3, request)? {
            Response::AddOffsetsToTxn(answer) => Some(answer.error_code),
            _ => None,
        }
    }

    fn send_offset(&mut self, producer: &Producer) -> Code {
        let identity = producer.identity?;
        let node = self.coordinator(0, producer.group())?;
        let partition =
            TxnOffsetCommitRequestPartition { committed_offset: producer.offset, ..Default::default() };
        let topic = TxnOffsetCommitRequestTopic {
            name: TOPIC.into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = TxnOffsetCommitRequest {
            transactional_id: producer.name(),
            group_id: producer.group(),
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        let Response::TxnOffsetCommit(answer) = self.ask_or_lose(node, 3, request)? else { return None };
        Some(answer.topics.first()?.partitions.first()?.error_code)
    }

    fn end_with(&mut self, producer: &Producer, identity: Identity, committed: bool) -> Code {
        let request = EndTxnRequest {
            transactional_id: producer.name(),
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            committed,
        };
        match self.ask_coordinator_of(producer, 3, request)? {
            Response::EndTxn(answer) => Some(answer.error_code),
            _ => None,
        }
    }

    fn end(&mut self, producer: &mut Producer) -> Duration {
        let Some(identity) = producer.identity else {
            producer.step = Step::Init;
            return Duration::ZERO;
        };
        let end = if self.healed && producer.end != End::Abort { End::Commit } else { producer.end };
        match end {
            End::TooLate => {
                // The next time it wants to commit.
                producer.end = End::Commit;
                let timeout = self.plan.transactions.map_or(0, |plan| plan.timeout);
                return self.random.millis(timeout / 2, timeout * 2);
            }
            End::Crash | End::Twin => {
                self.counts.count("producers replaced in the middle of a transaction");
                self.record(Fact::Done(format!("another {} begins anew", producer.name())));
                producer.zombie = (end == End::Twin).then_some(identity);
                self.abandon(producer);
            }
            End::Commit | End::Abort => self.decide(producer, identity, end == End::Commit),
        }
        Duration::ZERO
    }

    fn decide(&mut self, producer: &mut Producer, identity: Identity, committed: bool) {
        producer.asked_to_commit |= committed;
        match self.end_with(producer, identity, committed) {
            Some(code) if code.is_ok() => {
                let how = if committed { "committed" } else { "aborted" };
                self.counts.count(format!("transactions {how}"));
                self.record(Fact::Done(format!("{} has {how} a transaction", producer.name())));
                self.promise(producer, committed);
                producer.over(Some(committed));
                producer.step = Step::Begin;
            }
            Some(code) if is_shut_out(code) => self.shut_out(producer),
            Some(_) | None => {}
        }
    }

    /// The producer that was replaced does not know it: nothing that it does may count.
    fn live_on(&mut self, producer: &mut Producer) {
        let (Some(zombie), Some(what)) = (producer.zombie.take(), producer.places.first().cloned()) else {
            producer.step = Step::Begin;
            return;
        };
        self.counts.count("producers that were replaced and went on");
        let batch = self.batch(producer, zombie, &what);
        let written = batch.and_then(|batch| self.send(producer.name(), &what, batch));
        if written.is_some_and(|(code, _)| code.is_ok()) {
            self.record(Fact::Outlived(format!("{} wrote to {what} after it was replaced", producer.name())));
        }
        if is_fine(self.end_with(producer, zombie, true)) {
            self.record(Fact::Outlived(format!("{} committed after it was replaced", producer.name())));
        }
        producer.step = Step::Begin;
    }

    /// Offsets that were sent in transactions moved with them.
    fn check_offsets_of(&mut self, producer: &mut Producer) {
        let found = self.broker.committed_offsets(&producer.group());
        let found = found.get(&TopicPartition::new(TOPIC, 0)).copied();
        if self.is_dark() {
            return;
        }
        let who = producer.name();
        self.record(Fact::Offsets { who, possible: producer.committed.clone(), found });
        producer.committed = [found].into();
    }

    /// Compares what is committed for the groups of all producers, in the end.
    pub(crate) fn check_offsets(&mut self) {
        for number in self.producers.keys().copied().collect::<Vec<_>>() {
            if let Some(mut producer) = self.producers.remove(&number) {
                self.check_offsets_of(&mut producer);
                self.producers.insert(number, producer);
            }
        }
    }
}

/// How the records begin that are written to a partition in transactions. When they are sent it is not known where they will lie.
pub(crate) fn value_of(what: &TopicPartition) -> String {
    format!("{what} in a transaction of ")
}

fn count_of(batch: &Bytes) -> i32 {
    let parsed = tontine_wire::records::RecordBatch::parse(&mut batch.clone()).ok().flatten();
    parsed.map_or(0, |batch| i32::try_from(batch.record_count()).unwrap_or(0))
}
