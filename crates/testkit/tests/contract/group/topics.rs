//! Topics that appear, grow, vanish and come back, by name and by pattern.

use super::{SOON, Work};
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::member::Member;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure_eq};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
        a_topic_that_appears_later_is_read_from_its_beginning,
        topics_that_match_a_pattern_come_and_go,
        a_topic_that_was_deleted_and_made_again_is_read_from_its_beginning,
        a_topic_that_grows_is_read_completely,
        subscribing_again_and_again_ends_with_the_last_subscription,
    ]);
}

async fn a_topic_that_appears_later_is_read_from_its_beginning(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 1).await?;
    let later = work.cluster.unique("later");
    let _a = Member::start(&work.history, "a", work.plan_for(&[&later]))?;
    work.cluster.plain().until_group(&work.group, "Stable", 1).await?;
    let client = work.cluster.plain();
    client.create_topic(&later, 2, work.cluster.node_ids().len() as i16, &[]).await?;
    client.fill(&later, 2, 20).await?;
    work.history.until_delivered(&later, 40, SOON).await?;
    let ends = client.end_offsets(&later).await?;
    Evidence::of(&work.history).produced_up_to(&later, &ends).check()?;
    Ok(())
}

async fn topics_that_match_a_pattern_come_and_go(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 1).await?;
    let client = work.cluster.plain();
    let stem = work.cluster.unique("match").replace('-', "_");
    let plan = work.plan_for(&[]).pattern(&format!("{stem}_.*"));
    let a = Member::start(&work.history, "a", plan)?;
    let replicas = work.cluster.node_ids().len() as i16;
    let (first, second) = (format!("{stem}_one"), format!("{stem}_two"));
    client.create_topic(&first, 2, replicas, &[]).await?;
    client.fill(&first, 2, 10).await?;
    work.history.until_delivered(&first, 20, SOON).await?;
    client.create_topic(&second, 2, replicas, &[]).await?;
    client.fill(&second, 2, 10).await?;
    work.history.until_delivered(&second, 20, SOON).await?;
    client.delete_topic(&first).await?;
    work.history
        .until("the deleted topic is given back", SOON, |events| {
            let held = tontine_testkit::history::ownerships(events);
            let open = |o: &&tontine_testkit::history::Ownership| {
                o.end == tontine_testkit::history::OwnershipEnd::Open
            };
            let topics: Vec<&str> = held.iter().filter(open).map(|o| o.partition.topic()).collect();
            (topics == [second.as_str(), second.as_str()]).then_some(())
        })
        .await?;
    let _ = a.close().await?;
    Evidence::of(&work.history).check()?;
    Ok(())
}

/// Nothing of the old topic is left: neither its committed offset nor a position.
async fn a_topic_that_was_deleted_and_made_again_is_read_from_its_beginning(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let work = Work::new(cluster, mode, 2).await?;
    let client = work.cluster.plain();
    client.fill(&work.topic, 2, 30).await?;
    let _a = work.member("a")?;
    work.history.until_delivered(&work.topic, 60, SOON).await?;
    client.delete_topic(&work.topic).await?;
    client.create_topic(&work.topic, 2, work.cluster.node_ids().len() as i16, &[]).await?;
    client.fill(&work.topic, 2, 10).await?;
    let topic = work.topic.clone();
    work.history
        .until("the first ten records are delivered twice, once of each topic", SOON, |events| {
            use tontine_testkit::history::What;
            let again = events.iter().filter(|event| {
                matches!(&event.what, What::Delivered(tp, offsets) if tp.topic() == topic && offsets.first() == Some(&0))
            });
            (again.count() >= 4).then_some(())
        })
        .await?;
    Ok(())
}

async fn a_topic_that_grows_is_read_completely(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 2).await?;
    let client = work.cluster.plain();
    client.fill(&work.topic, 2, 10).await?;
    let _a = work.member("a")?;
    let _b = work.member("b")?;
    work.until_shared(&["a", "b"], 1).await?;
    client.create_partitions(&work.topic, 6).await?;
    client.fill(&work.topic, 6, 10).await?;
    work.partitions = (0..6).map(|p| tontine_group::TopicPartition::new(work.topic.as_str(), p)).collect();
    work.until_shared(&["a", "b"], 3).await?;
    work.finish().await?.check()?;
    Ok(())
}

async fn subscribing_again_and_again_ends_with_the_last_subscription(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 2).await?;
    let other = work.cluster.topic("other", 2).await?;
    let a = work.member("a")?;
    let _b = work.member("b")?;
    for round in 0..10 {
        let topics: &[&str] = match round % 3 {
            0 => &[&other],
            1 => &[&work.topic, &other],
            _ => &[&work.topic],
        };
        a.subscribe(topics).await?;
    }
    a.subscribe(&[&work.topic]).await?;
    work.cluster.plain().fill(&work.topic, 2, 20).await?;
    work.until_shared(&["a", "b"], 1).await?;
    work.finish().await?.check()?;
    let owned = work.history.owned_by("a");
    ensure_eq!(
        owned.iter().filter(|tp| tp.topic() == other).count(),
        0,
        "partitions that are not subscribed"
    );
    Ok(())
}
