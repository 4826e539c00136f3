//! Produce: what is accepted, what is refused, and batches that are sent twice.

use crate::rig::{Rig, START_MS, batch, batch_at, produce_request};
use bytes::Bytes;
use tontine_broker::{Closing, NewTopic};
use tontine_wire::ErrorCode;
use tontine_wire::api::init_producer_id::InitProducerIdRequest;
use tontine_wire::records::{BatchBuilder, Compression};

fn code_of(rig: &mut Rig, topic: &str, partition: i32, records: Bytes) -> ErrorCode {
    let conn = rig.connect(1);
    rig.produce_bytes(conn, topic, partition, -1, records).error_code
}

#[test]
fn batches_that_no_consumer_could_read_are_refused() {
    let mut rig = Rig::with_topic("t", 1);
    let good = batch(&["a"]);
    let mut damaged = good.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(code_of(&mut rig, "t", 0, damaged.into()), ErrorCode::CORRUPT_MESSAGE);
    assert_eq!(code_of(&mut rig, "t", 0, good.slice(..good.len() - 1)), ErrorCode::INVALID_RECORD);
    let two = [&good[..], &good[..]].concat();
    assert_eq!(code_of(&mut rig, "t", 0, two.into()), ErrorCode::INVALID_RECORD);
    assert_eq!(code_of(&mut rig, "t", 0, Bytes::new()), ErrorCode::INVALID_RECORD);
    let mut control = BatchBuilder::new(Compression::None);
    control.control(true);
    control.append(START_MS, Some(&[0, 0, 0, 1]), None, []).unwrap();
    assert_eq!(code_of(&mut rig, "t", 0, control.build(0)), ErrorCode::INVALID_RECORD);
    assert_eq!(
        code_of(&mut rig, "t", 0, batch_at(START_MS + 3_700_000, &["a"])),
        ErrorCode::INVALID_TIMESTAMP
    );
    assert_eq!(code_of(&mut rig, "t", 1, good.clone()), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code_of(&mut rig, "u", 0, good.clone()), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(rig.state.log_offsets("t", 0), Some((0, 0)));
    assert_eq!(code_of(&mut rig, "t", 0, good), ErrorCode::NONE);
}

#[test]
fn a_topic_limits_sizes_wants_keys_and_stamps_times_as_it_is_set() {
    let mut rig = Rig::new(1, &[]);
    let configs = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    for (name, key, value) in [
        ("small", "max.message.bytes", "100"),
        ("compacted", "cleanup.policy", "compact"),
        ("stamped", "message.timestamp.type", "LogAppendTime"),
    ] {
        let topic = NewTopic { configs: configs(key, value), ..NewTopic::new(name, 1) };
        rig.create(&topic).unwrap();
    }
    assert_eq!(
        code_of(&mut rig, "small", 0, batch(&["x".repeat(100).as_str()])),
        ErrorCode::MESSAGE_TOO_LARGE
    );
    let mut keyless = BatchBuilder::new(Compression::None);
    keyless.append(START_MS, None, Some(b"v"), []).unwrap();
    let conn = rig.connect(1);
    let refused = rig.produce_bytes(conn, "compacted", 0, -1, keyless.build(0));
    assert_eq!((refused.error_code, refused.record_errors.len()), (ErrorCode::INVALID_RECORD, 1));
    rig.advance(5000);
    let stamped = rig.produce_bytes(conn, "stamped", 0, -1, batch_at(1, &["a"]));
    assert_eq!(stamped.log_append_time_ms, START_MS + 5000);
    assert_eq!(rig.state.batches("stamped", 0)[0].max_timestamp(), START_MS + 5000);
}

#[test]
fn without_an_answer_only_an_error_is_noticed() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    rig.send(conn, 9, produce_request("t", 0, 0, batch(&["a"])));
    assert_eq!((rig.answer(conn), rig.state.log_offsets("t", 0)), (None, Some((0, 1))));
    rig.send(conn, 9, produce_request("u", 0, 0, batch(&["a"])));
    assert_eq!(rig.closed, [(conn, Closing::ProduceFailed(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))]);
    let conn = rig.connect(1);
    let refused = rig.produce_bytes(conn, "t", 0, 2, batch(&["a"]));
    assert_eq!(refused.error_code, ErrorCode::INVALID_REQUIRED_ACKS);
}

