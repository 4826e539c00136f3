//! Heartbeats, sessions, poll deadlines: who is alive, and who has to think so.

use crate::rig::*;
use std::time::Duration;
use tontine_group::{Cause, member::*};
use tontine_wire::{
    ErrorCode,
    api::{Request, leave_group::LeaveGroupResponse},
};

const SHARE: &[(&str, i32)] = &[("t", 0), ("t", 1)];

fn beats(rig: &mut Rig, wait: Duration) -> usize {
    let end = rig.now + wait;
    let mut beats = 0;
    while rig.now < end {
        beats += rig.heartbeats_waiting();
        rig.answer_heartbeats(ErrorCode::NONE);
        rig.pass_without_answers(ms(50));
    }
    beats
}

#[test]
fn heartbeats_come_every_interval_whatever_the_application_does() {
    for mut rig in both() {
        rig.settled(&["t"], 1, SHARE).pass(Duration::from_secs(10));
        let beats = beats(&mut rig, Duration::from_secs(60));
        assert!((19..=21).contains(&beats), "{beats}");
    }
}

#[test]
fn heartbeats_go_on_while_a_join_is_parked_a_sync_is_parked_and_callbacks_run() {
    for mut rig in both() {
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
        rig.run();
        assert_eq!(rig.member.state(), MemberState::Joining);
        assert!(beats(&mut rig, Duration::from_secs(30)) >= 9);
        rig.follow(2);
        assert!(beats(&mut rig, Duration::from_secs(30)) >= 9, "the leader's assignor may be slow");
        rig.give(&[("t", 0)]);
        let callback = rig.begin().unwrap();
        assert!(beats(&mut rig, Duration::from_secs(30)) >= 9, "so may the callback");
        rig.done(callback);
    }
}

#[test]
fn an_answer_to_a_heartbeat_is_acted_on_while_a_callback_runs() {
    let mut rig = cooperative();
    rig.subscribe(&["t"]).poll().round(1, SHARE);
    let assign = rig.begin().unwrap();
    rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(!rig.is_joining(), "the callback comes to its end first");
    rig.done(assign);
    assert!(rig.is_joining());
}

#[test]
fn after_a_cooperative_round_heartbeats_come_quickly_for_a_while() {
    let mut rig = cooperative();
    rig.subscribe(&["t"]).poll().round(1, &[]);
    rig.run();
    assert!(beats(&mut rig, Duration::from_secs(1)) >= 7, "so that a second round is learnt of at once");
    rig.pass(Duration::from_secs(10));
    assert!(beats(&mut rig, Duration::from_secs(30)) <= 11, "and then at the interval again");

    let mut rig = eager();
    rig.subscribe(&["t"]).poll().round(1, &[]);
    rig.run();
    assert_eq!(beats(&mut rig, Duration::from_secs(1)), 0, "an eager round has no second one");
}

#[test]
fn only_one_heartbeat_is_on_its_way() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).pass_without_answers(Duration::from_secs(14));
    assert_eq!(rig.heartbeats_waiting(), 1);
}

#[test]
fn a_coordinator_silent_for_a_session_is_looked_up_again_and_the_membership_stays() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).poll().pass_without_answers(Duration::from_secs(50));
    assert_eq!((rig.lookups, rig.member.state()), (1, MemberState::Stable));
    assert_eq!((rig.run(), rig.owned()), (Vec::new(), "t-0 t-1".to_owned()));
    rig.requests.clear();
    rig.coordinator(true).pass_without_answers(Duration::from_secs(1));
    assert_eq!(rig.heartbeats_waiting(), 1, "whoever is found hears from it at once");
}

#[test]
fn a_rebalance_in_progress_proves_the_session_too() {
    let mut rig = eager();
    rig.settled(&["t"], 1, SHARE);
    for _ in 0..40 {
        rig.poll().heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    assert_eq!(rig.lookups, 0);
    assert_eq!(rig.member.state(), MemberState::Preparing, "its application takes its time");
}

#[test]
fn a_join_parked_at_a_node_that_fell_silent_is_repeated_at_the_next_coordinator() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.join_request();
    rig.poll().pass_without_answers(Duration::from_secs(46));
    assert_eq!(rig.lookups, 1);
    rig.requests.clear();
    rig.coordinator(true);
    assert!(!rig.is_joining(), "its session may be over: a heartbeat asks first");
    rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(rig.is_joining());
}

