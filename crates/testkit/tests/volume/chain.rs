//! Records that go through a chain of three groups while connections are cut and brokers restart.
//!
//! Each stage reads a topic, writes every record to the next one, and commits when that is acknowledged. At the end nothing
//! is missing, everything is in its order, and nothing was handed out again that its group had committed before.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tontine::{Consumer, Error, OffsetAndMetadata, Producer, ProducerRecord, Records, TopicPartition};
use tontine_broker::Broker;
use tontine_testkit::{proxy::Proxy, wait};

const LONG: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(50);
const PARTITIONS: i32 = 4;
const TOPICS: [&str; 4] = ["first", "second", "third", "last"];

/// How many records go through; `CHAIN_RECORDS` says how many when there is more time.
fn how_many() -> usize {
    std::env::var("CHAIN_RECORDS")
        .map_or(4_000, |records| records.parse().expect("CHAIN_RECORDS is a number"))
}

/// What the groups have done, for the judgement at the end.
#[derive(Default)]
struct Record {
    /// The highest offset that each group knows to be committed.
    committed: BTreeMap<(usize, TopicPartition), i64>,
    /// What was handed out although it had been committed before.
    broken: Vec<String>,
    /// How many records were handed out more than once, and the places that were.
    handed_out: BTreeMap<(usize, TopicPartition), i64>,
    again: usize,
}

struct Chain {
    broker: Broker,
    proxy: Proxy,
    settings: Vec<(&'static str, &'static str)>,
    record: Mutex<Record>,
    records: usize,
    /// How many records the last stage has committed.
    through: AtomicUsize,
}

impl Chain {
    fn client(&self) -> Vec<(&'static str, String)> {
        vec![
            ("bootstrap.servers", self.proxy.bootstrap_servers().to_owned()),
            ("retry.backoff.ms", "10".into()),
            ("retry.backoff.max.ms", "100".into()),
            ("reconnect.backoff.ms", "5".into()),
            ("reconnect.backoff.max.ms", "50".into()),
        ]
    }

    fn producer(&self) -> Producer {
        let builder = Producer::builder();
        self.client()
            .into_iter()
            .fold(builder, |builder, (key, value)| builder.set(key, value))
            .build()
            .unwrap()
    }

    fn consumer(&self, stage: usize) -> Consumer {
        let mut builder = Consumer::builder()
            .set("group.id", format!("group-{stage}"))
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("max.poll.records", "50");
        for (key, value) in self.client() {
            builder = builder.set(key, value);
        }
        for (key, value) in &self.settings {
            builder = builder.set(key, *value);
        }
        builder.build().unwrap()
    }

    /// A member of one stage's group, until it is aborted.
    async fn member(self: Arc<Self>, stage: usize) {
        let (mut consumer, producer) = (self.consumer(stage), self.producer());
        consumer.subscribe([TOPICS[stage]], ()).await.unwrap();
        loop {
            match consumer.poll(TICK).await {
                Ok(records) if records.is_empty() => {}
                Ok(records) => self.handle(stage, &mut consumer, &producer, records).await,
                Err(error) => assert!(is_bearable(&error), "a poll of stage {stage}: {error}"),
            }
        }
    }

    async fn handle(&self, stage: usize, consumer: &mut Consumer, producer: &Producer, records: Records) {
        self.note(stage, &records);
        let mut deliveries = Vec::new();
        for record in &records {
            let next = ProducerRecord::to(TOPICS[stage + 1]).partition(record.partition());
            let next = next.value(record.value_bytes().unwrap());
            deliveries.push(producer.send(next).await.unwrap());
        }
        for delivery in deliveries {
            delivery.await.unwrap_or_else(|error| panic!("stage {stage} cannot write: {error}"));
        }
        let offsets = records.next_offsets();
        match consumer.commit_sync_offsets(offsets.clone()).await {
            Ok(()) => self.committed(stage, offsets),
            Err(error) => assert!(is_bearable(&error), "a commit of stage {stage}: {error}"),
        }
    }

    /// Whoever is handed a partition starts where its group has committed, or later.
    fn note(&self, stage: usize, records: &Records) {
        let mut told = self.record.lock().unwrap();
        for record in records {
            let place = (stage, record.topic_partition().clone());
            let committed = told.committed.get(&place).copied().unwrap_or(0);
            if record.offset() < committed {
                let what = format!(
                    "stage {stage}: {place:?} at {} though {committed} is committed",
                    record.offset()
                );
                told.broken.push(what);
            }
            let next = told.handed_out.entry(place).or_insert(0);
            let is_new = record.offset() >= *next;
            *next = (*next).max(record.offset() + 1);
            told.again += usize::from(!is_new);
        }
    }

    fn committed(&self, stage: usize, offsets: BTreeMap<TopicPartition, OffsetAndMetadata>) {
        let mut told = self.record.lock().unwrap();
        for (partition, at) in offsets {
            let before = told.committed.entry((stage, partition)).or_insert(0);
            if stage == 2 {
                self.through.fetch_add((at.offset - *before).max(0) as usize, Ordering::Relaxed);
            }
            *before = at.offset.max(*before);
        }
    }

