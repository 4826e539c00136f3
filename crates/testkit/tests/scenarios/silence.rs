//! What is owned flows: no round, no lost answer, no other caller leaves a partition or a member silent.

use super::rig::*;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tontine::{Assigned, Error, ListenerResult, RebalanceListener, Revoked, Waker};
use tontine_testkit::{history::Callback, proxy::Action};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request},
};

fn is_heartbeat(request: &Request) -> bool {
    matches!(request, Request::Heartbeat(_) | Request::ConsumerGroupHeartbeat(_))
}

#[tokio::test]
async fn kept_partitions_get_their_position_although_another_round_came_before_their_offsets() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 4)]).await;
        stage.plain().fill("t", 4, 5).await.unwrap();
        let mut a = stage.behind_proxy("a", &[protocol]);
        let code = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        let gate = a.proxy().on(ApiKey::OffsetFetch, usize::MAX, Action::AnswerCode(code));
        a = a.subscribe(&["t"]).await;
        settle(&mut [&mut a], &[4]).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[2, 2]).await;
        assert_eq!(a.got, []);
        drop(gate);
        drive("a reads what it kept", &mut [&mut a, &mut b], |seats| seats[0].got.len() == 10).await;
    }
}

#[tokio::test]
async fn a_poll_that_waits_is_woken_by_every_record() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    for number in 0..60 {
        let (polled, ()) = tokio::join!(a.consumer.poll(LONG), stage.produce("t", number % 2, 1));
        let polled = polled.unwrap();
        assert_eq!(a.take(&polled), 1, "record {number} woke nobody");
    }
}

#[tokio::test]
async fn a_paused_partition_that_leaves_takes_its_pause_with_it() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        a.commit().await.unwrap();
        let both: Vec<_> = a.consumer.assignment().into_iter().collect();
        a.consumer.pause(&both).unwrap();
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        let kept = tp("t", a.owns()[0]);
        if protocol != EAGER {
            assert_eq!(a.consumer.paused(), BTreeSet::from([kept.clone()]));
        } else {
            assert_eq!(a.consumer.paused(), BTreeSet::new());
        }
        a.consumer.resume(std::slice::from_ref(&kept)).unwrap();
        stage.plain().fill("t", 2, 5).await.unwrap();
        drive("both read on", &mut [&mut a, &mut b], |seats| {
            seats[0].offsets(&kept).len() == 10 && seats[1].got.len() == 5
        })
        .await;
        b.commit().await.unwrap();
        b.close().await;
        settle(&mut [&mut a], &[2]).await;
        assert_eq!(a.consumer.paused(), BTreeSet::new());
        stage.plain().fill("t", 2, 5).await.unwrap();
        drive("a reads both", &mut [&mut a], |seats| {
            both.iter().all(|partition| seats[0].offsets(partition).contains(&14))
        })
        .await;
    }
}

#[tokio::test]
async fn room_for_records_comes_back_when_partitions_leave_with_records_unread() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 4)]).await;
        stage.plain().fill("t", 4, 300).await.unwrap();
        let tight = [protocol, ("fetch.queue.bytes", "2000"), ("max.poll.records", "1")];
        let mut a = stage.seat("a", &tight);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        settle(&mut [&mut a], &[4]).await;
        for round in 0..6 {
            let mut b = stage.seat(&format!("b{round}"), &tight);
            b = {
                let told = Committing(b.told());
                b.subscribe_with(&["t"], told).await
            };
            settle(&mut [&mut a, &mut b], &[2, 2]).await;
            b.close().await;
            settle(&mut [&mut a], &[4]).await;
        }
        let all = || {
            let events = stage.history.events();
            let seen = events.iter().filter_map(|event| match &event.what {
                tontine_testkit::history::What::Delivered(_, offsets) => Some(offsets.len()),
                _ => None,
            });
            seen.sum::<usize>()
        };
        drive("everything is read", &mut [&mut a], |_| all() == 1200).await;
        stage.check();
    }
}

