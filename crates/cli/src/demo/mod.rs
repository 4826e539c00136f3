//! The demo: an embedded broker or a real cluster, a producer, and members that join, leave, are killed and come back.
//!
//! What is shown and judged comes from the application's side: see `history`.

pub(crate) mod application;
mod audit;
mod board;
mod cluster;
mod history;
mod member;
mod ownership;
mod picture;
mod producer;
mod report;
mod script;
mod timeline;

use crate::args::{DemoArgs, Format};
use crate::commands::{
    interrupt::interrupted,
    settings::{self, Kind},
};
use crate::failure::Failure;
use crate::output::{print, say};
use audit::{Produced, Verdict};
use board::{Board, Clock};
use cluster::Cluster;
use producer::Writer;
use script::Stage;
use std::{io::IsTerminal, process::ExitCode, sync::Arc, time::Duration};
use tokio::sync::Notify;
use tontine::{Consumer, Error, Producer};

/// How the play ended.
enum Ended {
    Played(Result<Produced, Failure>),
    Interrupted,
    /// Standard output is closed, as after `| head`.
    Unheard,
}

/// Runs the demo; the exit code says whether every promise was kept.
pub(crate) async fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
    let stop = ended_from_outside();
    settings::say_what_has_no_effect(&args.connection, &[Kind::Consumer, Kind::Producer, Kind::Admin]);
    check(&args)?;
    let mut cluster = Cluster::open(&args).await?;
    let unheard = Arc::new(Notify::new());
    let board = board(&args, unheard.clone());
    let settings = member_settings(&args, &cluster.bootstrap, &cluster.topic)?;
    let mut stage = Stage::new(board, cluster.topic.clone(), settings, args.partitions as usize);
    let ended = tokio::select! {
        biased;
        () = stop => Ended::Interrupted,
        () = unheard.notified() => Ended::Unheard,
        produced = play(&args, &mut cluster, &mut stage) => Ended::Played(produced),
    };
    let cleaned = clean(&mut stage, cluster, matches!(ended, Ended::Interrupted)).await;
    let produced = match ended {
        Ended::Played(produced) => produced?,
        Ended::Interrupted => {
            cleaned?;
            return Err(Failure::Failed("interrupted before the end: no verdict".to_owned()));
        }
        Ended::Unheard => return cleaned.map(|()| ExitCode::SUCCESS),
    };
    cleaned?;
    let events = stage.board.events();
    let verdict = audit::judge(&produced, &events, &stage.steps);
    print(&match args.format {
        Format::Json => format!("{}\n", report::json(&args, &verdict)),
        Format::Text => report::text(&verdict, &events, stage.board.elapsed(), colour()),
    });
    Ok(exit_code(&verdict))
}

/// A board that writes its timeline to standard output, or to standard error when that is for the one object.
fn board(args: &DemoArgs, unheard: Arc<Notify>) -> Board {
    let quiet = args.format == Format::Json;
    Board::new(Clock::start(), move |line| {
        if quiet {
            say(line);
        } else if !print(&format!("{line}\n")) {
            unheard.notify_one();
        }
    })
}

/// Ctrl-C, a polite kill, or a terminal that is gone.
fn ended_from_outside() -> impl Future<Output = ()> {
    let stop = interrupted();
    #[cfg(unix)]
    let hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok();
    async move {
        #[cfg(unix)]
        if let Some(mut hangup) = hangup {
            tokio::select! {
                () = stop => {}
                _ = hangup.recv() => {}
            }
            return;
        }
        stop.await;
    }
}

/// However the play ended: everybody leaves, and what is the demo's own is deleted. Who interrupts this once more goes
/// at once, and is told what stays.
async fn clean(stage: &mut Stage, cluster: Cluster, is_interrupted: bool) -> Result<(), Failure> {
    let left = cluster.what_is_left();
    let first = interrupted();
    let impatient = async {
        if !is_interrupted {
            first.await;
        }
        interrupted().await;
    };
    tokio::select! {
        biased;
        () = impatient => Err(Failure::Failed(left)),
        cleaned = async {
            stage.end().await;
            cluster.close().await
        } => cleaned,
    }
}

