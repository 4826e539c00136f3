//! The records that are written: a steady stream, of which it is known what was acknowledged.

use crate::{Outcome, tally::Tally};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use tontine::{Producer, ProducerRecord};

/// Between two records, each for the next partition.
const PACE: Duration = Duration::from_millis(4);

/// Partitions and offsets.
pub type Places = BTreeSet<(i32, i64)>;

/// A stream of records that goes on until it is ended.
pub struct Source {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Outcome<Places>>,
}

pub fn start(servers: &str, topic: &str, partitions: i32, tally: Arc<Tally>) -> Outcome<Source> {
    let producer = Producer::builder().bootstrap_servers(servers).set("linger.ms", "0").build()?;
    let stop = Arc::new(AtomicBool::new(false));
    let task = tokio::spawn(write(producer, topic.to_owned(), partitions, stop.clone(), tally));
    Ok(Source { stop, task })
}

impl Source {
    /// Writes no more; answers what was acknowledged.
    pub async fn end(self) -> Outcome<Places> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.map_err(|e| format!("the writer died: {e}"))?
    }
}

async fn write(
    producer: Producer,
    topic: String,
    partitions: i32,
    stop: Arc<AtomicBool>,
    tally: Arc<Tally>,
) -> Outcome<Places> {
    let acknowledged = Arc::new(Mutex::new(Places::new()));
    let mut ticks = tokio::time::interval(PACE);
    for n in 0_i64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        ticks.tick().await;
        let partition = (n % i64::from(partitions)) as i32;
        let record = ProducerRecord::to(topic.as_str()).partition(partition).value(n.to_string());
        let delivery = producer.send(record).await?;
        let (places, tally) = (acknowledged.clone(), tally.clone());
        tokio::spawn(async move {
            match delivery.await {
                Ok(stored) => {
                    let places = &mut *places.lock().unwrap_or_else(PoisonError::into_inner);
                    places.extend(stored.offset.map(|offset| (stored.partition, offset)));
                }
                Err(error) => tally.note(format!("a record was not written: {error}")),
            }
        });
    }
    producer.close().await?;
    let places = acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(places)
}
