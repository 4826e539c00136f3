//! `consume`: read records, in a group or alone, and write them to standard output.

use super::{
    interrupt::interrupted,
    settings::{self, Kind},
};
use crate::args::{ConsumeArgs, From, RecordFormat};
use crate::output::say;
use std::{
    collections::BTreeMap,
    io::{BufWriter, Write},
    process::ExitCode,
    time::Duration,
};
use tontine::{Admin, Consumer, Error, Record, Records, TopicPartition};

/// How long one poll waits; an interrupt ends it sooner.
const POLL: Duration = Duration::from_secs(1);

/// Reads until an interrupt, a number of records, or the end.
pub(crate) async fn run(args: ConsumeArgs) -> Result<ExitCode, Error> {
    let mut stop = std::pin::pin!(interrupted());
    let mut consumer = build(&args)?;
    let cluster = settings::admin(&args.connection)?;
    let mut ends = tokio::select! {
        () = &mut stop => return Ok(ExitCode::SUCCESS),
        ends = begin(&cluster, &mut consumer, &args) => ends?,
    };
    drop(cluster);
    let mut left = args.max_messages.unwrap_or(u64::MAX);
    let mut out = BufWriter::new(std::io::stdout().lock());
    while left > 0 && !ends.as_ref().is_some_and(BTreeMap::is_empty) {
        let records = tokio::select! {
            biased;
            () = &mut stop => break,
            polled = consumer.poll(POLL) => polled?,
        };
        let Ok(written) = write_all(&mut out, &records, args.format, &mut left) else { break };
        if args.group.is_some() && !written.is_empty() {
            commit(&mut consumer, written).await?;
        }
        if let Some(ends) = &mut ends {
            reached(&mut consumer, ends).await;
        }
    }
    consumer.close().await?;
    Ok(ExitCode::SUCCESS)
}

/// Writes records while there are any `left` to write; answers the offsets behind them. Fails when nobody reads any more:
/// then nobody knows what was read, and nothing of it is to be committed.
fn write_all(
    out: &mut impl Write,
    records: &Records,
    format: RecordFormat,
    left: &mut u64,
) -> std::io::Result<BTreeMap<TopicPartition, i64>> {
    let mut written = BTreeMap::new();
    for record in records {
        if *left == 0 {
            break;
        }
        *left -= 1;
        write(out, &record, format)?;
        written.insert(record.topic_partition().clone(), record.offset() + 1);
    }
    out.flush()?;
    Ok(written)
}

/// A commit that comes too late, because the group gave the partitions to somebody else meanwhile, ends nothing: the next
/// owner reads these records again.
async fn commit(consumer: &mut Consumer, written: BTreeMap<TopicPartition, i64>) -> Result<(), Error> {
    match consumer.commit_sync_offsets(written).await {
        Err(error @ (Error::Lost(_) | Error::RebalanceInProgress)) => {
            say(&format!("tontine: not committed: {error}"))
        }
        ended => ended?,
    }
    Ok(())
}

fn build(args: &ConsumeArgs) -> Result<Consumer, Error> {
    settings::say_what_has_no_effect(&args.connection, &[Kind::Consumer]);
    // A name that was typed wrong must not become a topic; -X can say otherwise.
    let mut builder = Consumer::builder().set("allow.auto.create.topics", "false");
    for (key, value) in settings::of(&args.connection, Kind::Consumer)? {
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

/// Joins the group, or takes every partition when there is none; answers where to stop, when that was asked for.
async fn begin(
    cluster: &Admin,
    consumer: &mut Consumer,
    args: &ConsumeArgs,
) -> Result<Option<BTreeMap<TopicPartition, i64>>, Error> {
    // A consumer waits long for a cluster to come back; one that was never there is named sooner.
    match cluster.describe_cluster().await {
        // Brokers that do not have this request are there all the same.
        Err(Error::Unsupported(_)) => {}
        answered => drop(answered?),
    }
    if args.group.is_some() {
        consumer.subscribe_topics(args.topic.clone()).await?;
    } else {
        let partitions = partitions(consumer, args).await?;
        consumer.assign(partitions)?;
    }
    if args.exit_at_end { ends(consumer, args).await.map(Some) } else { Ok(None) }
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
