//! `bench consume`: reads a number of records and says what each of them cost.
//!
//! Two windows: from the subscription to the last record, in which joining counts, and from the first records to the
//! last. CPU is what the system charges the process for, on all threads and in the kernel.

use super::{
    args::ConsumeArgs,
    usage::{Usage, max_rss_kb, tenths},
};
use crate::{
    commands::interrupt::interrupted,
    output::{print, say},
};
use serde_json::{Value, json};
use std::{process::ExitCode, time::Duration};
use tontine::{Consumer, Error, Records};

/// Reads, and prints the line.
pub(super) async fn run(args: ConsumeArgs) -> Result<ExitCode, Error> {
    let mut stop = std::pin::pin!(interrupted());
    let built = Usage::now();
    let mut consumer = super::member(&args.connection, &args.group, &args.protocol, "earliest")?.build()?;
    let subscribed = Usage::now();
    consumer.subscribe_topics([args.topic.as_str()]).await?;
    let mut seen = Seen::default();
    let read = async {
        seen.take(&next(&mut consumer, &args, &seen).await?);
        let (first, already) = (Usage::now(), seen.records);
        while seen.records < args.records {
            let records = next(&mut consumer, &args, &seen).await?;
            seen.take(&records);
        }
        Ok::<_, Error>(Run { built, subscribed, first, already, last: Usage::now() })
    };
    let run = tokio::select! {
        biased;
        () = &mut stop => None,
        run = read => Some(run?),
    };
    consumer.close().await?;
    let Some(run) = run else {
        say(&format!("interrupted after {} of {} records", seen.records, args.records));
        return Ok(ExitCode::FAILURE);
    };
    print(&format!("{}\n", run.line(&args, &seen)));
    Ok(ExitCode::SUCCESS)
}

async fn next(consumer: &mut Consumer, args: &ConsumeArgs, seen: &Seen) -> Result<Records, Error> {
    let patience = Duration::from_secs(args.patience);
    let records = consumer.poll(patience).await?;
    if records.is_empty() {
        let what = format!("reading {} records of {}", args.records, args.topic);
        let why = Some(format!("no more came after {}", seen.records).into());
        return Err(Error::Timeout { what, after: patience, why });
    }
    Ok(records)
}

/// What was handed out.
#[derive(Debug, Default)]
struct Seen {
    records: u64,
    bytes: u64,
}

impl Seen {
    /// Looks at every record, as an application would.
    fn take(&mut self, records: &Records) {
        for record in records {
            self.records += 1;
            self.bytes += record.key().map_or(0, <[u8]>::len) as u64;
            self.bytes += record.value().map_or(0, <[u8]>::len) as u64;
        }
    }
}

/// The points of a run.
#[derive(Debug)]
struct Run {
    built: Usage,
    subscribed: Usage,
    first: Usage,
    /// How many records the first poll had brought.
    already: u64,
    last: Usage,
}

impl Run {
    fn line(&self, args: &ConsumeArgs, seen: &Seen) -> Value {
        let whole = self.subscribed.until(&self.last);
        let flow = self.first.until(&self.last);
        let flowed = seen.records - self.already;
        json!({
            "peer": "tontine",
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": args.protocol,
            "mode": args.mode,
            "records": seen.records,
            "bytes": seen.bytes,
            "first_record_ms": tenths(self.built.until(&self.first).wall.as_secs_f64() * 1e3),
            "wall_s": flow.wall.as_secs_f64(),
            "cpu_s": flow.cpu.as_secs_f64(),
            "cpu_ns_per_record": flow.cpu_ns_per(flowed),
            "records_per_s": flow.per_second(flowed),
            "subscribe_wall_s": whole.wall.as_secs_f64(),
            "subscribe_cpu_s": whole.cpu.as_secs_f64(),
            "subscribe_cpu_ns_per_record": whole.cpu_ns_per(seen.records),
            "subscribe_records_per_s": whole.per_second(seen.records),
            "max_rss_kb": max_rss_kb(),
        })
    }
}
