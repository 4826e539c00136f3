//! Leaving from every state: the last callbacks, LeaveGroup, and an end in bounded time.

use crate::rig::*;
use std::time::Duration;
use tontine_group::member::*;
use tontine_wire::{
    ErrorCode,
    api::{Request, join_group::JoinGroupResponse, leave_group::*},
};

const SHARE: &[(&str, i32)] = &[("t", 0), ("t", 1)];

fn close(rig: &mut Rig) -> &mut Rig {
    rig.do_with(|m, now| m.leave(now, "the consumer is being closed"))
}

fn answer_leave(rig: &mut Rig, code: ErrorCode) {
    let (ticket, _) = rig.leave_request();
    let member = MemberResponse { error_code: code, ..Default::default() };
    rig.answer(ticket, LeaveGroupResponse { members: vec![member], ..Default::default() });
}

#[test]
fn close_revokes_leaves_with_the_reason_and_tells_when_it_is_through() {
    for mut rig in both() {
        rig.settled(&["t"], 1, SHARE);
        close(&mut rig);
        assert_eq!(rig.run(), ["R(t-0 t-1)"]);
        assert_eq!(rig.left, 0);
        let (ticket, request) = rig.leave_request();
        assert_eq!((request.group_id.as_str(), request.member_id.as_str()), ("g", "m1"));
        assert_eq!(request.members[0].member_id, "m1");
        assert_eq!(request.members[0].reason.as_deref(), Some("the consumer is being closed"));
        rig.answer(ticket, LeaveGroupResponse::default());
        assert_eq!((rig.left, rig.member.state()), (1, MemberState::Unjoined));
        rig.poll().pass(Duration::from_secs(100));
        assert!(rig.requests.is_empty());
    }
}

#[test]
fn close_before_anything_happened_ends_at_once() {
    let mut rig = eager();
    close(&mut rig);
    assert_eq!((rig.left, rig.requests.len()), (1, 0));
}

#[test]
fn close_while_the_join_of_a_member_is_parked_leaves_at_once() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.join_request();
    close(&mut rig);
    assert_eq!(rig.leave_request().1.member_id, "m1");
}

#[test]
fn close_while_the_first_join_is_unanswered_waits_for_the_id_so_that_nobody_is_left_behind() {
    for error_code in [ErrorCode::MEMBER_ID_REQUIRED, ErrorCode::NONE] {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll();
        let (ticket, _) = rig.join_request();
        close(&mut rig);
        assert!(rig.requests.is_empty());
        rig.answer(ticket, JoinGroupResponse { error_code, member_id: "late".into(), ..Default::default() });
        assert_eq!(rig.leave_request().1.member_id, "late");
    }
}

#[test]
fn close_while_the_first_join_is_never_answered_ends_at_the_request_timeout() {
    let mut rig = eager();
    rig.subscribe(&["t"]).poll();
    rig.join_request();
    close(&mut rig).pass(Duration::from_secs(30));
    assert_eq!(rig.left, 1);
}

#[test]
fn close_between_join_and_sync_leaves() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().follow(1);
        rig.sync_request();
        close(&mut rig);
        assert_eq!(rig.run(), Vec::<String>::new());
        answer_leave(&mut rig, ErrorCode::NONE);
        assert_eq!(rig.left, 1);
    }
}

#[test]
fn close_with_an_assignment_that_was_not_told_drops_it() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, SHARE);
    close(&mut rig);
    assert_eq!(rig.run(), ["R(t-0)"], "only what was assigned is revoked");
    rig.leave_request();
}

#[test]
fn close_while_a_callback_runs_waits_for_it_and_calls_nothing_twice() {
    let mut rig = eager();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let revoke = rig.begin().unwrap();
    close(&mut rig);
    assert_eq!(rig.run(), Vec::<String>::new());
    rig.done(revoke);
    assert_eq!(rig.run(), Vec::<String>::new());
    rig.leave_request();

    let mut rig = cooperative();
    rig.subscribe(&["t"]).poll().round(1, SHARE);
    let assign = rig.begin().unwrap();
    close(&mut rig).done(assign);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.leave_request();
}

