//! The history and the checks against members that everybody knows: Java's own.

use std::time::Duration;
use tontine_group::TopicPartition;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::History;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::java::{JavaMember, JavaSettings};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies, ensure_eq};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "java", java: [java_members_keep_the_promises_of_a_group]);
}

const LONG: Duration = Duration::from_secs(40);

async fn java_members_keep_the_promises_of_a_group(cluster: Cluster) -> Outcome {
    let topic = cluster.topic("orders", 4).await?;
    let group = cluster.unique("group");
    let partitions: Vec<_> = (0..4).map(|p| TopicPartition::new(topic.as_str(), p)).collect();
    cluster.plain().fill(&topic, 4, 50).await?;
    let history = History::new();
    let settings =
        JavaSettings::new(&cluster.bootstrap_servers(), &group, &[&topic]).assignor("cooperative-sticky");
    let a = JavaMember::start(&history, "a", &settings)?;
    history.until_delivered(&topic, 200, LONG).await?;
    let b = JavaMember::start(&history, "b", &settings)?;
    history.until_shared(&partitions, &["a", "b"], 2, LONG).await?;
    cluster.plain().fill(&topic, 4, 50).await?;
    history.until_delivered(&topic, 400, LONG).await?;
    b.close().await?;
    history.until_shared(&partitions, &["a"], 4, LONG).await?;
    a.close().await?;

    let ends = cluster.plain().end_offsets(&topic).await?;
    ensure_eq!(history.callbacks("a")[0], "A(orders0 orders1 orders2 orders3)", "a's first callback");
    Evidence::of(&history).produced_up_to(&topic, &ends).check()?;
    Ok(())
}
