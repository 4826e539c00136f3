//! The demo: an embedded broker or a real cluster, a producer, and members that join, leave, are killed and come back.
//!
//! What is shown and judged comes from the application's side: see `history`.

pub(crate) mod application;
mod audit;
mod board;
mod history;
mod member;
mod ownership;
mod picture;
mod producer;
mod report;
mod script;
mod timeline;

use crate::args::{DemoArgs, Format};
use audit::{Produced, Verdict};
use board::{Board, Clock};
use producer::Writer;
use script::Stage;
use std::{io::IsTerminal, process::ExitCode, time::Duration};
use tontine::{Admin, Consumer, Error, Producer, admin::NewTopic};
use tontine_broker::Broker;

/// Runs the demo; the exit code says whether every promise was kept.
pub(crate) async fn run(args: DemoArgs) -> Result<ExitCode, Error> {
    check(&args)?;
    let cluster = Cluster::open(&args).await?;
    let outcome = play(&args, &cluster).await;
    let cleaned = cluster.close().await;
    let (stage, produced) = outcome?;
    cleaned?;
    let events = stage.board.events();
    let verdict = audit::judge(&produced, &events, &stage.steps);
    match args.format {
        Format::Json => println!("{}", report::json(&args, &verdict)),
        Format::Text => print!("{}", report::text(&verdict, &events, stage.board.elapsed(), colour())),
    }
    Ok(exit_code(&verdict))
}

fn exit_code(verdict: &Verdict) -> ExitCode {
    if verdict.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The cluster that the demo runs on, and the topic that is its own.
struct Cluster {
    embedded: Option<Broker>,
    bootstrap: String,
    topic: String,
    admin: Admin,
}

impl Cluster {
    async fn open(args: &DemoArgs) -> Result<Self, Error> {
        let embedded = match &args.bootstrap_server {
            Some(_) => None,
            None => Some(embedded().await?),
        };
        let own = embedded.as_ref().map(|broker| broker.bootstrap_servers());
        let bootstrap = args.bootstrap_server.clone().or(own).unwrap_or_default();
        let admin = Admin::builder().set("bootstrap.servers", &bootstrap).build()?;
        // On a real cluster a name that no earlier run has used: topics and groups outlive their deletion for a moment.
        let topic = match embedded {
            Some(_) => "orders".to_owned(),
            None => format!("tontine-demo-{:x}", Clock::start().unix_us() / 1000),
        };
        admin.create_topic(NewTopic::new(&topic, args.partitions as i32)).await?;
        Ok(Self { embedded, bootstrap, topic, admin })
    }

    /// Deletes what is the demo's own.
    async fn close(self) -> Result<(), Error> {
        if self.embedded.is_none() {
            self.admin.delete_topic(&self.topic).await?;
            self.admin.delete_group(&self.topic).await?;
        }
        if let Some(broker) = self.embedded {
            broker.stop().await;
        }
        Ok(())
    }
}

/// A broker whose members may have short sessions, so that a killed one is missed soon.
async fn embedded() -> Result<Broker, Error> {
    let settings = [
        ("group.min.session.timeout.ms", "1000"),
        ("group.consumer.min.session.timeout.ms", "1000"),
        ("group.consumer.session.timeout.ms", "2000"),
        ("group.consumer.min.heartbeat.interval.ms", "100"),
        ("group.consumer.heartbeat.interval.ms", "300"),
    ];
    let builder = Broker::builder();
    let builder = settings.into_iter().fold(builder, |builder, (key, value)| builder.config(key, value));
    builder
        .start()
        .await
        .map_err(|error| Error::misuse(format!("could not start the embedded broker: {error}")))
}

/// Members are processes, and what they refuse is only seen from afar: so a consumer like theirs is tried first. It sends
/// nothing.
fn check(args: &DemoArgs) -> Result<(), Error> {
    let servers = args.bootstrap_server.as_deref().unwrap_or("127.0.0.1:9092");
    let mut builder = Consumer::builder();
    for (key, value) in settings(args, servers, "demo") {
        builder = builder.set(&key, value);
    }
    builder.build().map(drop)
}

/// The settings of every member.
fn settings(args: &DemoArgs, servers: &str, group: &str) -> Vec<(String, String)> {
    let session = if args.bootstrap_server.is_none() { "2000" } else { "6000" };
    let mut settings = vec![
        ("bootstrap.servers", servers.to_owned()),
        ("group.id", group.to_owned()),
        ("group.protocol", args.protocol.clone()),
        ("enable.auto.commit", "false".to_owned()),
        ("auto.offset.reset", "earliest".to_owned()),
        // New partitions are noticed with the next refresh of the metadata; five minutes would be long for a demo.
        ("metadata.max.age.ms", "500".to_owned()),
    ];
    if args.protocol == "classic" {
        settings.push(("partition.assignment.strategy", args.assignor.clone()));
        settings.push(("session.timeout.ms", session.to_owned()));
        settings.push(("heartbeat.interval.ms", "300".to_owned()));
    }
    settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The play itself: what is done to the group, with pauses in which nothing is done.
async fn play(args: &DemoArgs, cluster: &Cluster) -> Result<(Stage, Produced), Error> {
    let quiet = args.format == Format::Json;
    let board = Board::new(Clock::start(), move |event| {
        if let Some(line) = timeline::line(event) {
            if quiet { eprintln!("{line}") } else { println!("{line}") }
        }
    });
    let pause = Duration::from_secs_f64(f64::from(args.seconds) / 9.0);
    let producer =
        Producer::builder().set("bootstrap.servers", &cluster.bootstrap).set("linger.ms", "0").build()?;
    let writer = Writer::start(producer, cluster.topic.clone(), args.partitions as i32, args.rate);
    let settings = settings(args, &cluster.bootstrap, &cluster.topic);
    let mut stage = Stage::new(board, cluster.topic.clone(), settings, args.partitions as usize);
    let started = perform(args, cluster, &mut stage, &writer, pause).await;
    let produced = writer.finish().await?;
    started?;
    drain(&stage, &produced).await;
    stage.end().await;
    Ok((stage, produced))
}

async fn perform(
    args: &DemoArgs,
    cluster: &Cluster,
    stage: &mut Stage,
    writer: &Writer,
    pause: Duration,
) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::misuse(format!("could not start a member: {error}"));
    stage.join(1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.join(args.members as usize - 1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.leave().await;
    tokio::time::sleep(pause).await;
    stage.join(1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    stage.kill().await;
    tokio::time::sleep(pause).await;
    stage.join(1).await.map_err(failed)?;
    tokio::time::sleep(pause).await;
    let wider = args.partitions as i32 + (args.partitions as i32 / 2).max(1);
    let began = stage.board.elapsed();
    cluster.admin.create_partitions(&cluster.topic, wider).await?;
    writer.widen(wider);
    stage.partitions = wider as usize;
    stage.settle(format!("partitions are added: {} to {wider}", args.partitions), began).await;
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