fn numbered(producer: i64, epoch: i16, sequence: i32, values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(producer, epoch, sequence);
    for value in values {
        builder.append(START_MS, None, Some(value.as_bytes()), []).unwrap();
    }
    builder.build(0)
}

#[test]
fn a_batch_that_is_sent_again_is_answered_and_not_appended_again() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    let id = rig.ask(conn, 4, InitProducerIdRequest::default()).producer_id;
    let send = |rig: &mut Rig, epoch, sequence, values: &[&str]| {
        let answer = rig.produce_bytes(conn, "t", 0, -1, numbered(id, epoch, sequence, values));
        (answer.error_code, answer.base_offset)
    };
    assert_eq!(send(&mut rig, 0, 0, &["a", "b"]), (ErrorCode::NONE, 0));
    assert_eq!(send(&mut rig, 0, 2, &["c"]), (ErrorCode::NONE, 2));
    assert_eq!(send(&mut rig, 0, 0, &["a", "b"]), (ErrorCode::NONE, 0));
    assert_eq!(send(&mut rig, 0, 2, &["c"]), (ErrorCode::NONE, 2));
    assert_eq!(send(&mut rig, 0, 4, &["e"]), (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    assert_eq!(send(&mut rig, 1, 1, &["e"]), (ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1));
    assert_eq!(send(&mut rig, 1, 0, &["d"]), (ErrorCode::NONE, 3));
    assert_eq!(send(&mut rig, 0, 3, &["x"]), (ErrorCode::INVALID_PRODUCER_EPOCH, -1));
    assert_eq!(rig.state.log_offsets("t", 0), Some((0, 4)));
    let again = InitProducerIdRequest { producer_id: id, producer_epoch: 1, ..Default::default() };
    assert_eq!(rig.ask(conn, 4, again).producer_epoch, 2);
}

#[test]
fn sequence_numbers_start_again_behind_the_largest() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    let mut send =
        |sequence| rig.produce_bytes(conn, "t", 0, -1, numbered(7, 0, sequence, &["a"])).error_code;
    assert_eq!(send(i32::MAX), ErrorCode::NONE);
    assert_eq!(send(0), ErrorCode::NONE);
    assert_eq!(send(1), ErrorCode::NONE);
}

#[test]
fn the_topic_of_groups_is_not_for_clients() {
    let mut rig = Rig::new(1, &[]);
    assert_eq!(code_of(&mut rig, "__consumer_offsets", 0, batch(&["a"])), ErrorCode::INVALID_TOPIC_EXCEPTION);
}

#[test]
fn a_compacted_topic_keeps_the_newest_record_of_each_key_at_its_offset() {
    let mut rig = Rig::new(1, &[]);
    let configs = vec![("cleanup.policy".to_owned(), "compact".to_owned())];
    rig.create(&NewTopic { configs, ..NewTopic::new("t", 1) }).unwrap();
    let conn = rig.connect(1);
    let filler = vec![b'x'; 100_000];
    for round in 0..100i64 {
        let mut builder = BatchBuilder::new(Compression::None);
        let key = round.to_string();
        builder.append(START_MS, Some(key.as_bytes()), Some(b"once"), [("h", Some(&b"v"[..]))]).unwrap();
        builder.append(START_MS, Some(b"again"), Some(&filler), []).unwrap();
        assert_eq!(rig.produce_bytes(conn, "t", 0, -1, builder.build(0)).base_offset, round * 2);
    }
    let batches = rig.state.batches("t", 0);
    let size: usize = batches.iter().map(|batch| batch.size()).sum();
    assert!(size < 4_000_000, "{size} bytes are left of 10 MB");
    let mut once = Vec::new();
    for batch in &batches {
        for record in batch.records().unwrap().iter() {
            let record = record.unwrap();
            if record.value() == Some(b"once") {
                assert_eq!(record.headers().count(), 1);
                once.push(record.offset());
            }
        }
    }
    assert_eq!(once, (0..100).map(|round| round * 2).collect::<Vec<_>>());
    assert_eq!(rig.state.log_offsets("t", 0), Some((0, 200)));
}
