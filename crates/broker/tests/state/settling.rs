//! Syncs run while others are served: who waits, who does not, and who shares one.

use crate::admin::create;
use crate::disk::{EACH, commit};
use crate::rig::{Rig, START_MS, batch, produce_request, records};
use std::collections::VecDeque;
use tontine_broker::disk::{Outage, SimulatedDisk};
use tontine_broker::{ConnId, NewTopic};
use tontine_wire::ErrorCode;
use tontine_wire::api::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
};
use tontine_wire::api::create_topics::CreateTopicsResponse;
use tontine_wire::api::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
};
use tontine_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use tontine_wire::api::offset_commit::OffsetCommitResponse;
use tontine_wire::api::produce::ProduceResponse;
use tontine_wire::records::{BatchBuilder, Compression};

/// A broker whose answers wait for the disk, and whose work is not done before the test says so.
fn slow(disk: &SimulatedDisk) -> Rig {
    let mut rig = Rig::on(disk, 1, EACH).unwrap();
    rig.topic("orders", 2);
    rig.work = Some(VecDeque::new());
    rig
}

fn send(rig: &mut Rig, value: &str) -> ConnId {
    let conn = rig.connect(1);
    rig.send(conn, 9, produce_request("orders", 0, -1, batch(&[value])));
    conn
}

fn produced(rig: &mut Rig, conn: ConnId) -> Option<(i64, ErrorCode)> {
    let answer: ProduceResponse = rig.answer_as(conn)?;
    let partition = &answer.responses[0].partition_responses[0];
    Some((partition.base_offset, partition.error_code))
}

fn idempotent_batch(producer: i64, sequence: i32, value: &str) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(producer, 0, sequence);
    builder.append(START_MS, None, Some(value.as_bytes()), []).unwrap();
    builder.build(0)
}

fn latest(rig: &mut Rig) -> i64 {
    let conn = rig.connect(1);
    let partition = ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: "orders".into(), partitions: vec![partition] };
    let asked = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    rig.ask(conn, 7, asked).topics[0].partitions[0].offset
}

#[test]
fn whoever_does_not_wait_for_a_sync_is_served_while_it_is_on_its_way() {
    let mut rig = slow(&SimulatedDisk::new(1));
    let producer = send(&mut rig, "a");
    assert_eq!(produced(&mut rig, producer), None, "it waits for the disk");
    let reader = rig.connect(1);
    assert!(records(&rig.fetch(reader, "orders", 0, 0)).is_empty(), "nobody reads what may be lost");
    assert_eq!(latest(&mut rig), 0);
    assert_eq!(rig.work.as_ref().map(VecDeque::len), Some(1));
    assert!(rig.work_once(0));
    assert_eq!(produced(&mut rig, producer), Some((0, ErrorCode::NONE)));
    assert_eq!(records(&rig.fetch(reader, "orders", 0, 0)), [(0, "a".to_owned())]);
    assert_eq!(latest(&mut rig), 1);
}

#[test]
fn what_comes_during_a_sync_shares_the_next_one() {
    let mut rig = slow(&SimulatedDisk::new(1));
    let first = send(&mut rig, "a");
    let others: Vec<ConnId> = (0..20).map(|_| send(&mut rig, "b")).collect();
    assert!(rig.work_once(0));
    assert_eq!(produced(&mut rig, first), Some((0, ErrorCode::NONE)));
    assert_eq!(produced(&mut rig, others[0]), None, "what came later was not part of it");
    assert!(rig.work_once(0));
    for (offset, conn) in (1..).zip(others) {
        assert_eq!(produced(&mut rig, conn), Some((offset, ErrorCode::NONE)));
    }
    assert!(!rig.work_once(0), "two syncs were enough for 21 answers");
}

