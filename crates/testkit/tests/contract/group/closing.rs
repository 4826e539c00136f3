//! The end of a member, from every state, in bounded time; and polls that are dropped or linger in a callback.

use super::{SOON, Work};
use crate::mode::Mode;
use std::time::Duration;
use tokio::sync::watch;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{Callback, Event, What, shapes};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, In, Member};
use tontine_testkit::proxy::Action;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq, wait};
use tontine_wire::api::ApiKey;

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
        closing_without_a_network_ends_in_time,
        closing_twice_is_closing_once,
        a_poll_that_is_dropped_in_a_callback_runs_it_again,
        commits_that_nobody_waits_for_never_overtake_each_other,
        pausing_and_resuming_loses_nothing,
    ]);
    bodies_with!(suite, format!("group::{}", mode.name()), mode, short_with: [
        a_callback_that_takes_longer_than_the_session_loses_nothing,
    ]);
    if mode.is_classic() {
        bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
            closing_before_the_first_assignment_calls_nothing_and_leaves,
            closing_while_joining_ends_in_time_and_the_others_go_on,
        ]);
    }
}

async fn closing_before_the_first_assignment_calls_nothing_and_leaves(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let work = Work::new(cluster, mode, 2).await?;
    let plan = work.plan();
    let quiet = tontine_testkit::proxy::Proxy::start(&work.cluster.bootstrap_servers())?;
    let join = quiet.on(ApiKey::SyncGroup, 1, Action::HoldRequest);
    let a = Member::start(&work.history, "a", plan.set("bootstrap.servers", quiet.bootstrap_servers()))?;
    join.met(1, SOON).await?;
    let closed = wait::within("close returns", SOON, a.close()).await??;
    ensure!(closed.is_ok(), "close returned {closed:?}");
    ensure_eq!(work.history.shapes("a").len(), 0, "callbacks of a member that never had anything");
    join.release();
    work.cluster.plain().until_group(&work.group, "Empty", 0).await?;
    Ok(())
}

async fn closing_while_joining_ends_in_time_and_the_others_go_on(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let plan = || work.plan().set("session.timeout.ms", "2000");
    // A commit would wait for the end of the rebalance, and the application would not get to its close.
    let a = Member::start(&work.history, "a", plan().commit(Commit::InRevoked))?;
    work.until_shared(&["a"], 4).await?;
    work.until_more(20).await?;
    let join = a.proxy().on(ApiKey::JoinGroup, 1, Action::HoldAnswer);
    let _b = Member::start(&work.history, "b", plan())?;
    join.met(1, SOON).await?;
    let closed = wait::within("close returns", SOON, a.close()).await??;
    ensure!(closed.is_ok(), "close returned {closed:?}");
    join.release();
    work.until_shared(&["b"], 4).await?;
    work.until_more(20).await?;
    work.finish().await?.check()?;
    Ok(())
}

/// Nothing that the member sends arrives; its close gives up when its time is over.
async fn closing_without_a_network_ends_in_time(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    a.freeze().await?;
    let limit = Duration::from_secs(2);
    let closing = a.with(move |consumer| Box::pin(async move { consumer.close_with(limit).await.is_ok() }));
    wait::within("close returns", SOON, closing).await??;
    let shape = work.history.shapes("a").join(" ");
    ensure!(shape == "A(4) R(4)" || shape == "A(4) L(4)", "callbacks of a member that was cut off: {shape}");
    Ok(())
}

async fn closing_twice_is_closing_once(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    a.stop_polling().await?;
    for _ in 0..2 {
        a.attempt("close", |consumer| Box::pin(consumer.close())).await?;
    }
    let refused =
        a.with(|consumer| Box::pin(async move { consumer.poll(Duration::ZERO).await.is_err() })).await?;
    ensure!(refused, "a poll of a closed consumer is refused");
    ensure_eq!(work.history.shapes("a"), ["A(4)", "R(4)"], "callbacks");
    work.cluster.plain().until_group(&work.group, "Empty", 0).await?;
    Ok(())
}

