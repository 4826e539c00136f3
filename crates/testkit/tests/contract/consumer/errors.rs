//! Epochs that are out of date, settings that the coordinator refuses, brokers that do not have the protocol.

use crate::group::{SOON, Work};
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{CommitResult, Event, What};
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::proxy::Action;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies, ensure, ensure_eq};
use tontine_wire::ErrorCode;
use tontine_wire::api::{ApiKey, consumer_group_heartbeat::ConsumerGroupHeartbeatRequest};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "consumer", one: [
        a_stale_commit_is_sent_again_under_the_newer_epoch,
        a_stale_read_of_committed_offsets_is_asked_again,
        a_lost_answer_to_a_heartbeat_costs_no_callback,
        an_unknown_assignor_is_a_clear_error,
        the_coordinators_assignor_can_be_chosen,
        a_broker_without_the_protocol_is_a_clear_error,
        both_protocols_fall_back_to_the_classic_one,
        a_classic_group_that_is_not_moved_takes_a_member_of_both_protocols,
        a_regular_expression_that_cannot_be_read_is_a_clear_error,
        an_expression_with_quoted_text_means_it,
    ]);
}

async fn work(cluster: Cluster, partitions: i32) -> Result<Work, Failure> {
    Work::new(cluster, Mode::Consumer, partitions).await
}