#[test]
fn a_batch_that_is_sent_again_waits_for_the_sync_of_the_first_one() {
    let mut rig = slow(&SimulatedDisk::new(1));
    let twice = idempotent_batch(7, 0, "a");
    let conns = [rig.connect(1), rig.connect(1)];
    for conn in conns {
        rig.send(conn, 9, produce_request("orders", 0, -1, twice.clone()));
        assert_eq!(produced(&mut rig, conn), None);
    }
    while rig.work_once(0) {}
    for conn in conns {
        assert_eq!(produced(&mut rig, conn), Some((0, ErrorCode::NONE)));
    }
    assert_eq!(latest(&mut rig), 1);
}

#[test]
fn when_a_sync_fails_everybody_who_waits_for_it_is_told_and_nobody_reads_what_it_was_for() {
    let disk = SimulatedDisk::new(1);
    let mut rig = slow(&disk);
    let waiting = [send(&mut rig, "a"), send(&mut rig, "b")];
    disk.set_sync_fails(true);
    while rig.work_once(0) {}
    disk.set_sync_fails(false);
    for conn in waiting {
        assert_eq!(produced(&mut rig, conn), Some((-1, ErrorCode::KAFKA_STORAGE_ERROR)));
    }
    let late = send(&mut rig, "c");
    assert_eq!(produced(&mut rig, late), Some((-1, ErrorCode::KAFKA_STORAGE_ERROR)));
    assert_eq!(latest(&mut rig), 0);
    let other = rig.connect(1);
    rig.send(other, 9, produce_request("orders", 1, -1, batch(&["d"])));
    while rig.work_once(0) {}
    assert_eq!(produced(&mut rig, other), Some((0, ErrorCode::NONE)), "other partitions go on");
}

#[test]
fn commits_topics_and_deleted_records_are_answered_for_when_they_are_durable() {
    let disk = SimulatedDisk::new(1);
    let mut rig = slow(&disk);
    let producer = send(&mut rig, "a");
    while rig.work_once(0) {}
    assert_eq!(produced(&mut rig, producer), Some((0, ErrorCode::NONE)));

    let (committer, creator, deleter) = (rig.connect(1), rig.connect(1), rig.connect(1));
    rig.send(committer, 8, commit("billing", "orders", 0, 1));
    rig.send(creator, 5, create("more", 1, 1));
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }];
    let topics = vec![DeleteRecordsTopic { name: "orders".into(), partitions }];
    rig.send(deleter, 2, DeleteRecordsRequest { topics, ..Default::default() });
    for conn in [committer, creator, deleter] {
        assert_eq!(rig.answer(conn), None, "nothing is durable yet");
    }
    while rig.work_once(0) {}
    let committed: OffsetCommitResponse = rig.answer_as(committer).unwrap();
    assert_eq!(committed.topics[0].partitions[0].error_code, ErrorCode::NONE);
    let created: CreateTopicsResponse = rig.answer_as(creator).unwrap();
    assert_eq!(created.topics[0].error_code, ErrorCode::NONE);
    let deleted: DeleteRecordsResponse = rig.answer_as(deleter).unwrap();
    assert_eq!(deleted.topics[0].partitions[0].low_watermark, 1);
    drop(rig);
    let rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
    assert_eq!(rig.state.partitions("more"), Some(1));
    assert_eq!(rig.state.log_offsets("orders", 0), Some((1, 1)));
}

#[test]
fn a_topic_that_is_deleted_during_a_sync_answers_those_who_wait() {
    let mut rig = slow(&SimulatedDisk::new(1));
    let producer = send(&mut rig, "a");
    rig.state.delete_topic(rig.now, "orders").unwrap();
    rig.drain();
    assert_eq!(produced(&mut rig, producer).map(|(offset, _)| offset), Some(-1));
    rig.state.create_topic(rig.now, &NewTopic::new("orders", 2)).unwrap();
    let again = send(&mut rig, "b");
    while rig.work_once(0) {}
    assert_eq!(produced(&mut rig, again), Some((0, ErrorCode::NONE)));
    let reader = rig.connect(1);
    assert_eq!(records(&rig.fetch(reader, "orders", 0, 0)), [(0, "b".to_owned())]);
}

