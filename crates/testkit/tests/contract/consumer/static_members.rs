//! Static members: away for a while, twins, and a restart that the coordinator has not noticed yet.

use crate::group::{SOON, Work};
use crate::mode::Mode;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Member, Plan};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq};
use tontine_wire::{ErrorCode, api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "consumer", one: [
        a_static_member_that_closes_and_comes_back_disturbs_nobody,
        a_twin_waits_and_takes_over_when_the_other_has_left,
        a_member_that_joins_again_with_an_instance_id_is_that_instance_from_then_on,
    ]);
    suite.short_with(
        "consumer::a_static_member_that_was_killed_comes_back_when_its_session_is_over",
        (),
        a_static_member_that_was_killed_comes_back_when_its_session_is_over,
    );
}

fn plan(work: &Work, instance: &str) -> Plan {
    work.plan().set("group.instance.id", instance)
}

async fn a_static_member_that_closes_and_comes_back_disturbs_nobody(cluster: Cluster) -> Outcome {
    let mut work = Work::new(cluster, Mode::Consumer, 4).await?;
    work.produce_on_and_on();
    let _a = Member::start(&work.history, "a", plan(&work, "one"))?;
    work.until_shared(&["a"], 4).await?;
    let b = Member::start(&work.history, "b", plan(&work, "two"))?;
    work.until_shared(&["a", "b"], 2).await?;
    work.until_more(10).await?;
    work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    let (seen, had) = (work.history.shapes("a").len(), work.history.owned_by("b"));
    ensure!(b.close().await?.is_ok(), "close is fine");
    tontine_testkit::wait::while_nothing_happens(Duration::from_millis(1500)).await;
    let _back = Member::start(&work.history, "back", plan(&work, "two"))?;
    work.until_shared(&["a", "back"], 2).await?;
    work.until_more(10).await?;
    ensure_eq!(work.history.owned_by("back"), had, "what it has again");
    ensure!(
        work.history.shapes("a").len() == seen,
        "the one who stayed was called {:?}\n{:?}",
        work.history.callbacks("a"),
        work.history.callbacks("back")
    );
    work.finish().await?.check()?;
    Ok(())
}

async fn a_twin_waits_and_takes_over_when_the_other_has_left(cluster: Cluster) -> Outcome {
    let work = Work::new(cluster, Mode::Consumer, 4).await?;
    let old = Member::start(&work.history, "old", plan(&work, "one"))?;
    work.until_shared(&["old"], 4).await?;
    let _new = Member::start(&work.history, "new", plan(&work, "one"))?;
    tontine_testkit::wait::while_nothing_happens(Duration::from_millis(1500)).await;
    ensure_eq!(work.history.shapes("old"), ["A(4)"], "callbacks of the one who was there first");
    ensure!(work.history.shapes("new").is_empty(), "its twin waits");
    ensure!(old.close().await?.is_ok(), "close is fine");
    work.until_shared(&["new"], 4).await?;
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_static_member_that_was_killed_comes_back_when_its_session_is_over(
    cluster: Cluster,
    (): (),
) -> Outcome {
    let work = Work::new(cluster, Mode::Consumer, 4).await?;
    work.shorten_sessions().await?;
    let old = Member::start(&work.history, "old", plan(&work, "one"))?;
    work.until_shared(&["old"], 4).await?;
    old.kill();
    let _new = Member::start(&work.history, "new", plan(&work, "one"))?;
    work.history.until_shared(&work.partitions, &["new"], 4, SOON).await?;
    ensure_eq!(work.history.shapes("new"), ["A(4)"], "callbacks of the one who came back");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_member_that_joins_again_with_an_instance_id_is_that_instance_from_then_on(
    cluster: Cluster,
) -> Outcome {
    let topic = cluster.topic("orders", 2).await?;
    let group = cluster.unique("late");
    cluster.until_coordinated(&group).await?;
    let mut connection = cluster.coordinator(&group).await?;
    let beat = |member: &str, epoch: i32, instance: Option<&str>| ConsumerGroupHeartbeatRequest {
        group_id: group.clone(),
        member_id: member.to_owned(),
        member_epoch: epoch,
        instance_id: instance.map(str::to_owned),
        rebalance_timeout_ms: 30_000,
        subscribed_topic_names: Some(vec![topic.clone()]),
        topic_partitions: (epoch == 0).then(Vec::new),
        ..Default::default()
    };
    let first = connection.call(1, beat("m", 0, None)).await?;
    ensure_eq!(first.error_code, ErrorCode::NONE, "the join of a dynamic member");
    for instance in ["one", "two"] {
        let again = connection.call(1, beat("m", 0, Some(instance))).await?;
        ensure_eq!(again.error_code, ErrorCode::NONE, "its join as {instance}");
        let on = connection.call(1, beat("m", again.member_epoch, Some(instance))).await?;
        ensure_eq!(on.error_code, ErrorCode::NONE, "a heartbeat as {instance}");
    }
    let former = connection.call(1, beat("m", first.member_epoch, Some("one"))).await?;
    ensure_eq!(former.error_code, ErrorCode::UNKNOWN_MEMBER_ID, "an instance that it was once");
    let twin = connection.call(1, beat("n", 0, Some("two"))).await?;
    ensure_eq!(twin.error_code, ErrorCode::UNRELEASED_INSTANCE_ID, "the join of a twin");
    Ok(())
}
