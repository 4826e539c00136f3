//! Who lives is a member, who does not is none: heartbeats, sessions, the poll deadline, and what is handed out meanwhile.

use super::rig::*;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc as blocking,
    },
    time::Duration,
};
use tokio::sync::mpsc;
use tontine::{Assigned, Consumer, ListenerResult, Lost, RebalanceListener, Revoked};
use tontine_group::{
    Assignment,
    assignor::{self, Assignor, MemberSubscription, RebalanceProtocol},
    topics::Topics,
};
use tontine_testkit::proxy::Action;
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request},
};

fn is_heartbeat(request: &Request) -> bool {
    matches!(request, Request::Heartbeat(_) | Request::ConsumerGroupHeartbeat(_))
}

/// A session that ends before long, and heartbeats that come often within it.
const SHORT: [Setting; 2] = [("session.timeout.ms", "600"), ("heartbeat.interval.ms", "30")];
/// So many heartbeats of [`SHORT`] take longer than its session.
const A_SESSION: usize = 24;

/// [`SHORT`] is for members of the classic protocol to say; with the other one it is the broker's to say.
async fn short_sessions(protocol: Setting, topics: &[(&str, i32)]) -> (Stage, Vec<Setting>) {
    let of_broker =
        [("group.consumer.session.timeout.ms", "600"), ("group.consumer.heartbeat.interval.ms", "30")];
    let settings = if protocol == CONSUMER { vec![protocol] } else { vec![protocol, SHORT[0], SHORT[1]] };
    (Stage::configured(topics, &of_broker).await, settings)
}

async fn until_beats(stage: &Stage, client: &str, count: usize) {
    let before = stage.count(client, is_heartbeat);
    stage.until("heartbeats go on", |_| stage.count(client, is_heartbeat) >= before + count).await;
}

fn lost(stage: &Stage, member: &str) -> bool {
    stage.calls(member).iter().any(|call| call.starts_with('L'))
}

/// Thinks until it is told to go on.
#[derive(Debug)]
struct Thinker {
    thinks: Mutex<mpsc::UnboundedSender<()>>,
    go_on: Mutex<blocking::Receiver<()>>,
}

impl Assignor for Thinker {
    fn name(&self) -> &str {
        "thinker"
    }
    fn rebalance_protocol(&self) -> RebalanceProtocol {
        RebalanceProtocol::Eager
    }
    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        let _ = self.thinks.lock().unwrap().send(());
        let _ = self.go_on.lock().unwrap().recv_timeout(LONG);
        let range = assignor::by_name("range").unwrap();
        range.assign(topics, members)
    }
}

#[tokio::test]
async fn a_leader_whose_assignor_takes_longer_than_its_session_stays_a_member_and_ends_the_round() {
    let stage = Stage::new(&[("t", 2)]).await;
    let (thinks, mut is_thinking) = mpsc::unbounded_channel();
    let (went_on, go_on) = blocking::channel();
    let thinker = Thinker { thinks: Mutex::new(thinks), go_on: Mutex::new(go_on) };
    let mut a = stage.seat("a", &SHORT);
    a.consumer = Consumer::builder()
        .set("bootstrap.servers", stage.broker.bootstrap_servers())
        .set("client.id", "a")
        .group_id(GROUP)
        .set("session.timeout.ms", "600")
        .set("heartbeat.interval.ms", "30")
        .set("partition.assignment.strategy", "thinker")
        .assignor(Arc::new(thinker))
        .build()
        .unwrap();
    let mut a = a.subscribe(&["t"]).await;
    drive("the leader thinks", &mut [&mut a], |_| is_thinking.try_recv().is_ok()).await;
    until_beats(&stage, "a", A_SESSION).await;
    went_on.send(()).unwrap();
    settle(&mut [&mut a], &[2]).await;
    assert_eq!(stage.broker.group(GROUP).unwrap().generation, 1);
}

/// Panics the first time.
#[derive(Debug, Default)]
struct Faulty(AtomicBool);

