//! What each error means in the answer to each request, and which of them end a membership.

use crate::rig::*;
use std::time::Duration;
use tontine_group::member::*;
use tontine_wire::{
    ErrorCode,
    api::{heartbeat::HeartbeatResponse, sync_group::SyncGroupResponse},
};

const SHARE: &[(&str, i32)] = &[("t", 0)];

// JoinGroup.

#[test]
fn a_loading_or_moved_coordinator_delays_a_join_by_a_backoff() {
    for code in [ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, ErrorCode::REQUEST_TIMED_OUT] {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll().refuse_join(code);
        assert!(!rig.is_joining(), "not at once");
        rig.pass(ms(120));
        assert!(rig.is_joining() && rig.errors.is_empty());
    }
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll().refuse_join(code).pass(ms(200));
        assert_eq!((rig.lookups, rig.is_joining()), (1, false));
        rig.coordinator(true);
        assert!(rig.is_joining());
    }
}

#[test]
fn retries_of_a_join_wait_longer_each_time_up_to_the_maximum() {
    let mut rig = eager();
    rig.subscribe(&["t"]).poll();
    let mut waits = Vec::new();
    for _ in 0..8 {
        let start = rig.now;
        rig.refuse_join(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        while !rig.is_joining() {
            rig.pass(ms(10));
        }
        waits.push((rig.now - start).as_millis());
    }
    assert!(waits[0] <= 130 && waits[7] >= 790 && waits.iter().all(|w| *w <= 1210), "{waits:?}");
}

#[test]
fn a_join_that_starts_over_is_free_a_few_times_and_then_has_to_wait() {
    let mut rig = eager();
    rig.subscribe(&["t"]).poll();
    for _ in 0..5 {
        rig.refuse_join(ErrorCode::REBALANCE_IN_PROGRESS);
    }
    rig.refuse_join(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(!rig.is_joining(), "a coordinator that says so for ever does not make the member spin");
    rig.pass(Duration::from_secs(1));
    assert!(rig.is_joining());
}

#[test]
fn an_unknown_member_joins_as_a_new_one_and_in_a_round_loses_what_it_had() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.refuse_join(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(rig.run(), ["L(t-0)"]);
    assert_eq!(rig.join_request().1.member_id, "");

    let mut rig = eager();
    rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(rig.run(), ["R(t-0)"]);
    rig.refuse_join(ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(rig.run(), Vec::<String>::new(), "it had given up everything already");
    assert_eq!(rig.join_request().1.member_id, "");
}

#[test]
fn what_the_application_has_to_see_is_thrown_once_and_tried_again_at_its_next_poll() {
    for code in [
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::INVALID_SESSION_TIMEOUT,
        ErrorCode::INVALID_GROUP_ID,
        ErrorCode::GROUP_MAX_SIZE_REACHED,
        ErrorCode::UNSUPPORTED_VERSION,
        ErrorCode::UNKNOWN_SERVER_ERROR,
    ] {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll().refuse_join(code).pass(Duration::from_secs(100));
        assert_eq!(rig.errors, [MemberError::Refused { api: "JoinGroup", code }]);
        assert!(!rig.is_joining(), "{code}: not before the application has seen it");
        rig.poll();
        assert!(rig.is_joining(), "{code}");
    }
}

#[test]
fn errors_polled_away_in_a_loop_do_not_make_the_member_hammer_the_coordinator() {
    let mut rig = eager();
    rig.subscribe(&["t"]).poll();
    let mut joins = 0;
    for _ in 0..1000 {
        rig.poll().pass(ms(10));
        if rig.is_joining() {
            joins += 1;
            rig.refuse_join(ErrorCode::GROUP_AUTHORIZATION_FAILED);
        }
    }
    assert!((5..25).contains(&joins), "{joins} joins in ten seconds");
}

#[test]
fn a_join_without_an_answer_is_repeated_under_the_same_id() {
    for error in [SendError::Disconnected, SendError::TimedOut] {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
        let (ticket, _) = rig.join_request();
        rig.fail(ticket, error).coordinator(true).pass(ms(200));
        assert_eq!(rig.join_request().1.member_id, "m1");
        assert_eq!(rig.owned(), "t-0");
    }
}

#[test]
fn a_broker_without_groups_is_an_error() {
    let mut rig = eager();
    rig.subscribe(&["t"]).poll();
    let (ticket, _) = rig.join_request();
    rig.fail(ticket, SendError::Unsupported);
    assert_eq!(rig.errors, [MemberError::Unsupported { api: "JoinGroup" }]);
}

#[test]
fn an_answer_that_makes_no_sense_is_an_error_and_no_membership() {
    let strange = [
        joined("", 1, "leader", Vec::new()),
        joined("m1", -7, "leader", Vec::new()),
        tontine_wire::api::join_group::JoinGroupResponse {
            protocol_name: Some("unheard-of".into()),
            ..joined("m1", 1, "leader", Vec::new())
        },
        tontine_wire::api::join_group::JoinGroupResponse {
            protocol_type: Some("connect".into()),
            ..joined("m1", 1, "leader", Vec::new())
        },
    ];
    for response in strange {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll();
        let (ticket, _) = rig.join_request();
        rig.answer(ticket, response);
        assert_eq!((rig.errors.len(), rig.member.membership()), (1, None));
    }
    let mut rig = eager();
    rig.subscribe(&["t"]).poll();
    let (ticket, _) = rig.join_request();
    rig.answer(ticket, HeartbeatResponse::default());
    assert_eq!(rig.errors.len(), 1);
}

// SyncGroup.

#[test]
fn a_sync_that_meets_a_new_rebalance_joins_again_and_keeps_the_generation() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().follow(3).refuse_sync(ErrorCode::REBALANCE_IN_PROGRESS);
        assert_eq!(rig.run(), Vec::<String>::new(), "nothing is revoked twice");
        let request = rig.join_request().1;
        assert_eq!((request.member_id.as_str(), subscription_of(&request).generation_id), ("m1", 3));
    }
}

#[test]
fn a_sync_refused_for_the_member_or_its_generation_ends_the_membership() {
    let table = [(ErrorCode::UNKNOWN_MEMBER_ID, ""), (ErrorCode::ILLEGAL_GENERATION, "m1")];
    for (code, member_id) in table {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
        rig.follow(2).refuse_sync(code);
        assert_eq!(rig.run(), ["L(t-0)"]);
        assert_eq!(rig.join_request().1.member_id, member_id);
    }
}

#[test]
fn a_sync_that_meets_another_coordinator_is_repeated_there_without_another_round() {
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut rig = cooperative();
        rig.subscribe(&["t"]).poll().follow(1).refuse_sync(code).coordinator(true).pass(ms(200));
        assert!(!rig.is_joining());
        rig.give(SHARE);
        assert_eq!(rig.run(), ["A(t-0)"]);
    }
    let mut rig = cooperative();
    rig.subscribe(&["t"]).poll().follow(1);
    let (ticket, _) = rig.sync_request();
    rig.fail(ticket, SendError::Disconnected).coordinator(true).pass(ms(200)).give(SHARE);
    assert_eq!(rig.run(), ["A(t-0)"]);
}

