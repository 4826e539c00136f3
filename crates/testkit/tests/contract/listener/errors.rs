//! Callbacks that fail: reported by poll, and they veto nothing.

use super::{SOON, Stage};
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{Callback, Event, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::In;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("listener::{}", mode.name()), mode, one_with: [
        a_failed_assigned_is_called_again_with_nothing_new_until_it_succeeds_and_then_records_flow,
        a_failed_revoked_is_reported_and_not_repeated_and_the_rebalance_goes_on,
        a_failed_lost_is_reported_and_not_repeated_and_the_member_joins_again,
        a_failed_revoked_in_close_is_reported_and_the_member_leaves_all_the_same,
        a_wakeup_in_revoked_is_reported_and_leaves_no_partition_without_a_callback,
    ]);
}

/// How often `poll` has reported this message to a member.
fn reports(events: &[Event], member: &str, message: &str) -> usize {
    let mine = events.iter().filter(|event| &*event.member == member);
    mine.filter(|event| matches!(&event.what, What::Failed(error) if error.contains(message))).count()
}

fn boom() -> In {
    In::Fail("boom".to_owned())
}

async fn a_failed_assigned_is_called_again_with_nothing_new_until_it_succeeds_and_then_records_flow(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    let plan = stage.plan();
    plan.next(Callback::Assigned, boom());
    plan.next(Callback::Assigned, boom());
    let _a = tontine_testkit::member::Member::start(&stage.history, "a", plan)?;
    stage.history.until_delivered(&stage.cb, 40, SOON).await?;
    ensure!(
        stage.history.shapes("a") == ["A(6)", "A(0)", "A(0)"],
        "callbacks until records came:\n{}",
        stage.history.tail()
    );
    ensure_eq!(reports(&stage.history.events(), "a", "boom"), 2, "errors that poll has reported");
    Ok(())
}

async fn a_failed_revoked_is_reported_and_not_repeated_and_the_rebalance_goes_on(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = stage.plan();
    plan.next(Callback::Revoked, boom());
    let _a = stage.alone("a", plan).await?;
    let _b = stage.member("b")?;
    stage.until_newcomer("b", 3).await?;
    stage.until_shapes("a", 0, stage.shares_with_newcomer()).await?;
    stage
        .history
        .until("poll has reported the error", SOON, |events| {
            (reports(events, "a", "boom") == 1).then_some(())
        })
        .await?;
    let shapes = stage.history.shapes("a");
    ensure_eq!(
        shapes.iter().filter(|s| s.starts_with('R')).count(),
        1,
        "revoked callbacks of a in {shapes:?}"
    );
    ensure_eq!(stage.history.owned_by("a").len(), 3, "partitions that a has kept");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_failed_lost_is_reported_and_not_repeated_and_the_member_joins_again(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = stage.plan();
    plan.next(Callback::Lost, boom());
    let _a = stage.alone("a", plan).await?;
    stage.cluster.plain().remove_all_members(&stage.group).await?;
    stage.until_shapes("a", 1, "L(6) A(6)").await?;
    ensure_eq!(reports(&stage.history.events(), "a", "boom"), 1, "errors that poll has reported");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_failed_revoked_in_close_is_reported_and_the_member_leaves_all_the_same(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = stage.plan();
    plan.next(Callback::Revoked, boom());
    let a = stage.alone("a", plan).await?;
    let closed = a.close().await?;
    ensure!(closed.as_ref().is_err_and(|e| e.contains("boom")), "close returned {closed:?}");
    stage.cluster.plain().until_group(&stage.group, "Empty", 0).await?;
    stage.until_shapes("a", 1, "R(6)").await?;
    Ok(())
}

/// Better than Java's on purpose: there an eager member is never told of the partitions that it did not get back.
async fn a_wakeup_in_revoked_is_reported_and_leaves_no_partition_without_a_callback(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    let plan = stage.plan().commit(tontine_testkit::member::Commit::Never);
    let a = stage.alone("a", plan.clone()).await?;
    stage.history.until_delivered(&stage.cb, 40, SOON).await?;
    let waker = a.with(|consumer| Box::pin(async move { consumer.waker() })).await?;
    plan.next(Callback::Revoked, In::WakeAndCommit(waker));
    let _b = stage.member("b")?;
    stage.until_newcomer("b", 3).await?;
    stage.until_shapes("a", 0, stage.shares_with_newcomer()).await?;
    stage
        .history
        .until("poll has reported it", SOON, |events| (reports(events, "a", "woken") == 1).then_some(()))
        .await?;
    ensure_eq!(stage.history.owned_by("a").len(), 3, "partitions that a has kept");
    Evidence::of(&stage.history).check()?;
    Ok(())
}
