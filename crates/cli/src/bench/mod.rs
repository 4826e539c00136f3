//! `bench`: what a record costs, and how long partitions are silent in a rebalance, as JSON lines that can be compared
//! with those of other clients. `docs/BENCHMARKS.md` tells how.

pub(crate) mod args;
mod consume;
mod gap;
mod load;
mod usage;

use crate::commands::settings::{self, Kind};
use args::BenchCommand;
use std::process::ExitCode;
use tontine::{Consumer, Error, config::ConsumerBuilder};

/// Runs one of the benchmarks.
pub(crate) async fn run(command: BenchCommand) -> Result<ExitCode, Error> {
    match command {
        BenchCommand::Load(args) => load::run(args).await,
        BenchCommand::Consume(args) => consume::run(args).await,
        BenchCommand::Gap(args) => gap::run(args).await,
    }
}

/// A member that commits nothing of its own accord, as all clients do that are compared. What is given with -X counts.
fn member(
    connection: &crate::args::Connection,
    group: &str,
    protocol: &str,
    reset: &str,
) -> Result<ConsumerBuilder, Error> {
    let mut builder = Consumer::builder()
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", reset)
        .set("allow.auto.create.topics", "false");
    if protocol == "classic" {
        builder = builder.set("partition.assignment.strategy", "cooperative-sticky");
    }
    settings::say_what_has_no_effect(connection, &[Kind::Consumer]);
    for (key, value) in settings::of(connection, Kind::Consumer)? {
        builder = builder.set(&key, value);
    }
    Ok(builder.set("group.id", group).set("group.protocol", protocol))
}