#[tokio::test]
async fn every_partition_flows_after_each_of_many_rounds() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 4)]).await;
        let mut a = stage.seat("a", &[protocol, AUTO_COMMIT]).subscribe(&["t"]).await;
        let mut b = stage.seat("b", &[protocol, AUTO_COMMIT]).subscribe(&["t"]).await;
        for round in 1..=20 {
            settle(&mut [&mut a, &mut b], &[2, 2]).await;
            stage.plain().fill("t", 4, 1).await.unwrap();
            another_round(&stage, &mut [&mut a, &mut b]).await;
            drive("all flow", &mut [&mut a, &mut b], |seats| {
                seats[0].got.len() + seats[1].got.len() >= 4 * round
            })
            .await;
        }
        assert_eq!(a.got.len() + b.got.len(), 80, "none came twice");
        stage.check_with_auto_commit();
    }
}

/// A round of the consumer protocol: somebody comes, takes what is its share, and goes.
#[tokio::test]
async fn every_partition_flows_after_each_of_many_visits() {
    let stage = Stage::new(&[("t", 4)]).await;
    let mut a = stage.seat("a", &[CONSUMER, AUTO_COMMIT]).subscribe(&["t"]).await;
    let mut b = stage.seat("b", &[CONSUMER, AUTO_COMMIT]).subscribe(&["t"]).await;
    let mut read_by_guests = 0;
    for round in 1..=10 {
        settle(&mut [&mut a, &mut b], &[2, 2]).await;
        stage.plain().fill("t", 4, 1).await.unwrap();
        let name = format!("guest{round}");
        let mut guest = stage.seat(&name, &[CONSUMER, AUTO_COMMIT]).subscribe(&["t"]).await;
        drive("the guest has its share", &mut [&mut a, &mut b, &mut guest], |seats| {
            !seats[2].owns().is_empty()
        })
        .await;
        read_by_guests += guest.got.len();
        guest.close().await;
        drive("all flow", &mut [&mut a, &mut b], |seats| {
            seats[0].got.len() + seats[1].got.len() + read_by_guests >= 4 * round
        })
        .await;
    }
    assert_eq!(a.got.len() + b.got.len() + read_by_guests, 40, "none came twice");
    stage.check_with_auto_commit();
}

/// Wakes the consumer inside the first assigned callback, and reports what came of that.
struct WakesItself {
    told: Told,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl RebalanceListener for WakesItself {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.begin(Callback::Assigned, cx.partitions());
        let waker = self.waker.lock().unwrap().take();
        let partitions = cx.partitions().to_vec();
        let result = match waker {
            None => Ok(()),
            Some(waker) => {
                waker.wake();
                cx.committed(&partitions).await.map(|_| ())
            }
        };
        self.told.end(Callback::Assigned);
        result.map_err(Into::into)
    }
}

#[tokio::test]
async fn a_wakeup_inside_the_assigned_callback_is_reported_and_its_partitions_flow_afterwards() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        let waker = Arc::new(Mutex::new(Some(a.consumer.waker())));
        let listener = WakesItself { told: a.told(), waker };
        a = a.subscribe_with(&["t"], listener).await;
        let error = a.poll_until_error().await;
        assert!(matches!(error, Error::Callback(_) | Error::Woken), "{error}");
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        assert_eq!(stage.calls("a"), ["A(t0 t1)", "A()"]);
        stage.check();
    }
}

/// Waits for ever the first times it is called, so that a test drops it.
struct Hangs {
    told: Told,
    left: Arc<AtomicUsize>,
}

