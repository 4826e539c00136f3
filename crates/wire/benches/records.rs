//! What reading a record costs, in nanoseconds and allocations: `cargo bench -p tontine-wire`.
//!
//! Batches of 1,000 records, about 100 bytes of value each, 128 bytes a record on the wire. `crc` is the checksum alone,
//! the floor under everything else. Times are the best of many rounds: what the machine can do, not what it happened to.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tontine_wire::records::{BatchBuilder, Checksum, Compression, RecordBatch, RecordRef};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const RECORDS: u32 = 1_000;
const ROUNDS: u32 = 2_000;

fn batch(compression: Compression, headers: &[(&str, Option<&[u8]>)]) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    let spent: usize =
        headers.iter().map(|(name, value)| 2 + name.len() + value.map_or(0, <[u8]>::len)).sum();
    let value: Vec<u8> = (0..109 - spent).map(|i| (i * 7 % 251) as u8).collect();
    for i in 0..RECORDS {
        let key = format!("key-{i:05}");
        builder
            .append(
                1_700_000_000_000 + i64::from(i),
                Some(key.as_bytes()),
                Some(&value),
                headers.iter().copied(),
            )
            .unwrap();
    }
    builder.build(0)
}

/// The best time of one record over all rounds, and the fewest allocations.
fn measure(rounds: u32, mut work: impl FnMut()) -> (f64, f64) {
    let (mut best, mut fewest) = (Duration::MAX, usize::MAX);
    for _ in 0..rounds {
        let region = Region::new(ALLOCATOR);
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        let stats = region.change();
        fewest = fewest.min(stats.allocations + stats.reallocations);
    }
    (best.as_nanos() as f64 / f64::from(RECORDS), fewest as f64 / f64::from(RECORDS))
}

fn heading(what: &str) {
    println!("\n{what:<52} {:>8} {:>12}", "ns", "allocations");
}

fn row(name: &str, (nanoseconds, allocations): (f64, f64)) {
    println!("{name:<52} {nanoseconds:>8.1} {allocations:>12.3}");
}

/// Looks at every part of a record, as an application would.
fn touch(record: &RecordRef<'_>) -> usize {
    let sizes = record.key().map_or(0, <[u8]>::len) + record.value().map_or(0, <[u8]>::len);
    sizes.wrapping_add(record.offset() as usize).wrapping_add(record.timestamp() as usize)
}

fn read(bytes: &Bytes, checksum: Checksum) -> usize {
    let mut buffer = bytes.clone();
    let batch = RecordBatch::parse_with(&mut buffer, checksum).unwrap().unwrap();
    batch.records().unwrap().iter().map(|record| touch(&record.unwrap())).fold(0, usize::wrapping_add)
}

fn main() {
    heading("reading, for each record");
    let plain = batch(Compression::None, &[]);
    let header = batch(Compression::None, &[("trace", Some(b"0123456789"))]);
    row("crc", measure(ROUNDS, || _ = black_box(crc32c::crc32c(black_box(&plain[21..])))));
    row("decode", measure(ROUNDS, || _ = black_box(read(black_box(&plain), Checksum::Ignore))));
    row("decode, one header", measure(ROUNDS, || _ = black_box(read(black_box(&header), Checksum::Ignore))));
    row("crc + decode", measure(ROUNDS, || _ = black_box(read(black_box(&plain), Checksum::Verify))));
    row(
        "crc + decode, one header",
        measure(ROUNDS, || _ = black_box(read(black_box(&header), Checksum::Verify))),
    );

    let mut buffer = plain.clone();
    let parsed = RecordBatch::parse(&mut buffer).unwrap().unwrap();
    let checked = measure(ROUNDS, || {
        let mut records = parsed.records().unwrap();
        let run = records.split_front(usize::MAX).unwrap();
        black_box(run.iter().map(|record| touch(&record)).fold(0, usize::wrapping_add));
    });
    row("decode twice: a checked run, then its records", checked);
    let owned = measure(ROUNDS, || {
        black_box(
            parsed.records().unwrap().map(|record| record.unwrap().offset()).fold(0, i64::wrapping_add),
        );
    });
    row("decode to records of their own", owned);

    heading("reading compressed batches, with crc");
    for compression in &Compression::ALL[1..] {
        let packed = batch(*compression, &[]);
        let title = format!("{} ({} bytes a record)", compression.name(), packed.len() / RECORDS as usize);
        row(&title, measure(ROUNDS / 10, || _ = black_box(read(black_box(&packed), Checksum::Verify))));
    }

    heading("writing");
    for compression in Compression::ALL {
        row(compression.name(), measure(ROUNDS / 10, || _ = black_box(batch(compression, &[]))));
    }
}
