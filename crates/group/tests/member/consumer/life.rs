//! Joining, heartbeats and reconciliation: what is said, what is called, and in which order.

use super::*;
use crate::rig::{ms, show};
use tontine_group::member::{Callback, Due};

#[test]
fn the_first_heartbeat_says_everything_and_the_join_waits_for_a_poll() {
    let mut rig = consumer_with(|config| {
        config.rack = Some("r".into());
        config.remote_assignor = Some("range".into());
    });
    rig.subscribe(&["b", "a"]);
    assert!(rig.said().is_none());
    let (_, said) = rig.poll().beat();
    assert_eq!((said.group_id.as_str(), said.member_epoch), ("g", 0));
    assert_eq!(said.member_id, rig.member.member_id());
    assert_eq!(subscribed(&said), Some(vec!["a", "b"]));
    assert_eq!((said.rack_id.as_deref(), said.server_assignor.as_deref()), (Some("r"), Some("range")));
    assert_eq!((said.rebalance_timeout_ms, said.topic_partitions), (300_000, Some(Vec::new())));
    assert_eq!(said.subscribed_topic_regex, None);
}

#[test]
fn later_heartbeats_say_only_what_has_changed() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    let said = rig.tell(2, None);
    assert_eq!((said.member_epoch, said.rebalance_timeout_ms), (2, -1));
    assert_eq!((said.topic_partitions, said.subscribed_topic_names, said.rack_id), (None, None, None));
    let said = rig.subscribe(&["b"]).tell(2, None);
    assert_eq!(subscribed(&said), Some(vec!["b"]));
    assert_eq!(said.topic_partitions, None);
    assert_eq!(subscribed(&rig.tell(2, None)), None);
}

#[test]
fn after_an_answer_that_never_came_everything_is_said_again() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0), (A, 1)]);
    let (ticket, _) = rig.beat();
    rig.fail(ticket, tontine_group::member::SendError::TimedOut).coordinator(true);
    let said = rig.tell(2, None);
    assert_eq!((said.rebalance_timeout_ms, subscribed(&said)), (300_000, Some(vec!["a", "b"])));
    assert_eq!(said.topic_partitions, Some(places(&[(A, 0), (A, 1)])));
    assert_eq!(rig.tell(2, None).rebalance_timeout_ms, -1);
}

#[test]
fn the_first_assignment_is_told_in_one_piece_and_acknowledged_at_once() {
    let mut rig = consumer();
    rig.subscribe(&["a", "b"]).poll();
    rig.tell(2, Some(&[(A, 0), (B, 1)]));
    assert_eq!(rig.member.state(), MemberState::Reconciling);
    assert!(rig.said().is_none(), "there is nothing to acknowledge yet");
    assert_eq!(rig.run(), ["A(a-0 b-1)"]);
    let (_, said) = rig.said().expect("the acknowledgement does not wait");
    assert_eq!(said.topic_partitions, Some(places(&[(A, 0), (B, 1)])));
    assert_eq!(rig.member.state(), MemberState::Stable);
}

#[test]
fn whoever_joins_and_gets_nothing_is_told_so_once() {
    let mut rig = consumer();
    rig.subscribe(&["a"]).poll();
    rig.tell(2, Some(&[]));
    assert_eq!(rig.run(), ["A()"]);
    rig.tell(3, None);
    assert!(rig.run().is_empty());
    rig.tell(3, Some(&[(A, 3)]));
    assert_eq!(rig.run(), ["A(a-3)"]);
}

#[test]
fn a_partition_is_released_only_when_its_callback_has_returned_and_then_at_once() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0), (A, 1)]);
    rig.tell(2, Some(&[(A, 0)]));
    assert!(matches!(rig.member.due_callback(), Some(Due::Revoke { .. })));
    let callback = rig.begin().unwrap();
    for _ in 0..3 {
        let said = rig.tell(2, None);
        assert_eq!(said.topic_partitions, None, "its callback still runs");
    }
    assert_eq!(show(&callback), "R(a-1)");
    rig.done(callback);
    let (ticket, said) = rig.said().expect("whoever is to get it waits");
    assert_eq!(said.topic_partitions, Some(places(&[(A, 0)])));
    rig.answer(ticket, answer(3, None));
    assert_eq!(rig.run(), ["A()"]);
    assert_eq!((rig.owned().as_str(), rig.epoch()), ("a-0", Some(3)));
}

#[test]
fn a_heartbeat_that_says_everything_never_frees_what_may_be_taken_meanwhile() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.tell(3, Some(&[(A, 0), (A, 1)]));
    let (ticket, _) = rig.beat();
    rig.fail(ticket, tontine_group::member::SendError::Disconnected).coordinator(true);
    // The callback that takes a-1 over can begin while this is on its way.
    let (_, said) = rig.beat();
    assert_eq!(said.topic_partitions, Some(places(&[(A, 0), (A, 1)])));
}

