//! Fetch: what is answered at once, what waits, and what wakes it.

use crate::rig::{Rig, batch_at, by_id, fetch_request, records, shape};
use tontine_wire::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use tontine_wire::api::fetch::FetchResponse;
use tontine_wire::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use tontine_wire::{ErrorCode, Uuid};

#[test]
fn what_was_produced_is_fetched_from_any_offset() {
    let mut rig = Rig::with_topic("t", 2);
    let conn = rig.connect(1);
    assert_eq!(rig.produce(conn, "t", 0, &["a", "b"]).base_offset, 0);
    assert_eq!(rig.produce(conn, "t", 0, &["c"]).base_offset, 2);
    let all = rig.fetch(conn, "t", 0, 0);
    assert_eq!(records(&all), [(0, "a".into()), (1, "b".into()), (2, "c".into())]);
    assert_eq!((all.high_watermark, all.last_stable_offset, all.log_start_offset), (3, 3, 0));
    // A whole batch comes, also when the offset lies inside.
    assert_eq!(records(&rig.fetch(conn, "t", 0, 1)).len(), 3);
    assert_eq!(records(&rig.fetch(conn, "t", 0, 2)), [(2, "c".into())]);
    assert_eq!(records(&rig.fetch(conn, "t", 0, 3)), []);
}

#[test]
fn errors_are_told_per_partition() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    assert_eq!(rig.fetch(conn, "t", 0, 1).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(rig.fetch(conn, "t", 0, -1).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(rig.fetch(conn, "t", 1, 0).error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(rig.fetch(conn, "u", 0, 0).error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let unknown_id = by_id(fetch_request("", &[(0, 0)], 0), Uuid::from_u128(9));
    let response = rig.ask(conn, 13, unknown_id);
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
}

#[test]
fn a_fetch_waits_for_records_and_not_longer_than_it_was_told() {
    let mut rig = Rig::with_topic("t", 2);
    let (consumer, producer) = (rig.connect(1), rig.connect(1));
    rig.send(consumer, 11, fetch_request("t", &[(0, 0), (1, 0)], 500));
    rig.advance(499);
    assert_eq!(rig.answer(consumer), None);
    rig.advance(1);
    let empty: FetchResponse = rig.answer_as(consumer).unwrap();
    assert_eq!(shape(&empty), [(0, 0), (1, 0)]);
    rig.send(consumer, 11, fetch_request("t", &[(0, 0), (1, 0)], 500));
    rig.produce(producer, "t", 1, &["x"]);
    let woken: FetchResponse = rig.answer_as(consumer).unwrap();
    assert_eq!(shape(&woken), [(0, 0), (1, 1)]);
    assert_eq!(rig.state.parked_fetches(), 0);
}

#[test]
fn a_fetch_waits_until_there_are_as_many_bytes_as_it_wants() {
    let mut rig = Rig::with_topic("t", 1);
    let (consumer, producer) = (rig.connect(1), rig.connect(1));
    let mut request = fetch_request("t", &[(0, 0)], 10_000);
    request.min_bytes = 150;
    rig.send(consumer, 11, request);
    rig.produce(producer, "t", 0, &["one"]);
    assert_eq!(rig.answer(consumer), None);
    rig.produce(producer, "t", 0, &["two"]);
    rig.produce(producer, "t", 0, &["three"]);
    let answer: FetchResponse = rig.answer_as(consumer).unwrap();
    assert_eq!(shape(&answer), [(0, 3)]);
}

#[test]
fn limits_are_soft_for_the_first_partition_with_records_only() {
    let mut rig = Rig::with_topic("t", 2);
    let conn = rig.connect(1);
    let large = "x".repeat(1000);
    rig.produce(conn, "t", 0, &[&large]);
    rig.produce(conn, "t", 0, &[&large]);
    rig.produce(conn, "t", 1, &[&large]);
    let mut request = fetch_request("t", &[(0, 0), (1, 0)], 0);
    request.max_bytes = 10;
    assert_eq!(shape(&rig.ask(conn, 11, request.clone())), [(0, 1), (1, 0)]);
    request.max_bytes = 2500;
    assert_eq!(shape(&rig.ask(conn, 11, request.clone())), [(0, 2), (1, 0)]);
    request.max_bytes = 1 << 20;
    request.topics[0].partitions[0].partition_max_bytes = 1;
    assert_eq!(shape(&rig.ask(conn, 11, request)), [(0, 1), (1, 1)]);
}

#[test]
fn a_fetch_that_waits_is_told_when_its_topic_is_deleted() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    rig.send(conn, 11, fetch_request("t", &[(0, 0)], 10_000));
    rig.delete("t").unwrap();
    rig.drain();
    let answer: FetchResponse = rig.answer_as(conn).unwrap();
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn the_epoch_a_client_knows_is_compared_and_lost_records_are_told() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "t", 0, &["a", "b"]);
    rig.produce(conn, "t", 0, &["c"]);
    rig.state.lose_records(rig.now, "t", 0, 2).unwrap();
    rig.produce(conn, "t", 0, &["other"]);
    let with_epochs = |current: i32, last: i32| {
        let mut request = fetch_request("t", &[(0, 3)], 0);
        request.topics[0].partitions[0].current_leader_epoch = current;
        request.topics[0].partitions[0].last_fetched_epoch = last;
        request
    };
    let one = |response: FetchResponse| response.responses[0].partitions[0].clone();
    let fenced = one(rig.ask(conn, 12, with_epochs(0, -1)));
    assert_eq!((fenced.error_code, fenced.current_leader.leader_epoch), (ErrorCode::FENCED_LEADER_EPOCH, 1));
    assert_eq!(one(rig.ask(conn, 12, with_epochs(2, -1))).error_code, ErrorCode::UNKNOWN_LEADER_EPOCH);
    let diverged = one(rig.ask(conn, 12, with_epochs(1, 0)));
    assert_eq!((diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset), (0, 2));
    assert_eq!(records(&diverged), []);
    let fine = one(rig.ask(conn, 12, with_epochs(1, 1)));
    assert_eq!((fine.error_code, fine.diverging_epoch.epoch), (ErrorCode::NONE, -1));
}

fn list(timestamp: i64) -> ListOffsetsRequest {
    let partitions = vec![ListOffsetsPartition { timestamp, ..Default::default() }];
    ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: "t".into(), partitions }],
        ..Default::default()
    }
}

