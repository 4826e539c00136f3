//! The command line `tontine`: data on standard output, talk on standard error, exit code 0, 1 (failed) or 2 (typed wrong).

mod args;
mod bench;
mod commands;
mod demo;
mod output;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;
use tontine::Error;

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter()).init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("could not start: {error}"), ExitCode::FAILURE),
    };
    let outcome = runtime.block_on(run(cli.command));
    // Reading standard input cannot be interrupted; nobody waits for it at the end.
    runtime.shutdown_background();
    match outcome {
        Ok(code) => code,
        Err(error @ (Error::Configuration(_) | Error::Misuse(_))) => {
            failed(&error.to_string(), ExitCode::from(2))
        }
        Err(error) => failed(&error.to_string(), ExitCode::FAILURE),
    }
}

/// `RUST_LOG`, or else what an operator of a broker must see.
fn filter() -> tracing_subscriber::EnvFilter {
    let default = || tracing_subscriber::EnvFilter::new("error,tontine_broker=warn");
    tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default())
}

fn failed(message: &str, code: ExitCode) -> ExitCode {
    eprintln!("tontine: {message}");
    code
}

async fn run(command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::DemoMember(args) => demo::application::run(args).await.map(|()| ExitCode::SUCCESS),
        Command::Broker(args) => commands::broker::run(args).await,
        Command::Topic(command) => commands::topic::run(command).await,
        Command::Produce(args) => commands::produce::run(args).await,
        Command::Consume(args) => commands::consume::run(args).await,
        Command::Group(command) => commands::group::run(command).await,
        Command::Bench(command) => bench::run(command).await,
    }
}