impl Hangs {
    async fn perhaps(&self) {
        if self.left.load(Ordering::SeqCst) > 0 {
            self.left.fetch_sub(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
    }
}

impl RebalanceListener for Hangs {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.begin(Callback::Assigned, cx.partitions());
        self.perhaps().await;
        self.told.end(Callback::Assigned);
        Ok(())
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.told.begin(Callback::Revoked, cx.partitions());
        self.perhaps().await;
        self.told.end(Callback::Revoked);
        Ok(())
    }
}

/// Drops polls until the listener has hung as often as it was to.
async fn drop_polls(seat: &mut Seat, left: &AtomicUsize) {
    let dropped = async {
        while left.load(Ordering::SeqCst) > 0 {
            let records = tokio::time::timeout(Duration::from_millis(20), seat.consumer.poll(LONG)).await;
            if let Ok(records) = records {
                seat.take(&records.unwrap());
            }
        }
    };
    tokio::time::timeout(LONG, dropped).await.expect("the listener is called");
}

#[tokio::test]
async fn a_callback_whose_poll_was_dropped_runs_again_to_its_end_and_its_partitions_flow() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        let left = Arc::new(AtomicUsize::new(2));
        let listener = Hangs { told: a.told(), left: left.clone() };
        a = a.subscribe_with(&["t"], listener).await;
        drop_polls(&mut a, &left).await;
        assert_eq!(a.got, []);
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        assert_eq!(stage.calls("a"), ["A(t0 t1)"; 3]);
        a.commit().await.unwrap();
        left.store(2, Ordering::SeqCst);
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        b.poll().await;
        drop_polls(&mut a, &left).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        stage.plain().fill("t", 2, 1).await.unwrap();
        drive("both read", &mut [&mut a, &mut b], |seats| {
            seats.iter().all(|s| s.got.iter().any(|(_, at)| *at == 5))
        })
        .await;
        stage.check();
    }
}

#[tokio::test]
async fn one_eager_assignor_on_offer_makes_a_member_eager_whatever_else_it_offers() {
    let stage = Stage::new(&[("t", 2)]).await;
    let offers = [("partition.assignment.strategy", "cooperative-sticky,range")];
    let mut a = stage.seat("a", &offers).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    let mut b = stage.seat("b", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut a, &mut b], &[1, 1]).await;
    assert_eq!(stage.calls("a")[..2], ["A(t0 t1)", "R(t0 t1)"]);
    stage.plain().fill("t", 2, 5).await.unwrap();
    drive("both read", &mut [&mut a, &mut b], |seats| seats.iter().all(|seat| seat.got.len() == 5)).await;
    let joins = stage.count("a", is_join);
    for _ in 0..20 {
        a.poll().await;
        b.poll().await;
    }
    assert_eq!(stage.count("a", is_join), joins, "there is no second round");
    stage.check();
}

#[tokio::test]
async fn a_dropped_commit_takes_the_lookup_that_others_wait_for_nowhere() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 3).await;
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 3).await;
        let gate = a.proxy().on(ApiKey::FindCoordinator, 1, Action::HoldRequest);
        let moved = a.proxy().on(ApiKey::OffsetCommit, 1, Action::AnswerCode(ErrorCode::NOT_COORDINATOR));
        let first = tokio::time::timeout(LONG, async {
            tokio::select! {
                biased;
                met = gate.met(1, LONG) => met.unwrap(),
                result = a.consumer.commit_sync() => panic!("the coordinator is not known: {result:?}"),
            }
        });
        first.await.unwrap();
        assert_eq!(moved.count(), 1);
        let second = a.consumer.commit_async();
        let beats = stage.count("a", is_heartbeat);
        gate.release();
        second.await.unwrap();
        stage.until("heartbeats go on", |_| stage.count("a", is_heartbeat) > beats + 2).await;
        assert_eq!(stage.calls("a"), ["A(t0)"]);
        assert_eq!(stage.committed("t", 0), Some(3));
    }
}

#[tokio::test]
async fn after_every_storm_of_joins_and_leaves_what_is_read_is_what_is_owned() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 7)]).await;
        let mut seats: Vec<Seat> = Vec::new();
        let mut random = 0x5eed_u64;
        let mut produced = 0;
        for storm in 0..6 {
            for gust in 0..3 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if seats.len() > 1 && random >> 40 & 1 == 0 {
                    let at = (random >> 45) as usize % seats.len();
                    seats.remove(at).close().await;
                } else if seats.len() < 4 {
                    let mut seat = stage.seat(&format!("m{storm}{gust}"), &[protocol]);
                    seat = {
                        let told = Committing(seat.told());
                        seat.subscribe_with(&["t"], told).await
                    };
                    seats.push(seat);
                }
                for seat in &mut seats {
                    seat.poll().await;
                }
            }
            stage.plain().fill("t", 7, 1).await.unwrap();
            produced += 7;
            let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
            drive("all is read", &mut all, |_| read(&stage) >= produced).await;
            drive("all is owned", &mut all, |all| {
                let owned: usize = all.iter().map(|seat| seat.owns().len()).sum();
                owned == 7
                    && all.iter().all(|seat| {
                        seat.consumer.assignment() == seat.log.history().owned_by(seat.log.name())
                    })
            })
            .await;
        }
        stage.check();
    }
}

