//! The figures that this project promises, as a table: how soon a broker serves, how soon a member reads, what a
//! consumer at rest costs, and how long partitions are silent when a member joins.
//!
//! `cargo bench -p tontine-cli`. With Java 17 and Maven the rebalance is measured on Apache Kafka as well. Nothing is
//! asserted: a busy machine shows in the figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, missing_docs)]

mod table;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use table::{cpu, row};
use tontine::{
    Admin, Assigned, Consumer, ListenerResult, Producer, ProducerRecord, RebalanceListener, TopicPartition,
};
use tontine_broker::Broker;
use tontine_group::coordinator::GroupState;
use tontine_testkit::apache::{self, ApacheKafka};

const ROUNDS: usize = 10;

fn main() {
    // `cargo test` runs benches to see that they build.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    table::head();
    row("broker: process start to ApiVersions answered, ms", broker_ready(), "< 50");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    row("lone member: build() to the first record, ms", runtime.block_on(first_record()), "< 100");
    for protocol in PROTOCOLS {
        let what = format!("consumer at rest, {}: CPU, % of a core", protocol.name);
        row(&what, vec![runtime.block_on(idle(protocol.name))], "< 1");
    }
    let what = "embedded, consumer: subscribe() of a second member to both stable, ms";
    row(what, runtime.block_on(second_stable()), "< 100");
    let what = "embedded, consumer: a new topic, creation to its partitions assigned, ms";
    row(what, runtime.block_on(new_topic()), "< 100");
    runtime.block_on(gaps());
}

fn broker_ready() -> Vec<f64> {
    let one = |_| {
        let began = Instant::now();
        let (mut child, address) = table::broker(&["--topic", "orders:8"]);
        let mut socket = TcpStream::connect(address).unwrap();
        // ApiVersions v0, correlation id 1, no client id.
        socket.write_all(&[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]).unwrap();
        socket.read_exact(&mut [0; 4]).unwrap();
        let took = began.elapsed().as_secs_f64() * 1e3;
        child.kill().unwrap();
        child.wait().unwrap();
        took
    };
    (0..ROUNDS).map(one).collect()
}

async fn fill(bootstrap: &str, topic: &str, records: usize) {
    let producer = Producer::builder().set("bootstrap.servers", bootstrap).build().unwrap();
    for n in 0..records {
        drop(producer.send(ProducerRecord::to(topic).value(n.to_string())).await.unwrap());
    }
    producer.flush().await.unwrap();
}

async fn first_record() -> Vec<f64> {
    let broker = Broker::builder().topic("orders", 8).start().await.unwrap();
    fill(&broker.bootstrap_servers(), "orders", 1_000).await;
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        let began = Instant::now();
        let mut consumer = consumer(&broker.bootstrap_servers(), &format!("g{round}"), "classic");
        consumer.subscribe_topics(["orders"]).await.unwrap();
        while consumer.poll(Duration::from_secs(1)).await.unwrap().is_empty() {}
        figures.push(began.elapsed().as_secs_f64() * 1e3);
        consumer.close().await.unwrap();
    }
    figures
}

fn consumer(bootstrap: &str, group: &str, protocol: &str) -> Consumer {
    let builder =
        Consumer::builder().set("bootstrap.servers", bootstrap).set("auto.offset.reset", "earliest");
    let builder = builder.set("group.protocol", protocol).set("enable.auto.commit", "false");
    let builder = match protocol {
        "classic" => builder.set("partition.assignment.strategy", "cooperative-sticky"),
        _ => builder,
    };
    builder.set("group.id", group).build().unwrap()
}

async fn idle(protocol: &str) -> f64 {
    let broker = Broker::builder().topic("orders", 8).start().await.unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tontine"))
        .args(["consume", "-t", "orders", "-g", "idle", "-b", &broker.bootstrap_servers()])
        .args(["--protocol", protocol])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, began) = (cpu(child.id()), Instant::now());
    tokio::time::sleep(Duration::from_secs(10)).await;
    let used = (cpu(child.id()) - before) / 1e6;
    let percent = used / began.elapsed().as_secs_f64() * 100.0;
    child.kill().unwrap();
    child.wait().unwrap();
    percent
}

