//! Groups whose members are not alike: other topics, other assignors, one release after the other.

use super::{SOON, Work};
use crate::mode::Mode;
use tontine_group::TopicPartition;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::{Commit, Member, Plan};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure, ensure_eq};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "group", one: [
        a_group_goes_from_eager_to_cooperative_one_member_at_a_time,
        members_with_different_topics_get_only_what_they_asked_for,
        a_member_without_an_assignor_in_common_is_refused_and_the_group_goes_on,
        kept_partitions_flow_while_a_callback_lingers_elsewhere,
    ]);
}

fn offering(work: &Work, assignors: &str) -> Plan {
    let plan = Plan::new(&work.cluster.bootstrap_servers(), &work.group, &[&work.topic]);
    plan.assignor(assignors).commit(Commit::EachPollAndInRevoked)
}

/// First everybody offers both, one restart after the other; then the old one is dropped, one restart after the other.
async fn a_group_goes_from_eager_to_cooperative_one_member_at_a_time(cluster: Cluster) -> Outcome {
    let mut work = Work::new(cluster, Mode::Eager, 6).await?;
    work.produce_on_and_on();
    let mut a = Member::start(&work.history, "a1", offering(&work, "range"))?;
    let mut b = Member::start(&work.history, "b1", offering(&work, "range"))?;
    work.until_shared(&["a1", "b1"], 3).await?;
    let both = "cooperative-sticky,range";
    let steps = [("a2", both), ("b2", both), ("a3", "cooperative-sticky"), ("b3", "cooperative-sticky")];
    for (number, (name, assignors)) in steps.into_iter().enumerate() {
        work.until_more(20).await?;
        let next = Member::start(&work.history, name, offering(&work, assignors))?;
        let gone =
            if number % 2 == 0 { std::mem::replace(&mut a, next) } else { std::mem::replace(&mut b, next) };
        ensure!(gone.close().await?.is_ok(), "close is fine");
        work.until_shared(&[a.name(), b.name()], 3).await?;
    }
    let described = work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    ensure_eq!(described.protocol_data, "cooperative-sticky", "the assignor in the end");
    work.until_more(20).await?;
    work.finish().await?.check()?;
    Ok(())
}

async fn members_with_different_topics_get_only_what_they_asked_for(cluster: Cluster) -> Outcome {
    let work = Work::new(cluster, Mode::Cooperative, 4).await?;
    let other = work.cluster.topic("other", 4).await?;
    let plan = |topics: &[&str]| work.plan_for(topics);
    let _a = Member::start(&work.history, "a", plan(&[&work.topic]))?;
    let _b = Member::start(&work.history, "b", plan(&[&work.topic, &other]))?;
    let _c = Member::start(&work.history, "c", plan(&[&other]))?;
    let all = work.partitions.iter().cloned();
    let all: Vec<_> = all.chain((0..4).map(|p| TopicPartition::new(other.as_str(), p))).collect();
    work.history.until_shared(&all, &["a", "b", "c"], 2, SOON).await?;
    work.cluster.plain().fill(&work.topic, 4, 10).await?;
    work.cluster.plain().fill(&other, 4, 10).await?;
    work.history.until_delivered(&work.topic, 40, SOON).await?;
    work.history.until_delivered(&other, 40, SOON).await?;
    ensure!(work.history.owned_by("a").iter().all(|tp| tp.topic() == work.topic), "a has its own topic only");
    ensure!(work.history.owned_by("c").iter().all(|tp| tp.topic() == other), "c has its own topic only");
    Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_member_without_an_assignor_in_common_is_refused_and_the_group_goes_on(
    cluster: Cluster,
) -> Outcome {
    let mut work = Work::new(cluster, Mode::Eager, 4).await?;
    work.produce_on_and_on();
    let _a = Member::start(&work.history, "a", offering(&work, "range"))?;
    work.until_shared(&["a"], 4).await?;
    let _b = Member::start(&work.history, "b", offering(&work, "roundrobin"))?;
    work.history
        .until("the second member is told why it cannot join", SOON, |events| {
            let told = |event: &&tontine_testkit::history::Event| {
                &*event.member == "b" && matches!(event.what, tontine_testkit::history::What::Failed(_))
            };
            events.iter().find(told).map(drop)
        })
        .await?;
    work.until_more(20).await?;
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks of the first member");
    work.finish().await?.check()?;
    Ok(())
}

/// The newcomer's assigned callback takes its time; whoever has kept partitions reads on.
async fn kept_partitions_flow_while_a_callback_lingers_elsewhere(cluster: Cluster) -> Outcome {
    let mut work = Work::new(cluster, Mode::Cooperative, 4).await?;
    work.produce_on_and_on();
    let _a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    let slow = work.plan();
    let (gate, closed) = tokio::sync::watch::channel(false);
    let wait = tontine_testkit::member::In::Wait(closed);
    slow.next(tontine_testkit::history::Callback::Assigned, wait.clone());
    slow.next(tontine_testkit::history::Callback::Assigned, wait);
    let _b = Member::start(&work.history, "b", slow)?;
    work.history
        .until("b's callback has begun", SOON, |events| {
            (!tontine_testkit::history::shapes(events, "b").is_empty()).then_some(())
        })
        .await?;
    work.until_more(60).await?;
    let kept = work.history.owned_by("a").len();
    ensure!(kept >= 2, "a has kept {kept} partitions");
    gate.send_replace(true);
    work.until_shared(&["a", "b"], 2).await?;
    work.finish().await?.check()?;
    Ok(())
}
