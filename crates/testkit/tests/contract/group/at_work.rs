//! Members come, go, crash and stall while records keep coming.

use super::Work;
use crate::mode::Mode;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::history::{What, shapes};
use tontine_testkit::member::{Commit, Member};
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{bodies_with, ensure, ensure_eq};

pub fn register(suite: &mut Suite, mode: Mode) {
    bodies_with!(suite, format!("group::{}", mode.name()), mode, one_with: [
        members_join_and_leave_and_nothing_is_lost_or_read_twice,
        eight_members_come_and_go_at_random,
        a_member_whose_connections_are_cut_again_and_again_keeps_its_partitions,
        more_members_than_partitions_idle_and_take_over,
        two_groups_on_one_topic_each_get_everything,
        a_group_at_rest_stays_at_rest,
    ]);
    bodies_with!(suite, format!("group::{}", mode.name()), mode, short_with: [
        a_killed_members_partitions_are_taken_over,
        a_stalled_members_partitions_are_taken_over_and_it_comes_back,
        commits_by_themselves_never_go_back_and_nothing_is_lost_when_members_are_killed,
    ]);
}

async fn members_join_and_leave_and_nothing_is_lost_or_read_twice(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 6).await?;
    work.produce_on_and_on();
    let plan = || work.plan().commit(Commit::EachPollAndInRevoked);
    let a = Member::start(&work.history, "a", plan())?;
    work.until_shared(&["a"], 6).await?;
    work.until_more(20).await?;
    let b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 3).await?;
    work.until_more(20).await?;
    let c = Member::start(&work.history, "c", plan())?;
    work.until_shared(&["a", "b", "c"], 2).await?;
    work.until_more(20).await?;
    ensure!(a.close().await?.is_ok(), "close is fine");
    work.until_shared(&["b", "c"], 3).await?;
    work.until_more(20).await?;
    ensure!(b.close().await?.is_ok(), "close is fine");
    work.until_shared(&["c"], 6).await?;
    let evidence = work.finish().await?;
    ensure!(c.close().await?.is_ok(), "close is fine");
    evidence.check()?;
    ensure_eq!(read_twice(&work), 0, "records that were delivered twice although nobody crashed");
    Ok(())
}

/// Deliveries that were not the first of their record.
fn read_twice(work: &Work) -> usize {
    let events = work.history.events();
    let all = events.iter().map(|event| match &event.what {
        What::Delivered(_, offsets) => offsets.len(),
        _ => 0,
    });
    all.sum::<usize>() - work.delivered()
}

/// A walk that looks random and is the same every time.
async fn eight_members_come_and_go_at_random(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 8).await?;
    work.produce_on_and_on();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut lives: Vec<(String, Member)> = Vec::new();
    let mut dice: u32 = 7;
    for round in 0..16 {
        dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12_345) & 0x7fff_ffff;
        let roll = (dice >> 8) as usize;
        if lives.len() < 2 || (lives.len() < names.len() && !roll.is_multiple_of(3)) {
            let name = format!("{}{round}", names[round % names.len()]);
            let member = work.member(&name)?;
            lives.push((name, member));
        } else {
            let (_, gone) = lives.swap_remove(roll % lives.len());
            ensure!(gone.close().await?.is_ok(), "close is fine");
        }
        work.until_more(10).await?;
    }
    let members: Vec<&str> = lives.iter().map(|(name, _)| name.as_str()).collect();
    work.until_shared(&members, 1).await?;
    work.finish().await?.check()?;
    for (_, member) in lives {
        ensure!(member.close().await?.is_ok(), "close is fine");
    }
    tontine_testkit::invariants::Evidence::of(&work.history).check()?;
    Ok(())
}

async fn a_killed_members_partitions_are_taken_over(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.shorten_sessions().await?;
    work.produce_on_and_on();
    let plan = || work_plan_with_short_session(&work);
    let _a = Member::start(&work.history, "a", plan())?;
    let b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 2).await?;
    work.until_more(20).await?;
    b.kill();
    work.until_shared(&["a"], 4).await?;
    work.until_more(20).await?;
    work.finish().await?.check()?;
    Ok(())
}

fn work_plan_with_short_session(work: &Work) -> tontine_testkit::member::Plan {
    work.plan().set("session.timeout.ms", "1000").set("heartbeat.interval.ms", "200")
}

