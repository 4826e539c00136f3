//! Commits around a rebalance: they cost time, never partitions, and they cover exactly what the application was handed.

use super::rig::*;
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use tontine::{Assigned, Error, ListenerResult, RebalanceListener, Revoked};
use tontine_testkit::{
    history::{Callback, Event, What},
    proxy::{Action, Rule},
};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, Response},
};

/// Collects the codes that commits are answered with.
fn commit_codes(seat: &Seat) -> (Arc<Mutex<Vec<ErrorCode>>>, Rule) {
    let codes: Arc<Mutex<Vec<ErrorCode>>> = Arc::default();
    let seen = codes.clone();
    let look = move |response: &mut Response| {
        let Response::OffsetCommit(response) = response else { return };
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        seen.lock().unwrap().extend(partitions.map(|partition| partition.error_code));
    };
    let rule = seat.proxy().on(ApiKey::OffsetCommit, usize::MAX, Action::Edit(Arc::new(look)));
    (codes, rule)
}

/// A and C own two partitions each. B wants to join, which C holds up; A has joined again and waits.
async fn round_held_up(stage: &Stage) -> (Seat, Seat, Seat, Rule) {
    let mut a = stage.behind_proxy("a", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[4]).await;
    let mut c = stage.behind_proxy("c", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut a, &mut c], &[2, 2]).await;
    let rested = stage.count("a", is_join);
    let hold = c.proxy().on(ApiKey::JoinGroup, 1, Action::HoldRequest);
    let mut b = stage.seat("b", &[COOPERATIVE]).subscribe(&["t"]).await;
    let joined = |stage: &Stage| stage.count("a", is_join) > rested;
    drive("a joins again", &mut [&mut a, &mut b, &mut c], |_| joined(stage) && hold.count() == 1).await;
    (a, b, c, hold)
}

#[tokio::test]
async fn a_commit_overtaken_by_a_join_costs_no_partition_and_goes_out_again() {
    let stage = Stage::new(&[("t", 4)]).await;
    let (mut a, mut b, mut c, hold) = round_held_up(&stage).await;
    let kept = a.owns();
    let gate = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldRequest);
    let commit = a.consumer.commit_async_offsets([(tp("t", kept[0]), 0)]);
    gate.met(1, LONG).await.unwrap();
    let before = a.consumer.group_metadata().unwrap().generation;
    hold.release();
    drive("the next generation", &mut [&mut a, &mut b, &mut c], |seats| {
        seats[0].consumer.group_metadata().unwrap().generation > before
    })
    .await;
    gate.release();
    commit.await.unwrap();
    assert_eq!(stage.count("a", |request| matches!(request, Request::OffsetCommit(_))), 2);
    settle_three(&mut a, &mut b, &mut c).await;
    assert!(a.owns().iter().all(|partition| kept.contains(partition)), "{:?} of {kept:?}", a.owns());
    assert!(!stage.calls("a").iter().any(|call| call.starts_with('L')), "{:?}", stage.calls("a"));
    a.commit().await.unwrap();
    stage.check();
}

async fn settle_three(a: &mut Seat, b: &mut Seat, c: &mut Seat) {
    drive("three members share", &mut [a, b, c], |seats| {
        let all: BTreeSet<i32> = seats.iter().flat_map(|seat| seat.owns()).collect();
        let count: usize = seats.iter().map(|seat| seat.owns().len()).sum();
        all.len() == 4 && count == 4 && seats.iter().all(|seat| !seat.owns().is_empty())
    })
    .await;
}

#[tokio::test]
async fn a_member_that_commits_after_every_record_sees_no_error_while_others_come_and_go() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 6)]).await;
        stage.plain().fill("t", 6, 200).await.unwrap();
        let one = [protocol, ("max.poll.records", "1")];
        let mut a = stage.seat("a", &one).subscribe(&["t"]).await;
        let mut b = stage.seat("b", &one);
        b = {
            let told = Committing(b.told());
            b.subscribe_with(&["t"], told).await
        };
        for round in 0..8 {
            let mut c = stage.seat(&format!("c{round}"), &[protocol]);
            c = {
                let told = Committing(c.told());
                c.subscribe_with(&["t"], told).await
            };
            for_both(&mut a, &mut [&mut b, &mut c], |c| !c.owns().is_empty()).await;
            c.close().await;
        }
        stage.check();
    }
}

