//! Memberships that end without the member: sessions run out, polls do not come.

use super::{SOON, Stage};
use crate::mode::Mode;
use std::sync::Arc;
use tokio::sync::watch;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{Callback, CommitResult, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{In, Member, Plan};
use tontine_testkit::proxy::Action;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies_with, ensure, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::api::Response;

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("listener::{}", mode.name()), mode, one_with: [
        a_member_that_an_admin_removed_has_lost_everything_and_joins_again,
        a_member_that_does_not_poll_leaves_and_joins_again_with_the_next_poll,
        a_member_that_does_not_poll_and_then_closes_has_lost_everything,
        a_commit_in_lost_is_refused_and_moves_nothing,
    ]);
    bodies_with!(suite, format!("listener::{}", mode.name()), mode, short_with: [
        a_member_whose_session_ran_out_has_lost_everything_and_joins_again,
        a_member_whose_session_ran_out_and_that_closes_has_lost_everything,
    ]);
}

fn short_session(stage: &Stage) -> Plan {
    stage.plan().set("session.timeout.ms", "1000").set("heartbeat.interval.ms", "200")
}

fn short_poll(stage: &Stage) -> Plan {
    stage.plan().set("max.poll.interval.ms", "800")
}

/// A member that owned everything and that the coordinator has forgotten, since it was frozen; it does not know yet.
async fn forgotten(stage: &Stage, plan: Plan) -> Result<Member, Failure> {
    stage.shorten_sessions().await?;
    let a = stage.alone("a", plan).await?;
    a.freeze().await?;
    stage.cluster.plain().until_group(&stage.group, "Empty", 0).await?;
    a.thaw();
    Ok(a)
}

/// A member that owned everything and has left because nobody polled it.
async fn gone_idle(stage: &Stage, plan: Plan) -> Result<Member, Failure> {
    let a = stage.alone("a", plan).await?;
    a.stop_polling().await?;
    stage.cluster.plain().until_group(&stage.group, "Empty", 0).await?;
    Ok(a)
}

async fn a_member_whose_session_ran_out_has_lost_everything_and_joins_again(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = forgotten(&stage, short_session(&stage)).await?;
    a.go_on_polling()?;
    stage.until_shapes("a", 1, "L(6) A(6)").await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_member_whose_session_ran_out_and_that_closes_has_lost_everything(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.shorten_sessions().await?;
    let a = stage.alone("a", short_session(&stage)).await?;
    let (heard, mut told) = watch::channel(false);
    let listen = move |response: &mut Response| {
        let code = match response {
            Response::Heartbeat(answer) => answer.error_code,
            Response::ConsumerGroupHeartbeat(answer) => answer.error_code,
            _ => ErrorCode::NONE,
        };
        heard.send_if_modified(|heard| {
            code == ErrorCode::UNKNOWN_MEMBER_ID && !std::mem::replace(heard, true)
        });
    };
    let _rule = a.proxy().on(mode.heartbeat(), usize::MAX, Action::Edit(Arc::new(listen)));
    a.freeze().await?;
    stage.cluster.plain().until_group(&stage.group, "Empty", 0).await?;
    a.thaw();
    // The answer to a heartbeat tells it; a close before that could not know.
    let expelled = told.wait_for(|told| *told);
    let _ = tontine_testkit::wait::within("a heartbeat is refused", SOON, expelled).await?;
    tontine_testkit::wait::while_nothing_happens(std::time::Duration::from_millis(200)).await;
    let _ = a.close().await?;
    ensure_eq!(stage.history.shapes("a")[1..], ["L(6)"], "callbacks in close");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_member_that_an_admin_removed_has_lost_everything_and_joins_again(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let _a = stage.alone("a", stage.plan()).await?;
    stage.cluster.plain().remove_all_members(&stage.group).await?;
    stage.until_shapes("a", 1, "L(6) A(6)").await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_member_that_does_not_poll_leaves_and_joins_again_with_the_next_poll(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = gone_idle(&stage, short_poll(&stage)).await?;
    ensure_eq!(stage.history.shapes("a").len(), 1, "callbacks before the next poll");
    a.go_on_polling()?;
    stage.until_shapes("a", 1, "L(6) A(6)").await?;
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_member_that_does_not_poll_and_then_closes_has_lost_everything(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    let a = gone_idle(&stage, short_poll(&stage)).await?;
    let _ = a.close().await?;
    ensure_eq!(stage.history.shapes("a")[1..], ["L(6)"], "callbacks in close");
    Evidence::of(&stage.history).check()?;
    Ok(())
}

async fn a_commit_in_lost_is_refused_and_moves_nothing(cluster: Cluster, mode: Mode) -> Outcome {
    let stage = Stage::new(cluster, mode).await?;
    stage.cluster.plain().fill(&stage.cb, 4, 10).await?;
    let plan = short_poll(&stage).commit(tontine_testkit::member::Commit::Never);
    plan.next(Callback::Lost, In::Commit);
    let a = stage.alone("a", plan).await?;
    stage.history.until_delivered(&stage.cb, 40, SOON).await?;
    a.stop_polling().await?;
    stage.cluster.plain().until_group(&stage.group, "Empty", 0).await?;
    a.go_on_polling()?;
    stage.until_shapes("a", 1, "L(6) A(6)").await?;
    let events = stage.history.events();
    let ended = events.iter().find_map(|event| match &event.what {
        What::CommitEnded(_, result) => Some(result.clone()),
        _ => None,
    });
    ensure!(matches!(ended, Some(CommitResult::Refused(_))), "the commit in lost ended with {ended:?}");
    ensure_eq!(stage.cluster.plain().committed(&stage.group).await?.len(), 0, "offsets that are committed");
    Ok(())
}
