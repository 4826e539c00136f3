//! Commits in callbacks, and those that the consumer makes by itself.

use super::{SOON, Stage};
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{Callback, CommitResult, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, In, Member};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("listener::{}", mode.name()), mode, one_with: [
        a_commit_in_revoked_leaves_nothing_to_read_again_when_another_member_joins,
        a_commit_in_revoked_leaves_nothing_to_read_again_after_close,
        a_commit_in_assigned_is_stored,
        what_was_consumed_is_committed_by_itself_before_it_is_revoked,
        unsubscribing_commits_nothing_by_itself,
        closing_commits_by_itself_what_was_consumed,
    ]);
}

async fn a_commit_in_revoked_leaves_nothing_to_read_again_when_another_member_joins(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 50).await?;
    let a = stage.alone("a", stage.plan().commit(Commit::InRevoked)).await?;
    stage.history.until_delivered(&stage.cb, 200, SOON).await?;
    let b = Member::start(&stage.history, "b", stage.plan().commit(Commit::InRevoked))?;
    stage.until_newcomer("b", 3).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 50).await?;
    stage.history.until_delivered(&stage.cb, 400, SOON).await?;
    ensure!(a.close().await?.is_ok() && b.close().await?.is_ok(), "closes are fine");
    let ends = stage.cluster.plain().end_offsets(&stage.cb).await?;
    Evidence::of(&stage.history).produced_up_to(&stage.cb, &ends).check()?;
    ensure_eq!(delivered_twice(&stage), 0, "records that were delivered twice");
    Ok(())
}

/// How many deliveries were not the first of their record.
fn delivered_twice(stage: &Stage) -> usize {
    let mut seen = std::collections::BTreeSet::new();
    let events = stage.history.events();
    let all = events.iter().flat_map(|event| match &event.what {
        What::Delivered(partition, offsets) => offsets.iter().map(|o| (partition.clone(), *o)).collect(),
        _ => Vec::new(),
    });
    all.filter(|record| !seen.insert(record.clone())).count()
}

async fn a_commit_in_revoked_leaves_nothing_to_read_again_after_close(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 50).await?;
    let a = stage.alone("a", stage.plan().commit(Commit::InRevoked)).await?;
    stage.history.until_delivered(&stage.cb, 200, SOON).await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    let committed = stage.cluster.plain().committed_in(&stage.group, &stage.cb).await?;
    ensure_eq!(committed, (0..4).map(|p| (p, 50)).collect(), "what is committed");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_commit_in_assigned_is_stored(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    let plan = stage.plan().commit(Commit::Never);
    let a = stage.alone("a", plan.clone()).await?;
    stage.history.until_delivered(&stage.cb, 40, SOON).await?;
    // The group rebalances, and what a has kept is committed in its assigned callback. An eager member keeps nothing.
    plan.next(Callback::Revoked, In::Commit);
    plan.next(Callback::Assigned, In::Commit);
    let _b = stage.member("b")?;
    stage.until_shapes("a", 0, stage.shares_with_newcomer()).await?;
    drop(a);
    let events = stage.history.events();
    let refused = events.iter().filter(
        |event| matches!(&event.what, What::CommitEnded(_, result) if *result != CommitResult::Stored),
    );
    ensure_eq!(refused.count(), 0, "commits that were not stored");
    Ok(())
}

async fn what_was_consumed_is_committed_by_itself_before_it_is_revoked(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 50).await?;
    let a = stage.alone("a", stage.plan().auto_commit("3600000")).await?;
    stage.history.until_delivered(&stage.cb, 200, SOON).await?;
    let b = Member::start(&stage.history, "b", stage.plan().auto_commit("3600000"))?;
    stage.until_newcomer("b", 3).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    stage.history.until_delivered(&stage.cb, 240, SOON).await?;
    ensure!(a.close().await?.is_ok() && b.close().await?.is_ok(), "closes are fine");
    ensure_eq!(delivered_twice(&stage), 0, "records that were delivered twice");
    Evidence::of(&stage.history).with_auto_commit().check()?;
    Ok(())
}

async fn unsubscribing_commits_nothing_by_itself(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    let a = stage.alone("a", stage.plan().auto_commit("3600000")).await?;
    stage.history.until_delivered(&stage.cb, 40, SOON).await?;
    a.unsubscribe().await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    ensure_eq!(stage.cluster.plain().committed(&stage.group).await?.len(), 0, "offsets that are committed");
    Ok(())
}

async fn closing_commits_by_itself_what_was_consumed(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    let a = stage.alone("a", stage.plan().auto_commit("3600000")).await?;
    stage.history.until_delivered(&stage.cb, 40, SOON).await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    let committed = stage.cluster.plain().committed_in(&stage.group, &stage.cb).await?;
    ensure_eq!(committed, (0..4).map(|p| (p, 10)).collect(), "what is committed");
    Ok(())
}
