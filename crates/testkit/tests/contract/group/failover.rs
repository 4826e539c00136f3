//! A group whose cluster loses nodes and gets them back: nobody is called, nothing is lost.

use super::{SOON, Work};
use crate::mode::Mode;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::member::Member;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies_with, ensure, ensure_eq, wait};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, three_with: [
        a_dead_node_that_led_and_coordinated_costs_no_partition,
    ]);
    // What leads and where one begins is none of the protocol's concern.
    if !mode.is_classic() {
        return;
    }
    bodies_with!(suite, format!("group::{}", mode.name()), mode, three_with: [
        leaders_that_move_away_and_back_are_followed,
        one_bootstrap_server_is_enough,
    ]);
}

const LONG: Duration = Duration::from_secs(120);

/// The address of the group's coordinator, and the node that has it.
async fn coordinator_node(work: &Work) -> Result<i32, Failure> {
    let address = work.cluster.plain().coordinator_address(&work.group).await?;
    let metadata = work.cluster.plain().metadata(&[]).await?;
    let node = metadata.brokers.iter().find(|b| format!("{}:{}", b.host, b.port) == address);
    node.map(|b| b.node_id).ok_or_else(|| tontine_testkit::failure!("nobody listens at {address}"))
}

async fn a_dead_node_that_led_and_coordinated_costs_no_partition(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 6).await?;
    work.produce_on_and_on();
    // A machine that is busy takes its time to notice that a node is dead.
    let plan = || work.plan().set("session.timeout.ms", "180000");
    let _a = Member::start(&work.history, "a", plan())?;
    let _b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 3).await?;
    work.until_more(30).await?;
    let seen = settled(&work).await?;

    let node = coordinator_node(&work).await?;
    work.cluster.kill_node(node).await?;
    work.until_more_within(60, LONG).await?;
    work.cluster.heal().await?;
    work.until_more_within(60, LONG).await?;

    let now = (work.history.shapes("a").len(), work.history.shapes("b").len());
    ensure_eq!(now, seen, "callbacks after a node died and came back");
    work.finish().await?.check()?;
    Ok(())
}

/// Waits until the group has come to rest, and tells how many callbacks each member has seen.
async fn settled(work: &Work) -> Result<(usize, usize), Failure> {
    work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    wait::while_nothing_happens(Duration::from_secs(1)).await;
    work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    Ok((work.history.shapes("a").len(), work.history.shapes("b").len()))
}

async fn leaders_that_move_away_and_back_are_followed(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 6).await?;
    work.produce_on_and_on();
    let _a = work.member("a")?;
    let _b = work.member("b")?;
    work.until_shared(&["a", "b"], 3).await?;
    work.until_more(30).await?;
    let seen = settled(&work).await?;

    let client = work.cluster.plain();
    let (node, _) = client.leader_of(&work.topic, 0).await?;
    work.cluster.stop_node(node).await?;
    work.until_more_within(60, LONG).await?;
    work.cluster.start_node(node).await?;
    client.until_in_sync(LONG).await?;
    client.elect_preferred_leaders().await?;
    wait::until("the preferred leader leads again", LONG, async || {
        client.leader_of(&work.topic, 0).await.ok().filter(|(now, _)| *now == node).map(drop)
    })
    .await?;
    work.until_more_within(60, LONG).await?;

    let now = (work.history.shapes("a").len(), work.history.shapes("b").len());
    ensure_eq!(now, seen, "callbacks after leaders moved away and back");
    work.finish().await?.check()?;
    Ok(())
}

/// Two of three bootstrap servers are dead addresses; the third is found, and through it the whole cluster.
async fn one_bootstrap_server_is_enough(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 6).await?;
    work.cluster.plain().fill(&work.topic, 6, 10).await?;
    let alive = work.cluster.bootstrap_servers();
    let alive = alive.split(',').next().unwrap_or_default();
    let plan = work.plan().set("bootstrap.servers", &format!("127.0.0.1:1,127.0.0.1:2,{alive}"));
    let a = Member::start(&work.history, "a", plan)?;
    work.history.until_delivered(&work.topic, 60, SOON).await?;
    work.finish().await?.check()?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    Ok(())
}