/// Polls all, A committing after each of its polls, until the last one has what it is to have.
async fn for_both(a: &mut Seat, others: &mut [&mut Seat], done: impl Fn(&Seat) -> bool) {
    let driven = async {
        while !done(others[others.len() - 1]) {
            a.poll().await;
            a.commit().await.unwrap();
            for other in others.iter_mut() {
                other.poll().await;
            }
        }
    };
    tokio::time::timeout(LONG, driven).await.expect("the newcomer gets its share");
}

#[tokio::test]
async fn partitions_flow_after_a_rebalance_however_a_commit_before_it_ended() {
    for protocol in BOTH {
        for refused in [false, true] {
            let stage = Stage::new(&[("t", 4)]).await;
            stage.plain().fill("t", 4, 5).await.unwrap();
            let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
            drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
            let gate = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldAnswer);
            let commit = a.consumer.commit_async();
            gate.met(1, LONG).await.unwrap();
            let _refuse = refused.then(|| {
                let code = ErrorCode::REBALANCE_IN_PROGRESS;
                a.proxy().on(ApiKey::OffsetCommit, 1, Action::AnswerCode(code))
            });
            let again = a.consumer.commit_async();
            let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
            b.poll().await;
            gate.release();
            assert!(commit.await.is_ok());
            assert_eq!(again.await.is_err(), refused && protocol == EAGER);
            settle(&mut [&mut a, &mut b], &[2, 2]).await;
            stage.plain().fill("t", 4, 5).await.unwrap();
            drive("all partitions flow", &mut [&mut a, &mut b], |seats| {
                (0..4).all(|p| seats.iter().any(|seat| seat.offsets(&tp("t", p)).contains(&9)))
            })
            .await;
        }
    }
}

#[tokio::test]
async fn commits_on_a_timer_meet_no_refusal_in_a_rebalance_and_double_nothing() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 8)]).await;
        stage.plain().fill("t", 8, 20).await.unwrap();
        let often = [protocol, AUTO_COMMIT, ("auto.commit.interval.ms", "5"), ("max.poll.records", "3")];
        let mut a = stage.behind_proxy("a", &often).subscribe(&["t"]).await;
        let mut b = stage.behind_proxy("b", &often).subscribe(&["t"]).await;
        let ((of_a, _rule_a), (of_b, _rule_b)) = (commit_codes(&a), commit_codes(&b));
        settle(&mut [&mut a, &mut b], &[4, 4]).await;
        for round in 0..4 {
            let mut c = stage.seat(&format!("c{round}"), &often).subscribe(&["t"]).await;
            drive("c has a share", &mut [&mut a, &mut b, &mut c], |seats| !seats[2].owns().is_empty()).await;
            c.close().await;
            settle(&mut [&mut a, &mut b], &[4, 4]).await;
        }
        let all: Vec<_> = of_a.lock().unwrap().iter().chain(of_b.lock().unwrap().iter()).copied().collect();
        assert!(all.iter().all(|code| code.is_ok()), "{all:?}");
        for p in 0..8 {
            let offsets: Vec<i64> = [&a, &b].iter().flat_map(|seat| seat.offsets(&tp("t", p))).collect();
            let different: BTreeSet<i64> = offsets.iter().copied().collect();
            assert_eq!(different.len(), offsets.len(), "t-{p} came doubled: {offsets:?}");
        }
        stage.check_with_auto_commit();
    }
}

#[tokio::test]
async fn nothing_is_handed_out_between_the_commit_and_the_revocation_it_is_for() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 50).await.unwrap();
        let settings = [protocol, AUTO_COMMIT, ("max.poll.records", "2")];
        let mut a = stage.behind_proxy("a", &settings).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= 10).await;
        let gate = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldRequest);
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        drive("a commits", &mut [&mut a, &mut b], |_| gate.count() == 1).await;
        for _ in 0..20 {
            a.poll().await;
        }
        gate.release();
        drive("b reads", &mut [&mut a, &mut b], |seats| seats[1].got.last().is_some_and(|(_, at)| *at == 49))
            .await;
        let moved = b.got[0].0.clone();
        let next = a.offsets(&moved).last().map_or(0, |last| last + 1);
        assert_eq!(b.offsets(&moved)[0], next, "{moved} goes on where a stopped");
    }
}

