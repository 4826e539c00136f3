//! A broker, consumers with quick settings, and listeners that write down what they are told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tontine::{
    Assigned, Consumer, ListenerResult, Lost, RebalanceListener, Records, Revoked, TopicPartition,
};
use tontine_broker::Broker;
use tontine_testkit::plain::PlainClient;

/// Long enough for anything that ends at all.
pub const LONG: Duration = Duration::from_secs(40);
pub const TICK: Duration = Duration::from_millis(50);

pub async fn broker(topics: &[(&str, i32)]) -> Broker {
    let mut builder = Broker::builder();
    for (name, partitions) in topics {
        builder = builder.topic(*name, *partitions);
    }
    builder.start().await.unwrap()
}

pub fn plain(broker: &Broker) -> PlainClient {
    PlainClient::new(&broker.bootstrap_servers())
}

/// A consumer that reads from the beginning and notices everything quickly.
pub fn consumer(broker: &Broker, group: &str, settings: &[(&str, &str)]) -> Consumer {
    let mut builder = Consumer::builder()
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("group.id", group)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("session.timeout.ms", "6000")
        .set("heartbeat.interval.ms", "200")
        .set("retry.backoff.ms", "20");
    for (key, value) in settings {
        builder = builder.set(key, value);
    }
    builder.build().unwrap()
}

pub fn partition(topic: &str, number: i32) -> TopicPartition {
    TopicPartition::new(topic, number)
}

/// What a listener was told, in words: `A(t-0 t-1)`.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, kind: &str, partitions: &[TopicPartition]) {
        let names: Vec<_> = partitions.iter().map(ToString::to_string).collect();
        self.0.lock().unwrap().push(format!("{kind}({})", names.join(" ")));
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl RebalanceListener for Log {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.add("A", cx.partitions());
        Ok(())
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.add("R", cx.partitions());
        Ok(())
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.add("L", cx.partitions());
        Ok(())
    }
}

/// Polls until so many records have come.
pub async fn read(consumer: &mut Consumer, count: usize) -> Vec<(TopicPartition, i64)> {
    let mut seen = Vec::new();
    tokio::time::timeout(LONG, async {
        while seen.len() < count {
            seen.extend(places(&consumer.poll(TICK).await.unwrap()));
        }
    })
    .await
    .unwrap_or_else(|_| panic!("only {} of {count} records came: {consumer:?}", seen.len()));
    seen
}

pub fn places(records: &Records) -> Vec<(TopicPartition, i64)> {
    records.iter().map(|record| (record.topic_partition().clone(), record.offset())).collect()
}

/// Polls until the condition holds.
pub async fn poll_until(consumer: &mut Consumer, what: &str, condition: impl Fn(&Consumer) -> bool) {
    let polled = tokio::time::timeout(LONG, async {
        while !condition(consumer) {
            consumer.poll(TICK).await.unwrap();
        }
    });
    polled.await.unwrap_or_else(|_| panic!("{what} never came about: {consumer:?}"));
}
