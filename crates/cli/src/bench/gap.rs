//! `bench gap`: what one member saw while its group rebalanced: callbacks with their times, and how long each partition
//! was silent at the longest.
//!
//! Times are milliseconds since 1970, so that the lines of several members can be laid side by side: a partition that
//! moved was silent from `last_ms` at its old owner to `first_ms` at its new one.

use super::{args::GapArgs, usage::tenths};
use crate::{commands::interrupt::interrupted, output::print};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, UNIX_EPOCH},
};
use tokio::time::{Instant, sleep};
use tontine::{Assigned, Error, ListenerResult, Lost, RebalanceListener, Records, Revoked, TopicPartition};

/// Reads for the time that was given, and prints the line.
pub(super) async fn run(args: GapArgs) -> Result<ExitCode, Error> {
    let mut stop = std::pin::pin!(interrupted());
    let mut over = std::pin::pin!(sleep(Duration::from_secs(args.seconds)));
    let events = Events::default();
    let mut consumer = super::member(&args.connection, &args.group, &args.protocol, "latest")?.build()?;
    consumer.subscribe([args.topic.as_str()], Listener(events.clone())).await?;
    let mut heard = Heard::default();
    loop {
        let records = tokio::select! {
            biased;
            () = &mut stop => break,
            () = &mut over => break,
            polled = consumer.poll(Duration::from_secs(1)) => polled?,
        };
        heard.take(&records);
        // The next owner goes on behind what was read here.
        drop(consumer.commit_async());
    }
    consumer.close().await?;
    let events = std::mem::take(&mut *events.0.lock().unwrap_or_else(PoisonError::into_inner));
    let line = json!({
        "peer": "tontine", "version": env!("CARGO_PKG_VERSION"), "protocol": args.protocol, "member": args.member,
        "events": events, "partitions": heard.lines(),
    });
    print(&format!("{line}\n"));
    Ok(ExitCode::SUCCESS)
}

/// What the callbacks said, in order.
#[derive(Clone, Debug, Default)]
struct Events(Arc<Mutex<Vec<Value>>>);

struct Listener(Events);

impl Listener {
    fn note(&self, what: &str, partitions: &[TopicPartition]) -> ListenerResult {
        let names: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        let event = json!({ "at_ms": unix_ms(), "what": what, "partitions": names });
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        Ok(())
    }
}

impl RebalanceListener for Listener {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.note("assigned", cx.partitions())
    }

    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        cx.commit_sync().await?;
        self.note("revoked", cx.partitions())
    }

    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.note("lost", cx.partitions())
    }
}

/// The system's wall clock: the only one that several processes share.
fn unix_ms() -> f64 {
    tenths(UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64() * 1e3)
}

/// When each partition was heard of.
#[derive(Debug, Default)]
struct Heard(BTreeMap<TopicPartition, One>);

#[derive(Debug)]
struct One {
    records: u64,
    first_ms: f64,
    last_ms: f64,
    last: Instant,
    longest: Duration,
    longest_from_ms: f64,
}

impl Heard {
    fn take(&mut self, records: &Records) {
        let (now, ms) = (Instant::now(), unix_ms());
        for part in records.partitions() {
            let one = self.0.entry(part.partition().clone()).or_insert_with(|| One {
                records: 0,
                first_ms: ms,
                last_ms: ms,
                last: now,
                longest: Duration::ZERO,
                longest_from_ms: ms,
            });
            one.heard(part.len() as u64, now, ms);
        }
    }

    fn lines(&self) -> Vec<Value> {
        let line = |(partition, one): (&TopicPartition, &One)| {
            json!({
                "partition": partition.to_string(),
                "records": one.records,
                "first_ms": one.first_ms,
                "last_ms": one.last_ms,
                "longest_silence_ms": tenths(one.longest.as_secs_f64() * 1e3),
                "silent_from_ms": one.longest_from_ms,
            })
        };
        self.0.iter().map(line).collect()
    }
}

impl One {
    fn heard(&mut self, records: u64, now: Instant, ms: f64) {
        let silence = now.saturating_duration_since(self.last);
        if silence > self.longest {
            (self.longest, self.longest_from_ms) = (silence, self.last_ms);
        }
        self.records += records;
        (self.last, self.last_ms) = (now, ms);
    }
}