/// The first member is at rest when the second comes. Stable: the coordinator waits for nobody any more, and both have
/// been told of what they have.
async fn second_stable() -> Vec<f64> {
    let broker = Broker::builder().topic("orders", 6).start().await.unwrap();
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        let (group, stop) = (format!("s{round}"), Arc::new(AtomicBool::new(false)));
        let join = || {
            let mut consumer = consumer(&broker.bootstrap_servers(), &group, "consumer");
            let (owned, stop) = (Arc::new(Mutex::new(0)), stop.clone());
            let told = owned.clone();
            let task = tokio::spawn(async move {
                consumer.subscribe_topics(["orders"]).await.unwrap();
                while !stop.load(Ordering::Relaxed) {
                    consumer.poll(Duration::from_millis(1)).await.unwrap();
                    *told.lock().unwrap() = consumer.assignment().len();
                }
                consumer.close().await.unwrap();
            });
            (task, owned)
        };
        let (first, first_owns) = join();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let began = Instant::now();
        let (second, second_owns) = join();
        let is_stable = || broker.group(&group).is_some_and(|group| group.state == GroupState::Stable);
        while (*first_owns.lock().unwrap(), *second_owns.lock().unwrap()) != (3, 3) || !is_stable() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        figures.push(began.elapsed().as_secs_f64() * 1e3);
        stop.store(true, Ordering::Relaxed);
        first.await.unwrap();
        second.await.unwrap();
    }
    figures
}

/// A member at rest that waits for a topic which does not exist yet.
async fn new_topic() -> Vec<f64> {
    let broker = Broker::builder()
        .config("auto.create.topics.enable", "false")
        .topic("orders", 4)
        .start()
        .await
        .unwrap();
    let admin = Admin::builder().set("bootstrap.servers", broker.bootstrap_servers()).build().unwrap();
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        let later = format!("later-{round}");
        let mut consumer = consumer(&broker.bootstrap_servers(), &format!("n{round}"), "consumer");
        consumer.subscribe_topics(["orders", &later]).await.unwrap();
        let subscribed = Instant::now();
        while subscribed.elapsed() < Duration::from_secs(2) {
            consumer.poll(Duration::from_millis(10)).await.unwrap();
        }
        let began = Instant::now();
        admin.create_topic(tontine::admin::NewTopic::new(&later, 4)).await.unwrap();
        while consumer.assignment().len() != 8 {
            consumer.poll(Duration::from_millis(1)).await.unwrap();
        }
        figures.push(began.elapsed().as_secs_f64() * 1e3);
        consumer.close().await.unwrap();
    }
    figures
}

async fn gaps() {
    let broker = Broker::builder().start().await.unwrap();
    for protocol in PROTOCOLS {
        rebalance("embedded", protocol, &broker.bootstrap_servers()).await;
    }
    if let Some(reason) = apache::unavailable() {
        return println!("Apache Kafka: not measured, {reason}");
    }
    let kafka = ApacheKafka::start(1).await.unwrap();
    for protocol in PROTOCOLS {
        rebalance("Apache Kafka", protocol, &kafka.bootstrap_servers()).await;
    }
}

/// Each with how long the first member is alone before the second comes, so that it is at rest.
const PROTOCOLS: [Protocol; 2] = [
    Protocol { name: "classic", alone: Duration::from_secs(6), goal: "< 300" },
    Protocol { name: "consumer", alone: Duration::from_secs(14), goal: "< 500" },
];

#[derive(Clone, Copy)]
struct Protocol {
    name: &'static str,
    alone: Duration,
    goal: &'static str,
}

/// When each partition was delivered from, and by whom.
type Seen = Arc<Mutex<BTreeMap<TopicPartition, Vec<(Instant, usize)>>>>;

