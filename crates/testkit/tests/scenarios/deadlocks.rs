//! Callbacks, close and drop: whatever waits for whatever, everything ends in its time and the group goes on.

use super::rig::*;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tontine::{Assigned, Consumer, Error, ListenerResult, Lost, RebalanceListener, Revoked};
use tontine_testkit::{
    history::Callback,
    proxy::{Action, Rule},
};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request},
};

fn is_leave(request: &Request) -> bool {
    matches!(request, Request::LeaveGroup(_))
}

fn is_heartbeat(request: &Request) -> bool {
    matches!(request, Request::Heartbeat(_) | Request::ConsumerGroupHeartbeat(_))
}

/// Fails when this does not end at all.
async fn ends<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.unwrap_or_else(|_| panic!("{what} does not end"))
}

async fn until_nobody_is_left(stage: &Stage) {
    stage
        .until("the group is empty", |broker| {
            broker.group(GROUP).is_none_or(|group| group.members.is_empty())
        })
        .await;
}

/// Waits in revoked for a worker that needs the same runtime, then commits.
struct Draining {
    told: Told,
    worker: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl RebalanceListener for Draining {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.told.begin(Callback::Revoked, cx.partitions());
        let (done, drained) = oneshot::channel();
        self.worker.send(done)?;
        drained.await?;
        cx.commit_sync().await?;
        self.told.end(Callback::Revoked);
        Ok(())
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.told.on_partitions_lost(cx).await
    }
}

#[tokio::test]
async fn a_callback_that_waits_for_work_of_its_own_runtime_ends_and_what_was_done_is_not_repeated() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 50).await.unwrap();
        let (worker, mut wanted) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let work = tokio::spawn(async move {
            while let Some(done) = wanted.recv().await {
                for _ in 0..1000 {
                    tokio::task::yield_now().await;
                }
                let _ = done.send(());
            }
        });
        let a = stage.seat("a", &[protocol]);
        let told = a.told();
        let mut a = a.subscribe_with(&["t"], Draining { told, worker }).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 100).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        stage.plain().fill("t", 2, 1).await.unwrap();
        drive("b reads", &mut [&mut a, &mut b], |seats| !seats[1].got.is_empty()).await;
        assert_eq!(b.got[0].1, 50);
        ends("close", a.consumer.close()).await.unwrap();
        ends("the worker", work).await.unwrap();
    }
}

/// Never returns from revoked.
struct Stuck(Told);

impl RebalanceListener for Stuck {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.0.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.0.begin(Callback::Revoked, cx.partitions());
        std::future::pending().await
    }
}

#[tokio::test]
async fn partitions_whose_callback_never_ends_are_taken_over_at_the_poll_deadline_from_what_was_committed() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 10).await.unwrap();
        let a = stage.seat("a", &[protocol, ("max.poll.interval.ms", "400")]);
        let told = a.told();
        let mut a = a.subscribe_with(&["t"], Stuck(told)).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
        let stuck = tokio::spawn(async move { while a.try_poll().await.is_ok() {} });
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        drive("b has everything", &mut [&mut b], |seats| seats[0].got.len() == 20).await;
        assert!(!stuck.is_finished(), "it is the callback that waits");
        stuck.abort();
    }
}

/// Seeks in assigned.
struct Seeking(Told, i64);

impl RebalanceListener for Seeking {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        for partition in cx.partitions().to_vec() {
            cx.seek(&partition, self.1)?;
        }
        self.0.on_partitions_assigned(cx).await
    }
}

#[tokio::test]
async fn a_seek_in_assigned_ends_whatever_the_committed_offsets_are_answered_with() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION, ErrorCode::NOT_COORDINATOR] {
        for protocol in ALL {
            let stage = Stage::new(&[("t", 1)]).await;
            stage.produce("t", 0, 10).await;
            let a = stage.behind_proxy("a", &[protocol]);
            let _rule = a.proxy().on(ApiKey::OffsetFetch, 1, Action::AnswerCode(code));
            let told = a.told();
            let mut a = a.subscribe_with(&["t"], Seeking(told, 4)).await;
            drive("a reads", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
            assert_eq!(a.got[0].1, 4);
        }
    }
}

