//! What the application does itself: it subscribes to something else, unsubscribes, seeks, pauses.

use super::Stage;
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{Callback, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::In;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("listener::{}", mode.name()), mode, one_with: [
        a_topic_that_is_not_subscribed_any_more_is_revoked,
        a_topic_that_is_subscribed_in_addition_is_assigned,
        unsubscribe_revokes_everything_before_it_returns,
        a_seek_in_assigned_says_where_reading_begins,
        pausing_outlives_a_rebalance_where_the_partition_was_kept,
        the_generation_in_callbacks_is_that_of_the_step,
        what_is_revoked_is_still_assigned_in_its_callback,
    ]);
}

async fn a_topic_that_is_not_subscribed_any_more_is_revoked(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = stage.alone("a", stage.plan()).await?;
    a.subscribe(&[&stage.ca]).await?;
    let expected = mode.pick("R(ca0 ca1 cb0 cb1 cb2 cb3) A(ca0 ca1)", "R(cb0 cb1 cb2 cb3) A()");
    stage.until_callbacks("a", 1, expected).await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_topic_that_is_subscribed_in_addition_is_assigned(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = tontine_testkit::member::Member::start(&stage.history, "a", stage.plan_for(&[&stage.ca]))?;
    stage.until_callbacks("a", 0, "A(ca0 ca1)").await?;
    a.subscribe(&[&stage.ca, &stage.cb]).await?;
    let expected = mode.pick("R(ca0 ca1) A(ca0 ca1 cb0 cb1 cb2 cb3)", "A(cb0 cb1 cb2 cb3)");
    stage.until_callbacks("a", 1, expected).await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn unsubscribe_revokes_everything_before_it_returns(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = stage.alone("a", stage.plan()).await?;
    a.unsubscribe().await?;
    let callbacks = stage.history.callbacks("a");
    ensure_eq!(callbacks[1..], ["R(ca0 ca1 cb0 cb1 cb2 cb3)"], "callbacks when unsubscribe has returned");
    stage.cluster.plain().until_group(&stage.group, "Empty", 0).await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    ensure_eq!(stage.history.callbacks("a").len(), 2, "callbacks after close: it has nothing to give back");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_seek_in_assigned_says_where_reading_begins(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.ca, 2, 30).await?;
    let plan = stage.plan_for(&[&stage.ca]);
    plan.next(Callback::Assigned, In::Seek(15));
    let a = tontine_testkit::member::Member::start(&stage.history, "a", plan)?;
    stage.history.until_delivered(&stage.ca, 30, super::SOON).await?;
    let firsts = stage.history.events();
    let mut firsts: Vec<i64> = firsts
        .iter()
        .filter_map(|event| match &event.what {
            What::Delivered(_, offsets) => offsets.first().copied(),
            _ => None,
        })
        .collect();
    firsts.sort_unstable();
    ensure_eq!(firsts[..2], [15, 15], "the first offsets that were delivered");
    ensure_eq!(notes(&stage, "position "), "15 15", "the positions after the seeks, still in the callback");
    drop(a);
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn pausing_outlives_a_rebalance_where_the_partition_was_kept(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = stage.alone("a", stage.plan()).await?;
    a.attempt("pause", |consumer| {
        Box::pin(async move {
            let all: Vec<_> = consumer.assignment().into_iter().collect();
            consumer.pause(&all)
        })
    })
    .await?;
    let _b = stage.member("b")?;
    stage.until_shapes("a", 0, stage.shares_with_newcomer()).await?;
    let (paused, assigned) = a
        .with(|consumer| Box::pin(async move { (consumer.paused().len(), consumer.assignment().len()) }))
        .await?;
    ensure_eq!(assigned, 3, "partitions that a has kept");
    ensure_eq!(paused, mode.pick(0, 3), "partitions that are still paused");
    Ok(())
}

/// Eager: revoked shows the generation that ends, assigned the new one. Cooperative: what is revoked is known after the
/// join only, so both show the new one. With the consumer protocol a member comes to the new epoch when the coordinator
/// has heard that it let go.
async fn the_generation_in_callbacks_is_that_of_the_step(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let (_a, _b, ..) = stage.pair().await?;
    let seen = notes(&stage, "generation ");
    if mode.is_classic() {
        let expected = mode.pick("1 1 2", "1 2 2 3");
        ensure_eq!(seen, expected, "the generation that each callback of a has shown");
        return Ok(());
    }
    let epochs: Vec<i32> = seen.split(' ').filter_map(|epoch| epoch.parse().ok()).collect();
    let [first, revoked, after] = epochs[..] else { return Err(format!("the epochs shown: {seen}").into()) };
    ensure_eq!(first, revoked, "the epoch moves with the release, not before");
    ensure!(after == revoked || after == revoked + 1, "the epochs shown: {seen}");
    Ok(())
}

async fn what_is_revoked_is_still_assigned_in_its_callback(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let (_a, _b, ..) = stage.pair().await?;
    let expected = mode.pick3("6 6 3", "6 6 3 3", "6 6 3");
    ensure_eq!(notes(&stage, "assignment "), expected, "how much was assigned in each callback of a");
    Ok(())
}

/// What the callbacks of `a` have noted under this heading.
fn notes(stage: &Stage, heading: &str) -> String {
    let events = stage.history.events();
    let mine = events.iter().filter(|event| &*event.member == "a");
    let noted = mine.filter_map(|event| match &event.what {
        What::Note(note) => note.strip_prefix(heading).map(str::to_owned),
        _ => None,
    });
    noted.collect::<Vec<_>>().join(" ")
}
