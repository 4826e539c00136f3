//! Chaos on the real thing: a group of processes on three nodes, to which everything happens that happens to processes and
//! networks, and the count of what came of it.
//!
//!     cargo test -p tontine-cli --test chaos -- --seconds 600
//!     cargo test -p tontine-cli --test chaos -- --seconds 60 --broker embedded --protocol consumer --seed 7
//!
//! Six members of ours, each a process behind a proxy of its own, and two Java ones on Apache Kafka. Members are killed,
//! stopped for longer than a session and continued; their connections are cut and stalled; nodes are killed and come back.
//! Then everything is healed, and this must hold: every acknowledged record was delivered, nothing committed went
//! backwards, no two members had a partition at a time unless one of them had lost it without knowing (the audit logs).
//! It is no part of the default run.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod arguments;
mod member;
mod random;
mod source;
mod tally;
mod trouble;

use arguments::Arguments;
use source::Places;
use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};
use tally::Tally;
use tontine::Admin;
use tontine_testkit::{apache, cluster::Cluster, suite::in_ci, wait};
use trouble::World;

/// Whatever keeps the chaos from ending well.
pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const PARTITIONS: i32 = 12;
/// How long it may take, once everything is healed, until everything is read.
const RECOVERY: Duration = Duration::from_secs(180);

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if let Some(reason) = apache::unavailable().filter(|_| arguments.on_kafka) {
        println!("chaos on Apache Kafka: skipped, {reason}");
        return if in_ci() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    println!("{arguments}");
    let runtime = tokio::runtime::Runtime::new().map_err(Into::into);
    match runtime.and_then(|runtime| runtime.block_on(run(&arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("FAILED: {why}\nagain: {}", arguments.command());
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Outcome {
    let cluster = match arguments.on_kafka {
        true => Cluster::apache(Arc::new(apache::ApacheKafka::start(3).await?)).await?,
        false => Cluster::embedded(3, &[]).await?,
    };
    let topic = cluster.topic("chaos", PARTITIONS).await?;
    let group = cluster.unique("chaos");
    cluster.until_coordinated(&group).await?;
    if arguments.protocol == "consumer" {
        cluster.shorten_sessions(&group, trouble::SESSION_MS).await?;
    }
    let dir = tempfile::tempdir()?;
    let tally = Arc::new(Tally::default());
    let source = source::start(&cluster.bootstrap_servers(), &topic, PARTITIONS, tally.clone())?;
    let watcher = tokio::spawn(watch(cluster.bootstrap_servers(), group.clone(), tally.clone()));
    let mut world = World::start(arguments, &cluster, &topic, &group, dir.path(), &tally)?;
    world.make_trouble(Duration::from_secs(arguments.seconds)).await?;
    world.heal().await?;
    let acknowledged = source.end().await?;
    let recovered = until_recovered(&acknowledged, &world, &tally).await;
    watcher.abort();
    world.end().await?;
    let verdict = tally::audit(dir.path(), &group)?;
    println!("{}\n{}", tally.report(), verdict.counts());
    tally.check(&acknowledged)?;
    recovered?;
    verdict.check()
}

/// Looks at what is committed for as long as it is left alone.
async fn watch(servers: String, group: String, tally: Arc<Tally>) -> Outcome {
    let admin = Admin::builder().bootstrap_servers(servers).build()?;
    let mut ticks = tokio::time::interval(Duration::from_millis(300));
    loop {
        ticks.tick().await;
        // Nobody answers while the coordinator moves: the next look will tell.
        if let Ok(offsets) = admin.list_group_offsets(&group, None).await {
            tally.committed(offsets.into_iter().map(|(tp, offset)| (tp.partition, offset.offset)));
        }
    }
}

/// Waits until everything that was acknowledged has been delivered; members that ended meanwhile are started again. What is
/// committed may stay behind: a commit that a rebalance refuses is only made up for by the next one.
async fn until_recovered(acknowledged: &Places, world: &World<'_>, tally: &Tally) -> Outcome {
    let caught_up = async || {
        world.restart_the_ended().ok()?;
        world.count_java();
        tally.check(acknowledged).is_ok().then_some(())
    };
    Ok(wait::until("every acknowledged record is delivered", RECOVERY, caught_up).await?)
}