/// Default settings, cooperative-sticky in the classic protocol: a second member joins while records come; three times.
async fn rebalance(name: &str, protocol: Protocol, bootstrap: &str) {
    let admin = Admin::builder().set("bootstrap.servers", bootstrap).build().unwrap();
    let (mut moved, mut kept, mut calm, mut waited) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..3 {
        let topic = format!("gap-{}-{round}", protocol.name);
        admin.create_topic(tontine::admin::NewTopic::new(&topic, 6)).await.unwrap();
        let gaps = second_member(bootstrap, &topic, protocol).await;
        moved.push(gaps.0);
        kept.push(gaps.1);
        calm.push(gaps.2);
        waited.push(gaps.3);
    }
    let name = format!("{name}, {}", protocol.name);
    row(&format!("{name}: a member joins, silence of moved, ms"), moved, protocol.goal);
    row(&format!("{name}: a member joins, silence of kept, ms"), kept, "calm + 10");
    row(&format!("{name}: silence in calm times, ms"), calm, "");
    row(&format!("{name}: a member joins, until its first record, ms"), waited, "");
}

/// Longest silences: of moved partitions, of kept ones, and before anything happened. Then how long the newcomer waited.
async fn second_member(bootstrap: &str, topic: &str, protocol: Protocol) -> (f64, f64, f64, f64) {
    let seen = Seen::default();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn(write(bootstrap.to_owned(), topic.to_owned(), stop.clone()));
    let first = member(0, bootstrap, topic, protocol, &seen, &stop);
    tokio::time::sleep(protocol.alone).await;
    let joined = Instant::now();
    let second = member(1, bootstrap, topic, protocol, &seen, &stop);
    tokio::time::sleep(Duration::from_secs(9)).await;
    stop.store(true, Ordering::Relaxed);
    for task in [writer, first, second] {
        task.await.unwrap();
    }
    let calm_from = joined - Duration::from_secs(2);
    let mut longest = (0f64, 0f64, 0f64, f64::MAX);
    for times in seen.lock().unwrap().values() {
        let has_moved = times.iter().any(|(_, who)| *who == 1);
        if let Some((at, _)) = times.iter().find(|(_, who)| *who == 1) {
            longest.3 = longest.3.min((*at - joined).as_secs_f64() * 1e3);
        }
        for pair in times.windows(2) {
            let gap = (pair[1].0 - pair[0].0).as_secs_f64() * 1e3;
            let place = match (pair[1].0 > joined, has_moved) {
                (true, true) => &mut longest.0,
                (true, false) => &mut longest.1,
                (false, _) if pair[0].0 > calm_from => &mut longest.2,
                (false, _) => continue,
            };
            *place = place.max(gap);
        }
    }
    longest
}

struct Nothing;
impl RebalanceListener for Nothing {
    async fn on_partitions_assigned(&mut self, _: &mut Assigned<'_>) -> ListenerResult {
        Ok(())
    }
}

fn member(
    who: usize,
    bootstrap: &str,
    topic: &str,
    protocol: Protocol,
    seen: &Seen,
    stop: &Arc<AtomicBool>,
) -> tokio::task::JoinHandle<()> {
    let mut consumer = consumer(bootstrap, topic, protocol.name);
    let (topic, seen, stop) = (topic.to_owned(), seen.clone(), stop.clone());
    tokio::spawn(async move {
        consumer.subscribe([topic.as_str()], Nothing).await.unwrap();
        while !stop.load(Ordering::Relaxed) {
            let records = consumer.poll(Duration::from_millis(100)).await.unwrap();
            let now = Instant::now();
            for partition in records.partitions() {
                let mut seen = seen.lock().unwrap();
                seen.entry(partition.partition().clone()).or_default().push((now, who));
            }
            drop(consumer.commit_async());
        }
        consumer.close().await.unwrap();
    })
}

/// A record to each of six partitions every 4 ms.
async fn write(bootstrap: String, topic: String, stop: Arc<AtomicBool>) {
    let producer =
        Producer::builder().set("bootstrap.servers", bootstrap).set("linger.ms", "0").build().unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(4));
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        for partition in 0..6 {
            let record = ProducerRecord::to(topic.as_str()).partition(partition).value("x");
            drop(producer.send(record).await.unwrap());
        }
    }
    producer.flush().await.unwrap();
}
