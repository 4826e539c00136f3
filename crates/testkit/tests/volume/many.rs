//! One consumer of very many partitions, on very many brokers.

use std::{collections::BTreeMap, time::Duration};
use tontine::{Consumer, Producer, ProducerRecord, TopicPartition};
use tontine_broker::Broker;
use tontine_testkit::wait;

const LONG: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_partitions_of_a_thousand_topics_on_a_hundred_brokers_are_all_read() {
    const TOPICS: i32 = 1_000;
    const PARTITIONS: i32 = 10;
    const RECORDS: usize = (TOPICS * PARTITIONS) as usize;
    let name = |topic: i32| format!("topic-{topic:04}");
    let topics = (0..TOPICS).map(name);
    let broker = topics.fold(Broker::builder().nodes(100), |builder, topic| builder.topic(topic, PARTITIONS));
    let broker = broker.start().await.unwrap();
    let all = || (0..TOPICS).flat_map(move |topic| (0..PARTITIONS).map(move |p| (name(topic), p)));
    let producer = Producer::builder().set("bootstrap.servers", broker.bootstrap_servers()).build().unwrap();
    for (topic, partition) in all() {
        drop(producer.send(ProducerRecord::to(topic).partition(partition).value("v")).await.unwrap());
    }
    wait::within("everything is written", LONG, producer.flush()).await.unwrap().unwrap();
    producer.close().await.unwrap();

    let mut consumer = Consumer::builder()
        .set("bootstrap.servers", broker.bootstrap_servers())
        .set("group.id", "g")
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .build()
        .unwrap();
    consumer.subscribe((0..TOPICS).map(name), ()).await.unwrap();
    let mut seen = BTreeMap::<TopicPartition, usize>::new();
    let reading = async {
        while seen.len() < RECORDS {
            for record in &consumer.poll(Duration::from_millis(100)).await.unwrap() {
                *seen.entry(record.topic_partition().clone()).or_default() += 1;
            }
        }
        consumer.commit_sync().await.unwrap();
    };
    wait::within("everything is read", LONG, reading).await.unwrap();
    assert!(seen.values().all(|count| *count == 1));
    assert_eq!(broker.committed_offsets("g").len(), RECORDS);
    wait::within("close", LONG, consumer.close()).await.unwrap().unwrap();
}
