//! What a listener is promised: revoked or lost once for everything that was assigned, in order, whatever goes wrong.

use super::rig::*;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tontine::{Assigned, Error, ListenerResult, Lost, RebalanceListener, Revoked};
use tontine_testkit::{
    history::{Callback, End},
    proxy::Action,
};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request},
};

/// Knows nothing of lost: Kafka's default sends that to revoked.
struct OnlyRevoked {
    told: Told,
    commits: Arc<Mutex<Vec<Result<(), Error>>>>,
    lost: Arc<AtomicBool>,
}

impl RebalanceListener for OnlyRevoked {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.told.begin(if cx.is_lost() { Callback::Lost } else { Callback::Revoked }, cx.partitions());
        self.lost.store(cx.is_lost(), Ordering::SeqCst);
        let result = cx.commit_sync().await;
        self.commits.lock().unwrap().push(result.clone());
        self.told.end(if cx.is_lost() { Callback::Lost } else { Callback::Revoked });
        result.map_err(Into::into)
    }
}

#[tokio::test]
async fn a_listener_without_lost_is_told_in_revoked_and_its_commit_is_refused_without_being_sent() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        let (commits, lost) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let listener = OnlyRevoked { told: a.told(), commits: Arc::clone(&commits), lost: lost.clone() };
        a = a.subscribe_with(&["t"], listener).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        stage.expel("a").await;
        let error = a.poll_until_error().await;
        assert!(matches!(error, Error::Callback(_)), "{error}");
        assert!(lost.load(Ordering::SeqCst));
        assert!(matches!(commits.lock().unwrap()[..], [Err(Error::Lost(_))]), "{commits:?}");
        assert_eq!(stage.commits_by("a"), []);
        drive("a reads again", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
        assert_eq!(stage.calls("a"), ["A(t0 t1)", "L(t0 t1)", "A(t0 t1)"]);
        stage.check();
    }
}

#[tokio::test]
async fn whatever_was_assigned_is_given_up_or_lost_exactly_once_whatever_happens() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 5)]).await;
        let mut seats: Vec<Seat> = Vec::new();
        let mut random = 0xfeed_u64;
        for event in 0..60 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (what, at) = (random >> 40 & 7, (random >> 45) as usize);
            let count = seats.len();
            match what {
                0 | 1 if count < 4 => {
                    seats.push(stage.seat(&format!("m{event}"), &[protocol]).subscribe(&["t"]).await);
                }
                2 if count > 0 => seats.remove(at % count).close().await,
                3 if count > 0 => {
                    let name = seats[at % count].log.name().to_string();
                    let known = stage
                        .broker
                        .group(GROUP)
                        .is_some_and(|group| group.members.iter().any(|member| member.client_id == name));
                    if known {
                        stage.expel(&name).await;
                    }
                }
                4 if count > 0 => {
                    let seat = &mut seats[at % count];
                    seat.consumer.unsubscribe().await.unwrap();
                    let told = seat.told();
                    seat.consumer.subscribe(["t"], told).await.unwrap();
                }
                5 if count > 0 => seats[at % count].consumer.enforce_rebalance("a test").unwrap(),
                _ => {}
            }
            for _ in 0..3 {
                for seat in &mut seats {
                    seat.poll().await;
                }
            }
        }
        for seat in seats {
            seat.close().await;
        }
        stage.check();
    }
}

fn leaves(request: &Request) -> bool {
    match request {
        Request::LeaveGroup(_) => true,
        Request::ConsumerGroupHeartbeat(heartbeat) => heartbeat.member_epoch < 0,
        _ => false,
    }
}

#[tokio::test]
async fn unsubscribing_revokes_first_and_leaves_afterwards_so_that_a_commit_in_between_counts() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        a.consumer.unsubscribe().await.unwrap();
        assert_eq!(stage.calls("a"), ["A(t0 t1)", "R(t0 t1)"]);
        assert_eq!((stage.committed("t", 0), stage.committed("t", 1)), (Some(5), Some(5)));
        let order: Vec<_> = stage
            .asked_by("a")
            .into_iter()
            .filter(|request| matches!(request, Request::OffsetCommit(_)) || leaves(request))
            .collect();
        assert!(matches!(&order[..], [Request::OffsetCommit(_), last] if leaves(last)), "{order:?}");
        assert!(a.consumer.assignment().is_empty());
        stage.check();
    }
}

