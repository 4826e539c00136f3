//! A partition that leaves and comes back: nothing that was known of an earlier ownership may reach the group's offsets.

use super::rig::*;
use std::sync::{Arc, Mutex};
use tontine::{Assigned, Error, ListenerResult, OffsetAndMetadata, RebalanceListener};
use tontine_testkit::{history::Callback, proxy::Action};
use tontine_wire::api::{ApiKey, Request, Response};

/// Lets `t-0` go from A to B, who commits, and back to A, who did not commit anything itself.
async fn there_and_back(stage: &Stage, a: &mut Seat, commit: i64) {
    let mut b = stage.seat("b", &[EAGER]).subscribe(&["t"]).await;
    a.consumer.unsubscribe().await.unwrap();
    settle(&mut [&mut b], &[1]).await;
    b.consumer.commit_sync_offsets([(tp("t", 0), commit)]).await.unwrap();
    b.close().await;
}

/// Commits what it has, in assigned.
struct CommitsWhenAssigned {
    told: Told,
    commits: Arc<Mutex<Vec<Result<(), Error>>>>,
}

impl RebalanceListener for CommitsWhenAssigned {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.told.begin(Callback::Assigned, cx.partitions());
        let result = cx.commit_sync().await;
        self.commits.lock().unwrap().push(result);
        self.told.end(Callback::Assigned);
        Ok(())
    }
}

#[tokio::test]
async fn a_partition_without_a_position_in_this_ownership_cannot_be_committed() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 300).await;
        let mut a = stage.behind_proxy("a", &[protocol, ("max.poll.records", "100")]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 100).await;
        a.commit().await.unwrap();
        there_and_back(&stage, &mut a, 200).await;
        let code = tontine_wire::ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        let gate = a.proxy().on(ApiKey::OffsetFetch, usize::MAX, Action::AnswerCode(code));
        let commits = Arc::default();
        let listener = CommitsWhenAssigned { told: a.told(), commits: Arc::clone(&commits) };
        a = a.subscribe_with(&["t"], listener).await;
        drive("a owns it again", &mut [&mut a], |seats| {
            seats[0].owns() == [0] && !commits.lock().unwrap().is_empty()
        })
        .await;
        a.consumer.commit_sync().await.unwrap();
        assert!(commits.lock().unwrap()[0].is_ok());
        assert_eq!(stage.committed("t", 0), Some(200));
        drop(gate);
        let before = a.got.len();
        drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > before).await;
        assert_eq!(a.got[before].1, 200);
    }
}

#[tokio::test]
async fn what_was_read_in_an_earlier_ownership_is_never_committed_on_a_timer() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 600).await;
        let settings =
            [protocol, AUTO_COMMIT, ("auto.commit.interval.ms", "3000"), ("max.poll.records", "100")];
        let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 100).await;
        there_and_back(&stage, &mut a, 500).await;
        a = a.subscribe(&["t"]).await;
        drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > 100).await;
        assert_eq!(a.got[100].1, 500);
        a.consumer.close().await.unwrap();
        assert_eq!(stage.committed("t", 0), Some(600));
        let commits = stage.commits_by("a");
        assert!(commits.iter().all(|(_, offset)| *offset >= 500), "{commits:?}");
    }
}

#[tokio::test]
async fn a_record_of_an_earlier_ownership_cannot_be_committed_while_somebody_else_owns_the_partition() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 100).await.unwrap();
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 200).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        drive("b reads", &mut [&mut a, &mut b], |seats| seats[1].got.len() == 100).await;
        b.commit().await.unwrap();
        let (moved, kept) = (tp("t", b.owns()[0]), tp("t", a.owns()[0]));
        let both = a.consumer.commit_sync_offsets([(moved.clone(), 7), (kept.clone(), 100)]).await;
        assert!(matches!(both, Err(Error::Lost(_))), "{both:?}");
        assert_eq!(stage.committed("t", moved.partition()), Some(100));
        a.consumer.commit_sync_offsets([(kept.clone(), 100)]).await.unwrap();
        assert_eq!(stage.committed("t", kept.partition()), Some(100));
    }
}

