//! What a batch keeps, what it refuses, and that bytes from anywhere never panic.

use super::*;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

type Row = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(String, Option<Vec<u8>>)>);

fn build(compression: Compression, rows: &[Row]) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    builder.producer(7, 3, 11);
    for (timestamp, key, value, headers) in rows {
        let headers = headers.iter().map(|(k, v)| (k.as_str(), v.as_deref()));
        builder.append(*timestamp, key.as_deref(), value.as_deref(), headers).unwrap();
    }
    builder.build(100)
}

fn parse(bytes: &Bytes) -> RecordBatch {
    let mut buffer = bytes.clone();
    let batch = RecordBatch::parse(&mut buffer).unwrap().unwrap();
    assert!(buffer.is_empty());
    batch
}

fn row_of(timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: Headers<'_>) -> Row {
    let headers = headers.map(|h| (h.key().into_owned(), h.value().map(<[u8]>::to_vec))).collect();
    (timestamp, key.map(<[u8]>::to_vec), value.map(<[u8]>::to_vec), headers)
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let bytes = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200));
    let headers = proptest::collection::vec((".{0,8}", bytes()), 0..4);
    proptest::collection::vec((any::<i64>(), bytes(), bytes(), headers), 0..20)
}

fn codec() -> impl Strategy<Value = Compression> {
    proptest::sample::select(&Compression::ALL[..])
}

/// Reads everything there is; whatever the bytes are, this ends.
fn read_everything(mut buffer: Bytes, checksum: Checksum) {
    while let Ok(Some(batch)) = RecordBatch::parse_with(&mut buffer, checksum) {
        let Ok(mut records) = batch.records_within(1 << 20) else { continue };
        let borrowed = records.iter().filter_map(Result::ok).map(|r| r.headers().count()).sum::<usize>();
        let owned = records.clone().filter_map(Result::ok).map(|r| r.headers().count()).sum::<usize>();
        assert_eq!(borrowed, owned);
        let _ = records.skip_before(batch.base_offset() + 2);
        while let Ok(run) = records.split_front(3) {
            assert_eq!(run.iter().count(), run.len());
            if run.is_empty() {
                break;
            }
        }
    }
}

proptest! {
    #[test]
    fn what_goes_into_a_batch_comes_out_of_it(rows in rows(), compression in codec()) {
        let bytes = build(compression, &rows);
        let batch = parse(&bytes);
        prop_assert_eq!(batch.compression(), compression);
        prop_assert_eq!(batch.record_count() as usize, rows.len());
        prop_assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (7, 3, 11));
        let records = batch.records().unwrap();
        for (i, (record, row)) in records.iter().zip(&rows).enumerate() {
            let record = record.unwrap();
            prop_assert_eq!(record.offset(), 100 + i as i64);
            prop_assert_eq!(&row_of(record.timestamp(), record.key(), record.value(), record.headers()), row);
            let owned = record.to_record();
            prop_assert_eq!(&row_of(owned.timestamp(), owned.key(), owned.value(), owned.headers()), row);
            prop_assert_eq!(owned.value_bytes().map(Vec::from), row.2.clone());
        }
        prop_assert_eq!(records.iter().count(), rows.len());
        prop_assert_eq!(records.map(Result::unwrap).count(), rows.len());
    }

    #[test]
    fn records_taken_in_runs_are_all_records_once(rows in rows(), steps in proptest::collection::vec(0usize..5, 1..9)) {
        let batch = parse(&build(Compression::None, &rows));
        let mut records = batch.records().unwrap();
        let mut seen = Vec::new();
        for step in steps {
            let run = records.split_front(step).unwrap();
            prop_assert!(run.len() <= step);
            seen.extend(run.iter().map(|r| r.offset()));
            let next = if records.is_empty() { batch.next_offset() } else { 100 + seen.len() as i64 };
            prop_assert_eq!(run.next_offset(), next);
        }
        seen.extend(records.map(|r| r.unwrap().offset()));
        prop_assert_eq!(seen, (100..100 + rows.len() as i64).collect::<Vec<_>>());
    }

    #[test]
    fn damaged_bytes_never_panic_and_are_noticed(rows in rows(), compression in codec(), place in any::<prop::sample::Index>(), bit in 0..8u8) {
        let bytes = build(compression, &rows);
        let mut damaged = bytes.to_vec();
        let place = place.index(damaged.len());
        damaged[place] ^= 1 << bit;
        let damaged = Bytes::from(damaged);
        // Everything from the format on is covered: by the check of the format itself or by the checksum.
        if place >= 16 {
            prop_assert!(RecordBatch::parse(&mut damaged.clone()).is_err());
        }
        read_everything(damaged.clone(), Checksum::Verify);
        read_everything(damaged, Checksum::Ignore);
    }

    #[test]
    fn bytes_from_nowhere_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), codec in 0..8u8) {
        if bytes.len() > 22 {
            let length = bytes.len() as i32 - 12;
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[16] = 2;
            bytes[21] = 0;
            bytes[22] = codec;
            bytes[0] &= 0x7f;
        }
        read_everything(bytes.into(), Checksum::Ignore);
    }
}