#[test]
fn an_assignment_that_was_taken_back_before_it_was_told_is_acknowledged_without_a_callback() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.tell(3, Some(&[(A, 0), (A, 1)]));
    rig.tell(3, Some(&[(A, 0)]));
    assert!(rig.run().is_empty());
    let (_, said) = rig.beat();
    assert_eq!(said.topic_partitions, Some(places(&[(A, 0)])), "the coordinator waits for this");
}

#[test]
fn another_assignment_during_a_callback_is_acted_on_after_it() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.tell(3, Some(&[(A, 0), (A, 1)]));
    let assigned = rig.begin().unwrap();
    rig.tell(3, Some(&[(A, 0)]));
    assert!(rig.begin().is_none(), "one after the other");
    rig.done(assigned);
    assert_eq!(rig.run(), ["R(a-1)", "A()"]);
    assert_eq!(rig.beat().1.topic_partitions, Some(places(&[(A, 0)])));
}

#[test]
fn the_interval_is_that_of_each_answer() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    for interval in [300, 7_000, 50] {
        let (ticket, _) = rig.beat();
        let before = rig.now;
        rig.answer(
            ticket,
            ConsumerGroupHeartbeatResponse { heartbeat_interval_ms: interval, ..answer(2, None) },
        );
        let (ticket, _) = rig.beat();
        assert_eq!(rig.now - before, ms(interval as u64));
        rig.answer(ticket, answer(2, None));
    }
}

#[test]
fn heartbeats_are_quick_after_a_join_and_quiet_at_rest() {
    let mut rig = consumer();
    rig.subscribe(&["a"]).poll();
    rig.tell(2, Some(&[]));
    rig.run();
    rig.tell(2, None);
    let joined = rig.now;
    let mut latest = joined;
    while rig.now < joined + Duration::from_secs(7) {
        rig.tell(2, None);
        assert!(rig.now - latest <= ms(240), "others may let go of partitions now");
        latest = rig.now;
    }
    rig.rest();
    let rested = rig.now;
    rig.tell(2, None);
    assert_eq!(rig.now - rested, Duration::from_secs(5));
    // Another epoch is a sign that partitions move.
    rig.tell(3, None);
    let moved = rig.now;
    rig.tell(3, None);
    assert!(rig.now - moved <= ms(120));
}

#[test]
fn a_failed_listener_is_called_again_with_nothing_new() {
    let mut rig = consumer();
    rig.subscribe(&["a"]).poll();
    rig.tell(2, Some(&[(A, 0)]));
    let Some(Callback::Assign(granted)) = rig.begin() else { panic!("assigned") };
    rig.do_with(|m, now| m.assign_failed(now, granted));
    assert_eq!(rig.run(), ["A()"]);
    assert_eq!(rig.owned(), "a-0");
}

#[test]
fn commits_go_out_at_any_time_and_a_stale_one_asks_for_the_newer_epoch() {
    use tontine_group::member::CommitRefusal::*;
    let mut rig = consumer();
    assert_eq!(rig.member.may_commit().unwrap_err(), NotAMember);
    rig.at_rest(&[(A, 0), (A, 1)]);
    let old = rig.member.may_commit().unwrap();
    let stale = ErrorCode::STALE_MEMBER_EPOCH;
    let refused = rig.member.handle_commit_error(rig.now, &old, stale);
    rig.drain();
    assert_eq!(refused, Some(RebalanceInProgress));
    let (ticket, said) = rig.said().expect("it is asked for at once");
    assert_eq!(said.rebalance_timeout_ms, 300_000, "in full, so that a lost assignment comes again");
    rig.answer(ticket, answer(3, Some(&[(A, 0)])));
    assert_eq!(rig.member.may_commit().unwrap().generation, 3);
    assert_eq!(rig.member.handle_commit_error(rig.now, &old, stale), Some(RebalanceInProgress));
    assert_eq!(
        rig.member.handle_commit_error(rig.now, &old, ErrorCode::UNKNOWN_MEMBER_ID),
        Some(RebalanceInProgress),
        "that says nothing about the present"
    );
    let now = rig.member.may_commit().unwrap();
    assert_eq!(rig.member.handle_commit_error(rig.now, &now, ErrorCode::UNKNOWN_MEMBER_ID), Some(NotAMember));
    rig.drain();
    assert_eq!(rig.run(), ["L(a-0 a-1)"]);
}

#[test]
fn a_regular_expression_goes_to_the_coordinator_and_can_be_taken_back() {
    let mut rig = consumer();
    rig.subscribe_matching("a.*").poll();
    let said = rig.tell(1, Some(&[]));
    assert_eq!((subscribed(&said), said.subscribed_topic_regex.as_deref()), (Some(vec![]), Some("a.*")));
    rig.run();
    assert_eq!(rig.tell(2, Some(&[(A, 0)])).subscribed_topic_regex, None);
    assert_eq!(rig.run(), ["A(a-0)"]);
    rig.tell(2, None);
    let said = rig.subscribe(&["b"]).tell(2, None);
    assert_eq!((subscribed(&said), said.subscribed_topic_regex.as_deref()), (Some(vec!["b"]), Some("")));
}
