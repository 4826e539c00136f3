//! `bench load`: fills a topic with records that are the same every time, so that runs can be compared.

use super::args::LoadArgs;
use crate::{
    commands::{
        interrupt::interrupted,
        settings::{self, Kind},
    },
    output::{progress, say},
};
use std::{collections::VecDeque, process::ExitCode};
use tontine::{Error, Producer, ProducerRecord, admin::NewTopic};

/// How many records may be under way before the oldest is waited for.
const UNDER_WAY: usize = 50_000;
/// So many records go to one partition before the next has its turn.
const TURN: u64 = 128;

/// Creates the topic when it is missing, and fills it.
pub(super) async fn run(args: LoadArgs) -> Result<ExitCode, Error> {
    let mut stop = std::pin::pin!(interrupted());
    settings::say_what_has_no_effect(&args.connection, &[Kind::Producer, Kind::Admin]);
    let producer = producer(&args)?;
    let partitions = partitions(&args).await?;
    let bar = progress(Some(args.records), "records");
    let mut values = Values::new(args.size as usize);
    let mut under_way = VecDeque::new();
    let mut written = 0u64;
    let topic: std::sync::Arc<str> = args.topic.as_str().into();
    for number in 0..args.records {
        let partition = i32::try_from(number / TURN % partitions).unwrap_or(0);
        let record = ProducerRecord::to(topic.clone()).partition(partition).value(values.next());
        let sent = tokio::select! {
            biased;
            () = &mut stop => break,
            sent = producer.send(record) => sent?,
        };
        under_way.push_back(sent);
        written += 1;
        if under_way.len() > UNDER_WAY {
            for sent in under_way.drain(..UNDER_WAY / 2) {
                sent.await?;
                bar.inc(1);
            }
        }
    }
    producer.flush().await?;
    for sent in under_way {
        sent.await?;
    }
    bar.finish_and_clear();
    say(&format!("{written} records of {} bytes written to {}", args.size, args.topic));
    Ok(if written == args.records { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn producer(args: &LoadArgs) -> Result<Producer, Error> {
    let mut builder = Producer::builder();
    for (key, value) in settings::of(&args.connection, Kind::Producer)? {
        builder = builder.set(&key, value);
    }
    builder.set("compression.type", &args.compression).build()
}

/// How many partitions the topic has, after it was created if need be.
async fn partitions(args: &LoadArgs) -> Result<u64, Error> {
    let admin = settings::admin(&args.connection)?;
    let known = admin.list_topics().await?.into_iter().find(|topic| topic.name == args.topic);
    if let Some(known) = known {
        return Ok(u64::try_from(known.partitions).unwrap_or(1).max(1));
    }
    admin.create_topic(NewTopic::new(&args.topic, args.partitions as i32)).await?;
    Ok(args.partitions.into())
}

/// Values that compress about as well as text does: words in an order that looks random but never changes.
struct Values {
    size: usize,
    state: u64,
}

const WORDS: [&str; 32] = [
    "order",
    "paid",
    "customer",
    "8f14e45f",
    "shipped",
    "2026-11-30",
    "amount",
    "EUR",
    "cancelled",
    "c9f0f895",
    "warehouse",
    "north",
    "invoice",
    "retry",
    "true",
    "false",
    "null",
    "45c48cce",
    "apples",
    "pending",
    "{\"id\":",
    "\"name\":",
    "},",
    "[",
    "12.50",
    "0.07",
    "d3d94468",
    "address",
    "street",
    "courier",
    "6512bd43",
    "returned",
];

impl Values {
    fn new(size: usize) -> Self {
        Self { size, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// xorshift64*: good enough to choose words.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn next(&mut self) -> Vec<u8> {
        let mut value = Vec::with_capacity(self.size + 16);
        while value.len() < self.size {
            let random = self.random();
            let word = WORDS.get(random as usize % WORDS.len()).copied().unwrap_or_default();
            value.extend_from_slice(word.as_bytes());
            value.push(b"0123456789abcdef"[(random >> 8) as usize % 16]);
        }
        value.truncate(self.size);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::Values;

    #[test]
    fn values_have_their_size_and_are_the_same_every_time() {
        let (mut one, mut other) = (Values::new(100), Values::new(100));
        let (first, second) = (one.next(), one.next());
        assert_eq!((first.len(), second.len()), (100, 100));
        assert_ne!(first, second);
        assert_eq!((first, second), (other.next(), other.next()));
        assert!(Values::new(0).next().is_empty());
    }
}