fn called(events: &[Event], callback: Callback) -> usize {
    events.iter().filter(|event| matches!(&event.what, What::Called(which, _) if *which == callback)).count()
}

/// The order that the member is given interrupts its poll while the callback waits.
async fn a_poll_that_is_dropped_in_a_callback_runs_it_again(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let plan = work.plan();
    let (gate, closed) = watch::channel(false);
    plan.next(Callback::Assigned, In::Wait(closed));
    let a = Member::start(&work.history, "a", plan)?;
    let begun = |times| move |events: &[Event]| (called(events, Callback::Assigned) == times).then_some(());
    work.history.until("the callback has begun", SOON, begun(1)).await?;
    a.with(|_| Box::pin(async {})).await?;
    work.history.until("the callback has begun again", SOON, begun(2)).await?;
    let shapes = work.history.shapes("a");
    ensure_eq!(shapes, ["A(4)", "A(4)"], "the callback that was dropped and its repetition");
    work.finish().await?.check()?;
    drop(gate);
    Ok(())
}

async fn a_callback_that_takes_longer_than_the_session_loses_nothing(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.shorten_sessions().await?;
    work.produce_on_and_on();
    let plan = || work.plan().set("session.timeout.ms", "1000").set("heartbeat.interval.ms", "200");
    let slow = plan();
    let (gate, closed) = watch::channel(false);
    slow.next(Callback::Revoked, In::Wait(closed));
    let _a = Member::start(&work.history, "a", slow)?;
    work.until_shared(&["a"], 4).await?;
    work.until_more(10).await?;
    let _b = Member::start(&work.history, "b", plan())?;
    let revoked = |events: &[Event]| (called(events, Callback::Revoked) == 1).then_some(());
    work.history.until("a is being revoked", SOON, revoked).await?;
    wait::while_nothing_happens(Duration::from_millis(2000)).await;
    gate.send_replace(true);
    work.until_shared(&["a", "b"], 2).await?;
    work.until_more(10).await?;
    let lost = work.history.shapes("a").iter().any(|shape| shape.starts_with('L'));
    ensure!(!lost, "a lost nothing while its callback took its time");
    work.finish().await?.check()?;
    Ok(())
}

async fn commits_that_nobody_waits_for_never_overtake_each_other(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 1).await?;
    work.cluster.plain().fill(&work.topic, 1, 100).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 100, SOON).await?;
    let partition = work.partitions[0].clone();
    let held = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldAnswer);
    let (done, mut all) = watch::channel(0);
    a.with(move |consumer| {
        Box::pin(async move {
            for offset in 1..=100i64 {
                let commit = consumer.commit_async_offsets([(partition.clone(), offset)]);
                let done = done.clone();
                tokio::spawn(async move {
                    if commit.await.is_ok() {
                        done.send_modify(|count| *count += 1);
                    }
                });
            }
        })
    })
    .await?;
    held.met(1, SOON).await?;
    held.release();
    let _ = wait::within("every commit is stored", SOON, all.wait_for(|count| *count == 100)).await?;
    let committed = work.cluster.plain().committed_in(&work.group, &work.topic).await?;
    ensure_eq!(committed.get(&0), Some(&100), "what is committed in the end");
    Ok(())
}

async fn pausing_and_resuming_loses_nothing(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    for round in 0..6 {
        work.until_more(10).await?;
        a.attempt("pause and resume", move |consumer| {
            Box::pin(async move {
                let all: Vec<_> = consumer.assignment().into_iter().collect();
                let (paused, others): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|p| p.partition() % 2 == round % 2);
                consumer.pause(&paused)?;
                consumer.resume(&others)
            })
        })
        .await?;
    }
    a.attempt("resume", |consumer| {
        Box::pin(async move {
            let all: Vec<_> = consumer.assignment().into_iter().collect();
            consumer.resume(&all)
        })
    })
    .await?;
    let _b = work.member("b")?;
    work.until_shared(&["a", "b"], 2).await?;
    let evidence: Evidence = work.finish().await?;
    evidence.check()?;
    ensure!(shapes(&evidence.events, "a").len() >= 2, "the group has rebalanced");
    Ok(())
}