#[tokio::test]
async fn a_commit_on_a_timer_covers_no_record_of_the_poll_that_has_not_been_followed_by_another() {
    let stage = Stage::new(&[("t", 1)]).await;
    stage.produce("t", 0, 20).await;
    let settings = [EAGER, AUTO_COMMIT, ("auto.commit.interval.ms", "0"), ("max.poll.records", "5")];
    let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
    drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 5).await;
    drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
    stage.until("a commit has come", |_| stage.committed("t", 0).is_some()).await;
    drop(a);
    stage
        .until("a is gone", |broker| broker.group(GROUP).is_some_and(|group| group.members.is_empty()))
        .await;
    let committed = stage.committed("t", 0).unwrap();
    assert!(committed <= 5, "{committed} is not handled yet");
    let mut b = stage.seat("b", &[EAGER]).subscribe(&["t"]).await;
    drive("b reads", &mut [&mut b], |seats| !seats[0].got.is_empty()).await;
    assert_eq!(b.got[0].1, committed);
}

#[tokio::test]
async fn what_was_handed_out_is_committed_before_a_partition_moves_however_long_the_interval() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 100).await.unwrap();
        let settings = [protocol, AUTO_COMMIT, ("auto.commit.interval.ms", "60000")];
        let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 200).await;
        assert_eq!(stage.committed("t", 0), None);
        let mut b = stage.seat("b", &settings).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        assert_eq!((stage.committed("t", 0), stage.committed("t", 1)), (Some(100), Some(100)));
        stage.plain().fill("t", 2, 1).await.unwrap();
        drive("b reads", &mut [&mut a, &mut b], |seats| !seats[1].got.is_empty()).await;
        assert_eq!(b.got[0].1, 100);
    }
}

#[tokio::test]
async fn a_refused_commit_is_reported_and_the_consumer_lives_on() {
    for code in
        [ErrorCode::ILLEGAL_GENERATION, ErrorCode::REBALANCE_IN_PROGRESS, ErrorCode::UNKNOWN_MEMBER_ID]
    {
        for protocol in BOTH {
            let stage = Stage::new(&[("t", 1)]).await;
            stage.produce("t", 0, 3).await;
            let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
            drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 3).await;
            let _rule = a.proxy().on(ApiKey::OffsetCommit, 1, Action::AnswerCode(code));
            let refused = a.consumer.commit_async().await;
            match (code, protocol) {
                (ErrorCode::REBALANCE_IN_PROGRESS, EAGER) => {
                    assert!(matches!(refused, Err(Error::RebalanceInProgress)), "{refused:?}");
                }
                // What stays is committed under the next generation.
                (ErrorCode::REBALANCE_IN_PROGRESS, _) => refused.unwrap(),
                _ => assert!(matches!(refused, Err(Error::Lost(_))), "{refused:?}"),
            }
            stage.produce("t", 0, 3).await;
            drive("records flow again", &mut [&mut a], |seats| {
                seats[0].offsets(&tp("t", 0)).contains(&5) && seats[0].consumer.assignment().len() == 1
            })
            .await;
            a.commit().await.unwrap();
            assert_eq!(stage.committed("t", 0), Some(6));
        }
    }
}

#[tokio::test]
async fn a_late_commit_for_a_partition_that_moved_away_is_refused_and_never_sent() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 80).await.unwrap();
        let mut a = stage.seat("a", &[protocol, AUTO_COMMIT]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 160).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        let moved = tp("t", b.owns()[0]);
        let before = stage.commits_by("a").len();
        let late = a.consumer.commit_sync_offsets([(moved.clone(), 50)]).await;
        assert!(matches!(late, Err(Error::Lost(_))), "{late:?}");
        let late = a.consumer.commit_async_offsets([(moved.clone(), 50)]).await;
        assert!(matches!(late, Err(Error::Lost(_))), "{late:?}");
        assert_eq!(stage.commits_by("a").len(), before);
        assert_eq!(stage.committed("t", moved.partition()), Some(80));
    }
}

#[tokio::test]
async fn what_was_fetched_but_not_handed_out_is_neither_committed_nor_skipped() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 2000).await.unwrap();
        let settings = [protocol, AUTO_COMMIT, ("max.poll.records", "20")];
        let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
        drive("a reads a little", &mut [&mut a], |seats| !seats[0].got.is_empty()).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        // A is slow: most of what it has fetched waits in it.
        for _ in 0..100 {
            if !b.got.is_empty() {
                break;
            }
            a.poll().await;
            drive("b turns", &mut [&mut b], turns(4)).await;
        }
        let (moved, first) = b.got[0].clone();
        let next = a.offsets(&moved).last().map_or(0, |last| last + 1);
        assert_eq!(first, next, "{moved}");
        drive("b reads the rest", &mut [&mut a, &mut b], |seats| {
            seats[1].offsets(&moved).len() as i64 == 2000 - first
        })
        .await;
        stage.check_with_auto_commit();
    }
}

