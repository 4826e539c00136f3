//! Which callback comes when, with which partitions: the tables of Kafka's classic consumer, eager and cooperative.

use crate::rig::*;
use std::time::Duration;
use tontine_group::{Cause, TopicPartition, member::*, topics::Topics};
use tontine_wire::ErrorCode;

const T01: &[(&str, i32)] = &[("t", 0), ("t", 1)];

fn nothing() -> Vec<String> {
    Vec::new()
}

// Empty sets.

#[test]
fn eager_revoked_is_called_with_nothing_when_a_member_without_partitions_rejoins() {
    let mut rig = eager();
    rig.settled(&["t"], 1, &[]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.run(), ["R()"]);
}

#[test]
fn cooperative_revoked_is_never_called_with_nothing() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.run(), nothing());
    rig.round(2, &[]);
    assert_eq!(rig.run(), ["A()"]);
}

#[test]
fn assigned_is_called_once_per_completed_join_even_with_nothing_new() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().round(1, &[]);
        assert_eq!(rig.run(), ["A()"]);
        assert_eq!(rig.run(), nothing());
    }
}

#[test]
fn lost_is_never_called_with_nothing() {
    for mut rig in both() {
        rig.settled(&["t"], 1, &[]).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(rig.run(), nothing());
        assert!(rig.is_joining(), "it joins again without asking anybody");
    }
}

// Situations, line by line.

#[test]
fn a_first_join_revokes_nothing_and_assigns_everything() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll();
        assert_eq!(rig.run(), nothing());
        rig.round(1, T01);
        assert_eq!(rig.run(), ["A(t-0 t-1)"]);
        assert_eq!(rig.member.state(), MemberState::Stable);
    }
}

#[test]
fn eager_another_member_joins_and_everything_is_revoked_before_the_join() {
    let mut rig = eager();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(!rig.is_joining(), "the revocation comes first");
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.round(2, &[("t", 0)]);
    assert_eq!(rig.run(), ["A(t-0)"]);
}

#[test]
fn cooperative_another_member_joins_and_only_what_moves_is_revoked_after_the_sync() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.run(), nothing());
    assert!(rig.is_joining(), "the join needs no poll");
    rig.round(2, &[("t", 0)]);
    let revoke = rig.begin().unwrap();
    assert_eq!(show(&revoke), "R(t-1)");
    assert_eq!(rig.owned(), "t-0 t-1", "it is still readable inside the callback");
    assert_eq!(rig.member.membership().unwrap().generation, 2, "under the new generation");
    rig.done(revoke);
    assert_eq!(rig.run(), ["A()"]);
    assert!(rig.is_joining(), "the second round starts at once");
    assert_eq!(rig.last_cause(), Cause::SecondPhase);
    rig.round(3, &[("t", 0)]);
    assert_eq!(rig.run(), ["A()"]);
    assert_eq!(rig.member.state(), MemberState::Stable);
    assert!(!rig.is_joining());
}

#[test]
fn cooperative_another_member_leaves_and_only_what_is_gained_is_told() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, T01);
    let assign = rig.begin().unwrap();
    assert_eq!(show(&assign), "A(t-1)");
    assert_eq!(rig.owned(), "t-0 t-1", "new partitions can be sought inside the callback");
    rig.done(assign);
    assert_eq!(rig.run(), nothing());
    assert!(!rig.is_joining(), "nothing was given up, so no second round");
}

#[test]
fn eager_another_member_leaves_and_everything_is_revoked_and_assigned() {
    let mut rig = eager();
    rig.settled(&["t"], 1, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.run(), ["R(t-0)"]);
    rig.round(2, T01);
    assert_eq!(rig.run(), ["A(t-0 t-1)"]);
}

/// A member that leads a group of itself, over topic `t`.
fn leader(mut rig: Rig, partitions: i32) -> Rig {
    rig.subscribe(&["t"]).topics(Topics::new().with("t", partitions)).poll();
    let (ticket, _) = rig.join_request();
    rig.answer(ticket, joined("m1", 1, "m1", vec![other_member("m1", &["t"])]));
    let share: Vec<_> = (0..partitions).map(|p| ("t", p)).collect();
    rig.give(&share);
    rig.run();
    rig
}

#[test]
fn partitions_are_added_and_the_leader_rejoins() {
    let mut rig = leader(eager(), 2);
    rig.topics(Topics::new().with("t", 3));
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.round(2, &[("t", 0), ("t", 1), ("t", 2)]);
    assert_eq!(rig.run(), ["A(t-0 t-1 t-2)"]);

    let mut rig = leader(cooperative(), 2);
    rig.topics(Topics::new().with("t", 3));
    assert_eq!(rig.last_cause(), Cause::PartitionsChanged { topic: "t".into(), from: 2, to: 3 });
    rig.round(2, &[("t", 0), ("t", 1), ("t", 2)]);
    assert_eq!(rig.run(), ["A(t-2)"]);
}

