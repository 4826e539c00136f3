//! `consume`: read records, in a group or alone, and write them to standard output.

use super::{broker::interrupted, settings};
use crate::args::{ConsumeArgs, From, RecordFormat};
use std::{
    collections::BTreeMap,
    io::{BufWriter, Write},
    process::ExitCode,
    time::Duration,
};
use tontine::{Consumer, Error, Record, TopicPartition};

/// How long one poll waits; an interrupt ends it sooner.
const POLL: Duration = Duration::from_secs(1);

/// Reads until an interrupt, a number of records, or the end.
pub(crate) async fn run(args: ConsumeArgs) -> Result<ExitCode, Error> {
    let mut consumer = build(&args)?;
    begin(&mut consumer, &args).await?;
    let mut left = args.max_messages;
    let mut ends = if args.exit_at_end { Some(ends(&mut consumer, &args).await?) } else { None };
    let mut stop = std::pin::pin!(interrupted());
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut open = true;
    while open && left != Some(0) && !ends.as_ref().is_some_and(BTreeMap::is_empty) {
        let records = tokio::select! {
            biased;
            () = &mut stop => break,
            polled = consumer.poll(POLL) => polled?,
        };
        let mut handled = BTreeMap::new();
        for record in &records {
            if left == Some(0) {
                break;
            }
            left = left.map(|n| n - 1);
            open &= write(&mut out, &record, args.format).is_ok();
            handled.insert(record.topic_partition().clone(), record.offset() + 1);
        }
        open &= out.flush().is_ok();
        if args.group.is_some() && !handled.is_empty() {
            consumer.commit_sync_offsets(handled).await?;
        }
        if let Some(ends) = &mut ends {
            reached(&mut consumer, ends).await;
        }
    }
    consumer.close().await?;
    Ok(ExitCode::SUCCESS)
}

fn build(args: &ConsumeArgs) -> Result<Consumer, Error> {
    let mut builder = Consumer::builder();
    for (key, value) in settings::of(&args.connection)? {
        builder = builder.set(&key, value);
    }
    // What was written is committed by hand, after it was written.
    builder = builder.set("enable.auto.commit", "false");
    builder =
        builder.set("auto.offset.reset", if args.from == From::Earliest { "earliest" } else { "latest" });
    if let Some(group) = &args.group {
        builder = builder.set("group.id", group);
    }
    if let Some(protocol) = &args.protocol {
        builder = builder.set("group.protocol", protocol);
    }
    if let Some(assignor) = &args.assignor {
        builder = builder.set("partition.assignment.strategy", assignor);
    }
    builder.build()
}

/// Joins the group, or takes every partition when there is none.
async fn begin(consumer: &mut Consumer, args: &ConsumeArgs) -> Result<(), Error> {
    if args.group.is_some() {
        return consumer.subscribe_topics(args.topic.clone()).await;
    }
    let partitions = partitions(consumer, args).await?;
    consumer.assign(partitions)
}

async fn partitions(consumer: &mut Consumer, args: &ConsumeArgs) -> Result<Vec<TopicPartition>, Error> {
    let mut all = Vec::new();
    for topic in &args.topic {
        let numbers = consumer.partitions_for(topic).await?;
        all.extend(numbers.into_iter().map(|n| TopicPartition::new(topic.as_str(), n)));
    }
    Ok(all)
}

/// Where the partitions end now, those that have nothing left out.
async fn ends(consumer: &mut Consumer, args: &ConsumeArgs) -> Result<BTreeMap<TopicPartition, i64>, Error> {
    let partitions = partitions(consumer, args).await?;
    let begins = consumer.beginning_offsets(&partitions).await?;
    let mut ends = consumer.end_offsets(&partitions).await?;
    ends.retain(|partition, end| begins.get(partition).is_none_or(|begin| begin < end));
    Ok(ends)
}

/// Strikes out the partitions that have been read up to where they ended. In a group the others may be somebody else's:
/// what the group has committed counts as well.
async fn reached(consumer: &mut Consumer, ends: &mut BTreeMap<TopicPartition, i64>) {
    let mine = consumer.assignment();
    for partition in ends.keys().cloned().collect::<Vec<_>>() {
        let position = if mine.contains(&partition) {
            consumer.position(&partition).await.ok()
        } else {
            let committed = consumer.committed(std::slice::from_ref(&partition)).await.ok();
            committed.and_then(|c| c.get(&partition)?.as_ref().map(|o| o.offset))
        };
        if position.zip(ends.get(&partition)).is_some_and(|(position, end)| position >= *end) {
            ends.remove(&partition);
        }
    }
}

fn write(out: &mut impl Write, record: &Record<'_>, format: RecordFormat) -> std::io::Result<()> {
    let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8_lossy(b).into_owned());
    match format {
        RecordFormat::Value => {
            out.write_all(record.value().unwrap_or_default())?;
            out.write_all(b"\n")
        }
        RecordFormat::Text => {
            let (key, value) = (text(record.key()), text(record.value()));
            let or_dash = |t: Option<String>| t.unwrap_or_else(|| "-".to_owned());
            let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
            writeln!(out, "{topic}\t{partition}\t{offset}\t{}\t{}", or_dash(key), or_dash(value))
        }
        RecordFormat::Json => {
            let headers = record.headers().into_iter();
            let headers: Vec<_> = headers.map(|h| serde_json::json!([h.key(), text(h.value())])).collect();
            let object = serde_json::json!({
                "topic": record.topic(), "partition": record.partition(), "offset": record.offset(),
                "timestamp": record.timestamp(), "key": text(record.key()), "value": text(record.value()),
                "headers": headers,
            });
            writeln!(out, "{object}")
        }
    }
}