#[test]
fn heartbeats_go_on_during_the_last_callback_so_that_a_commit_inside_it_is_accepted() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE);
    close(&mut rig);
    let revoke = rig.begin().unwrap();
    rig.pass_without_answers(Duration::from_secs(10));
    assert_eq!(rig.heartbeats_waiting(), 1);
    assert!(rig.member.may_commit().is_ok());
    rig.done(revoke);
    assert_eq!(rig.member.may_commit(), Err(CommitRefusal::NotAMember));
}

#[test]
fn a_membership_that_ends_before_the_last_callback_makes_it_lost() {
    for mut rig in both() {
        rig.settled(&["t"], 1, SHARE);
        close(&mut rig).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);
        assert_eq!((rig.left, rig.requests.len()), (1, 0), "nobody is there to leave");
    }
}

#[test]
fn a_fence_that_no_poll_has_seen_ends_in_lost_at_close() {
    for mut rig in both() {
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        close(&mut rig);
        assert_eq!(rig.run(), ["L(t-0 t-1)"]);

        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE).pass(Duration::from_secs(300));
        close(&mut rig);
        assert_eq!(rig.run(), ["L(t-0 t-1)"], "a missed poll deadline too");
    }
}

#[test]
fn a_static_member_closes_without_leaving() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, SHARE);
    close(&mut rig);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    assert_eq!((rig.left, rig.sends(|r| matches!(r, Request::LeaveGroup(_)))), (1, false));
}

#[test]
fn the_application_can_say_whether_to_remain_in_the_group() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, &[]);
    rig.do_with(|m, now| m.leave_with(now, "gone for good", MembershipOperation::LeaveGroup));
    assert_eq!(rig.leave_request().1.members[0].group_instance_id.as_deref(), Some("i1"));

    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[]);
    rig.do_with(|m, now| m.leave_with(now, "back soon", MembershipOperation::RemainInGroup));
    assert_eq!((rig.left, rig.sends(|r| matches!(r, Request::LeaveGroup(_)))), (1, false));
}

#[test]
fn leave_is_tried_again_at_the_next_coordinator() {
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, &[]);
        close(&mut rig);
        answer_leave(&mut rig, code);
        assert_eq!((rig.left, rig.lookups), (0, 1));
        rig.coordinator(true).pass(ms(200));
        answer_leave(&mut rig, ErrorCode::NONE);
        assert_eq!(rig.left, 1);
    }
}

#[test]
fn a_member_that_is_not_known_any_more_has_left() {
    for code in
        [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::GROUP_AUTHORIZATION_FAILED, ErrorCode::FENCED_INSTANCE_ID]
    {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, &[]);
        close(&mut rig);
        answer_leave(&mut rig, code);
        assert_eq!(rig.left, 1, "{code}");
    }
}

#[test]
fn leaving_without_a_coordinator_is_given_up_at_the_request_timeout() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[]).coordinator(false);
    close(&mut rig).pass(Duration::from_secs(29));
    assert_eq!(rig.left, 0);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.left, 1);
}

#[test]
fn a_new_subscription_does_not_wait_for_the_answer_to_the_leave() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).do_with(|m, now| m.unsubscribe(now));
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.subscribe(&["u"]).poll();
    assert_eq!(rig.left, 1);
    let request = rig.join_request().1;
    assert_eq!((request.member_id.as_str(), subscription_of(&request).topics), ("", vec!["u".to_owned()]));
}

#[test]
fn subscribing_and_unsubscribing_in_turn_without_a_cluster_leaves_nothing_behind() {
    let mut rig = cooperative();
    rig.coordinator(false);
    for _ in 0..50 {
        rig.subscribe(&["t"]).poll().do_with(|m, now| m.unsubscribe(now));
    }
    assert_eq!((rig.left, rig.requests.len(), rig.member.state()), (50, 0, MemberState::Unjoined));
}

#[test]
fn subscribing_to_nothing_is_unsubscribing() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).subscribe(&[]);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.leave_request();
}

#[test]
fn closing_twice_is_closing_once() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE);
    close(&mut rig);
    close(&mut rig);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.leave_request();
    assert!(rig.requests.is_empty());
}

/// Owns both partitions in generation 1; the group rebalances, and this member's JoinGroup is parked.
fn parked(rig: &mut Rig) -> Ticket {
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.join_request().0
}

