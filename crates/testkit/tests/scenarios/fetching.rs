//! Where reading starts and how it goes on: positions that are checked against the log, resets only on proof, sessions and
//! long polls that hold nobody up.

use super::rig::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tontine::OffsetAndMetadata;
use tontine_broker::Verdict;
use tontine_testkit::proxy::Action;
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, Response},
};

/// Counts the requests for which this holds.
fn counted(stage: &Stage, which: impl Fn(&Request) -> bool + Send + 'static) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    stage.broker.intercept(move |_, _, request| {
        counter.fetch_add(usize::from(which(request)), Ordering::Relaxed);
        Verdict::Pass
    });
    count
}

#[tokio::test]
async fn a_committed_offset_that_the_log_lost_is_read_on_where_the_logs_part() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 15).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 15).await;
        a.commit().await.unwrap();
        a.close().await;
        stage.broker.lose_records("t", 0, 12).unwrap();
        stage.produce("t", 0, 6).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        drive("b reads", &mut [&mut b], |seats| !seats[0].got.is_empty()).await;
        assert_eq!(b.offsets(&tp("t", 0))[0], 12, "neither the beginning nor what was committed");
    }
}

#[tokio::test]
async fn leaders_that_change_while_a_position_is_checked_cost_no_record_and_no_reset() {
    let stage = Stage::of_nodes(3, &[("t", 1)]).await;
    stage.produce("t", 0, 5).await;
    let a = stage.behind_proxy("a", &[EAGER, ("metadata.max.age.ms", "100")]);
    let gate = a.proxy().on(ApiKey::OffsetForLeaderEpoch, 1, Action::HoldRequest);
    let mut a = a.subscribe(&["t"]).await;
    drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 5).await;
    for _ in 0..2 {
        let (leader, _) = stage.broker.leader("t", 0).unwrap();
        stage.broker.move_leader("t", 0, leader % 3 + 1).unwrap();
        drive("the position is checked", &mut [&mut a], |_| gate.count() == 1).await;
    }
    gate.release();
    stage.produce("t", 0, 5).await;
    drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() >= 10).await;
    assert_eq!(a.offsets(&tp("t", 0)), (0..10).collect::<Vec<_>>());
    assert_eq!(stage.count("a", |request| matches!(request, Request::ListOffsets(_))), 1, "no reset");
}

#[tokio::test]
async fn an_offset_that_a_transaction_holds_back_is_waited_for_and_not_taken_for_none() {
    let stage = Stage::new(&[("t", 1)]).await;
    stage.produce("t", 0, 20).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe(&["t"]).await;
    drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
    a.consumer.commit_sync_offsets([(tp("t", 0), OffsetAndMetadata::new(10))]).await.unwrap();
    a.close().await;
    let unstable = Action::Edit(Arc::new(|response| {
        let Response::OffsetFetch(response) = response else { return };
        let topics = response.groups.iter_mut().flat_map(|group| &mut group.topics);
        for partition in topics.flat_map(|topic| &mut topic.partitions) {
            partition.error_code = ErrorCode::UNSTABLE_OFFSET_COMMIT;
            partition.committed_offset = -1;
        }
    }));
    let b = stage.behind_proxy("b", &[EAGER]);
    let held_back = b.proxy().on(ApiKey::OffsetFetch, 5, unstable);
    let mut b = b.subscribe(&["t"]).await;
    drive("b reads", &mut [&mut b], |seats| !seats[0].got.is_empty()).await;
    assert_eq!((b.offsets(&tp("t", 0))[0], held_back.count()), (10, 5));
}

#[tokio::test]
async fn metadata_that_are_refreshed_move_no_position() {
    let stage = Stage::new(&[("t", 1)]).await;
    stage.produce("t", 0, 3).await;
    let refreshes = counted(&stage, |request| matches!(request, Request::Metadata(_)));
    let mut a = stage.seat("a", &[("metadata.max.age.ms", "20")]);
    a.consumer.assign([("t", 0)]).unwrap();
    drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 3).await;
    drive("ten refreshes", &mut [&mut a], |_| refreshes.load(Ordering::Relaxed) >= 10).await;
    stage.produce("t", 0, 1).await;
    drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() >= 4).await;
    assert_eq!(a.offsets(&tp("t", 0)), [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_hundred_fetches_open_one_session() {
    let stage = Stage::new(&[("t", 2)]).await;
    let fetches = counted(&stage, |request| matches!(request, Request::Fetch(_)));
    let mut a = stage.seat("a", &[("fetch.max.wait.ms", "1")]);
    a.consumer.assign([("t", 0), ("t", 1)]).unwrap();
    drive("the first fetches", &mut [&mut a], |_| fetches.load(Ordering::Relaxed) >= 5).await;
    let (fetches, opened) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counter, opener) = (fetches.clone(), opened.clone());
    stage.broker.intercept(move |_, _, request| {
        if let Request::Fetch(fetch) = request {
            counter.fetch_add(1, Ordering::Relaxed);
            opener.fetch_add(usize::from(fetch.session_epoch == 0), Ordering::Relaxed);
        }
        Verdict::Pass
    });
    drive("a hundred more", &mut [&mut a], |_| fetches.load(Ordering::Relaxed) >= 100).await;
    assert_eq!(opened.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_position_within_a_large_batch_is_read_on_from() {
    let stage = Stage::new(&[("t", 1)]).await;
    stage.produce("t", 0, 10_000).await;
    let mut a = stage.seat("a", &[("max.poll.records", "7")]);
    a.consumer.assign([("t", 0)]).unwrap();
    a.consumer.seek(&tp("t", 0), 9_000).unwrap();
    drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= 1_000).await;
    assert_eq!(a.offsets(&tp("t", 0)), (9_000..10_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn kept_partitions_deliver_while_a_round_is_held_up() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    let b = stage.behind_proxy("b", &[COOPERATIVE]);
    let gate = b.proxy().on(ApiKey::SyncGroup, 1, Action::HoldRequest);
    let mut b = b.subscribe(&["t"]).await;
    drive("b's share is on its way", &mut [&mut a, &mut b], |_| gate.count() == 1).await;
    for round in 1..=5 {
        let kept = a.owns()[0];
        stage.produce("t", kept, 1).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= round).await;
    }
    gate.release();
    settle(&mut [&mut a, &mut b], &[1, 1]).await;
}

#[tokio::test]
async fn what_is_assigned_while_a_long_poll_waits_is_read_at_once() {
    let stage = Stage::new(&[("t", 2)]).await;
    stage.produce("t", 1, 1).await;
    // Longer than any test may take: only a fetch of its own brings the record.
    let mut a = stage.seat("a", &[("fetch.max.wait.ms", "600000"), ("request.timeout.ms", "700000")]);
    a.consumer.assign([("t", 0)]).unwrap();
    drive("the long poll waits", &mut [&mut a], |_| stage.broker.parked_fetches() == 1).await;
    a.consumer.assign([("t", 0), ("t", 1)]).unwrap();
    drive("the new partition is read", &mut [&mut a], |seats| seats[0].got.len() == 1).await;
    assert!(a.consumer.poll(Duration::ZERO).await.unwrap().is_empty());
}
