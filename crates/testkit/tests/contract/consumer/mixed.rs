//! Java members and ours in one group of the consumer protocol: each is closed, killed and stalled once.

use crate::group::Work;
use crate::mode::Mode;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{OwnershipEnd, ownerships};
use tontine_testkit::java::{JavaMember, JavaSettings};
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, ensure};

/// A JVM on a loaded machine takes its time.
const LONG: Duration = Duration::from_secs(60);

pub fn register(suite: &mut Suite) {
    suite
        .java("consumer::java_members_and_ours_share_and_take_over", java_members_and_ours)
        .embedded_with(&[("group.consumer.session.timeout.ms", "3000")])
        .deadline(LONG * 4);
}

fn java(work: &Work, name: &str) -> Result<JavaMember, Failure> {
    let settings = JavaSettings::new(&work.cluster.bootstrap_servers(), &work.group, &[&work.topic]);
    JavaMember::start(&work.history, name, &settings.consumer_protocol().set("client.id", name))
}

fn ours(work: &Work, name: &str) -> Result<Member, Failure> {
    Member::start(&work.history, name, work.plan().commit(Commit::EachPollAndInRevoked))
}

async fn java_members_and_ours(cluster: Cluster) -> Outcome {
    let mut work = Work::new(cluster, Mode::Consumer, 6).await?;
    work.shorten_sessions_to(3_000).await?;
    work.produce_on_and_on();
    let first = java(&work, "java")?;
    work.history.until_shared(&work.partitions, &["java"], 6, LONG).await?;
    let a = ours(&work, "ours")?;
    work.history.until_shared(&work.partitions, &["java", "ours"], 3, LONG).await?;
    work.until_more(20).await?;
    // Theirs is stalled: ours has everything; it comes back.
    first.freeze()?;
    work.history
        .until("ours has everything that theirs had", LONG, |events| {
            let held = ownerships(events);
            let open = held.iter().filter(|o| &*o.member == "ours" && o.end == OwnershipEnd::Open);
            (open.count() == 6).then_some(())
        })
        .await?;
    first.thaw()?;
    work.history.until_shared(&work.partitions, &["java", "ours"], 3, LONG).await?;
    work.until_more(20).await?;
    // Theirs is killed, another one comes.
    first.kill().await?;
    work.history.until_shared(&work.partitions, &["ours"], 6, LONG).await?;
    let second = java(&work, "java two")?;
    work.history.until_shared(&work.partitions, &["java two", "ours"], 3, LONG).await?;
    work.until_more(20).await?;
    // Ours is killed, another one comes and closes.
    a.kill();
    work.history.until_shared(&work.partitions, &["java two"], 6, LONG).await?;
    let b = ours(&work, "ours two")?;
    work.history.until_shared(&work.partitions, &["java two", "ours two"], 3, LONG).await?;
    work.until_more(20).await?;
    second.close().await?;
    work.history.until_shared(&work.partitions, &["ours two"], 6, LONG).await?;
    work.finish().await?.check()?;
    ensure!(b.close().await?.is_ok(), "close is fine");
    Ok(())
}
