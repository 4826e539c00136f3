//! `produce`: write lines of standard input, or generated records.

use super::{
    interrupt::interrupted,
    settings::{self, Kind},
};
use crate::args::ProduceArgs;
use crate::failure::Failure;
use crate::output::{progress, say};
use std::{collections::VecDeque, process::ExitCode};
use tokio::io::{AsyncBufReadExt, BufReader, Stdin};
use tontine::{Error, Producer, ProducerRecord, producer::Delivery};

/// How many records may be under way before the oldest is waited for.
const UNDER_WAY: usize = 20_000;

/// Writes until the input ends, the number is reached, or an interrupt; what was read by then is written all the same. A
/// second interrupt does not wait for that.
pub(crate) async fn run(args: ProduceArgs) -> Result<ExitCode, Failure> {
    let mut stop = std::pin::pin!(interrupted());
    let producer = build(&args)?;
    let bar = progress(args.number, "records");
    let mut written = Written::default();
    tokio::select! {
        biased;
        () = &mut stop => {}
        ended = write(&args, &producer, &mut written, &bar) => ended?,
    }
    let again = interrupted();
    let finished = tokio::select! {
        biased;
        () = again => false,
        ended = written.finish(&producer) => { ended?; true }
    };
    bar.finish_and_clear();
    let Written { count, under_way } = written;
    if !finished {
        let unknown = under_way.len();
        return Err(Failure::Failed(format!("{count} records read, {unknown} of them perhaps not written")));
    }
    say(&format!("{count} records written to {}", args.topic));
    Ok(ExitCode::SUCCESS)
}

/// What was handed to the producer.
#[derive(Default)]
struct Written {
    count: u64,
    under_way: VecDeque<Delivery>,
}

impl Written {
    /// Waits until everything is acknowledged.
    async fn finish(&mut self, producer: &Producer) -> Result<(), Error> {
        producer.flush().await?;
        while let Some(oldest) = self.under_way.front_mut() {
            oldest.await?;
            self.under_way.pop_front();
        }
        Ok(())
    }
}

async fn write(
    args: &ProduceArgs,
    producer: &Producer,
    written: &mut Written,
    bar: &indicatif::ProgressBar,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(tokio::io::stdin());
    while let Some(record) = next(args, &mut lines, written.count).await? {
        written.under_way.push_back(producer.send(record).await?);
        written.count += 1;
        bar.inc(1);
        if written.under_way.len() > UNDER_WAY
            && let Some(oldest) = written.under_way.front_mut()
        {
            oldest.await?;
            written.under_way.pop_front();
        }
        // Generated records never make the loop wait: an interrupt is to be seen all the same.
        tokio::task::consume_budget().await;
    }
    Ok(())
}

fn build(args: &ProduceArgs) -> Result<Producer, Error> {
    settings::say_what_has_no_effect(&args.connection, &[Kind::Producer]);
    let mut builder = Producer::builder();
    for (key, value) in settings::of(&args.connection, Kind::Producer)? {
        builder = builder.set(&key, value);
    }
    builder.set("compression.type", &args.compression).set("acks", &args.acks).build()
}

async fn next(
    args: &ProduceArgs,
    lines: &mut BufReader<Stdin>,
    written: u64,
) -> Result<Option<ProducerRecord>, Failure> {
    if let Some(number) = args.number {
        let value = (written < number).then(|| generated(written, args.size as usize));
        return Ok(value.map(|value| ProducerRecord::to(args.topic.as_str()).value(value)));
    }
    let mut line = Vec::new();
    let unreadable = |error| Failure::Failed(format!("could not read standard input: {error}"));
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
