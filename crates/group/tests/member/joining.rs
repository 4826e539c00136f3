//! How a member joins: what it says, how it gets its id, how it follows the group, and what it does not wait for.

use crate::rig::*;
use std::{sync::Arc, time::Duration};
use tontine_group::{Cause, Instant, assignor::RebalanceProtocol, member::*};
use tontine_wire::{ErrorCode, api::join_group::JoinGroupResponse};

#[test]
fn nothing_is_sent_before_the_application_polls() {
    let mut rig = eager();
    rig.subscribe(&["t"]);
    assert!(rig.requests.is_empty());
    rig.poll();
    assert!(rig.is_joining());
}

#[test]
fn the_first_join_says_what_the_member_is_and_wants() {
    let dealer = Arc::new(Dealer("deal", RebalanceProtocol::Cooperative));
    let mut rig = Rig::new(MemberConfig {
        assignors: vec![dealer, Arc::new(Dealer("other", RebalanceProtocol::Cooperative))],
        rack: Some("r1".into()),
        ..config()
    });
    rig.subscribe(&["b", "a"]).poll();
    let request = rig.join_request().1;
    assert_eq!((request.session_timeout_ms, request.rebalance_timeout_ms), (45_000, 300_000));
    assert_eq!((request.protocol_type.as_str(), request.member_id.as_str()), ("consumer", ""));
    assert_eq!(request.protocols.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["deal", "other"]);
    assert_eq!(request.reason.as_deref(), Some("member joined: c"));
    let subscription = subscription_of(&request);
    assert_eq!((subscription.topics, subscription.generation_id), (vec!["a".to_owned(), "b".to_owned()], -1));
    assert_eq!((subscription.rack_id.as_deref(), subscription.owned_partitions.len()), (Some("r1"), 0));
}

#[test]
fn a_required_member_id_is_taken_and_the_join_repeated_at_once() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll();
        let (ticket, _) = rig.join_request();
        let error_code = ErrorCode::MEMBER_ID_REQUIRED;
        rig.answer(ticket, JoinGroupResponse { error_code, member_id: "given".into(), ..Default::default() });
        assert_eq!(rig.member.member_id(), "given");
        assert_eq!(rig.run(), Vec::<String>::new());
        assert_eq!(rig.join_request().1.member_id, "given");
    }
}

#[test]
fn a_static_member_joins_with_its_instance_id_and_without_a_member_id() {
    let mut rig = static_member();
    rig.subscribe(&["t"]).poll();
    let request = rig.join_request().1;
    assert_eq!((request.member_id.as_str(), request.group_instance_id.as_deref()), ("", Some("i1")));
}

#[test]
fn a_cooperative_member_tells_what_it_owns_and_since_when() {
    let mut rig = cooperative();
    rig.settled(&["t"], 4, &[("t", 0), ("t", 2)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let subscription = subscription_of(&rig.join_request().1);
    assert_eq!(subscription.generation_id, 4);
    assert_eq!(subscription.owned_partitions[0].partitions, [0, 2]);
    assert_eq!(subscription.user_data.as_deref(), Some(&b"[t-0, t-2]@4"[..]));
}

#[test]
fn an_eager_member_owns_nothing_when_it_joins_but_its_assignor_remembers() {
    let mut rig = eager();
    rig.settled(&["t"], 4, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.run();
    let subscription = subscription_of(&rig.join_request().1);
    assert_eq!(subscription.owned_partitions.len(), 0);
    assert_eq!(subscription.user_data.as_deref(), Some(&b"[t-0]@4"[..]));
}

#[test]
fn assignors_of_both_kinds_rebalance_eagerly() {
    let rig = Rig::new(MemberConfig {
        assignors: vec![
            Arc::new(Dealer("deal", RebalanceProtocol::Eager)),
            Arc::new(Dealer("gentle", RebalanceProtocol::Cooperative)),
        ],
        ..config()
    });
    assert_eq!(rig.member.rebalance_protocol(), RebalanceProtocol::Eager);
}

#[test]
fn one_join_stays_parked_across_any_number_of_polls() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll();
        let (ticket, _) = rig.join_request();
        for _ in 0..100 {
            rig.pass(Duration::from_secs(1)).poll();
            assert!(!rig.is_joining(), "one at a time");
        }
        rig.answer(ticket, joined("m1", 1, "leader", Vec::new())).give(&[("t", 0)]);
        assert_eq!(rig.run(), ["A(t-0)"]);
    }
}

#[test]
fn the_coordinator_is_looked_up_once_and_the_join_follows_when_it_is_found() {
    let dealer = Arc::new(Dealer("deal", RebalanceProtocol::Eager));
    let mut rig = Rig::new(MemberConfig { assignors: vec![dealer], ..config() });
    rig.coordinator(false).subscribe(&["t"]).poll().poll();
    assert_eq!((rig.lookups, rig.is_joining()), (1, false));
    rig.coordinator(true);
    assert!(rig.is_joining());
}

#[test]
fn the_second_join_of_a_round_names_its_cause() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0), ("t", 1)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    rig.round(2, &[("t", 0)]).run();
    let reason = rig.join_request().1.reason.unwrap();
    assert_eq!(reason, Cause::SecondPhase.to_string());
}