/// Lets the first `skip` requests of an API pass and does this to the next one.
async fn gate(seat: &Seat, key: ApiKey, skip: usize, action: Action) -> (Rule, Rule) {
    let pass = seat.proxy().on(key, skip, Action::Edit(std::sync::Arc::new(|_| {})));
    (pass, seat.proxy().on(key, 1, action))
}

#[tokio::test]
async fn close_ends_at_every_step_of_joining_and_leaves_nobody_behind() {
    let steps = [
        (ApiKey::JoinGroup, 1, Action::HoldRequest),
        (ApiKey::JoinGroup, 1, Action::HoldAnswer),
        (ApiKey::SyncGroup, 0, Action::HoldRequest),
        (ApiKey::SyncGroup, 0, Action::HoldAnswer),
        (ApiKey::Heartbeat, 0, Action::HoldAnswer),
        (ApiKey::OffsetFetch, 0, Action::HoldAnswer),
    ];
    for protocol in BOTH {
        for (key, skip, action) in steps.clone() {
            let what = format!("close with {action:?} of {key:?}");
            let stage = Stage::new(&[("t", 2)]).await;
            let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
            let (_pass, held) = gate(&a, key, skip, action).await;
            drive(&what, &mut [&mut a], |_| held.count() == 1).await;
            // Whatever waits behind the gate is let through only when the member has left.
            let left = async {
                stage.until("the member leaves", |_| stage.count("a", is_leave) == 1).await;
                held.release();
            };
            let (closed, ()) = ends(&what, async { tokio::join!(a.consumer.close(), left) }).await;
            closed.unwrap();
            until_nobody_is_left(&stage).await;
        }
    }
}

#[tokio::test]
async fn close_with_a_revocation_pending_revokes_once_and_leaves() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        let joins = stage.count("b", is_join);
        drive("b joins", &mut [&mut b], |_| stage.count("b", is_join) > joins + 1).await;
        let beats = stage.count("a", is_heartbeat);
        stage.until("a has heard", |_| stage.count("a", is_heartbeat) > beats + 1).await;
        ends("close", a.consumer.close()).await.unwrap();
        assert_eq!(stage.calls("a"), ["A(t0 t1)", "R(t0 t1)"]);
        settle(&mut [&mut b], &[2]).await;
        stage.check();
    }
}

#[tokio::test]
async fn a_member_whose_join_waits_for_others_leaves_at_once_and_the_round_goes_on_without_it() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    let mut b = stage.seat("b", &[EAGER]).subscribe(&["t"]).await;
    // A is not polled, so its revocation does not run and the round stays open.
    let parked = |broker: &tontine_broker::Broker| {
        broker.group(GROUP).is_some_and(|g| g.members.iter().any(|m| m.client_id == "b" && m.joining))
    };
    drive("b waits in the group", &mut [&mut b], |_| parked(&stage.broker)).await;
    ends("close", b.consumer.close()).await.unwrap();
    let members = stage.broker.group(GROUP).unwrap().members;
    assert_eq!(members.iter().map(|m| m.client_id.as_str()).collect::<Vec<_>>(), ["a"]);
    settle(&mut [&mut a], &[2]).await;
    assert!(!stage.calls("a").iter().any(|call| call.starts_with('L')), "{:?}", stage.calls("a"));
}

#[tokio::test]
async fn closing_before_the_first_join_is_answered_leaves_no_ghost() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        let held = a.proxy().on(ApiKey::JoinGroup, 1, Action::HoldAnswer);
        drive("a joins", &mut [&mut a], |_| held.count() == 1).await;
        let close = async {
            ends("close", a.consumer.close()).await.unwrap();
        };
        let release = async {
            tokio::task::yield_now().await;
            held.release();
        };
        tokio::join!(close, release);
        until_nobody_is_left(&stage).await;
    }
}

/// Panics in revoked.
struct Panicking;

impl RebalanceListener for Panicking {
    async fn on_partitions_revoked(&mut self, _: &mut Revoked<'_>) -> ListenerResult {
        panic!("a fault of the application");
    }
}

