//! Transactions through the broker: who sees what when, who is shut out, and what a restart finds.

use crate::consumer_groups::Member;
use crate::disk::EACH;
use crate::groups::coordinator;
use crate::rig::{Rig, START_MS, fetch_request, produce_request, records};
use bytes::Bytes;
use tontine_broker::ConnId;
use tontine_broker::disk::{Outage, SimulatedDisk};
use tontine_group::TopicPartition;
use tontine_wire::ErrorCode;
use tontine_wire::api::add_offsets_to_txn::AddOffsetsToTxnRequest;
use tontine_wire::api::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use tontine_wire::api::describe_producers::{DescribeProducersRequest, TopicRequest};
use tontine_wire::api::describe_transactions::DescribeTransactionsRequest;
use tontine_wire::api::end_txn::EndTxnRequest;
use tontine_wire::api::fetch::PartitionData;
use tontine_wire::api::find_coordinator::FindCoordinatorRequest;
use tontine_wire::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use tontine_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use tontine_wire::api::list_transactions::ListTransactionsRequest;
use tontine_wire::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponsePartitions,
};
use tontine_wire::api::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use tontine_wire::records::{BatchBuilder, Compression};

const ID: &str = "pay";

/// A transactional producer.
struct Producer {
    conn: ConnId,
    id: i64,
    epoch: i16,
    sequence: i32,
}

impl Producer {
    fn init(rig: &mut Rig) -> Self {
        let conn = rig.connect(1);
        let find =
            FindCoordinatorRequest { key_type: 1, coordinator_keys: vec![ID.into()], ..Default::default() };
        assert_eq!(rig.ask(conn, 4, find).coordinators[0].node_id, 1);
        let InitProducerIdResponse { error_code, producer_id: id, producer_epoch: epoch, .. } =
            init(rig, conn);
        assert_eq!(error_code, ErrorCode::NONE);
        Self { conn, id, epoch, sequence: 0 }
    }

    fn add(&self, rig: &mut Rig, topic: &str, partition: i32) -> ErrorCode {
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: ID.into(),
            v3_and_below_producer_id: self.id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: topic.into(),
                partitions: vec![partition],
            }],
            ..Default::default()
        };
        let answer = rig.ask(self.conn, 3, request);
        answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    }

    fn batch(&self, value: &str) -> Bytes {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.producer(self.id, self.epoch, self.sequence).transactional(true);
        builder.append(START_MS, Some(b"k"), Some(value.as_bytes()), []).unwrap();
        builder.build(0)
    }

    fn produce(&mut self, rig: &mut Rig, topic: &str, partition: i32, value: &str) -> ErrorCode {
        let mut request = produce_request(topic, partition, -1, self.batch(value));
        request.transactional_id = Some(ID.into());
        let answer = rig.ask(self.conn, 9, request);
        let code = answer.responses[0].partition_responses[0].error_code;
        self.sequence += i32::from(code == ErrorCode::NONE);
        code
    }

    fn write(&mut self, rig: &mut Rig, topic: &str, partition: i32, value: &str) {
        assert_eq!(self.add(rig, topic, partition), ErrorCode::NONE);
        assert_eq!(self.produce(rig, topic, partition, value), ErrorCode::NONE);
    }

    fn end(&self, rig: &mut Rig, committed: bool) -> ErrorCode {
        let request = EndTxnRequest {
            transactional_id: ID.into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
        };
        rig.ask(self.conn, 3, request).error_code
    }

    fn commit_offset(&self, rig: &mut Rig, group: &str, offset: i64) -> ErrorCode {
        self.commit_offset_as(rig, group, offset, "", -1)
    }

    fn commit_offset_as(
        &self,
        rig: &mut Rig,
        group: &str,
        offset: i64,
        member_id: &str,
        generation_id_or_member_epoch: i32,
    ) -> ErrorCode {
        let add = AddOffsetsToTxnRequest {
            transactional_id: ID.into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            group_id: group.into(),
        };
        assert_eq!(rig.ask(self.conn, 3, add).error_code, ErrorCode::NONE);
        let partitions =
            vec![TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() }];
        let commit = TxnOffsetCommitRequest {
            transactional_id: ID.into(),
            group_id: group.into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            member_id: member_id.into(),
            generation_id_or_member_epoch,
            topics: vec![TxnOffsetCommitRequestTopic { name: "in".into(), partitions, ..Default::default() }],
            ..Default::default()
        };
        rig.ask(self.conn, 3, commit).topics[0].partitions[0].error_code
    }
}

