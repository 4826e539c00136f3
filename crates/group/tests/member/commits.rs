//! When commits may go out, and what their refusal does to the membership.

use crate::rig::*;
use tontine_group::member::*;
use tontine_wire::ErrorCode;

const SHARE: &[(&str, i32)] = &[("t", 0), ("t", 1)];

fn refused(
    rig: &mut Rig,
    membership: &tontine_group::ids::Membership,
    code: ErrorCode,
) -> Option<CommitRefusal> {
    let refusal = rig.member.handle_commit_error(rig.now, membership, code);
    rig.drain();
    refusal
}

#[test]
fn a_commit_inside_revoked_goes_out_under_the_generation_that_owns_the_partitions() {
    let mut rig = eager();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let _revoke = rig.begin().unwrap();
    assert_eq!(rig.member.may_commit().unwrap().generation, 1);

    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, &[("t", 0)]);
    let _revoke = rig.begin().unwrap();
    assert_eq!(rig.member.may_commit().unwrap().generation, 2);
}

#[test]
fn a_commit_inside_assigned_goes_out() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().round(1, SHARE);
        let _assign = rig.begin().unwrap();
        assert_eq!(rig.member.may_commit().unwrap().generation, 1);
    }
}

#[test]
fn a_commit_inside_lost_cannot_go_out() {
    for mut rig in both() {
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID);
        let _lost = rig.begin().unwrap();
        assert_eq!(rig.member.may_commit(), Err(CommitRefusal::NotAMember));
    }
}

#[test]
fn an_eager_member_in_a_round_is_told_to_wait() {
    let mut rig = eager();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.run();
    assert_eq!(rig.member.may_commit(), Err(CommitRefusal::RebalanceInProgress));
    rig.follow(2);
    assert_eq!(rig.member.may_commit(), Err(CommitRefusal::RebalanceInProgress));
}

/// Better than Kafka's client, which refuses commits of kept partitions for as long as the slowest member takes to join.
#[test]
fn a_cooperative_member_commits_on_while_its_join_is_parked_and_waits_between_join_and_sync_only() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.member.may_commit().unwrap().generation, 1);
    rig.follow(2);
    assert_eq!(rig.member.may_commit(), Err(CommitRefusal::RebalanceInProgress));
    rig.give(SHARE);
    assert_eq!(rig.member.may_commit().unwrap().generation, 2);
}

#[test]
fn a_member_that_has_not_joined_cannot_commit() {
    for mut rig in both() {
        assert_eq!(rig.member.may_commit(), Err(CommitRefusal::NotAMember));
        rig.subscribe(&["t"]);
        assert_eq!(rig.member.may_commit(), Err(CommitRefusal::NotAMember));
        rig.poll();
        assert_eq!(
            rig.member.may_commit(),
            Err(CommitRefusal::RebalanceInProgress),
            "its first join is under way"
        );
    }
}

#[test]
fn a_commit_refused_for_an_old_generation_fails_alone_while_a_join_is_under_way() {
    for code in
        [ErrorCode::ILLEGAL_GENERATION, ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::REBALANCE_IN_PROGRESS]
    {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE);
        let before = rig.member.membership().unwrap();
        rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!(refused(&mut rig, &before, code), Some(CommitRefusal::RebalanceInProgress));
        assert_eq!((rig.run(), rig.owned()), (Vec::new(), "t-0 t-1".to_owned()));
        rig.follow(2);
        assert_eq!(refused(&mut rig, &before, code), Some(CommitRefusal::RebalanceInProgress));
        rig.give(SHARE);
        assert_eq!(refused(&mut rig, &before, code), Some(CommitRefusal::RebalanceInProgress));
        assert_eq!(rig.run(), ["A()"], "{code}: kept partitions are in no callback");
        assert_eq!(rig.member.may_commit().unwrap().generation, 2, "the commit can be made again");
        assert!(!rig.is_joining());
    }
}

#[test]
fn a_commit_that_shows_that_the_membership_is_over_loses_everything_at_once() {
    for (code, member_id) in [(ErrorCode::UNKNOWN_MEMBER_ID, ""), (ErrorCode::ILLEGAL_GENERATION, "m1")] {
        for mut rig in both() {
            rig.settled(&["t"], 1, SHARE);
            let membership = rig.member.membership().unwrap();
            assert_eq!(refused(&mut rig, &membership, code), Some(CommitRefusal::NotAMember));
            assert_eq!(rig.run(), ["L(t-0 t-1)"], "not after the next heartbeat");
            assert_eq!(rig.join_request().1.member_id, member_id);
        }
    }
}

#[test]
fn a_static_member_that_a_commit_calls_unknown_asks_by_heartbeat_whether_a_twin_took_over() {
    for (code, state) in [
        (ErrorCode::FENCED_INSTANCE_ID, MemberState::Fenced),
        (ErrorCode::UNKNOWN_MEMBER_ID, MemberState::Unjoined),
        (ErrorCode::NONE, MemberState::Stable),
    ] {
        let mut rig = static_member();
        rig.settled(&["t"], 1, SHARE);
        let membership = rig.member.membership().unwrap();
        let refusal = refused(&mut rig, &membership, ErrorCode::UNKNOWN_MEMBER_ID);
        assert_eq!(refusal, Some(CommitRefusal::RebalanceInProgress));
        assert_eq!(rig.member.state(), MemberState::Stable, "the heartbeat decides");
        assert_eq!(rig.requests.len(), 1, "and it goes out at once");
        rig.heartbeat_says(code);
        assert_eq!(rig.member.state(), state);
    }
}

#[test]
fn a_commit_that_meets_a_rebalance_begins_the_rejoin() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE);
    let membership = rig.member.membership().unwrap();
    let refusal = refused(&mut rig, &membership, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(refusal, Some(CommitRefusal::RebalanceInProgress));
    assert!(rig.is_joining());
}

#[test]
fn a_commit_that_meets_a_twin_is_final_only_under_the_present_membership() {
    let mut rig = static_member();
    rig.settled(&["t"], 1, SHARE);
    let old = rig.member.membership().unwrap();
    rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, SHARE).run();
    assert_eq!(
        refused(&mut rig, &old, ErrorCode::FENCED_INSTANCE_ID),
        Some(CommitRefusal::RebalanceInProgress)
    );
    let new = rig.member.membership().unwrap();
    assert_eq!(refused(&mut rig, &new, ErrorCode::FENCED_INSTANCE_ID), Some(CommitRefusal::Fenced));
    assert_eq!(rig.member.state(), MemberState::Fenced);
}

#[test]
fn errors_that_are_not_about_the_group_are_the_commits_own() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE);
    let membership = rig.member.membership().unwrap();
    for code in [
        ErrorCode::OFFSET_METADATA_TOO_LARGE,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::NOT_COORDINATOR,
    ] {
        assert_eq!(refused(&mut rig, &membership, code), None);
    }
    assert_eq!(rig.member.state(), MemberState::Stable);
}

#[test]
fn a_commit_before_the_callback_that_finds_the_membership_over_turns_revoked_into_lost() {
    let mut rig = eager();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let membership = rig.member.may_commit().unwrap();
    refused(&mut rig, &membership, ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(rig.run(), ["L(t-0 t-1)"]);
}