/// Fails in assigned as often as it is told to.
struct FailsToLoad {
    told: Told,
    failures: Arc<AtomicUsize>,
}

impl RebalanceListener for FailsToLoad {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.begin(Callback::Assigned, cx.partitions());
        self.told.end(Callback::Assigned);
        if self.failures.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        self.failures.fetch_sub(1, Ordering::SeqCst);
        Err("the state cannot be loaded".into())
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.told.on_partitions_revoked(cx).await
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.told.on_partitions_lost(cx).await
    }
}

#[tokio::test]
async fn partitions_whose_assigned_callback_failed_deliver_nothing_until_it_succeeds() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        let failures = Arc::new(AtomicUsize::new(3));
        let listener = FailsToLoad { told: a.told(), failures: failures.clone() };
        a = a.subscribe_with(&["t"], listener).await;
        for left in [2, 1, 0] {
            let error = a.poll_until_error().await;
            assert!(matches!(&error, Error::Callback(_)), "{error}");
            assert!(error.to_string().contains("the state cannot be loaded"), "{error}");
            assert_eq!(failures.load(Ordering::SeqCst), left);
            assert_eq!(a.got, [], "nothing before the callback has returned well");
        }
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        assert_eq!(stage.calls("a"), ["A(t0 t1)", "A()", "A()", "A()"]);
        stage.check();
    }
}

#[tokio::test]
async fn what_was_kept_flows_on_while_the_callback_for_what_came_in_fails() {
    let stage = Stage::new(&[("t", 2)]).await;
    stage.plain().fill("t", 2, 5).await.unwrap();
    let mut b = stage.seat("b", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut b], &[2]).await;
    let mut a = stage.seat("a", &[COOPERATIVE]);
    let failures = Arc::new(AtomicUsize::new(0));
    let listener = FailsToLoad { told: a.told(), failures: failures.clone() };
    a = a.subscribe_with(&["t"], listener).await;
    settle(&mut [&mut a, &mut b], &[1, 1]).await;
    let (kept, gained) = (tp("t", a.owns()[0]), tp("t", b.owns()[0]));
    drive("a reads", &mut [&mut a, &mut b], |seats| seats[0].offsets(&kept).len() == 5).await;
    failures.store(1, Ordering::SeqCst);
    b.close().await;
    let error = a.poll_until_error().await;
    assert!(matches!(&error, Error::Callback(_)), "{error}");
    assert!(a.offsets(&gained).is_empty());
    stage.plain().fill("t", 2, 5).await.unwrap();
    drive("a reads both", &mut [&mut a], |seats| {
        seats[0].offsets(&kept).len() == 10 && seats[0].offsets(&gained).contains(&9)
    })
    .await;
    stage.check();
}

#[tokio::test]
async fn a_refused_commit_before_a_revocation_keeps_neither_the_callback_nor_the_partition() {
    for protocol in ALL {
        for code in [
            ErrorCode::ILLEGAL_GENERATION,
            ErrorCode::OFFSET_METADATA_TOO_LARGE,
            ErrorCode::REBALANCE_IN_PROGRESS,
        ] {
            let stage = Stage::new(&[("t", 2)]).await;
            stage.plain().fill("t", 2, 300).await.unwrap();
            let settings = [protocol, AUTO_COMMIT, ("max.poll.records", "2")];
            let mut a = stage.behind_proxy("a", &settings).subscribe(&["t"]).await;
            drive("a reads", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
            let refuse = a.proxy().on(ApiKey::OffsetCommit, 1, Action::AnswerCode(code));
            let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
            settle(&mut [&mut a, &mut b], &[1, 1]).await;
            assert_eq!(refuse.count(), 1);
            let gone = stage.calls("a").iter().filter(|call| !call.starts_with('A')).count();
            assert_eq!(gone, 1, "{:?}", stage.calls("a"));
            drive("both read on", &mut [&mut a, &mut b], |seats| {
                seats.iter().all(|seat| seat.got.last().is_some_and(|(_, at)| *at == 299))
            })
            .await;
            stage.check_with_auto_commit();
        }
    }
}

#[tokio::test]
async fn a_partition_may_come_and_go_inside_one_poll() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        let wait = async {
            let known = |broker: &tontine_broker::Broker| {
                let led = |leads: bool| leads || protocol == CONSUMER;
                broker
                    .group(GROUP)
                    .is_some_and(|group| group.members.len() == 1 && led(group.leader.is_some()))
            };
            stage.until("a is a member", known).await;
            stage.until("a owns everything", |_| stage.calls("a") == ["A(t0 t1)"]).await;
            let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
            settle(&mut [&mut b], &[1]).await;
            stage.plain().fill("t", 2, 1).await.unwrap();
            b
        };
        let (records, mut b) = tokio::join!(a.consumer.poll(LONG), wait);
        let records = records.unwrap();
        assert_eq!(a.take(&records), 1);
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        let given = tp("t", b.owns()[0]);
        assert!(a.offsets(&given).is_empty(), "nothing of what went away came out of the poll");
        drive("b reads", &mut [&mut a, &mut b], |seats| seats[1].got.len() == 1).await;
        stage.check();
    }
}