fn init(rig: &mut Rig, conn: ConnId) -> InitProducerIdResponse {
    let request = InitProducerIdRequest {
        transactional_id: Some(ID.into()),
        transaction_timeout_ms: 10_000,
        ..Default::default()
    };
    rig.ask(conn, 4, request)
}

fn read_committed(rig: &mut Rig, topic: &str, partition: i32) -> PartitionData {
    let conn = rig.connect(1);
    let mut request = fetch_request(topic, &[(partition, 0)], 0);
    request.isolation_level = 1;
    rig.ask(conn, 11, request).responses.remove(0).partitions.remove(0)
}

/// Values as a consumer with `read_committed` hands them out.
fn visible(data: &PartitionData) -> Vec<String> {
    let mut aborted: Vec<(i64, i64)> = data
        .aborted_transactions
        .iter()
        .flatten()
        .map(|aborted| (aborted.producer_id, aborted.first_offset))
        .collect();
    let mut bytes = data.records.clone().unwrap();
    let mut values = Vec::new();
    while let Some(batch) = tontine_wire::records::RecordBatch::parse(&mut bytes).unwrap() {
        let of_batch = |(producer, first): &(i64, i64)| {
            *producer == batch.producer_id() && *first <= batch.base_offset()
        };
        if batch.is_control() {
            aborted.retain(|entry| !of_batch(entry));
        } else if !(batch.is_transactional() && aborted.iter().any(of_batch)) {
            for record in batch.records().unwrap().iter() {
                values.push(String::from_utf8(record.unwrap().value().unwrap().to_vec()).unwrap());
            }
        }
    }
    values
}

fn latest(rig: &mut Rig, topic: &str, isolation_level: i8) -> i64 {
    let conn = rig.connect(1);
    let partitions =
        vec![ListOffsetsPartition { timestamp: -1, current_leader_epoch: -1, ..Default::default() }];
    let topics = vec![ListOffsetsTopic { name: topic.into(), partitions }];
    let request = ListOffsetsRequest { isolation_level, topics, ..Default::default() };
    rig.ask(conn, 7, request).topics[0].partitions[0].offset
}

#[test]
fn records_count_when_the_transaction_is_committed_and_never_when_it_is_aborted() {
    let mut rig = Rig::with_topic("orders", 1);
    let mut producer = Producer::init(&mut rig);
    producer.write(&mut rig, "orders", 0, "a");
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["plain"]);
    let data = read_committed(&mut rig, "orders", 0);
    assert_eq!((data.high_watermark, data.last_stable_offset), (2, 0));
    assert_eq!(visible(&data), [""; 0], "what comes behind an open transaction waits as well");
    assert_eq!(records(&rig.fetch(conn, "orders", 0, 0)).len(), 2, "whoever reads uncommitted sees it");
    assert_eq!((latest(&mut rig, "orders", 0), latest(&mut rig, "orders", 1)), (2, 0));

    assert_eq!(producer.end(&mut rig, true), ErrorCode::NONE);
    assert_eq!(visible(&read_committed(&mut rig, "orders", 0)), ["a", "plain"]);
    producer.write(&mut rig, "orders", 0, "b");
    assert_eq!(producer.end(&mut rig, false), ErrorCode::NONE);
    producer.write(&mut rig, "orders", 0, "c");
    assert_eq!(producer.end(&mut rig, true), ErrorCode::NONE);
    let data = read_committed(&mut rig, "orders", 0);
    assert_eq!(visible(&data), ["a", "plain", "c"]);
    assert_eq!(data.last_stable_offset, data.high_watermark);
    assert_eq!(data.aborted_transactions.unwrap().len(), 1);
}

#[test]
fn a_waiting_consumer_gets_the_records_when_the_transaction_is_committed() {
    let mut rig = Rig::with_topic("orders", 1);
    let mut producer = Producer::init(&mut rig);
    producer.write(&mut rig, "orders", 0, "a");
    let conn = rig.connect(1);
    let mut request = fetch_request("orders", &[(0, 0)], 30_000);
    request.isolation_level = 1;
    rig.send(conn, 11, request);
    assert!(rig.answer(conn).is_none());
    producer.end(&mut rig, true);
    let answer: tontine_wire::api::fetch::FetchResponse = rig.answer_as(conn).unwrap();
    assert_eq!(visible(&answer.responses[0].partitions[0]), ["a"]);
}