impl Assignor for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }
    fn rebalance_protocol(&self) -> RebalanceProtocol {
        RebalanceProtocol::Eager
    }
    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        assert!(self.0.swap(true, Ordering::Relaxed), "a fault of the application");
        assignor::by_name("range").unwrap().assign(topics, members)
    }
}

#[tokio::test]
async fn an_assignor_that_panics_is_an_error_of_poll_and_the_consumer_lives_on() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[]);
    a.consumer = Consumer::builder()
        .set("bootstrap.servers", stage.broker.bootstrap_servers())
        .group_id(GROUP)
        .set("partition.assignment.strategy", "faulty")
        .assignor(Arc::new(Faulty::default()))
        .build()
        .unwrap();
    let mut a = a.subscribe(&["t"]).await;
    let error = loop {
        if let Err(error) = a.consumer.poll(LONG).await {
            break error;
        }
    };
    assert_eq!(
        error.to_string(),
        "a callback of the application failed: the assignor `faulty` panicked: a fault of the application"
    );
    settle(&mut [&mut a], &[2]).await;
    a.close().await;
    stage.check();
}

#[tokio::test]
async fn members_that_wait_for_a_slow_one_in_a_rebalance_live_on() {
    for protocol in BOTH {
        let settings = [protocol, SHORT[0], SHORT[1]];
        let stage = Stage::new(&[("t", 6)]).await;
        let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
        let mut b = stage.seat("b", &settings).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[3, 3]).await;
        // B joins late: its first rejoin is held back.
        let slow = stage.behind_proxy("slow", &settings);
        let hold = slow.proxy().on(ApiKey::JoinGroup, usize::MAX, Action::HoldRequest);
        hold.release();
        drop(hold);
        let mut slow = slow.subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b, &mut slow], &[2, 2, 2]).await;
        let hold = slow.proxy().on(ApiKey::JoinGroup, 1, Action::HoldRequest);
        let rested = stage.count("a", is_join);
        let mut c = stage.seat("c", &settings).subscribe(&["t"]).await;
        drive("a waits", &mut [&mut a, &mut b, &mut slow, &mut c], |_| {
            hold.count() == 1 && stage.count("a", is_join) > rested
        })
        .await;
        until_beats(&stage, "a", A_SESSION).await;
        hold.release();
        drive("all share", &mut [&mut a, &mut b, &mut slow, &mut c], |seats| {
            seats.iter().all(|seat| !seat.owns().is_empty())
        })
        .await;
        assert!(!lost(&stage, "a") && !lost(&stage, "slow"));
        stage.check();
    }
}

#[tokio::test]
async fn a_consumer_that_cannot_get_back_into_its_group_hands_nothing_out() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 5).await;
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 5).await;
        let busy = Action::AnswerCode(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        let refused = a.proxy().on(ApiKey::JoinGroup, usize::MAX, busy);
        stage.expel("a").await;
        drive("a loses all", &mut [&mut a], |_| lost(&stage, "a")).await;
        stage.produce("t", 0, 5).await;
        drive("a tries", &mut [&mut a], |_| refused.count() >= 5).await;
        assert_eq!(a.got.len(), 5);
        drop(refused);
        drive("a reads again", &mut [&mut a], |seats| seats[0].got.last().is_some_and(|(_, at)| *at == 9))
            .await;
    }
}

#[tokio::test]
async fn heartbeats_begin_whatever_poll_finds_the_join_answered() {
    for protocol in ALL {
        let (stage, settings) = short_sessions(protocol, &[("t", 1)]).await;
        let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
        let joined = async {
            while a.consumer.assignment().is_empty() {
                a.consumer.poll(Duration::ZERO).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, joined).await.expect("a joins");
        until_beats(&stage, "a", A_SESSION).await;
        a.poll().await;
        assert_eq!(stage.calls("a"), ["A(t0)"]);
    }
}

/// Waits in both callbacks until it is told to go on.
struct Slow {
    told: Told,
    waits: mpsc::UnboundedSender<()>,
    go_on: mpsc::UnboundedReceiver<()>,
}

impl Slow {
    async fn wait(&mut self) -> ListenerResult {
        self.waits.send(())?;
        let _ = self.go_on.recv().await;
        Ok(())
    }
}

impl RebalanceListener for Slow {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.wait().await?;
        self.told.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.wait().await?;
        self.told.on_partitions_revoked(cx).await
    }
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        self.told.on_partitions_lost(cx).await
    }
}