    /// Writes everything, a part at a time: the last of it goes in after the last cut.
    async fn feed(self: Arc<Self>) {
        let producer = self.producer();
        let record = |n: u32| {
            let record = ProducerRecord::to(TOPICS[0]).partition(n as i32 % PARTITIONS);
            record.value(n.to_be_bytes().to_vec())
        };
        for part in (0..self.records as u32).collect::<Vec<_>>().chunks(100) {
            let mut deliveries = Vec::new();
            for n in part {
                deliveries.push(producer.send(record(*n)).await.unwrap());
            }
            for delivery in deliveries {
                delivery.await.unwrap_or_else(|error| panic!("cannot write: {error}"));
            }
        }
    }

    /// Cuts connections as the records come through, and restarts a node at every third cut.
    async fn disturb(&self) {
        let between_cuts = (self.records / 100).max(400);
        let mut round = 0;
        while round * between_cuts < self.records {
            round += 1;
            let enough = round * between_cuts;
            let what = format!("{enough} records come through");
            let come =
                async || (self.through.load(Ordering::Relaxed) >= enough.min(self.records)).then_some(());
            wait::until(&what, LONG, come).await.unwrap();
            self.proxy.cut();
            if round % 3 == 0 {
                let node = (round / 3) as i32 % 3 + 1;
                self.broker.stop_node(node).await.unwrap();
                self.proxy.cut();
                self.broker.start_node(node).await.unwrap();
                self.broker.elect_preferred_leaders();
            }
        }
    }

    /// What arrived in the last topic, by partition.
    async fn arrived(&self) -> BTreeMap<i32, Vec<u32>> {
        let mut consumer = Consumer::builder()
            .set("bootstrap.servers", self.broker.bootstrap_servers())
            .set("auto.offset.reset", "earliest")
            .build()
            .unwrap();
        let last = TOPICS[3];
        let ends: BTreeMap<i32, i64> =
            (0..PARTITIONS).map(|p| (p, self.broker.log_end_offset(last, p).unwrap())).collect();
        consumer.assign((0..PARTITIONS).map(|partition| (last, partition))).unwrap();
        let mut arrived = BTreeMap::<i32, Vec<u32>>::new();
        let reading = async {
            while arrived.values().map(Vec::len).sum::<usize>() < ends.values().sum::<i64>() as usize {
                for record in &consumer.poll(TICK).await.unwrap() {
                    let number = record.value().unwrap().try_into().map(u32::from_be_bytes).unwrap();
                    arrived.entry(record.partition()).or_default().push(number);
                }
            }
        };
        wait::within("the last topic is read", LONG, reading).await.unwrap();
        arrived
    }
}

/// What a network that fails, or a group that changes, may cost: it is tried again.
fn is_bearable(error: &Error) -> bool {
    error.is_retriable() || matches!(error, Error::Lost(_))
}

/// Puts every number back in its place, however often it came: first arrivals have to be in their order.
fn nothing_is_missing_or_out_of_order(arrived: &BTreeMap<i32, Vec<u32>>, records: usize) {
    for (partition, numbers) in arrived {
        let mut next = *partition as u32;
        for number in numbers {
            assert!(*number <= next, "partition {partition}: {number} came before {next}");
            if *number == next {
                next += PARTITIONS as u32;
            }
        }
        assert_eq!(
            next as usize,
            records + *partition as usize,
            "the end of partition {partition} is missing"
        );
    }
}

async fn run(settings: &[(&'static str, &'static str)]) {
    let topics =
        TOPICS.iter().fold(Broker::builder().nodes(3), |builder, topic| builder.topic(*topic, PARTITIONS));
    let broker = topics.start().await.unwrap();
    let proxy = Proxy::start(&broker.bootstrap_servers()).unwrap();
    let chain = Arc::new(Chain {
        broker,
        proxy,
        settings: settings.to_vec(),
        record: Mutex::default(),
        records: how_many(),
        through: AtomicUsize::new(0),
    });
    let mut members = tokio::task::JoinSet::new();
    members.spawn(chain.clone().feed());
    for stage in 0..3 {
        // The second one joins while the first one reads.
        members.spawn(chain.clone().member(stage));
        members.spawn(chain.clone().member(stage));
    }
    let failed = async {
        while let Some(ended) = members.join_next().await {
            ended.unwrap();
        }
    };
    tokio::select! {
        () = chain.disturb() => {}
        () = failed => panic!("members run until they are aborted"),
    }
    nothing_is_missing_or_out_of_order(&chain.arrived().await, chain.records);
    let told = chain.record.lock().unwrap();
    assert!(told.broken.is_empty(), "{:#?}", told.broken);
    // At least once: what was handed out and not committed when something failed, and no more than that.
    assert!(told.again < 3 * chain.records, "{} records were handed out again", told.again);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_of_eager_groups_loses_nothing_and_keeps_the_order_while_the_network_fails() {
    run(&[("partition.assignment.strategy", "range")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_of_cooperative_groups_loses_nothing_and_keeps_the_order_while_the_network_fails() {
    run(&[("partition.assignment.strategy", "cooperative-sticky")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_of_groups_of_the_consumer_protocol_loses_nothing_and_keeps_the_order_while_the_network_fails()
 {
    run(&[("group.protocol", "consumer")]).await;
}
