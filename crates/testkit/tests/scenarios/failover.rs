//! Nodes that die, restart, move what they lead or coordinate: the members follow, and nobody loses a partition over it.

use super::rig::*;
use std::sync::Arc;
use tontine_broker::NodeId;
use tontine_testkit::proxy::{Action, Rule};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, Response, fetch::PartitionData},
};

fn elsewhere(stage: &Stage, node: NodeId) -> NodeId {
    stage.broker.nodes().into_iter().find(|other| *other != node).unwrap()
}

fn move_coordinator(stage: &Stage) {
    let now = stage.broker.coordinator_of(GROUP).unwrap();
    stage.broker.move_coordinator(GROUP, elsewhere(stage, now)).unwrap();
}

fn nothing_was_lost(stage: &Stage, member: &str) {
    let calls = stage.calls(member);
    assert!(!calls.iter().any(|call| call.starts_with('L')), "{calls:?}");
}

#[tokio::test]
async fn restarting_every_node_in_turn_costs_no_membership() {
    for protocol in ALL {
        let stage = Stage::of_nodes(3, &[("t", 3)]).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[3]).await;
        let mut b = stage.seat("b", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a, &mut b], &[2, 1]).await;
        for (round, node) in stage.broker.nodes().into_iter().enumerate() {
            stage.broker.stop_node(node).await.unwrap();
            stage.plain().fill("t", 3, 2).await.unwrap();
            let everything = 3 * 2 * (round + 1);
            drive("everything is read", &mut [&mut a, &mut b], |seats| {
                seats[0].got.len() + seats[1].got.len() >= everything
            })
            .await;
            stage.broker.start_node(node).await.unwrap();
            stage.broker.elect_preferred_leaders();
            drive("on they read", &mut [&mut a, &mut b], turns(3)).await;
        }
        a.commit().await.unwrap();
        b.commit().await.unwrap();
        nothing_was_lost(&stage, "a");
        nothing_was_lost(&stage, "b");
        stage.check();
    }
}

/// Holds the next request of this API, and lets it go to a node that is not the coordinator any more.
async fn moved_under(stage: &Stage, a: &mut Seat, gate: &Rule) {
    drive("the request is on its way", &mut [a], |_| gate.count() == 1).await;
    move_coordinator(stage);
    gate.release();
}

#[tokio::test]
async fn a_coordinator_that_moves_while_a_request_is_on_its_way_costs_no_callback() {
    for protocol in BOTH {
        for key in [
            ApiKey::JoinGroup,
            ApiKey::SyncGroup,
            ApiKey::OffsetFetch,
            ApiKey::Heartbeat,
            ApiKey::OffsetCommit,
        ] {
            let stage = Stage::of_nodes(3, &[("t", 2)]).await;
            stage.plain().fill("t", 2, 3).await.unwrap();
            let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
            if key == ApiKey::OffsetCommit {
                drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 6).await;
                let gate = a.proxy().on(key, 1, Action::HoldRequest);
                let commit = a.consumer.commit_async();
                moved_under(&stage, &mut a, &gate).await;
                let ended = tokio::select! {
                    ended = commit => ended,
                    () = async { loop { a.poll().await; } } => unreachable!(),
                };
                assert!(ended.is_ok() || ended.is_err_and(|error| error.is_retriable()));
            } else {
                let gate = a.proxy().on(key, 1, Action::HoldRequest);
                moved_under(&stage, &mut a, &gate).await;
            }
            drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 6).await;
            a.commit().await.unwrap();
            assert_eq!(stage.calls("a"), ["A(t0 t1)"], "{key:?}");
            assert_eq!(stage.committed("t", 0), Some(3));
        }
    }
}

#[tokio::test]
async fn leaving_finds_the_coordinator_that_moved_meanwhile() {
    for protocol in BOTH {
        let stage = Stage::of_nodes(3, &[("t", 2)]).await;
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        let gate = a.proxy().on(ApiKey::LeaveGroup, 1, Action::HoldRequest);
        let moved = async {
            gate.met(1, LONG).await.unwrap();
            move_coordinator(&stage);
            gate.release();
        };
        let (closed, ()) = tokio::join!(a.consumer.close(), moved);
        closed.unwrap();
        stage
            .until("nobody is left", |broker| {
                broker.group(GROUP).is_some_and(|group| group.members.is_empty())
            })
            .await;
    }
}

