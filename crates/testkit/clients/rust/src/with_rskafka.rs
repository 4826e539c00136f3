//! rskafka: a client without groups, which works on partitions.

use crate::rig::{LONG, Outcome, ensure, ensure_eq, restart, servers};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record, RecordAndOffset};
use std::collections::BTreeMap;

const TOPIC: &str = "rskafka";

pub async fn records_and_places() -> Outcome {
    let client = connect().await?;
    client.controller_client()?.create_topic(TOPIC, 2, 1, 5_000).await?;
    let topics = client.list_topics().await?;
    ensure(topics.iter().any(|t| t.name == TOPIC && t.partitions.len() == 2), || format!("{topics:?}"))?;
    let partition = open(&client).await?;
    let mut expected = Vec::new();
    for (number, codec) in
        [Compression::NoCompression, Compression::Gzip, Compression::Snappy].into_iter().enumerate()
    {
        let records: Vec<Record> = (0..50).map(|i| record(number * 50 + i)).collect();
        expected.extend(records.clone());
        let offsets = partition.produce(records, codec).await?;
        ensure_eq(offsets, (0..50).map(|i| (number * 50 + i) as i64).collect(), "the offsets")?;
    }
    ensure_eq(read(&partition, 150).await?, expected.clone(), "the records")?;

    restart("kill").await?;
    let client = connect().await?;
    let partition = open(&client).await?;
    ensure_eq(read(&partition, 150).await?, expected, "the records after a kill")?;
    ensure_eq(partition.get_offset(OffsetAt::Earliest).await?, 0, "the first")?;
    ensure_eq(partition.get_offset(OffsetAt::Latest).await?, 150, "the end")?;
    partition.delete_records(70, 5_000).await?;
    ensure_eq(partition.get_offset(OffsetAt::Earliest).await?, 70, "the first after deleting records")?;
    restart("graceful").await?;
    let client = connect().await?;
    ensure_eq(open(&client).await?.get_offset(OffsetAt::Earliest).await?, 70, "the first after a restart")?;
    client.controller_client()?.delete_topic(TOPIC, 5_000).await?;
    ensure(client.list_topics().await?.iter().all(|t| t.name != TOPIC), || {
        "a deleted topic is listed".to_owned()
    })
}

async fn connect() -> Outcome<Client> {
    Ok(tokio::time::timeout(LONG, ClientBuilder::new(vec![servers()]).build()).await??)
}

async fn open(client: &Client) -> Outcome<PartitionClient> {
    Ok(client.partition_client(TOPIC, 1, UnknownTopicHandling::Error).await?)
}

fn record(number: usize) -> Record {
    Record {
        key: number.is_multiple_of(2).then(|| number.to_string().into_bytes()),
        value: (!number.is_multiple_of(7)).then(|| format!("value {number}").repeat(10).into_bytes()),
        headers: BTreeMap::from([("a".to_owned(), b"1".to_vec())]),
        timestamp: chrono::DateTime::from_timestamp_millis(1_790_000_000_000 + number as i64)
            .unwrap_or_default(),
    }
}

async fn read(partition: &PartitionClient, count: usize) -> Outcome<Vec<Record>> {
    let mut read: Vec<RecordAndOffset> = Vec::new();
    while read.len() < count {
        let (records, _) = partition.fetch_records(read.len() as i64, 1..10_000, 1_000).await?;
        ensure(!records.is_empty(), || "records that are there are not handed out".to_owned())?;
        read.extend(records);
    }
    Ok(read.into_iter().map(|r| r.record).collect())
}