#[test]
fn a_deletion_of_a_topic_that_nobody_was_told_of_may_not_have_happened_but_never_by_half() {
    for operation in 1.. {
        let disk = SimulatedDisk::new(operation);
        let mut rig = slow(&disk);
        let producer = send(&mut rig, "a");
        while rig.work_once(0) {}
        assert_eq!(produced(&mut rig, producer), Some((0, ErrorCode::NONE)));
        let before = disk.operations();
        disk.fail_at(before + operation);
        let deleted = rig.state.delete_topic(rig.now, "orders");
        rig.drain();
        while rig.work_once(0) {}
        if disk.operations() < before + operation {
            assert!(operation > 5, "{operation}");
            return;
        }
        let told = deleted.is_ok() && !rig.state.metadata_is_pending();
        let rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
        let left = rig.state.log_offsets("orders", 0);
        assert!(left == Some((0, 1)) && !told || left.is_none(), "operation {operation}: {left:?} {told}");
    }
}

#[test]
fn a_partition_that_is_not_stored_for_good_takes_no_records_whatever_the_policy() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[]).unwrap();
    rig.topic("orders", 1);
    rig.work = Some(VecDeque::new());
    let grower = rig.connect(1);
    let more = CreatePartitionsTopic { name: "orders".into(), count: 2, ..Default::default() };
    rig.send(grower, 3, CreatePartitionsRequest { topics: vec![more], ..Default::default() });
    let send_to = |rig: &mut Rig, partition| {
        let conn = rig.connect(1);
        rig.send(conn, 9, produce_request("orders", partition, -1, batch(&["a"])));
        conn
    };
    let early = send_to(&mut rig, 1);
    assert_eq!(produced(&mut rig, early), None, "it waits for the partition to be there for good");
    disk.set_sync_fails(true);
    while rig.work_once(0) {}
    disk.set_sync_fails(false);
    assert_eq!(produced(&mut rig, early), Some((-1, ErrorCode::KAFKA_STORAGE_ERROR)));
    let grown: CreatePartitionsResponse = rig.answer_as(grower).unwrap();
    assert_eq!(grown.results[0].error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(rig.state.partitions("orders"), Some(1), "it was refused: it is not there");
    let late = send_to(&mut rig, 1);
    assert_eq!(produced(&mut rig, late), Some((-1, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)));
    let old = send_to(&mut rig, 0);
    assert_eq!(produced(&mut rig, old), Some((0, ErrorCode::NONE)), "what was there before goes on");
    let fresh = rig.state.create_topic(rig.now, &NewTopic::new("more", 1));
    assert_eq!(fresh.unwrap_err().0, ErrorCode::KAFKA_STORAGE_ERROR);
}

#[test]
fn topics_that_cannot_be_stored_for_good_are_refused_and_not_there_kafkas_own_included() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[("offsets.topic.num.partitions", "2")]).unwrap();
    rig.topic("orders", 1);
    rig.work = Some(VecDeque::new());
    let (creator, committer) = (rig.connect(1), rig.connect(1));
    rig.send(creator, 5, create("more", 1, 1));
    rig.send(committer, 8, commit("billing", "orders", 0, 1));
    assert_eq!((rig.answer(creator), rig.answer(committer)), (None, None));
    disk.set_sync_fails(true);
    while rig.work_once(0) {}
    let created: CreateTopicsResponse = rig.answer_as(creator).unwrap();
    assert_eq!(created.topics[0].error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    let committed: OffsetCommitResponse = rig.answer_as(committer).unwrap();
    assert!(committed.topics[0].partitions[0].error_code.is_err());
    assert_eq!((rig.state.partitions("more"), rig.state.partitions("__consumer_offsets")), (None, None));
    let again = rig.ask(committer, 8, commit("billing", "orders", 0, 1));
    assert_eq!(again.topics[0].partitions[0].error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
}
