//! A group moves from the classic to the consumer protocol member by member, and back, while records keep coming: no
//! partition has two owners, and nothing is lost.

use crate::group::Work;
use crate::mode::Mode;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, ensure};

pub fn register(suite: &mut Suite) {
    for from in Mode::CLASSIC {
        let name = format!("consumer::a_group_moves_to_the_consumer_protocol_and_back_from_{}", from.name());
        suite.one_with(&name, from, a_group_moves_there_and_back);
    }
}

fn member(work: &Work, mode: Mode, name: &str) -> Result<Member, Failure> {
    let plan =
        tontine_testkit::member::Plan::new(&work.cluster.bootstrap_servers(), &work.group, &[&work.topic]);
    Member::start(&work.history, name, mode.plan(plan).commit(Commit::EachPollAndInRevoked))
}

async fn a_group_moves_there_and_back(cluster: Cluster, classic: Mode) -> Outcome {
    let mut work = Work::new(cluster, classic, 6).await?;
    work.cluster.hurry_group(&work.group).await?;
    work.produce_on_and_on();
    let a = member(&work, classic, "a")?;
    work.until_shared(&["a"], 6).await?;
    let b = member(&work, classic, "b")?;
    work.until_shared(&["a", "b"], 3).await?;
    work.until_more(20).await?;

    let c = member(&work, Mode::Consumer, "c")?;
    work.until_shared(&["a", "b", "c"], 2).await?;
    work.until_more(20).await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    work.until_shared(&["b", "c"], 3).await?;
    let d = member(&work, Mode::Consumer, "d")?;
    work.until_shared(&["b", "c", "d"], 2).await?;
    ensure!(b.close().await?.is_ok(), "close is fine");
    work.until_shared(&["c", "d"], 3).await?;
    work.until_more(20).await?;

    let e = member(&work, classic, "e")?;
    work.until_shared(&["c", "d", "e"], 2).await?;
    work.until_more(20).await?;
    ensure!(c.close().await?.is_ok(), "close is fine");
    work.until_shared(&["d", "e"], 3).await?;
    ensure!(d.close().await?.is_ok(), "close is fine");
    work.until_shared(&["e"], 6).await?;
    work.until_more(20).await?;
    work.finish().await?.check()?;
    ensure!(e.close().await?.is_ok(), "close is fine");
    Ok(())
}
