//! The producer: everything arrives once and in order, whoever the broker is.

use std::collections::BTreeMap;
use std::time::Duration;
use tontine::admin::{Admin, OffsetSpec};
use tontine::{Error, Producer, ProducerRecord, TopicPartition};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq, failure};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "producer", one: [
        offsets_of_one_partition_come_in_the_order_of_sending,
        every_codec_is_understood,
        a_record_that_is_too_large_is_refused_before_it_is_sent,
        without_acknowledgement_records_arrive_all_the_same,
    ]);
    bodies!(suite, "producer", three: [a_node_that_is_taken_away_costs_no_record_and_doubles_none]);
}

fn producer(cluster: &Cluster, settings: &[(&str, &str)]) -> Result<Producer, Error> {
    let builder = Producer::builder().bootstrap_servers(cluster.bootstrap_servers());
    settings.iter().fold(builder, |b, (key, value)| b.set(key, value)).build()
}

async fn offsets_of_one_partition_come_in_the_order_of_sending(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("sent", 3).await?;
    let producer = producer(&cluster, &[])?;
    let mut deliveries = Vec::new();
    for i in 0..2_000 {
        let record = ProducerRecord::to(topic.as_str()).key(format!("key {}", i % 10)).value(vec![b'x'; 100]);
        deliveries.push((i % 10, producer.send(record).await?));
    }
    let mut last: BTreeMap<i32, (i32, i64)> = BTreeMap::new();
    for (key, delivery) in deliveries {
        let stored = delivery.await?;
        let offset = stored.offset.ok_or_else(|| failure!("no offset"))?;
        let (partition, before) =
            last.insert(key, (stored.partition, offset)).unwrap_or((stored.partition, -1));
        ensure_eq!(stored.partition, partition, "the partition of key {key}");
        ensure!(offset > before, "{offset} after {before}");
    }
    Ok(())
}

async fn every_codec_is_understood(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("packed", 1).await?;
    let mut sent = 0;
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let producer = producer(&cluster, &[("compression.type", codec)])?;
        for _ in 0..50 {
            let record =
                ProducerRecord::to(topic.as_str()).value(vec![b'y'; 500]).header("codec", codec.as_bytes());
            drop(producer.send(record).await?);
            sent += 1;
        }
        producer.close().await?;
        let end = end(&cluster, &topic).await?;
        ensure_eq!(end, sent, "records after {codec}");
    }
    Ok(())
}

async fn end(cluster: &Cluster, topic: &str) -> Result<i64, Error> {
    let admin = Admin::builder().bootstrap_servers(cluster.bootstrap_servers()).build()?;
    let found = admin.list_offsets([(TopicPartition::new(topic, 0), OffsetSpec::Latest)]).await?;
    found.into_values().map(|f| Ok(f?.offset.unwrap_or(-1))).sum()
}

async fn a_record_that_is_too_large_is_refused_before_it_is_sent(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("large", 1).await?;
    let producer = producer(&cluster, &[])?;
    let error = match producer.send(ProducerRecord::to(topic.as_str()).value(vec![0; 2 << 20])).await {
        Err(error) => error.to_string(),
        Ok(_) => return Err("it was taken".into()),
    };
    ensure!(error.contains("max.request.size"), "{error}");
    Ok(())
}

async fn without_acknowledgement_records_arrive_all_the_same(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("unheard", 1).await?;
    let producer = producer(&cluster, &[("acks", "0")])?;
    for _ in 0..100 {
        drop(producer.send(ProducerRecord::to(topic.as_str()).value("v")).await?);
    }
    producer.flush().await?;
    let arrived = async || (end(&cluster, &topic).await.ok()? == 100).then_some(());
    Ok(tontine_testkit::wait::until("all have arrived", Duration::from_secs(20), arrived).await?)
}

async fn a_node_that_is_taken_away_costs_no_record_and_doubles_none(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("kept", 3).await?;
    let producer = producer(&cluster, &[("linger.ms", "0")])?;
    let victim = *cluster.node_ids().first().ok_or_else(|| failure!("no nodes"))?;
    let mut deliveries = Vec::new();
    for i in 0..600 {
        if i == 200 {
            cluster.kill_node(victim).await?;
        }
        if i == 400 {
            cluster.start_node(victim).await?;
        }
        let record = ProducerRecord::to(topic.as_str()).partition(i % 3).value("v");
        deliveries.push(producer.send(record).await?);
        if i % 10 == 0 {
            producer.flush().await?;
        }
    }
    let mut offsets: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for delivery in deliveries {
        let stored = delivery.await?;
        offsets.entry(stored.partition).or_default().extend(stored.offset);
    }
    for (partition, offsets) in offsets {
        ensure!(
            offsets.windows(2).all(|w| w[0] < w[1]),
            "partition {partition} is out of order: {offsets:?}"
        );
        ensure_eq!(offsets.last(), Some(&199), "the last offset of partition {partition}: each record once");
    }
    Ok(())
}
