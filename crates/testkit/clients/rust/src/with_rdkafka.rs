//! rdkafka: librdkafka as Rust programs use it, in the version that its crate builds from source.

use crate::rig::{LONG, Outcome, ensure_eq, restart, servers};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::{ClientConfig, FromClientConfig};
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::topic_partition_list::Offset;
use rdkafka::types::RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure};
use std::collections::BTreeSet;

const PARTITIONS: i32 = 3;

fn made<T: FromClientConfig>(more: &[(&str, &str)]) -> Outcome<T> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers()).set("reconnect.backoff.max.ms", "200");
    // Where there is one broker it must not be forgotten while it is down.
    config.set("metadata.recovery.strategy", "none");
    for (key, value) in more {
        config.set(*key, *value);
    }
    Ok(config.create()?)
}

fn reader(group: &str, more: &[(&str, &str)]) -> Outcome<StreamConsumer> {
    let base = [("group.id", group), ("auto.offset.reset", "earliest"), ("enable.auto.commit", "false")];
    made(&[&base, more].concat())
}

async fn topic(name: &str) -> Outcome {
    let admin: AdminClient<DefaultClientContext> = made(&[])?;
    let new = NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1));
    for created in admin.create_topics(&[new], &AdminOptions::new()).await? {
        created.map_err(|(name, code)| format!("creating {name}: {code}"))?;
    }
    Ok(())
}

async fn produce(producer: &FutureProducer, topic: &str, numbers: std::ops::Range<i32>) -> Outcome {
    for number in numbers {
        let value = number.to_string();
        let record = FutureRecord::<(), _>::to(topic).partition(number % PARTITIONS).payload(&value);
        producer.send(record, LONG).await.map_err(|(error, _)| error)?;
    }
    Ok(())
}

/// Reads until so many different values have come, and commits all of them.
async fn read(consumer: &StreamConsumer, count: usize) -> Outcome<BTreeSet<i32>> {
    let mut values = BTreeSet::new();
    while values.len() < count {
        match tokio::time::timeout(LONG, consumer.recv()).await? {
            Ok(message) => {
                values.insert(std::str::from_utf8(message.payload().unwrap_or_default())?.parse()?);
            }
            // It says so while the broker is away, and goes on by itself.
            Err(KafkaError::MessageConsumption(AllBrokersDown | BrokerTransportFailure)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    consumer.commit_consumer_state(CommitMode::Sync)?;
    Ok(values)
}

/// With each protocol: reads, the broker is restarted, and who comes next begins where the last one ended.
pub async fn group() -> Outcome {
    topic("numbers").await?;
    let producer: FutureProducer = made(&[("linger.ms", "0")])?;
    let protocols: [&[(&str, &str)]; 3] = [
        &[("partition.assignment.strategy", "range")],
        &[("partition.assignment.strategy", "cooperative-sticky")],
        &[("group.protocol", "consumer")],
    ];
    let mut total = 0;
    for (number, protocol) in protocols.into_iter().enumerate() {
        let group = format!("group-{number}");
        produce(&producer, "numbers", total..total + 60).await?;
        total += 60;
        let consumer = reader(&group, protocol)?;
        consumer.subscribe(&["numbers"])?;
        ensure_eq(read(&consumer, total as usize).await?, (0..total).collect(), "what is read")?;
        restart(if number == 0 { "graceful" } else { "kill" }).await?;
        produce(&producer, "numbers", total..total + 30).await?;
        ensure_eq(read(&consumer, 30).await?, (total..total + 30).collect(), "what is read after a restart")?;
        total += 30;
        drop(consumer);
        produce(&producer, "numbers", total..total + 30).await?;
        let next = reader(&group, protocol)?;
        next.subscribe(&["numbers"])?;
        ensure_eq(read(&next, 30).await?, (total..total + 30).collect(), "what comes next")?;
        total += 30;
    }
    Ok(())
}

/// One transaction is committed, one aborted, over a restart; offsets go with them.
pub async fn transactions() -> Outcome {
    topic("source").await?;
    topic("target").await?;
    produce(&made(&[])?, "source", 0..30).await?;
    let consumer = reader("copier", &[])?;
    consumer.subscribe(&["source"])?;
    let values = read(&consumer, 30).await?;
    let producer: FutureProducer = made(&[("transactional.id", "copier")])?;
    producer.init_transactions(LONG)?;
    for commit in [false, true] {
        producer.begin_transaction()?;
        produce(&producer, "target", 0..values.len() as i32).await?;
        restart(if commit { "kill" } else { "graceful" }).await?;
        let group = consumer.group_metadata().ok_or("no group")?;
        producer.send_offsets_to_transaction(&consumer.position()?, &group, LONG)?;
        if commit { producer.commit_transaction(LONG)? } else { producer.abort_transaction(LONG)? }
    }
    let committed = consumer.committed(LONG)?;
    let offsets: Vec<Offset> = committed.elements().iter().map(|e| e.offset()).collect();
    ensure_eq(offsets, vec![Offset::Offset(10); PARTITIONS as usize], "the offsets")?;
    let last = reader("after", &[("isolation.level", "read_committed")])?;
    last.subscribe(&["target"])?;
    let mut read = Vec::new();
    while read.len() < 30 {
        let message = tokio::time::timeout(LONG, last.recv()).await??;
        read.push(std::str::from_utf8(message.payload().unwrap_or_default())?.parse::<i32>()?);
    }
    read.sort_unstable();
    ensure_eq(read, (0..30).collect(), "each record once")
}