fn small(compression: Compression) -> Bytes {
    let headers = vec![("a".to_owned(), Some(b"1".to_vec())), ("b".to_owned(), None)];
    build(compression, &[(5, Some(b"k".to_vec()), Some(b"v".to_vec()), headers), (6, None, None, Vec::new())])
}

#[test]
fn a_batch_cut_off_anywhere_is_a_partial_batch() {
    for compression in Compression::ALL {
        let bytes = small(compression);
        for end in 0..bytes.len() {
            let mut buffer = bytes.slice(..end);
            assert_eq!(RecordBatch::parse(&mut buffer), Ok(None));
            assert_eq!(buffer.len(), end);
        }
    }
}

#[test]
fn batches_follow_each_other_in_one_buffer() {
    let mut buffer = BytesMut::new();
    for compression in Compression::ALL {
        buffer.extend_from_slice(&small(compression));
    }
    buffer.extend_from_slice(&small(Compression::None)[..30]);
    let mut buffer = buffer.freeze();
    for compression in Compression::ALL {
        assert_eq!(RecordBatch::parse(&mut buffer).unwrap().unwrap().compression(), compression);
    }
    assert_eq!(RecordBatch::parse(&mut buffer), Ok(None));
    assert_eq!(buffer.len(), 30);
}

#[test]
fn an_older_format_is_named_with_its_offset() {
    // A message of format 1: offset 42, size 22, checksum, magic 1.
    let mut old = BytesMut::new();
    old.extend_from_slice(&42i64.to_be_bytes());
    old.extend_from_slice(&22i32.to_be_bytes());
    old.extend_from_slice(&[0; 4]);
    old.extend_from_slice(&[1, 0]);
    old.extend_from_slice(&[0; 16]);
    let error = RecordBatch::parse(&mut old.freeze()).unwrap_err();
    assert_eq!(error, BatchError::UnsupportedMagic { offset: 42, magic: 1 });
    assert!(error.to_string().contains("offset 42"));
}

#[test]
fn a_wrong_checksum_is_an_error_unless_it_is_not_looked_at() {
    let mut bytes = small(Compression::None).to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let bytes = Bytes::from(bytes);
    let error = RecordBatch::parse(&mut bytes.clone()).unwrap_err();
    assert!(matches!(error, BatchError::BadChecksum { offset: 100, .. }), "{error}");
    assert!(RecordBatch::parse_with(&mut bytes.clone(), Checksum::Ignore).unwrap().is_some());
}

#[test]
fn a_stamped_batch_keeps_its_checksum_until_the_time_is_changed() {
    let batch = parse(&small(Compression::Lz4));
    let sum = batch.bytes()[17..21].to_vec();
    let stamped = batch.stamped(1_000, 9, None).unwrap();
    assert_eq!(stamped.bytes()[17..21], sum[..]);
    assert_eq!((stamped.base_offset(), stamped.next_offset(), stamped.leader_epoch()), (1_000, 1_002, 9));
    assert_eq!(parse(stamped.bytes()), stamped);

    let timed = stamped.stamped(2_000, 10, Some(77)).unwrap();
    assert_eq!(parse(timed.bytes()), timed);
    assert_eq!((timed.timestamp_type(), timed.max_timestamp()), (TimestampType::LogAppendTime, 77));
    assert!(timed.records().unwrap().all(|record| record.unwrap().timestamp() == 77));
    assert!(timed.stamped(i64::MAX, 10, None).is_none());
}