#[test]
fn a_topic_is_deleted_and_its_partitions_are_revoked() {
    let mut rig = leader(eager(), 2);
    rig.topics(Topics::new());
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.round(2, &[]);
    assert_eq!(rig.run(), ["A()"]);

    let mut rig = leader(cooperative(), 2);
    rig.topics(Topics::new());
    rig.round(2, &[]);
    assert_eq!(rig.run(), ["R(t-0 t-1)", "A()"], "after the sync, since it is still subscribed to");
    rig.round(3, &[]);
    assert_eq!(rig.run(), ["A()"], "second round");
}

#[test]
fn another_subscription_revokes_all_when_eager_and_dropped_topics_when_cooperative() {
    let share = &[("a", 0), ("b", 0)];
    let mut rig = eager();
    rig.settled(&["a", "b"], 1, share).subscribe(&["a"]);
    assert_eq!(rig.run(), ["R(a-0 b-0)"]);
    rig.round(2, &[("a", 0)]);
    assert_eq!(rig.run(), ["A(a-0)"]);

    let mut rig = cooperative();
    rig.settled(&["a", "b"], 1, share).subscribe(&["a"]);
    assert!(!rig.is_joining(), "what is dropped is revoked before the join");
    let revoke = rig.begin().unwrap();
    assert_eq!(show(&revoke), "R(b-0)");
    assert_eq!(rig.member.membership().unwrap().generation, 1, "under the old generation");
    rig.done(revoke);
    rig.round(2, &[("a", 0)]);
    assert_eq!(rig.run(), ["A()"]);
    assert!(!rig.is_joining());
}

#[test]
fn a_topic_that_matches_a_pattern_newly_is_only_added_when_cooperative() {
    let mut rig = cooperative();
    rig.settled(&["a"], 1, &[("a", 0)]).subscribe(&["a", "b"]);
    assert_eq!(rig.run(), nothing());
    rig.round(2, &[("a", 0), ("b", 0)]);
    assert_eq!(rig.run(), ["A(b-0)"]);

    let mut rig = eager();
    rig.settled(&["a"], 1, &[("a", 0)]).subscribe(&["a", "b"]);
    assert_eq!(rig.run(), ["R(a-0)"]);
}

#[test]
fn unsubscribe_revokes_everything_from_a_valid_member_and_then_leaves() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).do_with(|m, now| m.unsubscribe(now));
        assert!(
            rig.requests.is_empty(),
            "LeaveGroup waits for the callback, so that a commit inside it is accepted"
        );
        let revoke = rig.begin().unwrap();
        assert_eq!(show(&revoke), "R(t-0 t-1)");
        assert!(rig.member.may_commit().is_ok());
        rig.done(revoke);
        rig.leave_request();
        assert_eq!(rig.owned(), "");
    }
}

#[test]
fn unsubscribe_loses_everything_when_the_membership_is_over() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        rig.do_with(|m, now| m.unsubscribe(now));
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);
        assert_eq!(rig.left, 1);
    }
}

/// Kafka's client calls lost here, although the member is in good standing and could commit.
#[test]
fn unsubscribe_in_the_middle_of_a_cooperative_round_revokes_what_is_owned() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.do_with(|m, now| m.unsubscribe(now));
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
}

#[test]
fn without_partitions_unsubscribe_and_close_call_nothing() {
    for mut rig in both() {
        rig.settled(&["t"], 1, &[]).do_with(|m, now| m.unsubscribe(now));
        assert_eq!(rig.run(), nothing());
        rig.leave_request();
    }
}

#[test]
fn an_expired_session_loses_everything_once_and_the_member_joins_as_a_new_one() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        assert!(!rig.is_joining(), "the loss is told first");
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);
        let (ticket, request) = rig.join_request();
        assert_eq!(request.member_id, "");
        assert_eq!(subscription_of(&request).generation_id, -1);
        rig.answer(ticket, joined("m2", 3, "leader", Vec::new())).give(T01);
        assert_eq!(rig.run(), ["A(t-0 t-1)"]);
    }
}

#[test]
fn an_illegal_generation_loses_everything_and_the_member_keeps_its_id() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::ILLEGAL_GENERATION);
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);
        assert_eq!(rig.join_request().1.member_id, "m1");
    }
}

#[test]
fn a_twin_ends_the_consumer_and_its_partitions_are_lost_at_close() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::FENCED_INSTANCE_ID);
    assert!(rig.errors[0].is_fatal());
    assert_eq!(rig.run(), nothing(), "no callback before close");
    rig.poll().pass(Duration::from_secs(60));
    assert!(rig.requests.is_empty(), "it never fights back");
    assert_eq!(rig.member.may_commit(), Err(CommitRefusal::Fenced));
    rig.do_with(|m, now| m.leave(now, "closing"));
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
    assert_eq!((rig.left, rig.requests.len()), (1, 0));
    assert_eq!(rig.member.state(), MemberState::Fenced);
}