#[test]
fn offsets_are_found_by_time_start_end_and_largest_timestamp() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    for time in [1000, 3000, 2000] {
        rig.produce_bytes(conn, "t", 0, -1, batch_at(time, &["a", "b"]));
    }
    let mut find = |timestamp, version| {
        let found = rig.ask(conn, version, list(timestamp)).topics.remove(0).partitions.remove(0);
        (found.error_code.0, found.offset, found.timestamp)
    };
    assert_eq!(find(-2, 7), (0, 0, -1));
    assert_eq!(find(-1, 7), (0, 6, -1));
    assert_eq!(find(0, 7), (0, 0, 1000));
    assert_eq!(find(1001, 7), (0, 1, 1001));
    assert_eq!(find(1002, 7), (0, 2, 3000));
    assert_eq!(find(9000, 7), (0, -1, -1));
    assert_eq!(find(-3, 7), (0, 3, 3001));
    assert_eq!(find(-3, 6), (ErrorCode::UNSUPPORTED_VERSION.0, -1, -1));
    assert_eq!(find(-4, 8), (0, 0, -1));
    assert_eq!(find(-5, 9), (0, -1, -1));
}

#[test]
fn deleted_records_are_out_of_range() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "t", 0, &["a", "b", "c"]);
    rig.produce(conn, "t", 0, &["d"]);
    let delete = |offset| DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".into(),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset }],
        }],
        timeout_ms: 1000,
    };
    let ask = |rig: &mut Rig, offset| {
        let result = rig.ask(conn, 2, delete(offset)).topics.remove(0).partitions.remove(0);
        (result.error_code, result.low_watermark)
    };
    assert_eq!(ask(&mut rig, 5), (ErrorCode::OFFSET_OUT_OF_RANGE, -1));
    assert_eq!(ask(&mut rig, 2), (ErrorCode::NONE, 2));
    assert_eq!(rig.fetch(conn, "t", 0, 1).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(rig.fetch(conn, "t", 0, 2).log_start_offset, 2);
    assert_eq!(ask(&mut rig, -1), (ErrorCode::NONE, 4));
    assert_eq!(rig.ask(conn, 7, list(-2)).topics[0].partitions[0].offset, 4);
}

#[test]
fn old_segments_go_when_they_are_older_than_the_topic_keeps_them() {
    let mut rig = Rig::new(1, &[("log.retention.ms", "60000")]);
    rig.topic("t", 1);
    let conn = rig.connect(1);
    let large = "x".repeat(700_000);
    for _ in 0..3 {
        rig.produce(conn, "t", 0, &[&large]);
    }
    rig.advance(30_000);
    assert_eq!(rig.state.log_offsets("t", 0), Some((0, 3)));
    rig.advance(600_000);
    assert_eq!(rig.state.log_offsets("t", 0), Some((3, 3)));
}

#[test]
fn when_clients_do_not_read_what_they_asked_for_the_next_answers_are_small() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    let value = "x".repeat(10_000);
    for _ in 0..10 {
        rig.produce(conn, "t", 0, &[&value]);
    }
    let read = |rig: &mut Rig| records(&rig.fetch(conn, "t", 0, 0)).len();
    assert_eq!(read(&mut rig), 10);
    rig.state.set_answer_room(100_000);
    assert_eq!(read(&mut rig), 4, "half of the room");
    rig.state.set_answer_room(0);
    assert_eq!(read(&mut rig), 1);
    // Nobody waits for more than there is room for.
    let mut patient = fetch_request("t", &[(0, 0)], 60_000);
    patient.min_bytes = 50_000;
    assert_eq!(shape(&rig.ask(conn, 11, patient)), [(0, 1)]);
    rig.state.set_answer_room(usize::MAX);
    assert_eq!(read(&mut rig), 10);
}
