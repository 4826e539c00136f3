//! Commits while the group is between two generations: what is refused here, what the broker refuses, and that neither
//! costs a partition.

use super::{SOON, Work};
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::CommitResult;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::proxy::Action;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::api::ApiKey;

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
        a_commit_while_joining_is_refused_and_is_stored_afterwards,
        a_commit_of_an_old_generation_that_arrives_late_fails_and_costs_nothing,
        a_commit_that_the_broker_answers_with_a_rebalance_fails_and_costs_nothing,
        a_commit_before_the_first_poll_is_refused,
    ]);
}

/// An eager member has given everything up when it joins: its commit is not even sent. A cooperative one has kept its
/// partitions and may commit them; here the coordinator has moved on, and the commit fails without costing anything.
async fn a_commit_while_joining_is_refused_and_is_stored_afterwards(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let join = a.proxy().on(ApiKey::JoinGroup, 1, Action::HoldAnswer);
    let sent = a.proxy().on(ApiKey::OffsetCommit, usize::MAX, Action::Edit(std::sync::Arc::new(|_| {})));
    let _b = Member::start(&work.history, "b", work.plan().commit(Commit::Never))?;
    join.met(1, SOON).await?;
    a.stop_polling().await?;
    let first = tontine::TopicPartition::new(work.topic.as_str(), 0);
    let refused = a
        .with(move |consumer| Box::pin(async move { consumer.commit_sync_offsets([(first, 5)]).await }))
        .await?;
    ensure!(
        matches!(refused, Err(tontine::Error::RebalanceInProgress)),
        "a commit while joining ended with {refused:?}"
    );
    ensure_eq!(sent.count(), mode.pick(0, 1), "commits that were sent");
    ensure_eq!(work.cluster.plain().committed(&work.group).await?.len(), 0, "offsets that are committed");
    join.release();
    a.go_on_polling()?;
    work.until_shared(&["a", "b"], 2).await?;
    ensure_eq!(a.commit().await?, CommitResult::Stored, "a commit when the rebalance is over");
    Evidence::of(&work.history).check()?;
    Ok(())
}

/// A commit is on its way for so long that the member is in the next generation when the coordinator reads it.
async fn a_commit_of_an_old_generation_that_arrives_late_fails_and_costs_nothing(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let late = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldRequest);
    let (result, mut ended) = tokio::sync::watch::channel(None);
    a.attempt("start a commit and a rebalance", move |consumer| {
        Box::pin(async move {
            let commit = consumer.commit_async();
            tokio::spawn(async move { result.send_replace(Some(commit.await.map_err(|e| e.to_string()))) });
            consumer.enforce_rebalance("a test wants it")
        })
    })
    .await?;
    late.met(1, SOON).await?;
    work.history.until_shapes("a", 0, mode.pick("A(4) R(4) A(4)", "A(4) A(0)"), SOON).await?;
    late.release();
    let ended =
        tontine_testkit::wait::within("the commit ends", SOON, ended.wait_for(Option::is_some)).await?;
    let ended = ended.map_err(|_| tontine_testkit::failure!("the commit was forgotten"))?.clone();
    ensure!(ended.as_ref().is_some_and(Result::is_err), "the late commit ended with {ended:?}");
    ensure_eq!(a.commit().await?, CommitResult::Stored, "the next commit");
    ensure_eq!(work.history.shapes("a").len(), mode.pick(3, 2), "callbacks, all in all");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_commit_that_the_broker_answers_with_a_rebalance_fails_and_costs_nothing(
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
    ensure!(
        matches!(&refused, CommitResult::Refused(why) if why.contains("rebalancing")),
        "the commit ended with {refused:?}"
    );
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
