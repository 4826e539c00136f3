//! What reading allocates, counted: nothing for a record, and for hostile bytes not much more than they are long.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use std::{
    alloc::System,
    sync::{Mutex, PoisonError},
};
use tontine_wire::{
    api::fetch::{FetchResponse, FetchableTopicResponse, PartitionData},
    codec::Message,
    records::{BatchBuilder, Checksum, Compression, RecordBatch},
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The counter is the whole process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn batch(compression: Compression, records: usize, headers: usize) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    let names: Vec<String> = (0..headers).map(|n| format!("header-{n}")).collect();
    for n in 0..records {
        let headers = names.iter().map(|name| (name.as_str(), Some(&b"value"[..])));
        builder.append(n as i64, Some(b"key"), Some(&[b'v'; 100]), headers).unwrap();
    }
    builder.build(0)
}

/// The least that this allocates: the test harness has threads of its own that now and then allocate something, too.
fn least(mut work: impl FnMut()) -> Stats {
    let mut count = || {
        let region = Region::new(ALLOCATOR);
        work();
        region.change()
    };
    (0..20).map(|_| count()).min_by_key(|stats| stats.allocations + stats.reallocations).unwrap()
}

/// Reads every part of every record, in both ways that there are; how many bytes that was.
fn read(bytes: &Bytes) -> usize {
    let mut rest = bytes.clone();
    let batch = RecordBatch::parse_with(&mut rest, Checksum::Verify).unwrap().unwrap();
    let mut records = batch.records().unwrap();
    let mut seen = 0;
    for record in records.iter() {
        seen += record.unwrap().value_bytes().map_or(0, |value| value.len());
    }
    let run = records.split_front(usize::MAX).unwrap();
    for record in &run {
        seen += record.key().map_or(0, <[u8]>::len);
        for header in record.headers() {
            seen += header.key_bytes().len() + header.key().len() + header.value().map_or(0, <[u8]>::len);
        }
    }
    seen
}

#[test]
fn a_record_costs_no_allocation_with_headers_and_without() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for headers in [0, 1, 5] {
        let bytes = batch(Compression::None, 1_000, headers);
        // Somebody else holds the buffer too, as the connection does that fills it again.
        let _shared = bytes.clone();
        let stats = least(|| assert!(read(&bytes) >= 103_000));
        assert_eq!((stats.allocations, stats.reallocations), (0, 0), "{headers} headers: {stats:?}");
    }
}

#[test]
fn a_compressed_batch_costs_as_many_allocations_as_it_is_large_and_none_for_its_records() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for compression in &Compression::ALL[1..] {
        let bytes = batch(*compression, 2_000, 1);
        read(&bytes);
        let stats = least(|| assert!(read(&bytes) >= 103_000));
        assert!(stats.allocations + stats.reallocations < 50, "{}: {stats:?}", compression.name());
    }
}

#[test]
fn a_small_batch_that_unpacks_to_very_much_takes_no_more_than_it_may() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const ALLOWED: usize = 2 << 20;
    for compression in &Compression::ALL[1..] {
        let mut builder = BatchBuilder::new(*compression);
        builder.append(0, None, Some(&vec![0; 64 << 20]), []).unwrap();
        let mut bytes = builder.build(0);
        let batch = RecordBatch::parse(&mut bytes).unwrap().unwrap();
        let stats = least(|| assert!(batch.records_within(ALLOWED).is_err(), "{}", compression.name()));
        let taken = stats.bytes_allocated;
        assert!(taken < 4 * ALLOWED, "{}: {taken} bytes", compression.name());
    }
}

#[test]
fn a_hostile_answer_takes_memory_in_proportion_to_its_length() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let partition = |partition_index| PartitionData {
        partition_index,
        records: Some(batch(Compression::None, 3, 1)),
        aborted_transactions: Some(Vec::new()),
        ..PartitionData::default()
    };
    let topic = FetchableTopicResponse {
        partitions: (0..4).map(partition).collect(),
        ..FetchableTopicResponse::default()
    };
    let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
    for version in [4, 11, 12, 18] {
        let whole = response.to_bytes(version);
        for place in 0..whole.len() {
            for damage in
                [&[0xff; 4][..], &[0x7f, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0x80; 5]]
            {
                let mut bytes = whole.to_vec();
                bytes.iter_mut().skip(place).zip(damage).for_each(|(byte, new)| *byte = *new);
                let bytes = Bytes::from(bytes);
                let region = Region::new(ALLOCATOR);
                let _ = FetchResponse::decode(bytes, version);
                let stats = region.change();
                let taken = stats.bytes_allocated;
                assert!(taken < 100 * whole.len(), "version {version}, byte {place}: {taken} bytes");
            }
        }
    }
}