#[tokio::test]
async fn commits_in_the_background_are_about_nothing_but_the_present_assignment() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 2)]).await;
        stage.plain().fill("t", 2, 10).await.unwrap();
        let settings = [protocol, AUTO_COMMIT, ("auto.commit.interval.ms", "5")];
        let mut a = stage.seat("a", &settings).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 20).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[1, 1]).await;
        let (moved, kept) = (tp("t", b.owns()[0]), tp("t", a.owns()[0]));
        stage.plain().fill("t", 2, 31).await.unwrap();
        drive("b reads", &mut [&mut a, &mut b], |seats| seats[1].got.len() == 31).await;
        b.commit().await.unwrap();
        // A looks at the offsets of the whole group, which makes none of them its own.
        let all = a.consumer.committed(&[moved.clone(), kept.clone()]).await.unwrap();
        assert_eq!(all[&moved].as_ref().map(|at| at.offset), Some(41));
        let before = stage.commits_by("a").len();
        drive("a commits on", &mut [&mut a, &mut b], |_| stage.commits_by("a").len() > before + 3).await;
        let later = stage.commits_by("a").split_off(before);
        assert!(later.iter().all(|(partition, _)| *partition == kept), "{later:?}");
        assert_eq!(stage.committed("t", moved.partition()), Some(41));
    }
}

#[tokio::test]
async fn an_offset_without_an_epoch_is_committed_over_one_with_an_epoch() {
    let stage = Stage::new(&[("t", 1)]).await;
    stage.produce("t", 0, 200).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[1]).await;
    let with_epoch = OffsetAndMetadata { leader_epoch: Some(5), ..OffsetAndMetadata::new(100) };
    a.consumer.commit_sync_offsets([(tp("t", 0), with_epoch)]).await.unwrap();
    a.consumer.commit_sync_offsets([(tp("t", 0), 150)]).await.unwrap();
    assert_eq!(stage.committed("t", 0), Some(150));
    a.consumer.close().await.unwrap();
    let mut b = stage.seat("b", &[EAGER]).subscribe(&["t"]).await;
    drive("b reads", &mut [&mut b], |seats| !seats[0].got.is_empty()).await;
    assert_eq!(b.got[0].1, 150);
}

#[tokio::test]
async fn epochs_that_a_service_makes_up_keep_no_commit_from_going_out() {
    for epoch in [7, -1] {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 10).await;
        let mut first = stage.seat("first", &[EAGER]).subscribe(&["t"]).await;
        settle(&mut [&mut first], &[1]).await;
        first.consumer.commit_sync_offsets([(tp("t", 0), 2)]).await.unwrap();
        first.close().await;
        let mut a = stage.behind_proxy("a", &[EAGER, AUTO_COMMIT]).subscribe(&["t"]).await;
        let claim = move |response: &mut Response| {
            let Response::OffsetFetch(response) = response else { return };
            for group in &mut response.groups {
                for partition in group.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
                    partition.committed_leader_epoch = epoch;
                }
            }
        };
        let _rule = a.proxy().on(ApiKey::OffsetFetch, usize::MAX, Action::Edit(Arc::new(claim)));
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 8).await;
        a.consumer.close().await.unwrap();
        assert_eq!(stage.commits_by("a").last(), Some(&(tp("t", 0), 10)));
        assert_eq!(stage.committed("t", 0), Some(10));
    }
}

#[tokio::test]
async fn no_commit_goes_back_behind_one_that_was_acknowledged_when_the_member_joins_again() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 10).await;
        let mut a = stage.seat("a", &[protocol, AUTO_COMMIT, ("max.poll.records", "1")]);
        a = a.subscribe(&["t"]).await;
        for round in 0..3 {
            let wanted = 3 * (round + 1);
            while a.got.len() < wanted {
                let before = a.got.len();
                drive("a reads", &mut [&mut a], |seats| seats[0].got.len() > before).await;
                a.commit().await.unwrap();
            }
            join_again(&stage, &mut a, protocol).await;
        }
        // Whoever was put out reads again what it had not committed: the last record of all tells that it has.
        stage.produce("t", 0, 1).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.last().is_some_and(|(_, at)| *at == 10)).await;
        assert!(protocol == CONSUMER || a.got.len() == 11, "a round costs nothing");
        a.close().await;
        let commits: Vec<i64> = stage.commits_by("a").iter().map(|(_, offset)| *offset).collect();
        assert!(commits.is_sorted(), "{commits:?}");
        assert_eq!(commits.last(), Some(&11));
        stage.check_with_auto_commit();
    }
}

/// Where reading begins is what the coordinator says, whatever the application remembers.
#[tokio::test]
async fn a_new_ownership_begins_at_the_committed_offset_and_not_where_this_member_once_stopped() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 100).await;
        let mut a = stage.seat("a", &[protocol, ("max.poll.records", "60")]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 60).await;
        there_and_back(&stage, &mut a, 30).await;
        a = a.subscribe(&["t"]).await;
        drive("a reads on", &mut [&mut a], |seats| seats[0].got.len() > 60).await;
        assert_eq!(a.got[60].1, 30);
        let fetches = stage.count("a", |request| matches!(request, Request::OffsetFetch(_)));
        assert_eq!(fetches, 2);
    }
}