/// Commits in both callbacks, and starts where it likes.
struct Seeks(Committing);

impl RebalanceListener for Seeks {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.0.0.begin(Callback::Assigned, cx.partitions());
        cx.commit_sync().await?;
        for partition in cx.partitions().to_vec() {
            cx.seek(&partition, 15)?;
            self.0.0.0.write(tontine_testkit::history::What::Sought(partition.clone(), 15));
            assert_eq!(cx.position(&partition).await?, 15);
        }
        cx.commit_sync().await?;
        self.0.0.end(Callback::Assigned);
        Ok(())
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.0.on_partitions_revoked(cx).await
    }
}

#[tokio::test]
async fn a_commit_works_in_both_callbacks_and_a_seek_in_assigned_decides_where_reading_starts() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 20).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        let listener = Seeks(Committing(a.told()));
        a = a.subscribe_with(&["t"], listener).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        assert!(a.got.iter().all(|(_, offset)| *offset >= 15), "{:?}", a.got);
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        assert_eq!(stage.committed("t", b.owns()[0]), Some(20));
        stage.check();
    }
}

/// Takes its time in assigned, in which records arrive.
struct Slow {
    told: Told,
    client: tontine_testkit::plain::PlainClient,
}

impl RebalanceListener for Slow {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.begin(Callback::Assigned, cx.partitions());
        for partition in cx.partitions().to_vec() {
            self.client.produce("t", partition.partition(), 3).await?;
            assert_eq!(cx.position(&partition).await?, 0);
        }
        self.told.end(Callback::Assigned);
        Ok(())
    }
}

#[tokio::test]
async fn no_record_is_handed_out_before_the_application_has_set_itself_up() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 3)]).await;
        stage.plain().fill("t", 3, 3).await.unwrap();
        let mut a = stage.seat("a", &[protocol]);
        let listener = Slow { told: a.told(), client: stage.plain() };
        a = a.subscribe_with(&["t"], listener).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 18).await;
        stage.check();
    }
}

/// Hangs once in revoked.
struct HangsOnce {
    told: Told,
    hangs: Arc<AtomicBool>,
    finished: Arc<AtomicUsize>,
}

impl RebalanceListener for HangsOnce {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.told.begin(Callback::Revoked, cx.partitions());
        if self.hangs.swap(false, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.finished.fetch_add(cx.partitions().len(), Ordering::SeqCst);
        self.told.end(Callback::Revoked);
        Ok(())
    }
}

#[tokio::test]
async fn a_close_in_the_middle_of_a_revocation_ends_it_once_for_each_partition() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 4)]).await;
        let mut a = stage.seat("a", &[protocol]);
        let (hangs, finished) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let listener = HangsOnce { told: a.told(), hangs: hangs.clone(), finished: finished.clone() };
        a = a.subscribe_with(&["t"], listener).await;
        settle(&mut [&mut a], &[4]).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        let dropped = async {
            while hangs.load(Ordering::SeqCst) {
                b.poll().await;
                let _ = tokio::time::timeout(STEP, a.consumer.poll(LONG)).await;
            }
        };
        tokio::time::timeout(LONG, dropped).await.expect("a is to give something up");
        a.consumer.close().await.unwrap();
        a.log.ended(End::Closed);
        assert_eq!(finished.load(Ordering::SeqCst), 4);
        settle(&mut [&mut b], &[4]).await;
        stage.check();
    }
}
