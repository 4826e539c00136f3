//! Pause, resume and seek across rebalances: a pause belongs to an ownership, and drops and rewinds nothing.

use super::rig::*;
use std::collections::BTreeSet;
use tontine::{Assigned, ListenerResult, RebalanceListener, Revoked};

fn paused(seat: &Seat) -> BTreeSet<i32> {
    seat.consumer.paused().iter().map(|tp| tp.partition()).collect()
}

#[tokio::test]
async fn a_kept_partition_stays_paused_and_one_that_left_and_returned_is_not() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        a.consumer.pause(&[tp("t", 0), tp("t", 1)]).unwrap();
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        // An eager round takes everything away, so what comes back is another ownership.
        let kept: BTreeSet<i32> = a.owns().into_iter().collect();
        let expected = if protocol == EAGER { BTreeSet::new() } else { kept };
        assert_eq!(paused(&a), expected);
        b.close().await;
        settle(&mut [&mut a], &[2]).await;
        assert_eq!(paused(&a), expected);
        stage.plain().fill("t", 2, 5).await.unwrap();
        let open = 2 - expected.len();
        drive("the others flow", &mut [&mut a], |seats| seats[0].got.len() == 5 * open).await;
        assert!(a.got.iter().all(|(name, _)| !expected.contains(&name.partition())));
        let all: Vec<_> = a.consumer.paused().into_iter().collect();
        a.consumer.resume(&all).unwrap();
        drive("all flow", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
    }
}

#[tokio::test]
async fn a_paused_partition_that_was_away_goes_on_where_its_other_owner_committed() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 100).await;
        let mut a = stage.seat("a", &[protocol, ("max.poll.records", "10")]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        a.consumer.pause(&[tp("t", 0)]).unwrap();
        a.consumer.unsubscribe().await.unwrap();
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut b], &[1]).await;
        b.consumer.commit_sync_offsets([(tp("t", 0), 50)]).await.unwrap();
        b.close().await;
        let mut a = a.subscribe(&["t"]).await;
        settle(&mut [&mut a], &[1]).await;
        a.consumer.resume(&[tp("t", 0)]).unwrap();
        drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > 10).await;
        assert_eq!(a.got[10].1, 50);
    }
}

#[tokio::test]
async fn resuming_what_is_not_paused_and_pausing_what_is_buffered_move_no_position() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 2300).await;
        let mut a = stage.seat("a", &[protocol, ("max.poll.records", "10")]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        for round in 0..3 {
            a.consumer.pause(&[tp("t", 0)]).unwrap();
            for _ in 0..round {
                assert_eq!(a.poll().await, 0);
            }
            a.consumer.resume(&[tp("t", 0)]).unwrap();
            a.consumer.resume(&[tp("t", 0)]).unwrap();
            let before = a.got.len();
            drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > before).await;
        }
        let offsets = a.offsets(&tp("t", 0));
        assert_eq!(offsets, (0..offsets.len() as i64).collect::<Vec<_>>());
    }
}

/// Takes everything on paused.
struct Pausing(Told);

impl RebalanceListener for Pausing {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        let all = cx.partitions().to_vec();
        cx.pause(&all)?;
        self.0.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.0.on_partitions_revoked(cx).await
    }
}

#[tokio::test]
async fn what_is_paused_when_it_is_assigned_loses_nothing_to_polls_that_only_keep_the_membership() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 4)]).await;
        stage.plain().fill("t", 4, 10).await.unwrap();
        let a = stage.seat("a", &[protocol]);
        let told = a.told();
        let mut a = a.subscribe_with(&["t"], Pausing(told)).await;
        settle(&mut [&mut a], &[4]).await;
        let b = stage.seat("b", &[protocol]);
        let told = b.told();
        let mut b = b.subscribe_with(&["t"], Pausing(told)).await;
        settle(&mut [&mut a, &mut b], &[2, 2]).await;
        drive("nothing comes", &mut [&mut a, &mut b], turns(6)).await;
        assert!(a.got.is_empty() && b.got.is_empty());
        for seat in [&mut a, &mut b] {
            let all: Vec<_> = seat.consumer.assignment().into_iter().collect();
            seat.consumer.resume(&all).unwrap();
        }
        drive("everything comes", &mut [&mut a, &mut b], |seats| {
            seats[0].got.len() == 20 && seats[1].got.len() == 20
        })
        .await;
    }
}