async fn a_stalled_members_partitions_are_taken_over_and_it_comes_back(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.shorten_sessions().await?;
    work.produce_on_and_on();
    let plan = || work_plan_with_short_session(&work);
    let _a = Member::start(&work.history, "a", plan())?;
    let b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 2).await?;
    work.until_more(20).await?;
    b.freeze().await?;
    let seen = work.history.shapes("b").len();
    work.history
        .until("a has everything that b had", super::SOON, |events| {
            let held = tontine_testkit::history::ownerships(events);
            let open = held
                .iter()
                .filter(|o| &*o.member == "a" && o.end == tontine_testkit::history::OwnershipEnd::Open);
            (open.count() == 4).then_some(())
        })
        .await?;
    work.until_more(20).await?;
    b.thaw();
    b.go_on_polling()?;
    work.history
        .until("b is told that it has lost its partitions", super::SOON, |events| {
            shapes(events, "b").get(seen).filter(|shape| *shape == "L(2)").map(drop)
        })
        .await?;
    work.until_shared(&["a", "b"], 2).await?;
    work.finish().await?.check()?;
    Ok(())
}

async fn a_member_whose_connections_are_cut_again_and_again_keeps_its_partitions(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 4).await?;
    for _ in 0..5 {
        work.until_more(10).await?;
        a.proxy().cut();
    }
    work.until_more(20).await?;
    work.finish().await?.check()?;
    ensure_eq!(work.history.shapes("a"), ["A(4)"], "callbacks of a member that only lost connections");
    Ok(())
}

async fn more_members_than_partitions_idle_and_take_over(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 2).await?;
    work.produce_on_and_on();
    let a = work.member("a")?;
    work.until_shared(&["a"], 2).await?;
    let b = work.member("b")?;
    work.until_shared(&["a", "b"], 1).await?;
    let _c = work.member("c")?;
    work.cluster.plain().until_group(&work.group, "Stable", 3).await?;
    work.until_shared(&["a", "b", "c"], 0).await?;
    ensure!(a.close().await?.is_ok() && b.close().await?.is_ok(), "closes are fine");
    work.until_shared(&["c"], 2).await?;
    work.until_more(20).await?;
    work.finish().await?.check()?;
    Ok(())
}

async fn two_groups_on_one_topic_each_get_everything(cluster: Cluster, mode: Mode) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.cluster.plain().fill(&work.topic, 4, 50).await?;
    let other = tontine_testkit::history::History::new();
    let group = work.cluster.unique("other");
    let plan = tontine_testkit::member::Plan::new(&work.cluster.bootstrap_servers(), &group, &[&work.topic]);
    let _a = work.member("a")?;
    let _x = Member::start(&other, "x", plan)?;
    other.until_delivered(&work.topic, 200, super::SOON).await?;
    work.finish().await?.check()?;
    Ok(())
}

async fn commits_by_themselves_never_go_back_and_nothing_is_lost_when_members_are_killed(
    cluster: Cluster,
    mode: Mode,
) -> Outcome {
    let mut work = Work::new(cluster, mode, 4).await?;
    work.shorten_sessions().await?;
    work.produce_on_and_on();
    let plan = || work_plan_with_short_session(&work).auto_commit("50").commit(Commit::Never);
    let a = Member::start(&work.history, "a", plan())?;
    let _b = Member::start(&work.history, "b", plan())?;
    work.until_shared(&["a", "b"], 2).await?;
    for _ in 0..5 {
        work.until_more(20).await?;
        work.note_committed().await?;
    }
    a.kill();
    work.until_shared(&["b"], 4).await?;
    for _ in 0..5 {
        work.until_more(20).await?;
        work.note_committed().await?;
    }
    work.finish().await?.with_auto_commit().check()?;
    Ok(())
}

/// Once everybody has what it should, nobody joins again and nothing is called.
async fn a_group_at_rest_stays_at_rest(cluster: Cluster, mode: Mode) -> Outcome {
    let work = Work::new(cluster, mode, 4).await?;
    let a = work.member("a")?;
    let _b = work.member("b")?;
    work.until_shared(&["a", "b"], 2).await?;
    work.cluster.plain().until_group(&work.group, "Stable", 2).await?;
    // A cooperative group may have one round more in which nothing moves.
    tontine_testkit::wait::while_nothing_happens(Duration::from_millis(1000)).await;
    let before = (work.history.callbacks("a"), work.history.callbacks("b"));
    let joins =
        a.proxy().on(tontine_wire::api::ApiKey::JoinGroup, 1, tontine_testkit::proxy::Action::HoldAnswer);
    tontine_testkit::wait::while_nothing_happens(Duration::from_millis(1500)).await;
    ensure_eq!(joins.count(), 0, "joins of a group at rest");
    ensure_eq!(
        (work.history.callbacks("a"), work.history.callbacks("b")),
        before,
        "callbacks of a group at rest"
    );
    Ok(())
}