#[test]
fn a_twin_met_while_leaving_is_told_to_whoever_subscribes_again() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, T01).do_with(|m, now| m.unsubscribe(now));
    let callback = rig.begin().unwrap();
    rig.heartbeat_says(ErrorCode::FENCED_INSTANCE_ID);
    rig.done(callback);
    assert_eq!((rig.left, rig.member.state()), (1, MemberState::Fenced));
    rig.subscribe(&["t"]).poll().pass(Duration::from_secs(60));
    assert!(rig.errors[0].is_fatal());
    assert!(rig.requests.is_empty(), "it never fights back");
}

#[test]
fn a_missed_poll_deadline_leaves_at_once_and_loses_everything_at_the_next_poll() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).pass(Duration::from_secs(300));
        let (ticket, leave) = rig.leave_request();
        assert_eq!(leave.members[0].reason.as_deref(), Some("no poll for 300000 ms"));
        assert_eq!(leave.member_id, "m1");
        rig.answer(ticket, tontine_wire::api::leave_group::LeaveGroupResponse::default());
        assert_eq!(rig.left, 0, "it did not leave for good");
        rig.pass(Duration::from_secs(100));
        assert!(!rig.is_joining(), "not before the application polls");
        rig.poll();
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);
        rig.round(5, T01);
        assert_eq!(rig.run(), ["A(t-0 t-1)"]);
    }
}

#[test]
fn a_static_member_that_misses_its_poll_deadline_falls_silent_and_does_not_leave() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, T01).pass(Duration::from_secs(300));
    assert!(rig.requests.is_empty());
    rig.pass(Duration::from_secs(30));
    assert!(rig.requests.is_empty(), "no heartbeats either");
    rig.poll();
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
    let request = rig.join_request().1;
    assert_eq!((request.member_id.as_str(), request.group_instance_id.as_deref()), ("m1", Some("i1")));
}

#[test]
fn a_static_member_that_a_round_went_past_loses_what_it_owned() {
    // The coordinator keeps static members that miss a round, and takes their next join: others may own everything by then.
    let mut rig = static_member();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).follow(3);
    assert_eq!(rig.last_cause(), Cause::Fenced { code: ErrorCode::ILLEGAL_GENERATION });
    assert_eq!(rig.member.membership(), None, "what it has read is committed under no later generation");
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
    let (ticket, request) = rig.join_request();
    assert_eq!(request.member_id, "m1");
    assert_eq!(subscription_of(&request).owned_partitions, []);
    rig.answer(ticket, joined("m1", 4, "leader", Vec::new())).give(T01);
    assert_eq!(rig.run(), ["A(t-0 t-1)"]);
}

#[test]
fn whoever_was_not_heard_of_for_a_session_asks_whether_it_is_a_member_before_it_joins() {
    for (code, called) in [(ErrorCode::UNKNOWN_MEMBER_ID, vec!["L(t-0 t-1)"]), (ErrorCode::NONE, vec![])] {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, T01).coordinator(false);
        rig.pass_without_answers(Duration::from_secs(60)).requests.clear();
        rig.poll().subscribe(&["t", "u"]).coordinator(true);
        assert!(!rig.is_joining(), "a consumer group would take its join for that of a new member");
        rig.heartbeat_says(code);
        assert_eq!(rig.run(), called, "{code}");
        let owned = subscription_of(&rig.join_request().1).owned_partitions;
        assert_eq!(owned.is_empty(), code.is_err());
    }
}

#[test]
fn a_join_that_is_taken_after_the_member_was_unknown_begins_anew() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(rig.run(), nothing(), "a classic group would refuse the join that is on its way");
    let (ticket, _) = rig.join_request();
    rig.answer(ticket, joined("m1", 2, "", Vec::new()));
    assert_eq!(rig.run(), ["L(t-0 t-1)"], "a consumer group took it for that of a new member");
    rig.round(3, T01);
    assert_eq!(rig.run(), ["A(t-0 t-1)"]);
}

#[test]
fn a_generation_that_follows_or_that_a_dynamic_member_skips_loses_nothing() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, T01);
    assert_eq!(rig.run(), ["A()"]);
    let mut rig = cooperative();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(9, T01);
    assert_eq!(rig.run(), ["A()"], "had it missed a round it would not be a member any more");
}

#[test]
fn an_unreachable_coordinator_calls_nothing_and_the_member_keeps_its_partitions() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).coordinator(false);
        for _ in 0..20 {
            rig.poll().pass(Duration::from_secs(10));
        }
        assert_eq!((rig.run(), rig.owned()), (nothing(), "t-0 t-1".to_owned()));
        rig.coordinator(true).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(rig.run(), ["L(t-0 t-1)"], "only the coordinator can say so");
    }
}