#[tokio::test]
async fn a_callback_that_panics_at_close_does_not_keep_the_member_in_the_group() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe_with(&["t"], Panicking).await;
    drive("a owns all", &mut [&mut a], |seats| seats[0].consumer.assignment().len() == 2).await;
    let closed = tokio::spawn(async move { a.consumer.close().await });
    assert!(ends("close", closed).await.unwrap_err().is_panic());
    until_nobody_is_left(&stage).await;
    assert_eq!(stage.count("a", is_leave), 1);
}

/// Tries to commit in revoked after the member was put out of the group.
struct Expelled {
    gone: mpsc::UnboundedSender<()>,
    go_on: mpsc::UnboundedReceiver<()>,
    result: mpsc::UnboundedSender<Result<(), Error>>,
}

impl RebalanceListener for Expelled {
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        if cx.is_lost() {
            return Ok(());
        }
        self.gone.send(())?;
        let _ = self.go_on.recv().await;
        self.result.send(cx.commit_sync().await)?;
        Ok(())
    }
}

#[tokio::test]
async fn a_member_that_is_put_out_while_its_callback_runs_commits_nothing_more() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let (gone, mut is_gone) = mpsc::unbounded_channel();
        let (went_on, go_on) = mpsc::unbounded_channel();
        let (result, mut results) = mpsc::unbounded_channel();
        let mut a =
            stage.seat("a", &[protocol]).subscribe_with(&["t"], Expelled { gone, go_on, result }).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        let polling = tokio::spawn(async move { while a.try_poll().await.is_ok() {} });
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        let script = async {
            is_gone.recv().await.unwrap();
            stage.expel("a").await;
            let beats = stage.count("a", is_heartbeat);
            stage.until("a's next heartbeat", |_| stage.count("a", is_heartbeat) > beats).await;
            went_on.send(()).unwrap();
            results.recv().await.unwrap()
        };
        let refused = tokio::select! {
            refused = script => refused,
            () = async { loop { b.poll().await; } } => unreachable!(),
        };
        assert!(matches!(refused, Err(Error::Lost(_))), "{refused:?}");
        assert_eq!((stage.committed("t", 0), stage.committed("t", 1)), (None, None));
        polling.abort();
    }
}

#[tokio::test]
async fn a_commit_that_is_dropped_in_the_middle_of_a_round_holds_nobody_up() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        let held = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldAnswer);
        tokio::select! {
            _ = a.consumer.commit_sync() => panic!("the answer is held"),
            met = held.met(1, LONG) => met.unwrap(),
        }
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        a.poll().await;
        a.poll().await;
        b.poll().await;
        held.release();
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        ends("another commit", a.consumer.commit_sync()).await.unwrap();
    }
}

#[tokio::test]
async fn dropping_a_consumer_ends_at_once_whether_its_broker_answers_or_not() {
    for answers in [true, false] {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 5).await;
        let mut a = stage.behind_proxy("a", &[EAGER, AUTO_COMMIT]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 5).await;
        drop(a.consumer.commit_async());
        if !answers {
            a.proxy().stall();
        }
        let Seat { consumer, proxy, .. } = a;
        ends("drop", tokio::task::spawn_blocking(move || drop(consumer))).await.unwrap();
        drop(proxy);
    }
}

#[tokio::test]
async fn close_does_not_wait_for_a_callback_longer_than_its_timeout() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        let a = stage.seat("a", &[protocol]);
        let told = a.told();
        let mut a = a.subscribe_with(&["t"], Stuck(told)).await;
        settle(&mut [&mut a], &[2]).await;
        let closed = ends("close", a.consumer.close_with(Duration::from_millis(200))).await;
        assert!(matches!(closed, Err(Error::Timeout { .. })), "{closed:?}");
        until_nobody_is_left(&stage).await;
        assert_eq!(stage.count("a", is_leave), 1);
    }
}

/// Calls everything that a context has, in every callback.
struct Everything(Told);