#[test]
fn a_sync_refused_for_good_is_an_error() {
    for code in [ErrorCode::GROUP_AUTHORIZATION_FAILED, ErrorCode::INVALID_REQUEST] {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll().follow(1).refuse_sync(code);
        assert_eq!(rig.errors, [MemberError::Refused { api: "SyncGroup", code }]);
        rig.poll().pass(ms(200));
        assert!(rig.is_joining());
    }
}

#[test]
fn an_assignment_that_cannot_be_read_or_is_for_another_assignor_is_an_error() {
    let strange = [
        SyncGroupResponse { assignment: bytes::Bytes::from_static(&[0, 1, 0, 0, 99]), ..synced(&[]) },
        SyncGroupResponse { protocol_name: Some("other".into()), ..synced(SHARE) },
        SyncGroupResponse { protocol_type: Some("connect".into()), ..synced(SHARE) },
    ];
    for response in strange {
        let mut rig = eager();
        rig.subscribe(&["t"]).poll().follow(1);
        let (ticket, _) = rig.sync_request();
        rig.answer(ticket, response);
        assert_eq!((rig.errors.len(), rig.run()), (1, Vec::new()));
    }
}

#[test]
fn no_bytes_at_all_are_an_assignment_of_nothing() {
    let mut rig = eager();
    rig.subscribe(&["t"]).poll().follow(1);
    let (ticket, _) = rig.sync_request();
    rig.answer(ticket, SyncGroupResponse::default());
    assert_eq!(rig.run(), ["A()"]);
}

