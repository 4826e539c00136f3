//! Memberships that the coordinator ends: what the member is answered, and what its application is told.

use super::{SOON, Work};
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{CommitResult, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::proxy::Action;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::api::ApiKey;

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
        a_coordinator_that_has_moved_is_looked_up_again_without_a_callback,
        a_coordinator_that_loads_is_waited_for_without_a_callback,
        a_member_that_was_stopped_for_a_while_loses_nothing_within_its_session,
    ]);
    bodies_with!(suite, format!("group::{}", mode.name()), mode, short_with: [
        a_heartbeat_answered_unknown_member_loses_everything_once_and_the_member_joins_again,
        a_heartbeat_answered_illegal_generation_loses_everything_once_and_the_member_joins_again,
        a_commit_answered_unknown_member_is_refused_and_everything_is_lost_once,
    ]);
    if mode.is_classic() {
        bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
            a_sync_answered_illegal_generation_is_no_loss_of_what_was_not_there,
            a_static_member_that_restarts_within_its_session_disturbs_nobody,
            a_static_twin_ends_the_older_one,
        ]);
    }
}

async fn heartbeat_is_answered(cluster: Cluster, mode: Mode, code: ErrorCode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.shorten_sessions().await?;
    work.produce_on_and_on();
    // The coordinator still has the member that it seems to have forgotten, until that one's session is over.
    let plan = work.plan().set("session.timeout.ms", "1000").set("heartbeat.interval.ms", "200");
    let a = Member::start(&work.history, "a", plan)?;
    work.until_shared(&["a"], 4).await?;
    work.until_more(10).await?;
    let rule = a.proxy().on(mode.heartbeat(), 1, Action::AnswerCode(code));
    rule.met(1, SOON).await?;
    work.history.until_shapes("a", 1, "L(4) A(4)", SOON).await?;
    work.until_more(10).await?;
    ensure_eq!(rule.count(), 1, "heartbeats that were refused");
    work.finish().await?.check()?;
    Ok(())
}

async fn a_heartbeat_answered_unknown_member_loses_everything_once_and_the_member_joins_again(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    heartbeat_is_answered(cluster, mode, ErrorCode::UNKNOWN_MEMBER_ID).await
}

async fn a_heartbeat_answered_illegal_generation_loses_everything_once_and_the_member_joins_again(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let illegal = ErrorCode::ILLEGAL_GENERATION;
    let code = mode.pick3(illegal, illegal, ErrorCode::FENCED_MEMBER_EPOCH);
    heartbeat_is_answered(cluster, mode, code).await
}

async fn a_sync_answered_illegal_generation_is_no_loss_of_what_was_not_there(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let quiet = tontine_testkit::proxy::Proxy::start(&work.cluster.bootstrap_servers())?;
    let _rule = quiet.on(ApiKey::SyncGroup, 1, Action::AnswerCode(ErrorCode::ILLEGAL_GENERATION));
    let plan = work.plan().set("bootstrap.servers", quiet.bootstrap_servers());
    let _a = Member::start(&work.history, "a", plan)?;
    work.until_shared(&["a"], 4).await?;
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks of a newcomer whose first sync was refused");
    work.finish().await?.check()?;
    Ok(())
}

async fn a_commit_answered_unknown_member_is_refused_and_everything_is_lost_once(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    work.shorten_sessions().await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let plan = work.plan().set("session.timeout.ms", "1000").set("heartbeat.interval.ms", "200");
    let a = Member::start(&work.history, "a", plan.commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let _rule = a.proxy().on(ApiKey::OffsetCommit, 1, Action::AnswerCode(ErrorCode::UNKNOWN_MEMBER_ID));
    let refused = a.commit().await?;
    ensure!(matches!(refused, CommitResult::Refused(_)), "the commit ended with {refused:?}");
    work.history.until_shapes("a", 1, "L(4) A(4)", SOON).await?;
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_coordinator_that_has_moved_is_looked_up_again_without_a_callback(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    for key in [mode.heartbeat(), ApiKey::OffsetCommit] {
        let lookups = a.proxy().on(ApiKey::FindCoordinator, 1, Action::Edit(std::sync::Arc::new(|_| {})));
        let rule = a.proxy().on(key, 1, Action::AnswerCode(ErrorCode::NOT_COORDINATOR));
        rule.met(1, SOON).await?;
        lookups.met(1, SOON).await?;
        work.until_more(10).await?;
    }
    work.finish().await?.check()?;
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks");
    Ok(())
}

async fn a_coordinator_that_loads_is_waited_for_without_a_callback(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    for key in [mode.heartbeat(), ApiKey::OffsetCommit, ApiKey::OffsetCommit] {
        let rule = a.proxy().on(key, 2, Action::AnswerCode(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
        rule.met(2, SOON).await?;
        work.until_more(10).await?;
    }
    work.finish().await?.check()?;
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks");
    let failed = work.history.events().into_iter().filter(|event| matches!(event.what, What::Failed(_)));
    ensure_eq!(failed.count(), 0, "errors that poll has reported");
    Ok(())
}

async fn a_member_that_was_stopped_for_a_while_loses_nothing_within_its_session(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    work.until_more(10).await?;
    a.freeze().await?;
    tontine_testkit::wait::while_nothing_happens(std::time::Duration::from_millis(1500)).await;
    a.thaw();
    a.go_on_polling()?;
    work.until_more(10).await?;
    work.finish().await?.check()?;
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks");
    Ok(())
}

async fn a_static_member_that_restarts_within_its_session_disturbs_nobody(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let plan = |instance: &str| work.plan().set("group.instance.id", instance);
    let _a = Member::start(&work.history, "a", plan("one"))?;
    work.until_shared(&["a"], 4).await?;
    let b = Member::start(&work.history, "b", plan("two"))?;
    work.until_shared(&["a", "b"], 2).await?;
    work.until_more(10).await?;
    work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    tontine_testkit::wait::while_nothing_happens(std::time::Duration::from_millis(800)).await;
    let seen = work.history.shapes("a").len();
    b.kill();
    let _back = Member::start(&work.history, "back", plan("two"))?;
    work.until_shared(&["a", "back"], 2).await?;
    work.until_more(10).await?;
    ensure_eq!(work.history.shapes("a").len(), seen, "callbacks of the one who stayed, all in all");
    work.finish().await?.check()?;
    Ok(())
}

async fn a_static_twin_ends_the_older_one(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    let plan = || work.plan().set("group.instance.id", "one");
    let old = Member::start(&work.history, "old", plan())?;
    work.until_shared(&["old"], 4).await?;
    let _new = Member::start(&work.history, "new", plan())?;
    work.history
        .until("the older twin is told that it was fenced", SOON, |events| {
            let told = |event: &&tontine_testkit::history::Event| {
                &*event.member == "old" && matches!(&event.what, What::Failed(why) if why.contains("fenced"))
            };
            events.iter().find(told).map(drop)
        })
        .await?;
    let _ = old.close().await?;
    ensure_eq!(work.history.shapes("old"), ["A(4)", "L(4)"], "callbacks of the older twin");
    work.until_shared(&["new"], 4).await?;
    Evidence::of(&work.history).check()?;
    Ok(())
}
