//! `produce`: write lines of standard input, or generated records.

use super::settings;
use crate::args::ProduceArgs;
use crate::output::progress;
use std::{collections::VecDeque, process::ExitCode};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};
use tontine::{Error, Producer, ProducerRecord};

/// How many records may be under way before the oldest is waited for.
const UNDER_WAY: usize = 20_000;

/// Writes until the input ends or the number is reached.
pub(crate) async fn run(args: ProduceArgs) -> Result<ExitCode, Error> {
    let producer = build(&args)?;
    let bar = progress(args.number, "records");
    let mut under_way = VecDeque::new();
    let mut lines = BufReader::new(tokio::io::stdin());
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

async fn next(
    args: &ProduceArgs,
    lines: &mut BufReader<Stdin>,
    written: u64,
) -> Result<Option<ProducerRecord>, Error> {
    if let Some(number) = args.number {
        let value = (written < number).then(|| generated(written, args.size as usize));
        return Ok(value.map(|value| ProducerRecord::to(args.topic.as_str()).value(value)));
    }
    let mut line = Vec::new();
    let unreadable = |error| Error::misuse(format!("could not read standard input: {error}"));
    if lines.read_until(b'\n', &mut line).await.map_err(unreadable)? == 0 {
        return Ok(None);
    }
    Ok(Some(of_line(&args.topic, without_end(line), args.key_separator.as_deref())))
}

/// The line without what ends it, as text tools see it.
fn without_end(mut line: Vec<u8>) -> Vec<u8> {
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
    }
    line
}

/// A line is bytes, whatever they mean: only the separator is looked for.
fn of_line(topic: &str, line: Vec<u8>, separator: Option<&str>) -> ProducerRecord {
    let record = ProducerRecord::to(topic);
    let separator = separator.map(str::as_bytes).filter(|separator| !separator.is_empty());
    let found = separator.and_then(|s| Some((line.windows(s.len()).position(|at| at == s)?, s.len())));
    match found {
        Some((at, length)) => record.key(line[..at].to_vec()).value(line[at + length..].to_vec()),
        None => record.value(line),
    }
}

/// A number, filled up to `size` bytes.
fn generated(number: u64, size: usize) -> Vec<u8> {
    let mut value = number.to_string().into_bytes();
    value.resize(size, b'.');
    value
}

#[cfg(test)]
mod tests {
    use super::{of_line, without_end};

    #[test]
    fn a_line_is_taken_as_the_bytes_it_is() {
        let line = without_end(b"k\xff:\xfe:v\r\n".to_vec());
        let record = of_line("t", line.clone(), Some(":"));
        assert_eq!(record.key.as_deref(), Some(&b"k\xff"[..]));
        assert_eq!(record.value.as_deref(), Some(&b"\xfe:v"[..]));
        assert_eq!(of_line("t", line, None).value.as_deref(), Some(&b"k\xff:\xfe:v"[..]));
        assert_eq!(without_end(b"no end".to_vec()), b"no end");
    }
}