#[test]
fn a_twin_met_in_join_or_sync_is_final() {
    let mut rig = static_member();
    rig.subscribe(&["t"]).poll().refuse_join(ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(rig.member.state(), MemberState::Fenced);
    let mut rig = static_member();
    rig.subscribe(&["t"]).poll().follow(1).refuse_sync(ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(rig.member.state(), MemberState::Fenced);
    rig.poll().pass(Duration::from_secs(100));
    assert!(rig.requests.is_empty());
}

// Heartbeat.

#[test]
fn a_heartbeat_refused_by_a_node_that_does_not_coordinate_keeps_the_membership() {
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE).heartbeat_says(code);
        assert_eq!((rig.lookups, rig.member.state()), (1, MemberState::Stable));
        rig.coordinator(true).pass(ms(200)).heartbeat_says(ErrorCode::NONE);
        assert_eq!((rig.member.state(), rig.owned()), (MemberState::Stable, "t-0".to_owned()));
    }
}

#[test]
fn errors_of_heartbeats_that_may_pass_are_waited_out_in_silence() {
    for code in
        [ErrorCode::COORDINATOR_LOAD_IN_PROGRESS, ErrorCode::REQUEST_TIMED_OUT, ErrorCode::NETWORK_EXCEPTION]
    {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE);
        for _ in 0..10 {
            rig.heartbeat_says(code);
        }
        assert_eq!((rig.errors.len(), rig.member.state()), (0, MemberState::Stable), "{code}");
    }
}

#[test]
fn a_heartbeat_error_that_stays_is_reported_once_a_poll() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, SHARE);
    for _ in 0..10 {
        rig.heartbeat_says(ErrorCode::UNKNOWN_SERVER_ERROR);
    }
    assert_eq!(rig.errors.len(), 1);
    rig.poll().heartbeat_says(ErrorCode::UNKNOWN_SERVER_ERROR);
    assert_eq!(rig.errors.len(), 2);
}

#[test]
fn the_answer_to_a_heartbeat_of_an_old_generation_never_resets_the_new_one() {
    for code in [
        ErrorCode::UNKNOWN_MEMBER_ID,
        ErrorCode::ILLEGAL_GENERATION,
        ErrorCode::REBALANCE_IN_PROGRESS,
        ErrorCode::FENCED_INSTANCE_ID,
    ] {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE).pass(Duration::from_secs(3));
        rig.do_with(|m, now| m.request_rejoin(now, "go"));
        rig.pass_without_answers(Duration::from_secs(3));
        let late = rig.heartbeats();
        assert!(!late.is_empty());
        rig.round(2, SHARE).run();
        for ticket in late {
            rig.answer(ticket, HeartbeatResponse { error_code: code, ..Default::default() });
        }
        assert_eq!((rig.member.state(), rig.errors.len()), (MemberState::Stable, 0), "{code}");
        assert!(!rig.is_joining(), "{code}");
    }
}

#[test]
fn while_a_join_is_parked_heartbeats_cannot_end_the_membership() {
    for code in
        [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::ILLEGAL_GENERATION, ErrorCode::REBALANCE_IN_PROGRESS]
    {
        let mut rig = cooperative();
        rig.settled(&["t"], 1, SHARE).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
        let (ticket, _) = rig.join_request();
        rig.heartbeat_says(code);
        assert_eq!((rig.member.state(), rig.run()), (MemberState::Joining, Vec::new()), "the join will tell");
        rig.answer(ticket, joined("m1", 2, "leader", Vec::new())).give(SHARE);
        assert_eq!(rig.run(), ["A()"]);
    }
}

#[test]
fn a_group_that_has_no_assignor_in_common_is_an_error_that_says_what_to_compare() {
    for at_join in [true, false] {
        let mut rig = cooperative();
        rig.subscribe(&["t"]).poll();
        if at_join {
            rig.refuse_join(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        } else {
            rig.follow(1).refuse_sync(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        let said = rig.errors[0].to_string();
        assert!(
            !rig.errors[0].is_fatal()
                && said.contains("only deal;")
                && said.contains("group.protocol=consumer"),
            "{said}"
        );
    }
}
