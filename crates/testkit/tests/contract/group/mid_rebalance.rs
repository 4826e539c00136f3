//! Commits while the group is between two generations: what is refused here, what the broker refuses, and that neither
//! costs a partition.

use super::{SOON, Work};
use crate::mode::Mode;
use tokio::sync::watch;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::CommitResult;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::proxy::Action;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies_with, ensure, ensure_eq, failure};
use tontine_wire::ErrorCode;
use tontine_wire::api::ApiKey;

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
        a_commit_while_joining_is_refused_or_waits,
        a_commit_of_an_old_generation_that_arrives_late_costs_nothing,
        a_commit_that_the_broker_answers_with_a_rebalance_costs_nothing,
        a_commit_before_the_first_poll_is_refused,
    ]);
}

/// An eager member has given everything up when it joins: its commit is refused and not even sent. A cooperative one has
/// kept its partitions, and its commit waits for the end of the rebalance.
async fn a_commit_while_joining_is_refused_or_waits(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let join = a.proxy().on(ApiKey::JoinGroup, 1, Action::HoldAnswer);
    let _b = Member::start(&work.history, "b", work.plan().commit(Commit::Never))?;
    join.met(1, SOON).await?;
    a.stop_polling().await?;
    let first = work.partitions[0].clone();
    let mut ended = start(&a, move |consumer| consumer.commit_async_offsets([(first, 10)])).await?;
    if mode == Mode::Eager {
        ensure!(until_ended(&mut ended).await?.is_err(), "a commit while joining ended well");
        ensure_eq!(work.cluster.plain().committed(&work.group).await?.len(), 0, "offsets that are committed");
    }
    join.release();
    a.go_on_polling()?;
    work.until_shared(&["a", "b"], 2).await?;
    if mode == Mode::Cooperative {
        // The partition may be b's by now; then it was too late, and nobody has heard otherwise.
        let _ = until_ended(&mut ended).await?;
    }
    ensure_eq!(a.commit().await?, CommitResult::Stored, "a commit when the rebalance is over");
    ensure!(!work.history.shapes("a").join(" ").contains('L'), "nothing was lost");
    Evidence::of(&work.history).check()?;
    Ok(())
}

/// How a commit that nobody waits for has ended, when it has.
type Ended = watch::Receiver<Option<Result<(), String>>>;

/// Starts a commit between two polls.
async fn start<F>(a: &Member, commit: F) -> Result<Ended, Failure>
where
    F: FnOnce(&mut tontine::Consumer) -> tontine::CommitFuture + Send + 'static,
{
    let (result, ended) = watch::channel(None);
    a.with(move |consumer| {
        Box::pin(async move {
            let commit = commit(consumer);
            tokio::spawn(async move { result.send_replace(Some(commit.await.map_err(|e| e.to_string()))) });
        })
    })
    .await?;
    Ok(ended)
}

async fn until_ended(ended: &mut Ended) -> Result<Result<(), String>, Failure> {
    let ended =
        tontine_testkit::wait::within("the commit ends", SOON, ended.wait_for(Option::is_some)).await?;
    let ended = ended.map_err(|_| failure!("the commit was forgotten"))?.clone();
    ended.ok_or_else(|| failure!("the commit has not ended"))
}

/// A commit is on its way for so long that the member is in the next generation when the coordinator reads it. An eager
/// member hears that it failed; for a cooperative one it is sent again in the new generation.
async fn a_commit_of_an_old_generation_that_arrives_late_costs_nothing(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let late = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldRequest);
    let mut ended = start(&a, tontine::Consumer::commit_async).await?;
    a.attempt("ask for a rebalance", |consumer| {
        Box::pin(async move { consumer.enforce_rebalance("a test wants it") })
    })
    .await?;
    late.met(1, SOON).await?;
    work.history.until_shapes("a", 0, mode.pick("A(4) R(4) A(4)", "A(4) A(0)"), SOON).await?;
    late.release();
    let ended = until_ended(&mut ended).await?;
    ensure_eq!(ended.is_ok(), mode.pick(false, true), "whether the late commit {ended:?} was stored");
    ensure_eq!(a.commit().await?, CommitResult::Stored, "the next commit");
    ensure_eq!(work.history.shapes("a").len(), mode.pick(3, 2), "callbacks, all in all");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_commit_that_the_broker_answers_with_a_rebalance_costs_nothing(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let _refusal =
        a.proxy().on(ApiKey::OffsetCommit, 1, Action::AnswerCode(ErrorCode::REBALANCE_IN_PROGRESS));
    let refused = a.commit().await?;
    let failed = matches!(&refused, CommitResult::Refused(why) if why.contains("rebalancing"));
    ensure_eq!(failed, mode.pick(true, false), "whether the commit failed ({refused:?})");
    work.until_shared(&["a"], 4).await?;
    tontine_testkit::wait::until("a later commit is stored", SOON, async || {
        matches!(a.commit().await, Ok(CommitResult::Stored)).then_some(())
    })
    .await?;
    ensure!(!work.history.shapes("a").join(" ").contains('L'), "nothing was lost");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_commit_before_the_first_poll_is_refused(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    a.unsubscribe().await?;
    let topic = work.topic.clone();
    let refused = a
        .with(move |consumer| {
            Box::pin(async move {
                let offsets = [(tontine::TopicPartition::new(topic.as_str(), 0), 3)];
                consumer.subscribe_topics([topic.as_str()]).await?;
                consumer.commit_sync_offsets(offsets).await
            })
        })
        .await?;
    ensure!(refused.is_err(), "a commit of somebody who is no member ended well");
    ensure_eq!(work.cluster.plain().committed(&work.group).await?.len(), 0, "offsets that are committed");
    Ok(())
}
