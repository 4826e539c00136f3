//! One test: a broker, a program, and how both ended.

use crate::broker::{Broker, Ending};
use crate::control;
use libtest_mimic::{Completion, Failed, Trial};
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpListener;
use tontine_testkit::foreign::{Missing, Program};
use tontine_testkit::process::Guarded;
use tontine_testkit::suite::in_ci;
use tontine_testkit::{Failure, ensure, ensure_eq, failure, wait};

/// Far more than any program takes: what it waits for has deadlines of its own.
const DEADLINE: Duration = Duration::from_secs(240);
/// How much of a failed program's words are shown.
const TAIL: usize = 60;

/// The program of a client with these arguments; the last of them names the test.
pub fn trial(
    client: &'static str,
    find: fn() -> Result<Program, Missing>,
    arguments: &[&'static str],
) -> Trial {
    let arguments = arguments.to_vec();
    let name = format!("{client}::{}", arguments.last().copied().unwrap_or_default());
    Trial::ignorable_test(name, move || start(find, &arguments))
}

fn start(find: fn() -> Result<Program, Missing>, arguments: &[&str]) -> Result<Completion, Failed> {
    let program = match find() {
        Ok(program) => program,
        Err(reason) if in_ci() => return Err(reason.into()),
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| failure!("no runtime: {e}"))?.block_on(run(program, arguments))?;
    Ok(Completion::Completed)
}

async fn run(program: Program, arguments: &[&str]) -> Result<(), Failure> {
    let mut broker = Broker::start().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|e| failure!("no control port: {e}"))?;
    let control = listener.local_addr().map_err(|e| failure!("no control port: {e}"))?.to_string();
    let log = broker.folder().join("client.log");
    let open = || File::options().create(true).append(true).open(&log);
    let (out, err) =
        open().and_then(|out| Ok((out, open()?))).map_err(|e| failure!("{}: {e}", log.display()))?;
    let mut words = program.arguments.clone();
    words.extend(arguments.iter().map(ToString::to_string));
    let mut environment = program.environment.clone();
    environment.extend([("TONTINE_BOOTSTRAP", broker.address()), ("TONTINE_CONTROL", control)]);
    environment.push(("TONTINE_FOLDER", broker.folder().display().to_string()));
    let (out, err) = (Stdio::from(out), Stdio::from(err));
    let client = Guarded::spawn(program.name, &program.program, &words, &environment, out, err)?;
    let ended = tokio::select! {
        ended = wait::until("the end of the client's program", DEADLINE, async || client.exited()) => ended,
        failure = control::serve(&listener, &mut broker) => Err(failure),
    };
    let said = || tail(&std::fs::read_to_string(&log).unwrap_or_default());
    let status = ended.map_err(|e| failure!("{e}\n{}\nthe broker said: {}", said(), broker.said()))?;
    ensure!(status.success(), "{}\nthe broker said: {}", said(), broker.said());
    broker.end(Ending::Graceful).await?;
    ensure_eq!(broker.said().contains("panicked"), false, "a panic: {}", broker.said());
    Ok(())
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}
