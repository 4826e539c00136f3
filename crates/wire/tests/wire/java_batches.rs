//! Batches that Apache Kafka's own Java library (4.4.0) wrote.
//!
//! A line of `data/batches.tsv` has what the batch is, the time of the append or -1, and the bytes. All batches of data
//! hold the twelve records of [`expected`], each with codec and timestamps of its own.

use crate::vectors::unhex;
use bytes::Bytes;
use tontine_wire::records::{BatchBuilder, Compression, ControlType, RecordBatch, RecordRef, TimestampType};

fn lines() -> impl Iterator<Item = (&'static str, i64, RecordBatch)> {
    include_str!("data/batches.tsv").lines().map(|line| {
        let parts: Vec<_> = line.split('\t').collect();
        let mut bytes = unhex(parts[2]);
        let batch = RecordBatch::parse(&mut bytes).unwrap().unwrap();
        assert!(bytes.is_empty());
        (parts[0], parts[1].parse().unwrap(), batch)
    })
}

type Expected = (i64, i64, Option<String>, Option<String>, Vec<(String, Option<String>)>);

fn expected(i: i64) -> Expected {
    let timestamp = 1_000 + i * 7 * if i % 2 == 0 { 1 } else { -1 };
    let key = (i % 3 != 0).then(|| format!("key-{i}"));
    let value = (i % 5 != 4).then(|| format!("value-{i}-").repeat(i as usize * 3));
    let headers = vec![(format!("h-{i}"), Some(format!("x{i}"))), (String::new(), None)];
    (500 + i, timestamp, key, value, if i % 4 == 0 { headers } else { Vec::new() })
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

fn found(record: RecordRef<'_>) -> Expected {
    let headers = record.headers().map(|header| (header.key().into_owned(), text(header.value()))).collect();
    (record.offset(), record.timestamp(), text(record.key()), text(record.value()), headers)
}

#[test]
fn every_record_of_javas_batches_is_read() {
    let mut read = 0;
    for (name, append_time, batch) in lines() {
        let Some(compression) = Compression::from_name(name) else { continue };
        assert_eq!(batch.compression(), compression);
        assert_eq!((batch.base_offset(), batch.last_offset(), batch.record_count()), (500, 511, 12));
        assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (1_234, 9, 40));
        assert_eq!((batch.leader_epoch(), batch.last_sequence()), (3, 51));
        assert!(batch.is_transactional() && !batch.is_control());
        let is_appended = batch.timestamp_type() == TimestampType::LogAppendTime;
        assert_eq!(is_appended, append_time >= 0);
        for (i, record) in batch.records().unwrap().iter().enumerate() {
            let mut want = expected(i as i64);
            want.1 = if is_appended { append_time } else { want.1 };
            assert_eq!(found(record.unwrap()), want, "{name}");
            read += 1;
        }
    }
    assert_eq!(read, 5 * 2 * 12);
}

#[test]
fn javas_batches_without_compression_are_written_here_just_so() {
    for (_, append_time, batch) in lines().filter(|(name, ..)| *name == "none") {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.producer(1_234, 9, 40).transactional(true).leader_epoch(3);
        for (_, timestamp, key, value, headers) in (0..12).map(expected) {
            let headers =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_deref().map(str::as_bytes)));
            let key = key.as_deref().map(str::as_bytes);
            builder.append(timestamp, key, value.as_deref().map(str::as_bytes), headers).unwrap();
        }
        let ours = RecordBatch::parse(&mut builder.build(0)).unwrap().unwrap();
        let time = (append_time >= 0).then_some(append_time);
        assert_eq!(ours.stamped(500, 3, time), Some(batch));
    }
}

#[test]
fn javas_marks_of_transactions_are_read_and_written_here_just_so() {
    for (name, _, batch) in lines() {
        let outcome = match name {
            "commit" => ControlType::Commit,
            "abort" => ControlType::Abort,
            _ => continue,
        };
        let record = batch.records().unwrap().next().unwrap().unwrap();
        assert_eq!(ControlType::from_key(record.key().unwrap()), Some(outcome));
        let ours: Bytes = tontine_wire::records::end_transaction_marker(outcome, 1_234, 9, 6, 55).unwrap();
        assert_eq!(&ours, batch.bytes());
    }
}