#[tokio::test]
async fn callbacks_that_take_longer_than_a_session_cost_no_membership() {
    for protocol in ALL {
        let (stage, settings) = short_sessions(protocol, &[("t", 2)]).await;
        let (waits, mut waiting) = mpsc::unbounded_channel();
        let (went_on, go_on) = mpsc::unbounded_channel();
        let a = stage.seat("a", &settings);
        let told = a.told();
        let mut a = a.subscribe_with(&["t"], Slow { told, waits, go_on }).await;
        let mut b = stage.seat("b", &[protocol]);
        let script = async {
            let mut newcomer = None;
            // Assigned, then whatever the newcomer brings: each time longer than a session.
            for callback in 0..2 {
                waiting.recv().await.unwrap();
                until_beats(&stage, "a", A_SESSION).await;
                went_on.send(()).unwrap();
                if callback == 0 {
                    let told = b.told();
                    b.consumer.subscribe(["t"], told).await.unwrap();
                    newcomer = Some(());
                }
                if newcomer.is_some() {
                    b.poll().await;
                }
            }
        };
        let polling = async {
            loop {
                a.poll().await;
            }
        };
        tokio::time::timeout(LONG, async {
            tokio::select! { () = script => {}, () = polling => {} }
        })
        .await
        .expect("two callbacks");
        drop(went_on);
        drop(waiting);
        assert!(!lost(&stage, "a"), "{:?}", stage.calls("a"));
    }
}

#[tokio::test]
async fn a_poll_that_waits_longer_than_the_poll_interval_is_a_poll_all_the_time() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        let mut a = stage.seat("a", &[protocol, ("max.poll.interval.ms", "1000")]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[1]).await;
        let records = a.consumer.poll(Duration::from_millis(2500)).await.unwrap();
        assert!(records.is_empty());
        stage.produce("t", 0, 1).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 1).await;
        assert_eq!(stage.calls("a"), ["A(t0)"]);
    }
}

#[tokio::test]
async fn calls_that_hand_out_no_records_are_no_polls_and_the_loss_is_told_by_the_next_one() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        let mut a = stage.seat("a", &[protocol, ("max.poll.interval.ms", "100")]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[1]).await;
        let out = async {
            while stage.broker.group(GROUP).is_some_and(|group| !group.members.is_empty()) {
                let _ = a.consumer.commit_sync().await;
                let _ = a.consumer.committed(&[tp("t", 0)]).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, out).await.expect("a is out");
        stage.produce("t", 0, 3).await;
        drive("a is told, joins and reads", &mut [&mut a], |seats| seats[0].got.len() == 3).await;
        assert_eq!(stage.calls("a"), ["A(t0)", "L(t0)", "A(t0)"]);
        assert!(a.consumer.history().since(0).any(|happening| happening.to_string().contains("poll")));
    }
}

#[tokio::test]
async fn idling_before_the_first_poll_is_no_missed_deadline() {
    let stage = Stage::new(&[("t", 1)]).await;
    let a = stage.seat("a", &[EAGER, ("max.poll.interval.ms", "20")]).subscribe(&["t"]).await;
    // Another member comes and goes meanwhile.
    let mut b = stage.seat("b", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut b], &[1]).await;
    until_beats(&stage, "b", 3).await;
    b.close().await;
    let mut a = a;
    settle(&mut [&mut a], &[1]).await;
    assert_eq!(stage.calls("a"), ["A(t0)"]);
}