impl RebalanceListener for Everything {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        let all = cx.partitions().to_vec();
        cx.assignment();
        cx.group_metadata()?;
        cx.committed(&all).await?;
        cx.beginning_offsets(&all).await?;
        cx.end_offsets(&all).await?;
        cx.offsets_for_times(all.iter().map(|name| (name.clone(), 0))).await?;
        cx.pause(&all)?;
        cx.resume(&all)?;
        cx.seek_to_end(&all)?;
        cx.seek_to_timestamp(&all, 0)?;
        cx.seek_to_beginning(&all)?;
        for name in &all {
            assert_eq!(cx.position(name).await?, 0);
            cx.seek(name, 0)?;
        }
        cx.commit_sync().await?;
        cx.commit_sync_offsets(all.iter().map(|name| (name.clone(), 0))).await?;
        self.0.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        let all = cx.partitions().to_vec();
        cx.assignment();
        cx.group_metadata()?;
        cx.committed(&all).await?;
        for name in &all {
            cx.position(name).await?;
        }
        cx.commit_sync().await?;
        cx.commit_sync_offsets(all.iter().map(|name| (name.clone(), 0))).await?;
        self.0.on_partitions_revoked(cx).await
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        let all = cx.partitions().to_vec();
        cx.assignment();
        cx.group_metadata()?;
        cx.committed(&all).await?;
        for name in &all {
            cx.position(name).await?;
        }
        assert!(cx.as_revoked().commit_sync().await.is_err());
        self.0.on_partitions_lost(cx).await
    }
}

#[tokio::test]
async fn everything_that_a_callback_may_call_ends_in_every_callback() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 5).await.unwrap();
        let a = stage.seat("a", &[protocol]);
        let told = a.told();
        let mut a = a.subscribe_with(&["t"], Everything(told)).await;
        settle(&mut [&mut a], &[2]).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        stage.expel("a").await;
        drive("a loses all", &mut [&mut a, &mut b], |_| {
            stage.calls("a").iter().any(|call| call.starts_with('L'))
        })
        .await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        ends("close", a.consumer.close()).await.unwrap();
    }
}

#[tokio::test]
async fn a_consumer_closes_from_wherever_it_is_and_a_second_time_does_nothing() {
    let stage = Stage::new(&[("t", 1)]).await;
    let mut new = stage.seat("new", &[EAGER]);
    ends("close of a new one", new.consumer.close()).await.unwrap();
    ends("a second close", new.consumer.close()).await.unwrap();
    assert!(matches!(new.try_poll().await, Err(Error::Closed(_))));

    let mut idle = stage.seat("idle", &[EAGER]).subscribe(&["t"]).await;
    ends("close before the first poll", idle.consumer.close()).await.unwrap();

    let mut left = stage.seat("left", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut left], &[1]).await;
    ends("unsubscribe", left.consumer.unsubscribe()).await.unwrap();
    ends("close after unsubscribe", left.consumer.close()).await.unwrap();
    assert_eq!(stage.calls("left"), ["A(t0)", "R(t0)"]);

    let mut by_hand = stage.seat("hand", &[EAGER]);
    by_hand.consumer.assign([tp("t", 0)]).unwrap();
    by_hand.poll().await;
    ends("close of partitions by hand", by_hand.consumer.close()).await.unwrap();
    until_nobody_is_left(&stage).await;
}

#[tokio::test]
async fn close_without_any_broker_ends_with_its_timeout() {
    let stage = Stage::new(&[("t", 1)]).await;
    let mut a = stage.behind_proxy("a", &[EAGER, AUTO_COMMIT]).subscribe(&["t"]).await;
    stage.produce("t", 0, 3).await;
    drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 3).await;
    a.proxy().stall();
    let closed = ends("close", a.consumer.close_with(Duration::from_millis(200))).await;
    assert!(matches!(closed, Err(Error::Timeout { .. }) | Ok(())), "{closed:?}");
    assert_eq!(stage.calls("a"), ["A(t0)", "R(t0)"]);

    let mut b = Consumer::builder().set("bootstrap.servers", "127.0.0.1:1").group_id(GROUP).build().unwrap();
    b.subscribe(["t"], ()).await.unwrap();
    let _ = b.poll(STEP).await;
    let _ = ends("close", b.close_with(Duration::from_millis(200))).await;
}
