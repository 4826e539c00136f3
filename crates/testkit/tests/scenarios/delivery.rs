//! Records reach whoever owns their partition when the poll returns, in order, none skipped, whatever was under way.

use super::rig::*;
use std::{collections::BTreeMap, time::Duration};
use tontine_testkit::proxy::Action;
use tontine_wire::api::ApiKey;

/// Polls A rarely, so that most of what it has fetched waits in it, until B has its share.
async fn while_a_is_slow(a: &mut Seat, b: &mut Seat, share: usize) {
    for _ in 0..300 {
        if b.owns().len() == share && a.owns().len() + share == a.log.history().owners().len() {
            return;
        }
        a.poll().await;
        drive("b turns", &mut [b], turns(3)).await;
    }
    panic!("b never got {share} partitions\n{}", a.log.history().tail());
}

#[tokio::test]
async fn nothing_of_a_revoked_partition_is_handed_out_and_its_position_counts_only_what_was() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 700).await.unwrap();
        let mut a = stage.seat("a", &[protocol, ("max.poll.records", "7")]);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        drive("a reads", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        while_a_is_slow(&mut a, &mut b, 1).await;
        let mine = tp("t", a.owns()[0]);
        drive("a reads the rest", &mut [&mut a], |seats| seats[0].offsets(&mine).len() == 700).await;
        drive("everything is read", &mut [&mut a, &mut b], |seats| {
            seats[0].got.len() + seats[1].got.len() == 1400
        })
        .await;
        assert_each_once(&[&a, &b], 2, 700);
        stage.check();
    }
}

fn assert_each_once(seats: &[&Seat], partitions: i32, count: i64) {
    for p in 0..partitions {
        let mut all: Vec<i64> = seats.iter().flat_map(|seat| seat.offsets(&tp("t", p))).collect();
        all.sort_unstable();
        assert_eq!(all, (0..count).collect::<Vec<_>>(), "t-{p}");
    }
}

#[tokio::test]
async fn a_partition_that_is_given_back_and_taken_again_goes_on_without_a_gap_or_a_double() {
    let stage = Stage::new(&[("t", 1)]).await;
    let mut a = stage.seat("a", &[EAGER, AUTO_COMMIT, ("max.poll.records", "10")]).subscribe(&["t"]).await;
    for round in 1..=7 {
        settle(&mut [&mut a], &[1]).await;
        stage.produce("t", 0, 10).await;
        drive("a reads a little", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
        another_round(&stage, &mut [&mut a]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= 10 * round).await;
    }
    assert_each_once(&[&a], 1, 70);
    a.close().await;
    assert_eq!(stage.committed("t", 0), Some(70));
    stage.check_with_auto_commit();
}

#[tokio::test]
async fn records_that_waited_when_their_partition_left_are_delivered_when_it_returns() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 500).await.unwrap();
        let mut a = stage.seat("a", &[protocol, ("max.poll.records", "5")]);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        drive("a reads", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
        // B takes a partition and gives it back before it has read anything.
        let mut b = stage.behind_proxy("b", &[protocol]);
        let gate = b.proxy().on(ApiKey::Fetch, usize::MAX, Action::Swallow);
        b = b.subscribe(&["t"]).await;
        while_a_is_slow(&mut a, &mut b, 1).await;
        b.consumer.close_with(Duration::from_millis(500)).await.unwrap();
        b.log.ended(tontine_testkit::history::End::Closed);
        drop(gate);
        drive("a reads everything", &mut [&mut a], |seats| seats[0].got.len() == 1000).await;
        assert_each_once(&[&a], 2, 500);
        stage.check();
    }
}

#[tokio::test]
async fn each_of_very_many_partitions_is_read_once_after_a_member_came_and_went() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 200)]).await;
        let mut a = stage.seat("a", &[protocol]);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        settle(&mut [&mut a], &[200]).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[100, 100]).await;
        b.close().await;
        settle(&mut [&mut a], &[200]).await;
        stage.plain().fill("t", 200, 1).await.unwrap();
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= 200).await;
        for _ in 0..5 {
            a.poll().await;
        }
        assert_each_once(&[&a], 200, 1);
        stage.check();
    }
}