#[test]
fn a_producer_that_starts_again_shuts_out_the_old_one_and_aborts_what_it_left() {
    let mut rig = Rig::with_topic("orders", 1);
    let mut old = Producer::init(&mut rig);
    old.write(&mut rig, "orders", 0, "lost");
    let mut new = Producer::init(&mut rig);
    assert_eq!((new.id, new.epoch > old.epoch), (old.id, true));
    assert_eq!(old.add(&mut rig, "orders", 0), ErrorCode::PRODUCER_FENCED);
    assert_eq!(old.produce(&mut rig, "orders", 0, "zombie"), ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(old.end(&mut rig, true), ErrorCode::PRODUCER_FENCED);
    new.write(&mut rig, "orders", 0, "kept");
    assert_eq!(new.end(&mut rig, true), ErrorCode::NONE);
    assert_eq!(visible(&read_committed(&mut rig, "orders", 0)), ["kept"]);
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted() {
    let mut rig = Rig::with_topic("orders", 1);
    let mut producer = Producer::init(&mut rig);
    producer.write(&mut rig, "orders", 0, "late");
    rig.advance(9_900);
    assert_eq!(read_committed(&mut rig, "orders", 0).last_stable_offset, 0);
    rig.advance(200);
    let data = read_committed(&mut rig, "orders", 0);
    assert_eq!((visible(&data), data.last_stable_offset), (Vec::new(), 2));
    assert_eq!(producer.end(&mut rig, true), ErrorCode::PRODUCER_FENCED);
}

#[test]
fn nothing_is_written_outside_of_a_transaction() {
    let mut rig = Rig::with_topic("orders", 2);
    let mut producer = Producer::init(&mut rig);
    assert_eq!(producer.produce(&mut rig, "orders", 0, "a"), ErrorCode::INVALID_TXN_STATE);
    assert_eq!(producer.add(&mut rig, "nowhere", 0), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(producer.end(&mut rig, true), ErrorCode::INVALID_TXN_STATE);
    let conn = rig.connect(1);
    let request = InitProducerIdRequest {
        transactional_id: Some(ID.into()),
        transaction_timeout_ms: i32::MAX,
        ..Default::default()
    };
    assert_eq!(rig.ask(conn, 4, request).error_code, ErrorCode::INVALID_TRANSACTION_TIMEOUT);
}

fn fetch_offset(rig: &mut Rig, require_stable: bool) -> OffsetFetchResponsePartitions {
    let conn = coordinator(rig, "billing");
    let topics = vec![OffsetFetchRequestTopics {
        name: "in".into(),
        partition_indexes: vec![0],
        ..Default::default()
    }];
    let group =
        OffsetFetchRequestGroup { group_id: "billing".into(), topics: Some(topics), ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![group], require_stable, ..Default::default() };
    rig.ask(conn, 8, request).groups.remove(0).topics.remove(0).partitions.remove(0)
}

#[test]
fn offsets_of_a_group_count_with_the_transaction() {
    let mut rig = Rig::with_topic("in", 1);
    let producer = Producer::init(&mut rig);
    assert_eq!(producer.commit_offset(&mut rig, "billing", 5), ErrorCode::NONE);
    assert_eq!(fetch_offset(&mut rig, false).committed_offset, -1);
    assert_eq!(fetch_offset(&mut rig, true).error_code, ErrorCode::UNSTABLE_OFFSET_COMMIT);
    assert_eq!(producer.end(&mut rig, true), ErrorCode::NONE);
    let stable = fetch_offset(&mut rig, true);
    assert_eq!((stable.error_code, stable.committed_offset), (ErrorCode::NONE, 5));
    assert_eq!(producer.commit_offset(&mut rig, "billing", 9), ErrorCode::NONE);
    assert_eq!(producer.end(&mut rig, false), ErrorCode::NONE);
    assert_eq!(fetch_offset(&mut rig, true).committed_offset, 5);
    assert_eq!(rig.state.committed_offsets("billing").get(&TopicPartition::new("in", 0)), Some(&5));
}

#[test]
fn offsets_of_a_consumer_group_are_taken_from_its_members_at_their_epochs_only() {
    let mut rig = Rig::with_topic("in", 2);
    let producer = Producer::init(&mut rig);
    let mut a = Member::new(&mut rig, 1, "billing", "a", &["in"]);
    a.beat(&mut rig);
    let mut b = Member::new(&mut rig, 1, "billing", "b", &["in"]);
    let joined = a.epoch;
    for _ in 0..5 {
        rig.advance(20);
        b.beat(&mut rig);
        a.beat(&mut rig);
    }
    assert_eq!((a.size(), b.size()), (1, 1));
    let holds_0 = |member: &Member| member.has.values().flatten().any(|partition| *partition == 0);
    let (owner, other) = if holds_0(&a) { (&a, &b) } else { (&b, &a) };
    let mut commit =
        |member: &str, epoch: i32| producer.commit_offset_as(&mut rig, "billing", 5, member, epoch);
    assert_eq!(commit(&owner.id, owner.epoch + 1), ErrorCode::ILLEGAL_GENERATION, "from the future");
    assert_eq!(
        commit(&other.id, other.epoch - 1),
        ErrorCode::ILLEGAL_GENERATION,
        "it never had the partition"
    );
    assert_eq!(commit(&owner.id, 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(commit("stranger", owner.epoch), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(commit(&owner.id, owner.epoch), ErrorCode::NONE);
    if owner.id == a.id {
        assert_eq!(commit(&owner.id, joined), ErrorCode::NONE, "it had the partition then, and has it still");
    }
    assert_eq!(fetch_offset(&mut rig, false).committed_offset, -1);
    assert_eq!(producer.end(&mut rig, true), ErrorCode::NONE);
    assert_eq!(fetch_offset(&mut rig, true).committed_offset, 5);
}

#[test]
fn transactions_are_listed_and_described() {
    let mut rig = Rig::with_topic("orders", 1);
    let mut producer = Producer::init(&mut rig);
    producer.write(&mut rig, "orders", 0, "a");
    let conn = rig.connect(1);
    let listed = rig.ask(conn, 1, ListTransactionsRequest { duration_filter: -1, ..Default::default() });
    assert_eq!(listed.transaction_states[0].transaction_state, "Ongoing");
    let only = ListTransactionsRequest {
        state_filters: vec!["Empty".into(), "Odd".into()],
        duration_filter: -1,
        ..Default::default()
    };
    let listed = rig.ask(conn, 1, only);
    assert_eq!((listed.transaction_states.len(), listed.unknown_state_filters), (0, vec!["Odd".to_owned()]));
    let ids = vec![ID.to_owned(), "other".to_owned()];
    let described = rig.ask(conn, 0, DescribeTransactionsRequest { transactional_ids: ids });
    assert_eq!(described.transaction_states[0].topics[0].topic, "orders");
    assert_eq!(described.transaction_states[1].error_code, ErrorCode::TRANSACTIONAL_ID_NOT_FOUND);
    let topics = vec![TopicRequest { name: "orders".into(), partition_indexes: vec![0] }];
    let producers = rig.ask(conn, 0, DescribeProducersRequest { topics });
    assert_eq!(producers.topics[0].partitions[0].active_producers[0].current_txn_start_offset, 0);
}

/// The workload of the crash test: transactions that are committed or aborted, with offsets of a group; what was told.
fn work(rig: &mut Rig) -> Vec<(String, Option<bool>)> {
    let mut told = Vec::new();
    for round in 0..4i64 {
        let conn = rig.connect(1);
        let started = init(rig, conn);
        if started.error_code.is_err() {
            break;
        }
        let mut producer =
            Producer { conn, id: started.producer_id, epoch: started.producer_epoch, sequence: 0 };
        let value = format!("value {round}");
        if producer.add(rig, "orders", 0).is_err() || producer.produce(rig, "orders", 0, &value).is_err() {
            told.push((value, None));
            break;
        }
        let committed = round % 2 == 0;
        let ended = producer.end(rig, committed).is_ok();
        told.push((value, ended.then_some(committed)));
        if !ended {
            break;
        }
    }
    told
}

#[test]
fn whatever_was_decided_stays_decided_across_a_crash_at_each_operation() {
    let settings = [EACH, &[("transaction.state.log.num.partitions", "1")]].concat();
    for operation in 1.. {
        let disk = SimulatedDisk::new(operation);
        disk.fail_at(operation);
        let mut told = Vec::new();
        let mut made = false;
        if let Ok(mut rig) = Rig::on(&disk, 1, &settings) {
            made = rig.create(&tontine_broker::NewTopic::new("orders", 1)).is_ok();
            told = if made { work(&mut rig) } else { Vec::new() };
        }
        if disk.operations() < operation {
            assert!(operation > 30);
            return;
        }
        let mut rig = Rig::on(&disk.after(Outage::Machine), 2, &settings).unwrap();
        if !made {
            continue;
        }
        // Whoever starts next ends what was left open.
        let conn = rig.connect(1);
        if init(&mut rig, conn).error_code == ErrorCode::CONCURRENT_TRANSACTIONS {
            // As soon as that is durable; clients ask again by themselves.
            assert_eq!(init(&mut rig, conn).error_code, ErrorCode::NONE, "operation {operation}");
        }
        let data = read_committed(&mut rig, "orders", 0);
        assert_eq!(data.last_stable_offset, data.high_watermark, "operation {operation}");
        let seen = visible(&data);
        for (value, committed) in told {
            let visible = seen.contains(&value);
            assert!(committed.is_none_or(|committed| committed == visible), "operation {operation}: {value}");
        }
    }
}
