//! Others come and go, partitions come and go.

use super::{SOON, Stage};
use crate::mode::Mode;
use std::collections::BTreeSet;
use tontine_group::TopicPartition;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{Event, OwnershipEnd, ownerships, shapes};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::Member;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("listener::{}", mode.name()), mode, one_with: [
        the_first_member_is_assigned_everything_at_once,
        a_second_member_takes_its_share,
        a_member_that_closes_gives_back_what_it_has,
        a_member_that_stays_takes_over_what_a_closed_one_had,
        a_member_with_nothing_to_do_is_told_so,
        a_member_with_nothing_takes_over,
        partitions_that_are_added_are_shared,
        a_deleted_topic_is_revoked,
    ]);
}

async fn the_first_member_is_assigned_everything_at_once(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = stage.member("a")?;
    stage.until_callbacks("a", 0, "A(ca0 ca1 cb0 cb1 cb2 cb3)").await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    stage.until_callbacks("a", 1, "R(ca0 ca1 cb0 cb1 cb2 cb3)").await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_second_member_takes_its_share(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let (_a, _b, ..) = stage.pair().await?;
    let (a, b) = (stage.history.owned_by("a"), stage.history.owned_by("b"));
    ensure_eq!(a.intersection(&b).count(), 0, "partitions that both own");
    ensure_eq!(a.union(&b).count(), 6, "partitions that are owned");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_member_that_closes_gives_back_what_it_has(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let (_a, b, _, seen) = stage.pair().await?;
    ensure!(b.close().await?.is_ok(), "close is fine");
    stage.until_shapes("b", seen, "R(3)").await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_member_that_stays_takes_over_what_a_closed_one_had(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let (_a, b, seen, _) = stage.pair().await?;
    ensure!(b.close().await?.is_ok(), "close is fine");
    stage.until_shapes("a", seen, mode.pick("R(3) A(6)", "A(3)")).await?;
    ensure_eq!(stage.history.owned_by("a").len(), 6, "partitions of the one who stays");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

/// Two partitions, three members: eager members are revoked and assigned nothing; cooperative ones only assigned nothing.
async fn a_member_with_nothing_to_do_is_told_so(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = || stage.plan_for(&[&stage.ca]);
    let partitions: Vec<_> = (0..2).map(|p| TopicPartition::new(stage.ca.as_str(), p)).collect();
    let _a = Member::start(&stage.history, "a", plan())?;
    stage.until_shapes("a", 0, "A(2)").await?;
    let _b = Member::start(&stage.history, "b", plan())?;
    stage.history.until_shared(&partitions, &["a", "b"], 1, SOON).await?;
    let idle = Member::start(&stage.history, "c", plan())?;
    // With range anybody may be the one without a partition; with a sticky assignor it is the newcomer.
    let history = &stage.history;
    history
        .until("one of three members is told that it has nothing", SOON, |events| {
            let last = |member| shapes(events, member).pop();
            ["a", "b", "c"].iter().any(|m| last(m).is_some_and(|last| last == "A(0)")).then_some(())
        })
        .await?;
    history.until_shared(&partitions, &["a", "b", "c"], 0, SOON).await?;
    if mode != Mode::Eager {
        stage.until_shapes("c", 0, "A(0)").await?;
    }
    ensure!(idle.close().await?.is_ok(), "close is fine");
    let shapes = history.shapes("c");
    if mode != Mode::Eager {
        ensure_eq!(shapes, ["A(0)"], "callbacks of a member that never had anything");
    }
    ensure!(!shapes.contains(&"L(0)".to_owned()), "nothing is never lost");
    Evidence::of(history).check()?;
    Ok(())
}

/// A member that has nothing: an eager one is revoked nothing before it joins again; a cooperative one is not called.
async fn a_member_with_nothing_takes_over(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = || stage.plan_for(&[&stage.ca]);
    let partitions: Vec<_> = (0..2).map(|p| TopicPartition::new(stage.ca.as_str(), p)).collect();
    let mut members = Vec::new();
    for name in ["a", "b", "c"] {
        members.push(Member::start(&stage.history, name, plan())?);
        stage.cluster.plain().until_group(&stage.group, "Stable", members.len()).await?;
    }
    let names = ["a", "b", "c"];
    let idle = stage
        .history
        .until("two of three have a partition and one knows that it has none", SOON, |events| {
            let last = |member: &&str| shapes(events, member).pop();
            let ends: Vec<_> = names.iter().filter_map(last).collect();
            let busy = stage_owners(events, &partitions);
            let idle = names.iter().find(|name| !busy.contains(**name))?;
            (ends.len() == 3 && busy.len() == 2).then_some(*idle)
        })
        .await?;
    stage.cluster.plain().until_group(&stage.group, "Stable", 3).await?;
    let seen = stage.history.shapes(idle).len();
    let other = members.iter().position(|member| member.name() != idle).unwrap_or_default();
    let gone = members.swap_remove(other);
    ensure!(gone.close().await?.is_ok(), "close is fine");
    stage.until_shapes(idle, seen, mode.pick("R(0) A(1)", "A(1)")).await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

/// Who owns one of these partitions.
fn stage_owners(events: &[Event], partitions: &[TopicPartition]) -> BTreeSet<String> {
    let open = ownerships(events).into_iter().filter(|o| o.end == OwnershipEnd::Open && o.usable.is_some());
    open.filter(|o| partitions.contains(&o.partition)).map(|o| o.member.to_string()).collect()
}

async fn partitions_that_are_added_are_shared(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = || stage.plan_for(&[&stage.ca]);
    let (_a, _b) = two_of_one_topic(&stage, plan, 2).await?;
    let (seen_a, seen_b) = (stage.history.shapes("a").len(), stage.history.shapes("b").len());
    stage.cluster.plain().create_partitions(&stage.ca, 4).await?;
    let expected = mode.pick("R(1) A(2)", "A(1)");
    stage.until_shapes("a", seen_a, expected).await?;
    stage.until_shapes("b", seen_b, expected).await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

/// The only topic of two members is deleted: both give it back, and both are told that they have nothing.
async fn a_deleted_topic_is_revoked(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let plan = || stage.plan_for(&[&stage.cb]);
    let (_a, _b) = two_of_one_topic(&stage, plan, 4).await?;
    let (seen_a, seen_b) = (stage.history.shapes("a").len(), stage.history.shapes("b").len());
    stage.cluster.plain().delete_topic(&stage.cb).await?;
    for (member, seen) in [("a", seen_a), ("b", seen_b)] {
        let what = format!("{member} has given back its partitions and been told that it has none");
        stage
            .history
            .until(&what, SOON, |events| {
                let shapes = shapes(events, member);
                (shapes.get(seen..)?.get(..2)? == ["R(2)", "A(0)"]).then_some(())
            })
            .await?;
    }
    Evidence::of(&stage.history).check()?;
    Ok(())
}

/// Two members that share the `count` partitions of one topic.
async fn two_of_one_topic(
    stage: &Stage,
    plan: impl Fn() -> tontine_testkit::member::Plan,
    count: i32,
) -> Result<(Member, Member), tontine_testkit::Failure> {
    let (all, half) = (count as usize, count as usize / 2);
    let a = Member::start(&stage.history, "a", plan())?;
    stage.until_shapes("a", 0, &format!("A({all})")).await?;
    let b = Member::start(&stage.history, "b", plan())?;
    let eager = format!("A({all}) R({all}) A({half})");
    let cooperative = format!("A({all}) R({half}) A(0) A(0)");
    let consumer = format!("A({all}) R({half}) A(0)");
    stage.until_shapes("a", 0, &stage.mode.pick3(eager, cooperative, consumer)).await?;
    stage.until_newcomer("b", half).await?;
    Ok((a, b))
}