fn exit_code(verdict: &Verdict) -> ExitCode {
    if verdict.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Members are processes, and what they refuse is only seen from afar: so a consumer like theirs is tried first. It sends
/// nothing.
fn check(args: &DemoArgs) -> Result<(), Error> {
    let mut builder = Consumer::builder();
    for (key, value) in member_settings(args, "127.0.0.1:9092", "demo")? {
        builder = builder.set(&key, value);
    }
    builder.build().map(drop)
}

/// The settings of every member: the demo's, then what was given, then what the demo cannot do without.
fn member_settings(args: &DemoArgs, servers: &str, group: &str) -> Result<Vec<(String, String)>, Error> {
    let session = if args.connection.names_a_cluster()? { "6000" } else { "2000" };
    // New partitions are noticed with the next refresh of the metadata; five minutes would be long for a demo.
    let mut defaults = vec![("metadata.max.age.ms", "500")];
    if args.protocol != "consumer" {
        defaults.push(("session.timeout.ms", session));
        defaults.push(("heartbeat.interval.ms", "300"));
        defaults.push(("partition.assignment.strategy", "cooperative-sticky"));
    }
    let mut own = vec![
        ("bootstrap.servers", servers),
        ("group.id", group),
        ("group.protocol", &args.protocol),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", "earliest"),
        // A topic that is deleted at the end must not come back.
        ("allow.auto.create.topics", "false"),
    ];
    own.extend(args.assignor.iter().map(|assignor| ("partition.assignment.strategy", assignor.as_str())));
    // Members with one name would put each other out.
    let mut given = settings::given(&args.connection, Kind::Consumer)?;
    given.retain(|(key, _)| key != "group.instance.id");
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    Ok(defaults.into_iter().map(pair).chain(given).chain(own.into_iter().map(pair)).collect())
}

fn producer(args: &DemoArgs, servers: &str) -> Result<Producer, Error> {
    let mut builder = Producer::builder().set("linger.ms", "0");
    for (key, value) in settings::given(&args.connection, Kind::Producer)? {
        builder = if key == "transactional.id" { builder } else { builder.set(&key, value) };
    }
    let own = [("bootstrap.servers", servers), ("acks", "all"), ("allow.auto.create.topics", "false")];
    own.into_iter().fold(builder, |builder, (key, value)| builder.set(key, value)).build()
}

/// The play itself: what is done to the group, with pauses in which nothing is done.
async fn play(args: &DemoArgs, cluster: &mut Cluster, stage: &mut Stage) -> Result<Produced, Failure> {
    cluster.create_topic(args.partitions as i32).await?;
    let pause = Duration::from_secs_f64(f64::from(args.seconds) / 9.0);
    let producer = producer(args, &cluster.bootstrap)?;
    let writer = Writer::start(producer, cluster.topic.clone(), args.partitions as i32, args.rate);
    let started = perform(args, cluster, stage, &writer, pause).await;
    let produced = writer.finish().await?;
    started?;
    drain(stage, &produced).await;
    stage.end().await;
    Ok(produced)
}

async fn perform(
    args: &DemoArgs,
    cluster: &Cluster,
    stage: &mut Stage,
    writer: &Writer,
    pause: Duration,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("the demo cannot go on: {error}"));
    stage.join(1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.join(args.members as usize - 1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.leave().await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.join(1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.kill().await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.join(1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    let wider = args.partitions as i32 + (args.partitions as i32 / 2).max(1);
    let began = stage.board.elapsed();
    stage.board.begin(&format!("partitions are added: {} to {wider}", args.partitions));
    cluster.admin.create_partitions(&cluster.topic, wider).await?;
    writer.widen(wider);
    stage.partitions = wider as usize;
    stage
        .settle(format!("partitions are added: {} to {wider}", args.partitions), began)
        .await
        .map_err(failed)?;
    tokio::time::sleep(pause).await;
    Ok(())
}

/// Waits until everything that was written has been handed out, or nothing comes any more.
async fn drain(stage: &Stage, produced: &Produced) {
    let limit = stage.board.elapsed() + Duration::from_secs(20);
    let done = || {
        let delivered = stage.board.delivered_up_to();
        let reached = |(p, offsets): (&history::Partition, &std::collections::BTreeSet<i64>)| {
            offsets.last().is_none_or(|last| delivered.get(p).is_some_and(|next| next > last))
        };
        produced.iter().all(reached)
    };
    while !done() && stage.board.elapsed() < limit {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
