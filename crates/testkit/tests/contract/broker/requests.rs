//! Requests about one topic, as short as a test needs them.

use bytes::Bytes;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tontine_testkit::cluster::Cluster;
use tontine_testkit::raw::RawConnection;
use tontine_testkit::{Failure, failure};
use tontine_wire::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData};
use tontine_wire::api::init_producer_id::InitProducerIdRequest;
use tontine_wire::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use tontine_wire::api::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use tontine_wire::records::{BatchBuilder, Compression, RecordBatch};

/// A topic of one's own and a connection to the only node.
pub struct Bench {
    pub conn: RawConnection,
    pub topic: String,
}

impl Bench {
    pub async fn new(cluster: &Cluster, partitions: i32) -> Result<Self, Failure> {
        let topic = cluster.topic("records", partitions).await?;
        let mut bench = Self { conn: connect(cluster).await?, topic };
        for partition in 0..partitions {
            bench.until_led(partition).await?;
        }
        Ok(bench)
    }

    /// Apache Kafka answers for a new topic before each of its partitions is led.
    async fn until_led(&mut self, partition: i32) -> Result<(), Failure> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.fetch(partition, 0).await?.error_code.is_err() {
            if Instant::now() > deadline {
                return Err(failure!("nobody leads {}-{partition}", self.topic));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// A new idempotent producer.
    pub async fn producer_id(&mut self) -> Result<(i64, i16), Failure> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let request = InitProducerIdRequest { transaction_timeout_ms: 60_000, ..Default::default() };
            let answer = self.conn.call(4, request).await?;
            if answer.error_code.is_ok() {
                return Ok((answer.producer_id, answer.producer_epoch));
            }
            if !answer.error_code.is_retriable() || Instant::now() > deadline {
                return Err(failure!("no producer id: {}", answer.error_code));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn produce(
        &mut self,
        partition: i32,
        records: Bytes,
    ) -> Result<PartitionProduceResponse, Failure> {
        self.produce_with(-1, partition, records).await
    }

    pub async fn produce_with(
        &mut self,
        acks: i16,
        partition: i32,
        records: Bytes,
    ) -> Result<PartitionProduceResponse, Failure> {
        let partition_data = vec![PartitionProduceData { index: partition, records: Some(records) }];
        let topic = TopicProduceData { name: self.topic.clone(), partition_data, ..Default::default() };
        let request =
            ProduceRequest { acks, timeout_ms: 5000, topic_data: vec![topic], ..Default::default() };
        let mut answer = self.conn.call(9, request).await?;
        Ok(answer.responses.remove(0).partition_responses.remove(0))
    }

    /// A fetch of these partitions from these offsets that does not wait.
    pub fn fetch_request(&self, partitions: &[(i32, i64)]) -> FetchRequest {
        let partitions: Vec<_> = partitions
            .iter()
            .map(|(partition, fetch_offset)| FetchPartition {
                partition: *partition,
                fetch_offset: *fetch_offset,
                partition_max_bytes: 1 << 20,
                ..Default::default()
            })
            .collect();
        let topic = FetchTopic { topic: self.topic.clone(), partitions, ..Default::default() };
        let topics = if topic.partitions.is_empty() { Vec::new() } else { vec![topic] };
        FetchRequest { min_bytes: 1, max_bytes: 50 << 20, topics, ..Default::default() }
    }

    pub async fn fetch(&mut self, partition: i32, offset: i64) -> Result<PartitionData, Failure> {
        let request = self.fetch_request(&[(partition, offset)]);
        Ok(self.conn.call(12, request).await?.responses.remove(0).partitions.remove(0))
    }

    pub async fn offset_at(
        &mut self,
        version: i16,
        timestamp: i64,
    ) -> Result<ListOffsetsPartitionResponse, Failure> {
        let partitions = vec![ListOffsetsPartition { timestamp, ..Default::default() }];
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic { name: self.topic.clone(), partitions }],
            ..Default::default()
        };
        Ok(self.conn.call(version, request).await?.topics.remove(0).partitions.remove(0))
    }
}

pub async fn connect(cluster: &Cluster) -> Result<RawConnection, Failure> {
    let servers = cluster.bootstrap_servers();
    RawConnection::connect(servers.split(',').next().unwrap_or(&servers), "contract").await
}

/// A batch of records with timestamps that count up from `timestamp`.
pub fn batch_at(timestamp: i64, values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    for (at, value) in (0..).zip(values) {
        // Small records always fit.
        let _ = builder.append(timestamp + at, Some(b"k"), Some(value.as_bytes()), []);
    }
    builder.build(0)
}

pub fn batch(values: &[&str]) -> Bytes {
    batch_at(1_600_000_000_000, values)
}

/// The offsets of the records of an answer.
pub fn offsets(data: &PartitionData) -> Vec<i64> {
    let mut bytes = data.records.clone().unwrap_or_default();
    let mut found = Vec::new();
    while let Ok(Some(batch)) = RecordBatch::parse(&mut bytes) {
        let Ok(records) = batch.records() else { break };
        found.extend(records.iter().filter_map(Result::ok).map(|record| record.offset()));
    }
    found
}

/// The partitions of an answer with the number of their records.
pub fn shape(answer: &FetchResponse) -> Vec<(i32, usize)> {
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|data| (data.partition_index, offsets(data).len())).collect()
}