#[tokio::test]
async fn a_look_up_that_gets_no_answer_is_made_at_another_node() {
    for action in
        [Action::Swallow, Action::Disconnect, Action::AnswerCode(ErrorCode::COORDINATOR_NOT_AVAILABLE)]
    {
        let stage = Stage::of_nodes(3, &[("t", 1)]).await;
        stage.produce("t", 0, 1).await;
        let a = stage.behind_proxy("a", &[EAGER, ("request.timeout.ms", "300")]);
        let rule = a.proxy().on(ApiKey::FindCoordinator, 1, action);
        let mut a = a.subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 1).await;
        assert_eq!(rule.count(), 1);
    }
}

#[tokio::test]
async fn a_partition_whose_leader_dies_while_its_start_is_looked_up_starts_at_the_new_one() {
    for cut in [true, false] {
        let stage = Stage::of_nodes(3, &[("t", 1)]).await;
        stage.produce("t", 0, 2).await;
        let a = stage.behind_proxy("a", &[EAGER, ("request.timeout.ms", "300")]);
        let gate = a.proxy().on(ApiKey::ListOffsets, 1, Action::HoldRequest);
        let mut a = a.subscribe(&["t"]).await;
        drive("the start is looked up", &mut [&mut a], |_| gate.count() == 1).await;
        let (old, _) = stage.broker.leader("t", 0).unwrap();
        stage.broker.move_leader("t", 0, elsewhere(&stage, old)).unwrap();
        if cut {
            a.proxy().cut();
        }
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 2).await;
    }
}

#[tokio::test]
async fn what_a_log_lost_may_be_committed_again_with_lower_offsets() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 1)]).await;
        stage.produce("t", 0, 10).await;
        let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() == 10).await;
        a.consumer.commit_sync().await.unwrap();
        assert_eq!(stage.committed("t", 0), Some(10));
        stage.broker.lose_records("t", 0, 0).unwrap();
        stage.produce("t", 0, 3).await;
        drive("a reads what there is", &mut [&mut a], |seats| seats[0].got.len() == 13).await;
        assert_eq!(a.offsets(&tp("t", 0))[10..], [0, 1, 2]);
        a.consumer.commit_sync().await.unwrap();
        assert_eq!(stage.committed("t", 0), Some(3));
    }
}

/// Changes every partition of the next answer to a fetch.
fn edit_fetch(seat: &Seat, edit: impl Fn(&mut PartitionData) + Send + Sync + 'static) -> Rule {
    let all = move |response: &mut Response| {
        let Response::Fetch(response) = response else { return };
        response.responses.iter_mut().flat_map(|topic| &mut topic.partitions).for_each(&edit);
    };
    seat.proxy().on(ApiKey::Fetch, 1, Action::Edit(Arc::new(all)))
}

#[tokio::test]
async fn a_replica_that_is_behind_costs_no_reset_and_no_record() {
    for code in
        [ErrorCode::OFFSET_OUT_OF_RANGE, ErrorCode::OFFSET_NOT_AVAILABLE, ErrorCode::NOT_LEADER_OR_FOLLOWER]
    {
        let stage = Stage::of_nodes(3, &[("t", 1)]).await;
        stage.produce("t", 0, 50).await;
        let (leader, _) = stage.broker.leader("t", 0).unwrap();
        let other = elsewhere(&stage, leader);
        let a = stage.behind_proxy("a", &[EAGER]);
        let sent_there = edit_fetch(&a, move |data| {
            data.preferred_read_replica = other;
            data.records = Some(bytes::Bytes::new());
        });
        let behind = edit_fetch(&a, move |data| data.error_code = code);
        let mut a = a.subscribe(&["t"]).await;
        drive("a reads", &mut [&mut a], |seats| seats[0].got.len() >= 50).await;
        assert_eq!((sent_there.count(), behind.count()), (1, 1));
        assert_eq!(a.offsets(&tp("t", 0)), (0..50).collect::<Vec<_>>());
        let look_ups = stage.count("a", |request| matches!(request, Request::ListOffsets(_)));
        assert_eq!(look_ups, 1, "only the start is looked up, after {code}");
    }
}
