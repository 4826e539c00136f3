//! Members of other clients and ours in one group: each is closed, killed and stalled once.

use crate::group::Work;
use crate::mode::Mode;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::foreign::{self, ForeignMember, LibrdkafkaSettings};
use tontine_testkit::history::{OwnershipEnd, ownerships};
use tontine_testkit::java::{JavaMember, JavaSettings};
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, ensure};

/// A JVM on a loaded machine takes its time.
const LONG: Duration = Duration::from_secs(60);

/// Whose client shares the group with ours, and how they rebalance.
#[derive(Debug, Clone, Copy)]
struct Theirs {
    librdkafka: bool,
    mode: Mode,
}

pub fn register(suite: &mut Suite) {
    let settings = &[("group.consumer.session.timeout.ms", "3000")];
    let java = Theirs { librdkafka: false, mode: Mode::Consumer };
    suite
        .java_with("consumer::java_members_and_ours_share_and_take_over", java, members_of_both)
        .embedded_with(settings)
        .deadline(LONG * 4);
    for mode in [Mode::Cooperative, Mode::Consumer] {
        let name = format!("{}::librdkafka_members_and_ours_share_and_take_over", mode.name());
        suite
            .one_with(&name, Theirs { librdkafka: true, mode }, members_of_both)
            .client(|| foreign::python().err())
            .embedded_with(settings)
            .deadline(LONG * 4);
    }
}

/// A member of theirs.
fn theirs(work: &Work, which: Theirs, name: &str) -> Result<ForeignMember, Failure> {
    let servers = work.cluster.bootstrap_servers();
    if !which.librdkafka {
        let settings = JavaSettings::new(&servers, &work.group, &[&work.topic]);
        return JavaMember::start(&work.history, name, &settings.consumer_protocol().set("client.id", name));
    }
    let settings = LibrdkafkaSettings::new(&servers, &work.group, &[&work.topic]).set("client.id", name);
    let settings = match which.mode {
        Mode::Consumer => settings.set("group.protocol", "consumer"),
        _ => settings
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", "3000")
            .set("heartbeat.interval.ms", "300"),
    };
    settings.start(&work.history, name)
}

fn ours(work: &Work, name: &str) -> Result<Member, Failure> {
    let plan = work.plan().commit(Commit::EachPollAndInRevoked);
    let plan = if work.mode.is_classic() { plan.set("session.timeout.ms", "3000") } else { plan };
    Member::start(&work.history, name, plan)
}

/// Each side is stalled, killed and closed once. Where a client's name is in the history, it is the same in both cases.
async fn members_of_both(cluster: Cluster, which: Theirs) -> Outcome {
    let mut work = Work::new(cluster, which.mode, 6).await?;
    if which.mode == Mode::Consumer {
        work.shorten_sessions_to(3_000).await?;
    }
    work.produce_on_and_on();
    let first = theirs(&work, which, "theirs")?;
    work.history.until_shared(&work.partitions, &["theirs"], 6, LONG).await?;
    let a = ours(&work, "ours")?;
    work.history.until_shared(&work.partitions, &["theirs", "ours"], 3, LONG).await?;
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
    work.history.until_shared(&work.partitions, &["theirs", "ours"], 3, LONG).await?;
    work.until_more(20).await?;
    // Theirs is killed, another one comes.
    first.kill().await?;
    work.history.until_shared(&work.partitions, &["ours"], 6, LONG).await?;
    let second = theirs(&work, which, "theirs two")?;
    work.history.until_shared(&work.partitions, &["theirs two", "ours"], 3, LONG).await?;
    work.until_more(20).await?;
    // Ours is stalled.
    a.freeze().await?;
    work.history
        .until("theirs has everything that ours had", LONG, |events| {
            let held = ownerships(events);
            let open = held.iter().filter(|o| &*o.member == "theirs two" && o.end == OwnershipEnd::Open);
            (open.count() == 6).then_some(())
        })
        .await?;
    a.thaw();
    a.go_on_polling()?;
    work.history.until_shared(&work.partitions, &["theirs two", "ours"], 3, LONG).await?;
    work.until_more(20).await?;
    // Ours is killed, another one comes, and theirs closes.
    a.kill();
    work.history.until_shared(&work.partitions, &["theirs two"], 6, LONG).await?;
    let b = ours(&work, "ours two")?;
    work.history.until_shared(&work.partitions, &["theirs two", "ours two"], 3, LONG).await?;
    work.until_more(20).await?;
    second.close().await?;
    work.history.until_shared(&work.partitions, &["ours two"], 6, LONG).await?;
    work.finish().await?.check()?;
    ensure!(b.close().await?.is_ok(), "close is fine");
    Ok(())
}