#[tokio::test]
async fn what_was_buffered_of_a_paused_partition_is_delivered_after_two_quick_rounds() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 4)]).await;
        stage.plain().fill("t", 4, 10).await.unwrap();
        let mut a = stage.seat("a", &[protocol, ("max.poll.records", "3")]).subscribe(&["t"]).await;
        drive("a reads a little", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
        let paused = a.got[0].0.clone();
        a.consumer.pause(std::slice::from_ref(&paused)).unwrap();
        a.commit().await.unwrap();
        for name in ["b", "c"] {
            let mut other = stage.seat(name, &[protocol]).subscribe(&["t"]).await;
            drive("another member joins", &mut [&mut a, &mut other], |seats| !seats[1].owns().is_empty())
                .await;
            a.commit().await.unwrap();
            other.close().await;
        }
        settle(&mut [&mut a], &[4]).await;
        let all: Vec<_> = a.consumer.paused().into_iter().collect();
        a.consumer.resume(&all).unwrap();
        drive("a reads all of it", &mut [&mut a], |seats| {
            (0..10).all(|offset| seats[0].offsets(&paused).contains(&offset))
        })
        .await;
    }
}

#[tokio::test]
async fn a_leader_that_changes_while_records_wait_repeats_and_skips_none() {
    let stage = Stage::of_nodes(3, &[("t", 1)]).await;
    stage.produce("t", 0, 100).await;
    let mut a = stage.seat("a", &[EAGER, ("max.poll.records", "9")]).subscribe(&["t"]).await;
    drive("a reads", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
    for round in 0..3 {
        let (leader, _) = stage.broker.leader("t", 0).unwrap();
        let next = stage.broker.nodes().into_iter().find(|node| *node != leader).unwrap();
        stage.broker.move_leader("t", 0, next).unwrap();
        stage.produce("t", 0, 100).await;
        let wanted = 100 * (round + 1);
        drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > wanted).await;
    }
    drive("a reads everything", &mut [&mut a], |seats| seats[0].got.len() >= 400).await;
    assert_eq!(a.offsets(&tp("t", 0)), (0..400).collect::<Vec<_>>());
    stage.check();
}

#[tokio::test]
async fn an_answer_to_a_fetch_of_an_earlier_ownership_is_dropped() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 10).await;
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        a.commit().await.unwrap();
        let gate = a.proxy().on(ApiKey::Fetch, 1, Action::HoldAnswer);
        drive("a fetches", &mut [&mut a], |_| gate.count() == 1).await;
        stage.produce("t", 0, 90).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        a.consumer.unsubscribe().await.unwrap();
        settle(&mut [&mut b], &[1]).await;
        b.consumer.commit_sync_offsets([(tp("t", 0), 40)]).await.unwrap();
        b.close().await;
        a = a.subscribe(&["t"]).await;
        settle(&mut [&mut a], &[1]).await;
        gate.release();
        drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > 10).await;
        assert_eq!(a.got[10].1, 40);
        drive("a reads everything", &mut [&mut a], |seats| seats[0].got.len() == 70).await;
    }
}

#[tokio::test]
async fn a_poll_that_is_dropped_while_it_waits_has_taken_nothing() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    for round in 0..40 {
        let mut write = std::pin::pin!(stage.produce("t", round % 2, 1));
        let polled = tokio::select! {
            biased;
            () = &mut write => None,
            records = a.consumer.poll(LONG) => Some(records.unwrap()),
        };
        if let Some(records) = polled {
            a.take(&records);
            write.await;
        }
    }
    drive("a reads everything", &mut [&mut a], |seats| seats[0].got.len() >= 40).await;
    assert_each_once(&[&a], 2, 20);
}

#[tokio::test]
async fn members_that_come_go_and_are_killed_lose_nothing() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 6)]).await;
        stage.plain().fill("t", 6, 100).await.unwrap();
        let quick = [protocol, ("session.timeout.ms", "300"), ("max.poll.records", "11")];
        let mut a = stage.seat("a", &quick);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        for round in 0..3 {
            let name = format!("b{round}");
            let mut b = stage.behind_proxy(&name, &quick);
            b = {
                let told = Committing(b.told());
                b.subscribe_with(&["t"], told).await
            };
            drive("b has a share", &mut [&mut a, &mut b], |seats| !seats[1].owns().is_empty()).await;
            stage.plain().fill("t", 6, 30).await.unwrap();
            drive("b reads", &mut [&mut a, &mut b], |seats| !seats[1].got.is_empty()).await;
            // Killed: its network is gone before it can say goodbye.
            b.proxy().stall();
            b.log.ended(tontine_testkit::history::End::Killed);
            drop(b);
            settle(&mut [&mut a], &[6]).await;
        }
        let produced = 6 * (100 + 3 * 30);
        drive("everything is read", &mut [&mut a], |_| {
            let mut seen: BTreeMap<_, std::collections::BTreeSet<i64>> = BTreeMap::new();
            for event in stage.history.events() {
                if let tontine_testkit::history::What::Delivered(partition, offsets) = event.what {
                    seen.entry(partition).or_default().extend(offsets);
                }
            }
            seen.values().map(|offsets| offsets.len()).sum::<usize>() == produced
        })
        .await;
        stage.check();
    }
}