#[test]
fn a_rejoin_asked_for_carries_the_applications_words_cut_to_255_characters() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).do_with(|m, now| m.request_rejoin(now, &"x".repeat(1000)));
    assert_eq!(rig.join_request().1.reason.unwrap(), "x".repeat(255));
}

#[test]
fn a_rejoin_asked_for_in_the_middle_of_a_rebalance_does_nothing() {
    for mut rig in both() {
        rig.subscribe(&["t"]).poll().do_with(|m, now| m.request_rejoin(now, "now")).round(1, &[("t", 0)]);
        rig.run();
        assert_eq!(rig.member.state(), MemberState::Stable);
        assert!(!rig.is_joining());
    }
}

#[test]
fn a_subscription_that_changes_while_the_join_is_parked_makes_another_round() {
    let mut rig = cooperative();
    rig.subscribe(&["a"]).poll();
    let (ticket, _) = rig.join_request();
    rig.subscribe(&["a", "b"]).subscribe(&["a", "c"]);
    rig.answer(ticket, joined("m1", 1, "leader", Vec::new())).give(&[("a", 0)]);
    assert_eq!(rig.run(), ["A(a-0)"]);
    assert_eq!(subscription_of(&rig.join_request().1).topics, ["a", "c"]);
}

#[test]
fn commits_in_flight_hold_a_join_up_for_a_moment_only() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).do_with(|m, now| m.set_commits_in_flight(now, 1));
    rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(!rig.is_joining());
    rig.do_with(|m, now| m.set_commits_in_flight(now, 0));
    assert!(rig.is_joining(), "the commit is answered");

    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).do_with(|m, now| m.set_commits_in_flight(now, 1));
    rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).pass(ms(100));
    assert!(rig.is_joining(), "a commit that hangs holds up nobody");
}

#[test]
fn every_change_of_state_is_told_with_its_cause() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS);
    let steps: Vec<_> = rig.transitions.iter().map(|t| (t.from, t.to)).collect();
    use MemberState::*;
    assert_eq!(
        steps,
        [(Unjoined, Joining), (Joining, Syncing), (Syncing, Applying), (Applying, Stable), (Stable, Joining)]
    );
    assert_eq!(rig.transitions[4].cause, Some(Cause::Coordinator));
    assert_eq!(rig.transitions[3].generation, Some(1));
}

#[test]
fn spurious_calls_do_nothing() {
    for mut rig in both() {
        rig.settled(&["t"], 1, &[("t", 0)]);
        for _ in 0..100 {
            rig.do_with(|m, now| m.handle_timeout(now));
            rig.do_with(|m, now| m.handle_response(now, Ticket(999), Err(SendError::Disconnected)));
        }
        assert_eq!((rig.member.state(), rig.owned()), (MemberState::Stable, "t-0".to_owned()));
        rig.do_with(|m, _| m.handle_timeout(Instant::ZERO));
        assert!(!rig.is_joining());
    }
}

#[test]
fn hearing_of_the_known_coordinator_again_forgets_nothing() {
    let mut rig = cooperative();
    rig.settled(&["t"], 1, &[("t", 0)]).pass_without_answers(Duration::from_secs(3)).coordinator(true);
    rig.answer_heartbeats(ErrorCode::REBALANCE_IN_PROGRESS);
    assert!(rig.is_joining(), "the answer of the heartbeat that was on its way counts");
}
