//! Keeps writing to the demo's topic, to every partition in turn, and remembers what the broker acknowledged.

use super::audit::Produced;
use super::history::Partition;
use crate::failure::Failure;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use tontine::{Error, Producer, ProducerRecord, TopicPartition, producer::Delivery};

/// How often a few records are written; at 500 ticks a second no partition waits long for its next record.
const TICK: Duration = Duration::from_millis(2);

/// A running producer.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    partitions: Arc<AtomicI32>,
    task: JoinHandle<Result<Produced, Error>>,
}

impl Writer {
    /// Starts to write `rate` records a second to the partitions of `topic`.
    pub(crate) fn start(producer: Producer, topic: String, partitions: i32, rate: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let partitions = Arc::new(AtomicI32::new(partitions));
        let task = tokio::spawn(write(producer, topic, partitions.clone(), stop.clone(), rate));
        Self { stop, partitions, task }
    }

    /// From now on there are so many partitions.
    pub(crate) fn widen(&self, partitions: i32) {
        self.partitions.store(partitions, Ordering::Relaxed);
    }

    /// Stops writing; answers what was acknowledged.
    pub(crate) async fn finish(mut self) -> Result<Produced, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let failed = |error| Failure::Failed(format!("the producer's task failed: {error}"));
        Ok((&mut self.task).await.map_err(failed)??)
    }
}

impl Drop for Writer {
    /// Nobody waits for it any more: it must not go on writing to a topic that is about to be deleted.
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write(
    producer: Producer,
    topic: String,
    partitions: Arc<AtomicI32>,
    stop: Arc<AtomicBool>,
    rate: u32,
) -> Result<Produced, Error> {
    let mut produced = Produced::new();
    let mut waiting = VecDeque::new();
    let mut ticks = tokio::time::interval(TICK);
    let mut owed = 0.0;
    let mut number = 0u64;
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        owed += f64::from(rate) * TICK.as_secs_f64();
        while owed >= 1.0 {
            owed -= 1.0;
            let partition = (number % partitions.load(Ordering::Relaxed).max(1) as u64) as i32;
            let record = ProducerRecord::to(topic.as_str()).partition(partition).value(number.to_string());
            waiting.push_back(producer.send(record).await?);
            number += 1;
        }
        // The oldest are waited for only when many are under way; the others are done by then or soon.
        while waiting.len() > 10_000 {
            acknowledge(waiting.pop_front(), &mut produced).await?;
        }
    }
    producer.flush().await?;
    while !waiting.is_empty() {
        acknowledge(waiting.pop_front(), &mut produced).await?;
    }
    Ok(produced)
}

async fn acknowledge(sent: Option<Delivery>, produced: &mut Produced) -> Result<(), Error> {
    if let Some(sent) = sent {
        let metadata = sent.await?;
        let partition = Partition(TopicPartition::new(metadata.topic, metadata.partition));
        // The broker had this batch already and does not say where: the other records of the partition still count.
        produced.entry(partition).or_default().extend(metadata.offset);
    }
    Ok(())
}