fn read(stage: &Stage) -> usize {
    let events = stage.history.events();
    let mut seen = BTreeSet::new();
    for event in &events {
        if let tontine_testkit::history::What::Delivered(partition, offsets) = &event.what {
            seen.extend(offsets.iter().map(|offset| (partition, *offset)));
        }
    }
    seen.len()
}

#[tokio::test]
async fn partitions_that_a_follower_sees_first_are_taken_up_when_the_leader_sees_them() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        let aging = [protocol, ("metadata.max.age.ms", "100")];
        let mut a = stage.behind_proxy("a", &aging).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[1]).await;
        let mut b = stage.seat("b", &aging).subscribe(&["t"]).await;
        drive("b is a member", &mut [&mut a, &mut b], |_| !stage.calls("b").is_empty()).await;
        let generation = stage.broker.group(GROUP).unwrap().generation;
        let gate = a.proxy().on(ApiKey::Metadata, 1, Action::HoldRequest);
        drive("a looks for metadata", &mut [&mut a, &mut b], |_| gate.count() == 1).await;
        stage.plain().create_partitions("t", 3).await.unwrap();
        while b.consumer.partitions_for("t").await.unwrap().len() < 3 {
            b.poll().await;
        }
        gate.release();
        drive("all three are owned", &mut [&mut a, &mut b], |seats| {
            seats.iter().map(|seat| seat.owns().len()).sum::<usize>() == 3
        })
        .await;
        assert!(stage.broker.group(GROUP).unwrap().generation > generation);
        stage.plain().fill("t", 3, 1).await.unwrap();
        drive("all three flow", &mut [&mut a, &mut b], |seats| {
            seats.iter().map(|seat| seat.got.len()).sum::<usize>() == 3
        })
        .await;
        stage.check();
    }
}

#[tokio::test]
async fn metadata_that_were_asked_for_on_other_grounds_show_the_group_its_new_partitions_as_well() {
    for protocol in ALL {
        let stage = Stage::of_nodes(3, &[("t", 1)]).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[1]).await;
        stage.plain().create_partitions("t", 3).await.unwrap();
        // The fetch is refused, and its broker asked for the new leader.
        let (leader, _) = stage.broker.leader("t", 0).unwrap();
        stage.broker.stop_node(leader).await.unwrap();
        settle(&mut [&mut a], &[3]).await;
    }
}

#[tokio::test]
async fn the_leader_notices_new_partitions_of_topics_that_only_others_read() {
    for protocol in ALL {
        let stage = Stage::new(&[("foo", 1), ("bar", 1)]).await;
        let aging = [protocol, ("metadata.max.age.ms", "100")];
        let mut a = stage.seat("a", &aging).subscribe(&["foo"]).await;
        settle(&mut [&mut a], &[1]).await;
        let mut b = stage.seat("b", &aging).subscribe(&["bar"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        stage.plain().create_partitions("bar", 2).await.unwrap();
        settle(&mut [&mut a, &mut b], &[1, 2]).await;
        stage.check();
    }
}

#[tokio::test]
async fn a_heartbeat_that_is_swallowed_costs_no_membership() {
    let stage = Stage::new(&[("t", 1)]).await;
    let mut a =
        stage.behind_proxy("a", &[COOPERATIVE, ("session.timeout.ms", "4500")]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[1]).await;
    let generation = stage.broker.group(GROUP).unwrap().generation;
    let stuck = a.proxy().on(ApiKey::Heartbeat, 1, Action::HoldRequest);
    drive("a heartbeat is stuck", &mut [&mut a], |_| stuck.count() == 1).await;
    let beats = stage.count("a", is_heartbeat);
    drive("heartbeats go on", &mut [&mut a], |_| stage.count("a", is_heartbeat) > beats + 10).await;
    assert_eq!(stage.broker.group(GROUP).unwrap().generation, generation);
    assert_eq!(stage.calls("a"), ["A(t0)"]);
}