async fn a_stale_commit_is_sent_again_under_the_newer_epoch(cluster: Cluster) -> Outcome {
    let work = work(cluster, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let a = Member::start(&work.history, "a", work.plan().commit(Commit::Never))?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    let rule = a.proxy().on(ApiKey::OffsetCommit, 2, Action::AnswerCode(ErrorCode::STALE_MEMBER_EPOCH));
    ensure_eq!(a.commit().await?, CommitResult::Stored, "a commit that was refused twice as stale");
    ensure_eq!(rule.count(), 2, "commits that were refused");
    let committed = work.cluster.plain().committed_in(&work.group, &work.topic).await?;
    ensure_eq!(committed, (0..4).map(|p| (p, 10)).collect(), "what is committed");
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_stale_read_of_committed_offsets_is_asked_again(cluster: Cluster) -> Outcome {
    let work = work(cluster, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let quiet = tontine_testkit::proxy::Proxy::start(&work.cluster.bootstrap_servers())?;
    let rule = quiet.on(ApiKey::OffsetFetch, 2, Action::AnswerCode(ErrorCode::STALE_MEMBER_EPOCH));
    let plan = work.plan().set("bootstrap.servers", quiet.bootstrap_servers());
    let _a = Member::start(&work.history, "a", plan)?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    ensure_eq!(rule.count(), 2, "reads that were refused");
    ensure_eq!(failures(&work.history.events(), ""), 0, "errors that poll has reported");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_lost_answer_to_a_heartbeat_costs_no_callback(cluster: Cluster) -> Outcome {
    let mut work = work(cluster, 4).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    for _ in 0..3 {
        let held = a.proxy().on(ApiKey::ConsumerGroupHeartbeat, 1, Action::HoldAnswer);
        held.met(1, SOON).await?;
        a.proxy().cut();
        work.until_more(10).await?;
    }
    let _b = work.member("b")?;
    work.until_shared(&["a", "b"], 2).await?;
    work.finish().await?.check()?;
    ensure_eq!(work.history.shapes("a"), ["A(4)", "R(2)", "A(0)"], "callbacks");
    Ok(())
}

/// How often `poll` has reported something with this in it.
fn failures(events: &[Event], text: &str) -> usize {
    events.iter().filter(|event| matches!(&event.what, What::Failed(why) if why.contains(text))).count()
}

async fn until_failed(work: &Work, text: &str) -> Result<(), Failure> {
    let what = format!("poll reports an error with `{text}` in it");
    work.history.until(&what, SOON, |events| (failures(events, text) > 0).then_some(())).await
}

async fn an_unknown_assignor_is_a_clear_error(cluster: Cluster) -> Outcome {
    let work = work(cluster, 4).await?;
    let _a = Member::start(&work.history, "a", work.plan().set("group.remote.assignor", "foo"))?;
    until_failed(&work, "foo is not supported").await?;
    ensure!(work.history.shapes("a").is_empty(), "nothing is called");
    Ok(())
}

async fn the_coordinators_assignor_can_be_chosen(cluster: Cluster) -> Outcome {
    let work = work(cluster, 4).await?;
    let plan = || work.plan().set("group.remote.assignor", "range");
    let _a = Member::start(&work.history, "a", plan())?;
    let _b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 2).await?;
    let described = work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    ensure_eq!(described.protocol_data, "range", "the assignor that the coordinator uses");
    let numbers: Vec<i32> = work.history.owned_by("a").iter().map(|tp| tp.partition()).collect();
    ensure!(numbers == [0, 1] || numbers == [2, 3], "range deals neighbours: {numbers:?}");
    Ok(())
}

async fn a_regular_expression_that_cannot_be_read_is_a_clear_error(cluster: Cluster) -> Outcome {
    let group = cluster.unique("regex");
    cluster.until_coordinated(&group).await?;
    let mut connection = cluster.coordinator(&group).await?;
    let refusals = [
        ("a{1001}", "invalid repeat count"),
        ("[", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        (r"\Z", "invalid escape sequence"),
    ];
    for (expression, why) in refusals {
        let join = ConsumerGroupHeartbeatRequest {
            group_id: group.clone(),
            member_id: "m".to_owned(),
            rebalance_timeout_ms: 30_000,
            subscribed_topic_regex: Some(expression.to_owned()),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        let refused = connection.call(1, join).await?;
        ensure_eq!(refused.error_code, ErrorCode::INVALID_REGULAR_EXPRESSION, "the answer to {expression}");
        let expected =
            format!("SubscribedTopicRegex `{expression}` is not a valid regular expression: {why}.");
        ensure_eq!(refused.error_message.unwrap_or_default(), expected, "what it says");
    }
    Ok(())
}

async fn an_expression_with_quoted_text_means_it(cluster: Cluster) -> Outcome {
    let work = work(cluster, 4).await?;
    let pattern = format!(r"\Q{}\E|\w{{1,249}}\d\.none", work.topic);
    let _a = Member::start(&work.history, "a", work.plan_for(&[]).pattern(&pattern))?;
    work.until_shared(&["a"], 4).await?;
    Ok(())
}

async fn a_broker_without_the_protocol_is_a_clear_error(cluster: Cluster) -> Outcome {
    let work = work(cluster, 4).await?;
    let old = tontine_testkit::proxy::Proxy::start(&work.cluster.bootstrap_servers())?;
    let _rule = old.on(
        ApiKey::ConsumerGroupHeartbeat,
        usize::MAX,
        Action::AnswerCode(ErrorCode::UNSUPPORTED_VERSION),
    );
    let plan = work.plan().set("bootstrap.servers", old.bootstrap_servers());
    let a = Member::start(&work.history, "a", plan)?;
    until_failed(&work, "does not support group.protocol=consumer").await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    Ok(())
}

async fn both_protocols_fall_back_to_the_classic_one(cluster: Cluster) -> Outcome {
    let mut work = work(cluster, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let old = tontine_testkit::proxy::Proxy::start(&work.cluster.bootstrap_servers())?;
    let rule = old.on(
        ApiKey::ConsumerGroupHeartbeat,
        usize::MAX,
        Action::AnswerCode(ErrorCode::UNSUPPORTED_VERSION),
    );
    let plan = || {
        let plan = work.plan().set("group.protocol", "consumer,classic");
        plan.set("bootstrap.servers", old.bootstrap_servers())
    };
    let _a = Member::start(&work.history, "a", plan())?;
    work.until_shared(&["a"], 4).await?;
    let _b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 2).await?;
    let described = work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    ensure_eq!(described.protocol_data, "cooperative-sticky", "the assignor that the group has chosen");
    ensure_eq!(rule.count(), 2, "tries with the other protocol");
    work.finish().await?.check()?;
    Ok(())
}

/// As with `group.consumer.migration.policy=disabled`, which the brokers of these tests do not have.
async fn a_classic_group_that_is_not_moved_takes_a_member_of_both_protocols(cluster: Cluster) -> Outcome {
    let mut work = work(cluster, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    let classic = work.plan().set("group.protocol", "classic");
    let classic = classic.set("partition.assignment.strategy", "cooperative-sticky");
    let _a = Member::start(&work.history, "a", classic)?;
    work.until_shared(&["a"], 4).await?;
    let fixed = tontine_testkit::proxy::Proxy::start(&work.cluster.bootstrap_servers())?;
    let rule = fixed.on(
        ApiKey::ConsumerGroupHeartbeat,
        usize::MAX,
        Action::AnswerCode(ErrorCode::GROUP_ID_NOT_FOUND),
    );
    let plan = |protocol| {
        let plan = work.plan().set("group.protocol", protocol);
        plan.set("bootstrap.servers", fixed.bootstrap_servers())
    };
    let _b = Member::start(&work.history, "b", plan("consumer,classic"))?;
    work.until_shared(&["a", "b"], 2).await?;
    let described = work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    ensure_eq!(described.protocol_data, "cooperative-sticky", "the assignor that the group has chosen");
    ensure_eq!(rule.count(), 1, "tries with the other protocol");
    let _c = Member::start(&work.history, "c", plan("consumer"))?;
    until_failed(&work, "consumer,classic").await?;
    work.finish().await?.check()?;
    Ok(())
}
