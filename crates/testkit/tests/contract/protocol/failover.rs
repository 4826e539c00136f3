//! What a group goes through when the nodes of its cluster come and go: nothing.

use super::member::{Hand, group};
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::plain::PlainClient;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies, ensure, ensure_eq, failure, wait};
use tontine_wire::ErrorCode;
use tontine_wire::api::find_coordinator::FindCoordinatorRequest;

pub fn register(suite: &mut Suite) {
    bodies!(suite, "protocol::failover", three: [
        a_group_lives_on_with_its_generation_when_its_coordinator_dies_and_when_it_comes_back,
        a_partition_is_led_by_another_node_until_its_preferred_leader_is_elected_back,
    ]);
}

const LONG: Duration = Duration::from_secs(120);

async fn coordinator_id(client: &PlainClient, group: &str) -> Result<i32, Failure> {
    wait::until("somebody coordinates the group", LONG, async || {
        let request =
            FindCoordinatorRequest { coordinator_keys: vec![group.to_owned()], ..Default::default() };
        let answer = client.any().await.ok()?.call(4, request).await.ok()?;
        answer.coordinators.into_iter().find(|c| c.error_code.is_ok()).map(|c| c.node_id)
    })
    .await
}

/// Sends heartbeats to whoever coordinates the group until one of them has found it and answered well.
async fn until_alive(cluster: &Cluster, hand: &Hand) -> Result<(), Failure> {
    let last = std::sync::Mutex::new(String::new());
    let note = |what: String| {
        if let Ok(mut last) = last.lock() {
            *last = what;
        }
    };
    let what = "the coordinator knows the member in its generation";
    let found = wait::until(what, LONG, async || {
        let mut again = Hand::new(cluster, &hand.group).await.inspect_err(|e| note(e.to_string())).ok()?;
        again.member_id.clone_from(&hand.member_id);
        again.generation = hand.generation;
        match again.heartbeat().await.inspect_err(|e| note(e.to_string())).ok()? {
            ErrorCode::NONE => Some(Ok(())),
            code if code.is_retriable() => {
                note(format!("the heartbeat was answered {code}"));
                None
            }
            code => Some(Err(failure!("the heartbeat was answered {code}"))),
        }
    });
    found
        .await
        .map_err(|late| failure!("{late}; last: {}", last.lock().map(|l| l.clone()).unwrap_or_default()))?
}

async fn a_group_lives_on_with_its_generation_when_its_coordinator_dies_and_when_it_comes_back(
    cluster: Cluster,
) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let group = group(&cluster);
    let plain = cluster.plain();
    let mut a = Hand::new(&cluster, &group).await?;
    // A machine that is busy takes its time to notice and to elect.
    a.session_timeout = Duration::from_secs(300);
    a.join_and_sync_alone().await?;
    ensure_eq!(a.commit(&topic, 7).await?, ErrorCode::NONE, "the commit before");

    let first = coordinator_id(&plain, &group).await?;
    cluster.kill_node(first).await?;
    wait::until("another node coordinates the group", LONG, async || {
        let now = coordinator_id(&plain, &group).await.ok()?;
        (now != first).then_some(())
    })
    .await?;
    until_alive(&cluster, &a).await?;
    ensure_eq!(
        plain.committed_in(&group, &topic).await?.get(&0),
        Some(&7),
        "the offset at the new coordinator"
    );

    cluster.heal().await?;
    wait::until("the first node coordinates the group again", LONG, async || {
        let now = coordinator_id(&plain, &group).await.ok()?;
        (now == first).then_some(())
    })
    .await?;
    until_alive(&cluster, &a).await?;
    ensure_eq!(
        plain.committed_in(&group, &topic).await?.get(&0),
        Some(&7),
        "the offset at the old coordinator"
    );
    Ok(())
}

async fn a_partition_is_led_by_another_node_until_its_preferred_leader_is_elected_back(
    cluster: Cluster,
) -> Outcome {
    let topic = cluster.topic("orders", 1).await?;
    let plain = cluster.plain();
    plain.produce(&topic, 0, 10).await?;
    let (first, _) = plain.leader_of(&topic, 0).await?;
    cluster.stop_node(first).await?;
    wait::until("another node leads", LONG, async || {
        let (now, _) = plain.leader_of(&topic, 0).await.ok()?;
        (now != first).then_some(())
    })
    .await?;
    plain.produce(&topic, 0, 10).await?;
    cluster.start_node(first).await?;
    plain.until_in_sync(LONG).await?;
    let (now, _) = plain.leader_of(&topic, 0).await?;
    ensure!(now != first, "a node that comes back leads nothing by itself");
    plain.elect_preferred_leaders().await?;
    wait::until("the preferred leader leads again", LONG, async || {
        let (now, _) = plain.leader_of(&topic, 0).await.ok()?;
        (now == first).then_some(())
    })
    .await?;
    ensure_eq!(plain.end_offsets(&topic).await?.get(&0), Some(&20), "the end of the log");
    Ok(())
}
