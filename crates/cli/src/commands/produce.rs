//! `produce`: write lines of standard input, or generated records.

use super::settings;
use crate::args::ProduceArgs;
use crate::output::progress;
use std::{collections::VecDeque, process::ExitCode};
use tokio::io::{AsyncBufReadExt, BufReader};
use tontine::{Error, Producer, ProducerRecord};

/// How many records may be under way before the oldest is waited for.
const UNDER_WAY: usize = 20_000;

/// Writes until the input ends or the number is reached.
pub(crate) async fn run(args: ProduceArgs) -> Result<ExitCode, Error> {
    let producer = build(&args)?;
    let bar = progress(args.number, "records");
    let mut under_way = VecDeque::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut written = 0u64;
    while let Some(record) = next(&args, &mut lines, written).await? {
        under_way.push_back(producer.send(record).await?);
        written += 1;
        bar.inc(1);
        if under_way.len() > UNDER_WAY
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await?;
        }
    }
    producer.flush().await?;
    for sent in under_way {
        sent.await?;
    }
    bar.finish_and_clear();
    eprintln!("{written} records written to {}", args.topic);
    Ok(ExitCode::SUCCESS)
}

fn build(args: &ProduceArgs) -> Result<Producer, Error> {
    let mut builder = Producer::builder();
    for (key, value) in settings::of(&args.connection)? {
        builder = builder.set(&key, value);
    }
    builder.set("compression.type", &args.compression).set("acks", &args.acks).build()
}

type Lines = tokio::io::Lines<BufReader<tokio::io::Stdin>>;

async fn next(args: &ProduceArgs, lines: &mut Lines, written: u64) -> Result<Option<ProducerRecord>, Error> {
    let record = ProducerRecord::to(args.topic.as_str());
    if let Some(number) = args.number {
        return Ok((written < number).then(|| record.value(generated(written, args.size as usize))));
    }
    let unreadable = |error| Error::misuse(format!("could not read standard input: {error}"));
    let Some(line) = lines.next_line().await.map_err(unreadable)? else { return Ok(None) };
    let split = args.key_separator.as_deref().and_then(|separator| line.split_once(separator));
    Ok(Some(match split {
        Some((key, value)) => record.key(key.to_owned()).value(value.to_owned()),
        None => record.value(line),
    }))
}

/// A number, filled up to `size` bytes.
fn generated(number: u64, size: usize) -> Vec<u8> {
    let mut value = number.to_string().into_bytes();
    value.resize(size, b'.');
    value
}