#[test]
fn refused_authorization_is_an_error_and_calls_nothing() {
    for mut rig in both() {
        rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::GROUP_AUTHORIZATION_FAILED);
        assert_eq!(rig.errors.len(), 1);
        assert!(!rig.errors[0].is_fatal());
        assert_eq!((rig.run(), rig.owned()), (nothing(), "t-0 t-1".to_owned()));
    }
}

// What is due follows the state until it has begun.

#[test]
fn a_revocation_that_nobody_began_turns_into_a_loss_when_the_membership_ends() {
    let mut rig = eager();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(matches!(rig.member.due_callback(), Some(Due::Revoke { .. })));
    rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
    assert!(matches!(rig.member.due_callback(), Some(Due::Lost { .. })));
    assert_eq!(rig.announced, 3, "assigned, revoke, then the loss");
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
}

#[test]
fn a_membership_that_ends_inside_revoked_does_not_lose_the_same_partitions_again() {
    let mut rig = eager();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let revoke = rig.begin().unwrap();
    rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID).done(revoke);
    assert_eq!(rig.run(), nothing());
    assert_eq!(rig.join_request().1.member_id, "");

    let mut rig = cooperative();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, &[("t", 0)]);
    let revoke = rig.begin().unwrap();
    rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID).done(revoke);
    assert_eq!(rig.run(), ["L(t-0)"], "only what was not revoked yet");
}

#[test]
fn an_assignment_that_was_never_told_is_never_lost_either() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().round(1, T01);
        rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(rig.run(), nothing());
        assert!(rig.is_joining());
    }
}

#[test]
fn an_assignment_lost_inside_assigned_is_told_once_it_returned() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().round(1, T01);
        let assign = rig.begin().unwrap();
        rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(rig.run(), nothing(), "one callback at a time");
        rig.done(assign);
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);
    }
}

#[test]
fn failed_assigned_is_called_again_with_nothing_until_it_returns() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().round(1, T01);
        for expected in ["A(t-0 t-1)", "A()", "A()"] {
            let Some(Callback::Assign(granted)) = rig.begin() else { panic!("assigned is due") };
            assert_eq!(granted.added().len(), if expected == "A()" { 0 } else { 2 });
            assert_eq!(granted.all(), [TopicPartition::new("t", 0), TopicPartition::new("t", 1)]);
            rig.do_with(|m, now| m.assign_failed(now, granted));
        }
        assert_eq!(rig.run(), ["A()"]);
        assert_eq!(rig.member.state(), MemberState::Stable);
    }
}

#[test]
fn an_assignment_of_topics_that_were_dropped_meanwhile_calls_nothing_and_is_asked_for_again() {
    let mut rig = eager();
    rig.subscribe(&["a", "b"]).poll();
    let (ticket, _) = rig.join_request();
    rig.subscribe(&["a"]);
    rig.answer(ticket, joined("m1", 1, "leader", Vec::new())).give(&[("b", 0)]);
    assert_eq!(rig.run(), ["R()"], "eager tells of every round");
    assert_eq!(subscription_of(&rig.join_request().1).topics, ["a"]);

    let mut rig = cooperative();
    rig.subscribe(&["a", "b"]).poll().round(1, &[("a", 0), ("b", 0)]).subscribe(&["a"]);
    assert_eq!(rig.run(), nothing(), "not even when it came before the change");
    assert_eq!(subscription_of(&rig.join_request().1).topics, ["a"]);
}

#[test]
fn a_leader_that_assigns_what_nobody_asked_for_is_reported_and_the_rest_is_taken() {
    let mut rig = cooperative();
    rig.subscribe(&["a"]).poll().round(1, &[("a", 0), ("x", 0)]);
    rig.round(2, &[("a", 0), ("x", 0)]);
    assert_eq!(rig.errors, [MemberError::ForeignTopics { topics: vec!["x".into()] }]);
    assert_eq!(rig.run(), ["A(a-0)"]);
    assert_eq!(rig.member.state(), MemberState::Stable);
}

/// Kafka's client makes the group wait for the application's next poll.
#[test]
fn a_round_that_overtakes_an_assignment_before_it_was_told_does_not_wait_for_the_application() {
    let mut rig = eager();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.round(2, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(rig.is_joining());
    rig.round(3, &[("t", 1)]);
    assert_eq!(rig.run(), ["A(t-1)"]);

    let mut rig = cooperative();
    rig.settled(&["t"], 1, T01).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.round(2, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let owned = &subscription_of(&rig.join_request().1).owned_partitions[0];
    assert_eq!(owned.partitions, [0, 1], "it still owns what it was not told to give up");
}
