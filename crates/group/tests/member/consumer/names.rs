//! Topics whose names are not known yet, or not any more.

use super::*;
use crate::rig::ms;

#[test]
fn an_assignment_waits_a_moment_for_the_names_of_its_topics() {
    let mut rig = consumer();
    rig.topics(topics(&[("a", A)]));
    rig.subscribe(&["a", "b"]).poll();
    let asked = rig.refreshes.len();
    rig.tell(2, Some(&[(A, 0), (B, 0)]));
    assert_eq!(rig.refreshes.len(), asked + 1);
    assert!(rig.run().is_empty());
    rig.topics(topics(&[("a", A), ("b", B)]));
    assert_eq!(rig.run(), ["A(a-0 b-0)"]);
}

#[test]
fn a_topic_id_that_never_resolves_holds_up_nothing_and_is_asked_for_now_and_then() {
    let mut rig = consumer();
    rig.topics(topics(&[("a", A)]));
    rig.subscribe(&["a", "b"]).poll();
    rig.tell(2, Some(&[(A, 0), (B, 0)]));
    while rig.member.due_callback().is_none() {
        let (ticket, _) = rig.beat();
        rig.answer(ticket, answer(2, None));
    }
    assert_eq!(rig.run(), ["A(a-0)"]);
    let asked = rig.refreshes.len();
    for _ in 0..10 {
        rig.rest();
        rig.topics(topics(&[("a", A)]));
    }
    let often = rig.refreshes.len() - asked;
    assert!((5..350).contains(&often), "asked {often} times in five minutes");
    assert!(rig.run().is_empty());
    rig.topics(topics(&[("a", A), ("b", B)]));
    assert_eq!(rig.run(), ["A(b-0)"]);
}

#[test]
fn what_is_taken_away_need_not_wait_for_names() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0), (A, 1)]);
    rig.topics(topics(&[("a", A)]));
    rig.tell(2, Some(&[(A, 0), (B, 0)]));
    assert_eq!(rig.run(), ["R(a-1)"]);
    assert!(rig.said().is_some(), "its release is told at once");
}

#[test]
fn a_topic_that_was_created_again_is_given_up_and_assigned_anew() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0), (A, 1)]);
    rig.topics(topics(&[("a", 7)]));
    rig.tell(2, Some(&[]));
    assert_eq!(rig.run(), ["R(a-0 a-1)", "A()"]);
    rig.tell(3, Some(&[(7, 0)]));
    assert_eq!(rig.run(), ["A(a-0)"]);
    assert_eq!(rig.beat().1.topic_partitions, Some(places(&[(7, 0)])));
}

#[test]
fn a_deleted_topic_is_given_up_under_its_name() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0), (B, 0)]);
    rig.topics(topics(&[("a", A)]));
    rig.tell(2, Some(&[(A, 0)]));
    assert_eq!(rig.run(), ["R(b-0)", "A()"]);
    rig.pass_without_answers(ms(10));
}