#[tokio::test]
async fn a_group_of_many_members_that_commit_all_the_time_settles_in_one_round_each() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 40)]).await;
        stage.plain().fill("t", 40, 3).await.unwrap();
        let often = [protocol, AUTO_COMMIT, ("auto.commit.interval.ms", "10")];
        let mut seats = Vec::new();
        for number in 0..20 {
            seats.push(stage.seat(&format!("m{number}"), &often).subscribe(&["t"]).await);
        }
        let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
        drive_crowd("all have a share", &mut all, |all| all.iter().all(|seat| seat.owns().len() == 2)).await;
        drop(all);
        let rested: Vec<usize> = (0..20).map(|n| stage.count(&format!("m{n}"), is_join)).collect();
        seats.push(stage.seat("late", &often).subscribe(&["t"]).await);
        let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
        drive_crowd("the newcomer has a share", &mut all, |all| {
            let owned: usize = all.iter().map(|seat| seat.owns().len()).sum();
            owned == 40 && !all[20].owns().is_empty()
        })
        .await;
        let rounds = if protocol == EAGER { 1 } else { 2 };
        for (number, before) in rested.iter().enumerate() {
            let joins = stage.count(&format!("m{number}"), is_join) - before;
            assert!(joins <= 2 * rounds, "m{number} joined {joins} times");
        }
    }
}

#[tokio::test]
async fn commits_of_kept_partitions_go_on_while_an_incremental_round_is_held_up() {
    let stage = Stage::new(&[("t", 4)]).await;
    let (mut a, mut b, mut c, hold) = round_held_up(&stage).await;
    let mine = tp("t", a.owns()[0]);
    let generation = stage.broker.group(GROUP).unwrap().generation;
    for _ in 0..5 {
        stage.produce("t", mine.partition(), 1).await;
        let before = a.offsets(&mine).len();
        drive("a reads on", &mut [&mut a], |seats| seats[0].offsets(&mine).len() > before).await;
        a.commit().await.unwrap();
    }
    assert_eq!(stage.broker.group(GROUP).unwrap().generation, generation, "the round is still held up");
    assert_eq!(stage.committed("t", mine.partition()), Some(5));
    hold.release();
    settle_three(&mut a, &mut b, &mut c).await;
    stage.check();
}

#[tokio::test]
async fn a_commit_that_shows_that_the_membership_is_over_ends_it_at_once() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 10).await.unwrap();
        let slow = [protocol, ("heartbeat.interval.ms", "60000"), ("session.timeout.ms", "180000")];
        let slow = [slow[0], slow[1], slow[2], ("max.poll.records", "1")];
        let mut a = stage.seat("a", &slow).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 2).await;
        stage.expel("a").await;
        let refused = a.commit().await;
        assert!(matches!(refused, Err(Error::Lost(_))), "{refused:?}");
        drive("a joins again", &mut [&mut a], |seats| seats[0].got.len() == 22).await;
        let events = stage.history.events();
        let lost = |event: &&Event| !matches!(event.what, What::Called(Callback::Lost, _));
        let before: usize = events.iter().take_while(lost).map(delivered).sum();
        assert_eq!(before, 2, "no record comes between the refusal and lost");
        assert_eq!(stage.calls("a"), ["A(t0 t1)", "L(t0 t1)", "A(t0 t1)"]);
        stage.check();
    }
}

#[tokio::test]
async fn the_same_application_runs_unchanged_whatever_the_protocol() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 4)]).await;
        stage.plain().fill("t", 4, 30).await.unwrap();
        let settings = [protocol, ("max.poll.records", "3")];
        let mut a = stage.seat("a", &settings);
        a = {
            let told = Committing(a.told());
            a.subscribe_with(&["t"], told).await
        };
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= 30).await;
        let mut b = stage.seat("b", &settings);
        b = {
            let told = Committing(b.told());
            b.subscribe_with(&["t"], told).await
        };
        settle(&mut [&mut a, &mut b], &[2, 2]).await;
        stage.plain().fill("t", 4, 10).await.unwrap();
        drive("b reads", &mut [&mut a, &mut b], |seats| seats[1].got.len() >= 10).await;
        b.close().await;
        drive("a reads everything", &mut [&mut a], |_| {
            stage.history.events().iter().map(delivered).sum::<usize>() == 160
        })
        .await;
        a.close().await;
        stage.check();
    }
}

fn delivered(event: &Event) -> usize {
    match &event.what {
        What::Delivered(_, offsets) => offsets.len(),
        _ => 0,
    }
}

