//! Groups in which Java members and ours share partitions, with each assignor, each of the two leading once.

use std::time::Duration;
use tontine_group::TopicPartition;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::foreign::ForeignMember;
use tontine_testkit::history::History;
use tontine_testkit::invariants::Evidence;
use tontine_testkit::java::{JavaMember, JavaSettings};
use tontine_testkit::member::{Commit, Member, Plan};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, ensure, ensure_eq};

/// A JVM on a loaded machine takes its time.
const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Case {
    assignor: &'static str,
    java_leads: bool,
}

pub fn register(suite: &mut Suite) {
    for assignor in ["range", "roundrobin", "sticky", "cooperative-sticky"] {
        for java_leads in [false, true] {
            let leader = if java_leads { "java_leads" } else { "ours_leads" };
            let name = format!("mixed::{assignor}::{leader}");
            let case = Case { assignor, java_leads };
            suite.java_with(&name, case, java_members_and_ours_share_and_take_over).deadline(LONG * 3);
        }
    }
    suite
        .java("mixed::a_java_member_is_killed_and_ours_takes_over", a_java_member_is_killed)
        .deadline(LONG * 3);
    suite.java("mixed::members_that_offer_several_assignors_agree", members_agree).deadline(LONG * 3);
}

/// A topic of six partitions and a group of two kinds of members.
struct Mixed {
    cluster: Cluster,
    history: History,
    group: String,
    topic: String,
    partitions: Vec<TopicPartition>,
    assignor: String,
}

impl Mixed {
    async fn new(cluster: Cluster, assignor: &str) -> Result<Self, Failure> {
        let topic = cluster.topic("orders", 6).await?;
        let group = cluster.unique("group");
        cluster.until_coordinated(&group).await?;
        let partitions = (0..6).map(|p| TopicPartition::new(topic.as_str(), p)).collect();
        Ok(Self { cluster, history: History::new(), group, topic, partitions, assignor: assignor.to_owned() })
    }

    fn ours(&self) -> Result<Member, Failure> {
        let plan = Plan::new(&self.cluster.bootstrap_servers(), &self.group, &[&self.topic]);
        let plan = plan.assignor(&self.assignor).commit(Commit::EachPollAndInRevoked);
        Member::start(&self.history, "ours", plan.set("client.id", "ours"))
    }

    fn java(&self) -> Result<ForeignMember, Failure> {
        let settings = JavaSettings::new(&self.cluster.bootstrap_servers(), &self.group, &[&self.topic]);
        let settings =
            settings.assignor(&self.assignor).set("client.id", "java").set("session.timeout.ms", "3000");
        JavaMember::start(&self.history, "java", &settings)
    }

    async fn until_shared(&self, members: &[&str], least: usize) -> Result<(), Failure> {
        self.history.until_shared(&self.partitions, members, least, LONG).await
    }

    async fn fill(&self) -> Result<(), Failure> {
        self.cluster.plain().fill(&self.topic, 6, 20).await
    }

    async fn until_all_delivered(&self) -> Result<(), Failure> {
        let ends = self.cluster.plain().end_offsets(&self.topic).await?;
        self.history.until_delivered(&self.topic, ends.values().sum::<i64>() as usize, LONG).await
    }

    async fn check(&self) -> Result<(), Failure> {
        let ends = self.cluster.plain().end_offsets(&self.topic).await?;
        Evidence::of(&self.history).produced_up_to(&self.topic, &ends).check()
    }
}

/// Whoever is first leads. Then the leader goes, and the other takes over.
async fn java_members_and_ours_share_and_take_over(cluster: Cluster, case: Case) -> Outcome {
    let mixed = Mixed::new(cluster, case.assignor).await?;
    mixed.fill().await?;
    let (ours, java);
    if case.java_leads {
        java = mixed.java()?;
        mixed.until_shared(&["java"], 6).await?;
        ours = mixed.ours()?;
    } else {
        ours = mixed.ours()?;
        mixed.until_shared(&["ours"], 6).await?;
        java = mixed.java()?;
    }
    mixed.until_shared(&["ours", "java"], 3).await?;
    mixed.fill().await?;
    mixed.until_all_delivered().await?;
    let described = mixed.cluster.plain().until_group(&mixed.group, "Stable", 2).await?;
    ensure_eq!(described.protocol_data, case.assignor, "the assignor that the group has chosen");

    if case.java_leads {
        java.close().await?;
        mixed.until_shared(&["ours"], 6).await?;
        mixed.fill().await?;
        mixed.until_all_delivered().await?;
        ensure!(ours.close().await?.is_ok(), "close is fine");
    } else {
        ensure!(ours.close().await?.is_ok(), "close is fine");
        mixed.until_shared(&["java"], 6).await?;
        mixed.fill().await?;
        mixed.until_all_delivered().await?;
        java.close().await?;
    }
    mixed.check().await?;
    Ok(())
}

async fn a_java_member_is_killed(cluster: Cluster) -> Outcome {
    let mixed = Mixed::new(cluster, "cooperative-sticky").await?;
    mixed.fill().await?;
    let java = mixed.java()?;
    mixed.until_shared(&["java"], 6).await?;
    let _ours = mixed.ours()?;
    mixed.until_shared(&["ours", "java"], 3).await?;
    java.kill().await?;
    mixed.until_shared(&["ours"], 6).await?;
    mixed.fill().await?;
    mixed.until_all_delivered().await?;
    mixed.check().await?;
    Ok(())
}

/// Java's default (range, then cooperative-sticky) and a member that only knows the second: the group takes what all know.
async fn members_agree(cluster: Cluster) -> Outcome {
    let mixed = Mixed::new(cluster, "cooperative-sticky").await?;
    mixed.fill().await?;
    let package = "org.apache.kafka.clients.consumer";
    let both = format!("{package}.RangeAssignor,{package}.CooperativeStickyAssignor");
    let settings = JavaSettings::new(&mixed.cluster.bootstrap_servers(), &mixed.group, &[&mixed.topic])
        .set("partition.assignment.strategy", &both);
    let java = JavaMember::start(&mixed.history, "java", &settings)?;
    mixed.until_shared(&["java"], 6).await?;
    let ours = mixed.ours()?;
    mixed.until_shared(&["ours", "java"], 3).await?;
    let described = mixed.cluster.plain().until_group(&mixed.group, "Stable", 2).await?;
    ensure_eq!(described.protocol_data, "cooperative-sticky", "the assignor that the group has chosen");
    mixed.until_all_delivered().await?;
    ensure!(ours.close().await?.is_ok(), "close is fine");
    java.close().await?;
    mixed.check().await?;
    Ok(())
}
