//! What a consumer takes of the memory, with every byte of the process counted: not more than its queue and a little when
//! the application is slow, nothing for a record in hand, and nothing for good because of one large record.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says so when it fails")]

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::{alloc::System, time::Duration};
use tokio::sync::Mutex;
use tontine::{Consumer, Producer, ProducerRecord, Records};
use tontine_broker::Broker;
use tontine_testkit::wait;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The counter is the whole process's: one test at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

const LONG: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(50);
const MIB: isize = 1 << 20;

/// The bytes that are in use.
fn in_use() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

async fn broker(partitions: i32) -> Broker {
    Broker::builder().topic("t", partitions).config("message.max.bytes", "33554432").start().await.unwrap()
}

async fn produce(broker: &Broker, records: impl IntoIterator<Item = ProducerRecord>) {
    let producer = Producer::builder()
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("max.request.size", "33554432")
        .build()
        .unwrap();
    for record in records {
        drop(producer.send(record).await.unwrap());
    }
    producer.flush().await.unwrap();
    producer.close().await.unwrap();
}

fn consumer(broker: &Broker, partitions: i32, settings: &[(&str, &str)]) -> Consumer {
    let mut builder = Consumer::builder()
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("auto.offset.reset", "earliest");
    for (key, value) in settings {
        builder = builder.set(key, value);
    }
    let mut consumer = builder.build().unwrap();
    consumer.assign((0..partitions).map(|partition| ("t", partition))).unwrap();
    consumer
}

async fn poll(consumer: &mut Consumer) -> Records {
    let polled = async {
        loop {
            let records = consumer.poll(TICK).await.unwrap();
            if !records.is_empty() {
                return records;
            }
        }
    };
    wait::within("records", LONG, polled).await.unwrap()
}

#[tokio::test]
async fn an_application_that_is_slow_makes_a_consumer_hold_its_queue_and_no_more() {
    let _alone = ALONE.lock().await;
    let broker = broker(8).await;
    let record = |n: i32| ProducerRecord::to("t").partition(n % 8).value(vec![7; 100_000]);
    produce(&broker, (0..800).map(record)).await;
    let before = in_use();
    // Of 80 MB in the log.
    let mut consumer = consumer(&broker, 8, &[("fetch.queue.bytes", "8388608"), ("max.poll.records", "1")]);
    let mut most = 0;
    poll(&mut consumer).await;
    wait::until("the queue is full", LONG, async || (in_use() - before > 3 * MIB).then_some(()))
        .await
        .unwrap();
    for _ in 0..200 {
        poll(&mut consumer).await;
        tokio::task::yield_now().await;
        most = most.max(in_use() - before);
    }
    assert!(most < 38 * MIB, "{most} bytes for a queue of 8 MiB");
}

#[tokio::test]
async fn a_record_in_hand_costs_no_allocation_and_a_poll_only_a_few() {
    let _alone = ALONE.lock().await;
    let broker = broker(1).await;
    let record = |n: i32| {
        let record = ProducerRecord::to("t").key(n.to_string()).value(vec![7; 100]);
        record.header("trace", "0123456789").header("kind", "test")
    };
    produce(&broker, (0..10_000).map(record)).await;
    let mut consumer = consumer(&broker, 1, &[]);
    let (mut least_of_a_poll, mut least_of_reading, mut count) = (usize::MAX, usize::MAX, 0);
    while count < 10_000 {
        // Other threads allocate, too, but not all the time.
        let region = Region::new(ALLOCATOR);
        let records = consumer.poll(TICK).await.unwrap();
        if records.len() == 500 {
            least_of_a_poll = least_of_a_poll.min(region.change().allocations);
        }
        for _ in 0..5 {
            let region = Region::new(ALLOCATOR);
            let mut bytes = 0;
            for record in &records {
                bytes += record.key().map_or(0, <[u8]>::len) + record.value().map_or(0, <[u8]>::len);
                bytes += record.headers().map(|header| header.value().map_or(0, <[u8]>::len)).sum::<usize>();
                bytes += record.value_bytes().map_or(0, |value| value.len());
            }
            let stats = region.change();
            if !records.is_empty() {
                assert!(bytes > 200 * records.len());
                least_of_reading = least_of_reading.min(stats.allocations + stats.reallocations);
            }
        }
        count += records.len();
    }
    assert_eq!(least_of_reading, 0, "for 500 records with two headers each");
    assert!(least_of_a_poll <= 20, "{least_of_a_poll} allocations of a poll");
}

#[tokio::test]
async fn a_record_of_20_mb_is_delivered_whole_and_its_memory_is_given_back_while_reading_goes_on() {
    let _alone = ALONE.lock().await;
    let broker = broker(1).await;
    const LARGE: usize = 20_000_000;
    let small = || ProducerRecord::to("t").value("small");
    let large = ProducerRecord::to("t").value((0..LARGE).map(|n| (n % 251) as u8).collect::<Vec<_>>());
    produce(&broker, [small(), large, small()]).await;
    let before = in_use();
    let mut consumer = consumer(&broker, 1, &[]);
    let mut sizes = Vec::new();
    while sizes.len() < 3 {
        for record in &poll(&mut consumer).await {
            let value = record.value().unwrap();
            sizes.push(value.len());
            assert!(
                value.len() < LARGE || value.iter().enumerate().all(|(n, byte)| *byte == (n % 251) as u8)
            );
        }
    }
    assert_eq!(sizes, [5, LARGE, 5]);
    assert!(in_use() - before < 80 * MIB, "{} bytes", in_use() - before);
    let given_back = async {
        while in_use() - before > 4 * MIB {
            produce(&broker, [small()]).await;
            poll(&mut consumer).await;
        }
    };
    wait::within("the memory is given back", LONG, given_back).await.unwrap();
}