/// Commits asynchronously several times, then lets a rebalance come.
#[tokio::test]
async fn commits_that_queue_up_before_a_rebalance_all_arrive_before_the_partition_moves() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 10).await.unwrap();
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
        let gate = a.proxy().on(ApiKey::OffsetCommit, 1, Action::HoldAnswer);
        let mut commits = Vec::new();
        for offset in 8..=10 {
            commits.push(a.consumer.commit_async_offsets([(tp("t", 0), offset), (tp("t", 1), offset)]));
        }
        gate.met(1, LONG).await.unwrap();
        a.consumer.enforce_rebalance("a test").unwrap();
        a.poll().await;
        gate.release();
        for commit in commits {
            commit.await.unwrap();
        }
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        assert_eq!((stage.committed("t", 0), stage.committed("t", 1)), (Some(10), Some(10)));
    }
}

/// Commits in revoked, as long as the deadline allows.
struct CommitsOnce {
    told: Told,
    committed: Arc<Mutex<Option<Result<(), Error>>>>,
}

impl RebalanceListener for CommitsOnce {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.on_partitions_assigned(cx).await
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.told.begin(Callback::Revoked, cx.partitions());
        let result = cx.commit_sync().await;
        *self.committed.lock().unwrap() = Some(result);
        self.told.end(Callback::Revoked);
        Ok(())
    }
}

#[tokio::test]
async fn a_commit_in_revoked_survives_a_coordinator_that_is_loading() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 10).await.unwrap();
        let mut a = stage.behind_proxy("a", &[protocol]);
        let committed = Arc::default();
        let listener = CommitsOnce { told: a.told(), committed: Arc::clone(&committed) };
        a = a.subscribe_with(&["t"], listener).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
        let code = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        let _rule = a.proxy().on(ApiKey::OffsetCommit, 3, Action::AnswerCode(code));
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        assert!(matches!(*committed.lock().unwrap(), Some(Ok(()))), "{committed:?}");
        assert_eq!(stage.committed("t", b.owns()[0]), Some(10));
        assert_eq!(stage.count("a", |r| matches!(r, Request::OffsetCommit(_))), 1);
    }
}

/// The coordinator has finished the join, of which the member has not heard yet: it takes no commit of the old generation.
#[tokio::test]
async fn a_member_that_closes_in_the_middle_of_a_round_commits_what_it_has_read() {
    for leads in [false, true] {
        let stage = Stage::new(&[("t", 4)]).await;
        stage.plain().fill("t", 4, 5).await.unwrap();
        let stays = stage.behind_proxy("stays", &[COOPERATIVE]);
        let leaves = stage.behind_proxy("leaves", &[COOPERATIVE]);
        let committing = Committing(leaves.told());
        let (mut stays, mut leaves) = if leads {
            let mut leaves = leaves.subscribe_with(&["t"], committing).await;
            settle(&mut [&mut leaves], &[4]).await;
            (stays.subscribe(&["t"]).await, leaves)
        } else {
            let mut stays = stays.subscribe(&["t"]).await;
            settle(&mut [&mut stays], &[4]).await;
            (stays, leaves.subscribe_with(&["t"], committing).await)
        };
        settle(&mut [&mut stays, &mut leaves], &[2, 2]).await;
        let owned = leaves.owns();
        drive("all is read", &mut [&mut stays, &mut leaves], |seats| {
            owned.iter().all(|p| seats[1].offsets(&tp("t", *p)).last() == Some(&4))
        })
        .await;
        let hold = leaves.proxy().on(ApiKey::JoinGroup, 1, Action::HoldAnswer);
        let mut comes = stage.seat("comes", &[COOPERATIVE]).subscribe(&["t"]).await;
        let group = [&mut stays, &mut leaves, &mut comes];
        drive("the join is answered", &mut group.map(|seat| seat), |_| hold.count() == 1).await;
        let before = leaves.log.history().callbacks("leaves").len();
        let refused = async {
            let tried = |stage: &Stage| stage.count("leaves", |r| matches!(r, Request::OffsetCommit(_)));
            let start = tried(&stage);
            stage.until("the commit meets the new generation", |_| tried(&stage) > start).await;
            hold.release();
        };
        let (closed, ()) = tokio::join!(leaves.consumer.close(), refused);
        closed.unwrap();
        let told = stage.calls("leaves").split_off(before);
        assert!(told.len() == 1 && told[0].starts_with('R'), "{told:?}");
        for partition in owned {
            assert_eq!(stage.committed("t", partition), Some(5), "leads: {leads}");
        }
        leaves.log.ended(tontine_testkit::history::End::Closed);
        settle(&mut [&mut stays, &mut comes], &[2, 2]).await;
        stage.check();
    }
}