#[test]
fn a_few_bytes_that_unpack_to_a_flood_are_refused() {
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut builder = BatchBuilder::new(compression);
        builder.append(0, None, Some(&vec![0; 10 << 20]), []).unwrap();
        let batch = parse(&builder.build(0));
        assert!(batch.size() < 1 << 20, "{compression:?} takes {}", batch.size());
        let error = batch.records_within(1 << 20).unwrap_err();
        assert_eq!(error, BatchError::TooLarge { offset: 0, limit: 1 << 20 });
        assert_eq!(batch.records().unwrap().count(), 1);
    }
}

#[test]
fn snappy_without_blocks_is_read_as_well() {
    let plain = small(Compression::None);
    let packed = snap::raw::Encoder::new().compress_vec(&plain[61..]).unwrap();
    let unpacked = compress::decompress(Compression::Snappy, packed.into(), 1 << 20).unwrap();
    assert_eq!(unpacked, plain[61..]);
}

#[test]
fn a_snappy_block_that_lies_about_its_size_takes_no_memory() {
    // 200 MiB, said in five bytes.
    let lie = Bytes::from_static(&[0x80, 0x80, 0x80, 0x64, 0x00]);
    let fault = compress::decompress(Compression::Snappy, lie, DEFAULT_DECOMPRESSED_LIMIT).unwrap_err();
    assert!(matches!(fault, compress::Fault::Malformed(_)));
}

#[test]
fn offsets_left_out_by_compaction_stay_left_out() {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.skip_offsets(2).append(1, None, Some(b"x"), []).unwrap();
    builder.skip_offsets(3).append(1, None, Some(b"y"), []).unwrap();
    builder.skip_offsets(4);
    let batch = parse(&builder.build(10));
    assert_eq!((batch.last_offset(), batch.record_count()), (20, 2));
    let mut records = batch.records().unwrap();
    assert_eq!(records.iter().map(|r| r.unwrap().offset()).collect::<Vec<_>>(), [12, 16]);
    records.skip_before(13).unwrap();
    assert_eq!(records.next_offset(), 13);
    assert_eq!(records.next().unwrap().unwrap().offset(), 16);
    assert_eq!(records.next_offset(), 21);
}

#[test]
fn a_run_starts_at_the_offset_that_was_asked_for() {
    let rows: Vec<Row> = (0..10).map(|i| (i, None, Some(vec![i as u8]), Vec::new())).collect();
    let mut records = parse(&build(Compression::Zstd, &rows)).records().unwrap();
    records.skip_before(107).unwrap();
    let run = records.split_front(2).unwrap();
    assert_eq!(run.iter().map(|r| r.offset()).collect::<Vec<_>>(), [107, 108]);
    assert_eq!(run.next_offset(), 109);
    records.skip_before(1_000).unwrap();
    assert!(records.is_empty());
}

#[test]
fn a_control_batch_says_how_the_transaction_ended() {
    let bytes = end_transaction_marker(ControlType::Commit, 5, 1, 3, 99).unwrap();
    let batch = parse(&bytes);
    assert!(batch.is_control() && batch.is_transactional());
    let record = batch.records().unwrap().next().unwrap().unwrap();
    assert_eq!(ControlType::from_key(record.key().unwrap()), Some(ControlType::Commit));
    assert_eq!(record.value().unwrap(), [0, 0, 0, 0, 0, 3]);
}

#[test]
fn the_sequence_of_the_last_record_wraps_to_zero() {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(1, 0, i32::MAX);
    for _ in 0..3 {
        builder.append(0, None, None, []).unwrap();
    }
    assert_eq!(parse(&builder.build(0)).last_sequence(), 1);
}

#[test]
fn the_size_of_a_record_is_never_more_than_was_said() {
    let mut builder = BatchBuilder::new(Compression::None);
    for i in 0..200 {
        let value = vec![0; i * 7];
        let before = builder.size();
        builder.append(i as i64 * 1_000_000, Some(b"key"), Some(&value), [("h", None)]).unwrap();
        assert!(
            builder.size() - before <= BatchBuilder::record_size(Some(b"key"), Some(&value), [("h", None)])
        );
    }
    let size = builder.size();
    assert_eq!(builder.build(0).len(), size);
}
