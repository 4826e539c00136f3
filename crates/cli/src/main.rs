//! The command line `tontine`: data on standard output, talk on standard error, exit code 0, 1 (failed) or 2 (typed wrong).

// They panic when nobody reads any more; `output` does not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod bench;
mod commands;
mod demo;
mod failure;
mod names;
mod output;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::{io::IsTerminal, process::ExitCode};

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_env_filter(filter())
        // Somebody who closed standard error does not want to hear of it there.
        .log_internal_errors(false)
        .init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&Failure::Failed(format!("could not start: {error}"))),
    };
    let outcome = runtime.block_on(run(cli.command));
    // Reading standard input cannot be interrupted; nobody waits for it at the end.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(failure) => failed(&failure),
    }
}

/// `RUST_LOG`, or else warnings: settings that do not go well together, and what an operator of a broker must see.
fn filter() -> tracing_subscriber::EnvFilter {
    let default = || tracing_subscriber::EnvFilter::new("warn");
    tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default())
}

fn failed(failure: &Failure) -> ExitCode {
    output::say(&format!("tontine: {}", failure.message()));
    failure.code()
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::DemoMember(args) => Ok(demo::application::run(args).await.map(|()| ExitCode::SUCCESS)?),
        Command::Broker(args) => commands::broker::run(args).await,
        Command::Topic(command) => Ok(commands::topic::run(command).await?),
        Command::Produce(args) => commands::produce::run(args).await,
        Command::Consume(args) => Ok(commands::consume::run(args).await?),
        Command::Group(command) => Ok(commands::group::run(command).await?),
        Command::Bench(command) => Ok(bench::run(command).await?),
    }
}