fn may_commit(rig: &Rig) -> Result<i32, CommitRefusal> {
    rig.member.may_commit().map(|membership| membership.generation)
}

#[test]
fn a_leaver_commits_under_the_generation_that_a_round_under_way_brings() {
    let mut rig = cooperative();
    let join = parked(&mut rig);
    let old = rig.member.membership().unwrap();
    close(&mut rig);
    let revoke = rig.begin().unwrap();
    assert_eq!((show(&revoke).as_str(), may_commit(&rig)), ("R(t-0 t-1)", Ok(1)));
    for code in [ErrorCode::ILLEGAL_GENERATION, ErrorCode::REBALANCE_IN_PROGRESS] {
        let refusal = rig.member.handle_commit_error(rig.now, &old, code);
        assert_eq!(refusal, Some(CommitRefusal::RebalanceInProgress), "the join's answer will tell");
    }
    rig.answer(join, joined("m1", 2, "leader", Vec::new()));
    assert_eq!(may_commit(&rig), Err(CommitRefusal::RebalanceInProgress));
    assert!(rig.member.follows_a_round());
    rig.give(&[]);
    assert_eq!((may_commit(&rig), rig.member.follows_a_round()), (Ok(2), false));
    rig.done(revoke);
    assert_eq!(rig.leave_request().1.member_id, "m1");
    assert_eq!(rig.run(), Vec::<String>::new());
}

#[test]
fn a_leaver_between_join_and_sync_waits_for_the_sync_before_it_commits() {
    let mut rig = cooperative();
    let join = parked(&mut rig);
    rig.answer(join, joined("m1", 2, "leader", Vec::new()));
    close(&mut rig);
    assert_eq!(may_commit(&rig), Err(CommitRefusal::RebalanceInProgress));
    rig.refuse_sync(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS).pass(ms(200));
    rig.refuse_sync(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(may_commit(&rig), Ok(2), "another round takes commits of the latest generation");
    assert!(!rig.is_joining());
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.leave_request();
}

#[test]
fn a_leaver_that_is_made_leader_still_sends_the_plan() {
    let mut rig = cooperative();
    rig.topics(tontine_group::topics::Topics::new().with("t", 2));
    let join = parked(&mut rig);
    close(&mut rig);
    let members = vec![other_member("m1", &["t"]), other_member("m2", &["t"])];
    rig.answer(join, joined("m1", 2, "m1", members));
    assert_eq!(rig.sync_request().1.assignments.len(), 2);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.leave_request();
}

#[test]
fn a_leaver_whose_last_callback_is_through_waits_for_no_round() {
    let mut rig = cooperative();
    let join = parked(&mut rig);
    close(&mut rig);
    assert_eq!(rig.run(), ["R(t-0 t-1)"]);
    rig.answer(join, joined("m1", 2, "leader", Vec::new()));
    assert!(!rig.sends(|r| matches!(r, Request::SyncGroup(_))));
    assert_eq!(may_commit(&rig), Err(CommitRefusal::NotAMember));
    answer_leave(&mut rig, ErrorCode::NONE);
    assert_eq!(rig.left, 1);
}

#[test]
fn a_leaver_that_the_round_threw_out_has_lost_its_partitions() {
    let mut rig = cooperative();
    let join = parked(&mut rig);
    close(&mut rig);
    let error_code = ErrorCode::UNKNOWN_MEMBER_ID;
    rig.answer(join, JoinGroupResponse { error_code, ..Default::default() });
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
    assert_eq!(rig.left, 1);
}

#[test]
fn a_leaver_that_loses_its_coordinator_repeats_the_sync_and_not_the_join() {
    let mut rig = cooperative();
    let join = parked(&mut rig);
    close(&mut rig);
    rig.fail(join, SendError::Disconnected).coordinator(true).pass(ms(500));
    assert_eq!((rig.is_joining(), may_commit(&rig)), (false, Ok(1)));

    let mut rig = cooperative();
    let join = parked(&mut rig);
    close(&mut rig).answer(join, joined("m1", 2, "leader", Vec::new()));
    let (sync, _) = rig.sync_request();
    rig.fail(sync, SendError::Disconnected).coordinator(true).pass(ms(500));
    rig.give(SHARE);
    assert_eq!(may_commit(&rig), Ok(2));
}
