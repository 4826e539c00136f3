//! Record batches against the `kafka-protocol` crate, with every codec.

use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as theirs;
use proptest::prelude::*;
use tontine_wire::records::{BatchBuilder, Compression, RecordBatch, RecordRef};

#[derive(Clone, Debug, PartialEq)]
struct Row {
    timestamp: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(String, Option<Bytes>)>,
}

fn bytes() -> impl Strategy<Value = Option<Bytes>> {
    // Long runs, so that the codecs have something to do.
    proptest::option::of(
        (any::<u8>(), 0usize..300, proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(byte, count, tail)| [vec![byte; count], tail].concat().into()),
    )
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    // The other crate keeps headers in a map: names must differ.
    let headers = proptest::collection::btree_map("[a-zü]{0,6}", bytes(), 0..4);
    let row = (0..1i64 << 50, bytes(), bytes(), headers).prop_map(|(timestamp, key, value, headers)| Row {
        timestamp,
        key,
        value,
        headers: headers.into_iter().collect(),
    });
    proptest::collection::vec(row, 1..30)
}

fn codecs() -> impl Strategy<Value = (Compression, theirs::Compression)> {
    proptest::sample::select(vec![
        (Compression::None, theirs::Compression::None),
        (Compression::Gzip, theirs::Compression::Gzip),
        (Compression::Snappy, theirs::Compression::Snappy),
        (Compression::Lz4, theirs::Compression::Lz4),
        (Compression::Zstd, theirs::Compression::Zstd),
    ])
}

fn write_here(compression: Compression, rows: &[Row]) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    builder.producer(77, 5, 100);
    for row in rows {
        let headers = row.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
        builder.append(row.timestamp, row.key.as_deref(), row.value.as_deref(), headers).unwrap();
    }
    builder.build(1_000)
}

fn write_there(compression: theirs::Compression, rows: &[Row]) -> Bytes {
    let records = rows.iter().zip(0..).map(|(row, i)| theirs::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 4,
        producer_id: 77,
        producer_epoch: 5,
        timestamp_type: theirs::TimestampType::Creation,
        offset: 1_000 + i64::from(i),
        sequence: 100 + i,
        timestamp: row.timestamp,
        key: row.key.clone(),
        value: row.value.clone(),
        headers: (row.headers.iter())
            .map(|(name, value)| (StrBytes::from_string(name.clone()), value.clone()))
            .collect::<IndexMap<_, _>>(),
    });
    let records: Vec<_> = records.collect();
    let mut out = BytesMut::new();
    let options = theirs::RecordEncodeOptions { version: 2, compression };
    theirs::RecordBatchEncoder::encode(&mut out, &records, &options).unwrap();
    out.freeze()
}

fn read_there(bytes: &Bytes) -> Vec<theirs::Record> {
    theirs::RecordBatchDecoder::decode(&mut bytes.clone()).unwrap().records
}

fn row_of(record: RecordRef<'_>) -> Row {
    Row {
        timestamp: record.timestamp(),
        key: record.key_bytes(),
        value: record.value_bytes(),
        headers: (record.headers())
            .map(|header| (header.key().into_owned(), header.value().map(Bytes::copy_from_slice)))
            .collect(),
    }
}

/// All records in the buffer: the other crate starts a new batch where it sees fit.
fn read_here(mut bytes: Bytes) -> Vec<Row> {
    let mut rows = Vec::new();
    while let Some(batch) = RecordBatch::parse(&mut bytes).unwrap() {
        assert_eq!((batch.producer_id(), batch.producer_epoch()), (77, 5));
        assert_eq!(batch.base_offset(), 1_000 + rows.len() as i64);
        assert_eq!(batch.base_sequence(), 100 + rows.len() as i32);
        rows.extend(batch.records().unwrap().iter().map(|record| row_of(record.unwrap())));
        assert_eq!(batch.next_offset(), 1_000 + rows.len() as i64);
    }
    assert!(bytes.is_empty());
    rows
}

proptest! {
    #[test]
    fn the_other_crate_reads_the_batches_written_here(rows in rows(), codec in codecs()) {
        let read = read_there(&write_here(codec.0, &rows));
        prop_assert_eq!(read.len(), rows.len());
        for ((record, row), i) in read.into_iter().zip(rows).zip(0..) {
            let headers = record.headers.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
            prop_assert_eq!((record.offset, record.sequence), (1_000 + i64::from(i), 100 + i));
            prop_assert_eq!((record.producer_id, record.producer_epoch), (77, 5));
            prop_assert_eq!(Row { timestamp: record.timestamp, key: record.key, value: record.value, headers }, row);
        }
    }

    #[test]
    fn batches_of_the_other_crate_are_read_here(rows in rows(), codec in codecs()) {
        prop_assert_eq!(read_here(write_there(codec.1, &rows)), rows);
    }

    #[test]
    fn batches_that_are_not_compressed_are_the_same_bytes(rows in rows()) {
        let ours = write_here(Compression::None, &rows);
        let theirs = write_there(theirs::Compression::None, &rows);
        // Up to what the two set differently: the leader's epoch, the base timestamp and with it the deltas.
        if ours.len() == theirs.len() && rows.len() == 1 {
            prop_assert_eq!(&ours[..12], &theirs[..12]);
            prop_assert_eq!(&ours[21..], &theirs[21..]);
        }
    }
}