#[test]
fn the_poll_deadline_counts_from_the_last_poll_and_not_from_the_join() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).poll().pass(Duration::from_secs(299)).poll().pass(Duration::from_secs(299));
    assert_eq!(rig.member.state(), MemberState::Stable);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.member.state(), MemberState::Unjoined);
    assert_eq!(rig.last_cause(), Cause::PollDeadline { silent: Duration::from_secs(300) });
}

#[test]
fn idling_before_the_first_poll_is_no_missed_deadline() {
    let mut rig = cooperative();
    rig.subscribe(&["t"]).pass(Duration::from_secs(1000)).poll();
    assert!(rig.is_joining());
    rig.round(1, SHARE);
    assert_eq!(rig.run(), ["A(t-0 t-1)"]);
}

#[test]
fn a_member_that_left_for_not_polling_is_silent_and_its_late_answers_do_not_matter() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).do_with(|m, now| m.request_rejoin(now, "go"));
    let (join, _) = rig.join_request();
    rig.pass(Duration::from_secs(300));
    rig.leave_request();
    rig.answer(join, joined("m1", 2, "leader", Vec::new())).pass(Duration::from_secs(60));
    assert!(!rig.sends(|r| matches!(r, Request::SyncGroup(_) | Request::Heartbeat(_))));
    assert_eq!(rig.member.membership(), None);
    assert_eq!(
        rig.member.may_commit(),
        Err(CommitRefusal::NotAMember),
        "a commit after the deadline stays here"
    );
}

#[test]
fn a_missed_poll_deadline_inside_a_callback_loses_what_the_callback_did_not_give_up() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, &[("t", 0)]);
    let revoke = rig.begin().unwrap();
    rig.pass(Duration::from_secs(300));
    rig.leave_request();
    rig.done(revoke).poll();
    assert_eq!(rig.run(), ["L(t-0)"]);
    assert!(rig.is_joining());
}

#[test]
fn a_member_can_join_again_while_its_leave_is_still_on_its_way() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).pass(Duration::from_secs(300)).poll();
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
    assert!(rig.is_joining());
    rig.leave_request();
}

#[test]
fn a_join_that_comes_after_the_leave_makes_nobody_a_member_of_a_consumer_group() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let (join, request) = rig.join_request();
    rig.pass(Duration::from_secs(300));
    let (leave, _) = rig.leave_request();
    rig.answer(leave, LeaveGroupResponse::default());
    // It names no leader: the group had let the member go before, and takes it for a new one.
    rig.answer(join, joined(&request.member_id, 2, "", vec![]));
    assert_eq!(rig.leave_request().1.members[0].member_id, request.member_id);

    // A classic group knows no such member any more, or its leave is still to come.
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let (join, request) = rig.join_request();
    rig.pass(Duration::from_secs(300));
    rig.leave_request();
    rig.answer(join, joined(&request.member_id, 2, "another", vec![]));
    assert!(rig.requests.is_empty());
}

#[test]
fn an_answer_that_refuses_a_heartbeat_confirms_no_membership() {
    let after = |code| {
        let mut rig = static_member();
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::NONE);
        let before = rig.member.confirmed();
        rig.heartbeat_says(code);
        rig.member.confirmed() > before
    };
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION, ErrorCode::FENCED_INSTANCE_ID] {
        assert!(!after(code), "{code}");
    }
    assert!(after(ErrorCode::NONE) && after(ErrorCode::REBALANCE_IN_PROGRESS));
}

#[test]
fn the_answer_to_a_sync_confirms_nothing_of_a_heartbeat_on_its_way() {
    let mut rig = cooperative();
    rig.subscribe(&["t"]).poll().follow(1);
    let confirmed = rig.member.confirmed();
    rig.pass_without_answers(ms(5_000));
    assert_eq!(rig.heartbeats_waiting(), 1);
    rig.give(SHARE);
    assert_eq!(rig.member.confirmed(), confirmed, "it may have waited in a process that stood still");
}

#[test]
fn a_member_at_rest_waits_for_nothing_but_its_heartbeat() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).pass(Duration::from_secs(20)).poll();
    rig.answer_heartbeats(ErrorCode::NONE);
    let deadline = rig.drain().unwrap();
    assert_eq!(deadline.why, Why::Heartbeat);
    assert!(deadline.at > rig.now);
}
