//! Leaving on purpose, and for not polling.

use super::*;
use tontine_group::member::{Callback, MemberError, MembershipOperation, SendError};

fn left(rig: &mut Rig) -> i32 {
    let (ticket, said) = rig.said().expect("a farewell");
    assert_eq!((said.topic_partitions, said.rebalance_timeout_ms), (None, -1));
    rig.answer(ticket, answer(said.member_epoch, None));
    said.member_epoch
}

#[test]
fn who_leaves_gives_everything_up_first_and_says_so_without_waiting_for_an_answer_under_way() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    let (under_way, _) = rig.beat();
    rig.do_with(|m, now| m.leave(now, "bye"));
    assert!(rig.said().is_none());
    assert_eq!(rig.run(), ["R(a-0)"]);
    assert_eq!((left(&mut rig), rig.left), (-1, 1));
    rig.answer(under_way, answer(9, Some(&[(A, 0), (A, 1)])));
    assert_eq!((rig.epoch(), rig.run().len()), (None, 0), "an answer that comes too late");
}

#[test]
fn static_members_leave_for_a_while_unless_they_are_told_otherwise() {
    use MembershipOperation::*;
    let cases = [
        (true, Default, Some(-2)),
        (true, LeaveGroup, Some(-1)),
        (true, RemainInGroup, Some(-2)),
        (false, Default, Some(-1)),
        (false, LeaveGroup, Some(-1)),
        (false, RemainInGroup, None),
    ];
    for (is_static, operation, epoch) in cases {
        let mut rig = if is_static { static_consumer() } else { consumer() };
        rig.at_rest(&[(A, 0)]);
        rig.do_with(|m, now| m.leave_with(now, "bye", operation));
        rig.run();
        match epoch {
            Some(epoch) => assert_eq!(left(&mut rig), epoch),
            None => assert!(rig.said().is_none()),
        }
        assert_eq!(rig.left, 1);
    }
}

#[test]
fn a_static_member_comes_back_under_its_id() {
    let mut rig = static_consumer();
    rig.at_rest(&[(A, 0)]);
    let id = rig.member.member_id().to_owned();
    rig.do_with(|m, now| m.unsubscribe(now));
    rig.run();
    assert_eq!(left(&mut rig), -2);
    rig.subscribe(&["a"]).poll();
    let said = rig.tell(2, Some(&[(A, 0)]));
    assert_eq!((said.member_epoch, said.member_id == id, said.instance_id.as_deref()), (0, true, Some("i1")));
    assert_eq!(rig.run(), ["A(a-0)"]);
}

#[test]
fn a_member_that_is_fenced_while_it_leaves_has_left() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::GROUP_ID_NOT_FOUND, ErrorCode::FENCED_MEMBER_EPOCH]
    {
        let mut rig = consumer();
        rig.at_rest(&[(A, 0)]);
        rig.do_with(|m, now| m.leave(now, "bye"));
        rig.run();
        rig.refuse(code);
        assert_eq!(rig.left, 1, "{code}");

        let mut rig = consumer();
        rig.at_rest(&[(A, 0)]);
        let (under_way, _) = rig.beat();
        rig.do_with(|m, now| m.leave(now, "bye"));
        rig.answer(under_way, ConsumerGroupHeartbeatResponse { error_code: code, ..Default::default() });
        assert_eq!(rig.run(), ["L(a-0)"], "somebody else may have it");
        assert_eq!(rig.left, 1);
    }
}

#[test]
fn a_twin_met_while_leaving_is_told_to_whoever_subscribes_again() {
    let mut rig = static_consumer();
    rig.at_rest(&[(A, 0)]);
    let (under_way, _) = rig.beat();
    rig.do_with(|m, now| m.unsubscribe(now));
    let code = ErrorCode::FENCED_INSTANCE_ID;
    rig.answer(under_way, ConsumerGroupHeartbeatResponse { error_code: code, ..Default::default() });
    assert_eq!(rig.run(), ["L(a-0)"], "the twin has it");
    assert_eq!(rig.left, 1);
    rig.subscribe(&["a"]).poll();
    assert_eq!(rig.errors, [MemberError::InstanceFenced { instance: "i1".into() }]);
    assert!(rig.requests.is_empty(), "it would throw the other one out");
}

#[test]
fn leaving_is_tried_again_and_given_up_at_its_deadline() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.do_with(|m, now| m.leave(now, "bye"));
    rig.run();
    rig.refuse(ErrorCode::NOT_COORDINATOR);
    assert_eq!(rig.left, 0);
    rig.coordinator(true);
    assert_eq!(rig.refuse(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS).member_epoch, -1);
    rig.coordinator(false);
    rig.pass_without_answers(Duration::from_secs(29));
    assert_eq!(rig.left, 0);
    rig.pass_without_answers(Duration::from_secs(2));
    assert_eq!(rig.left, 1);
}

#[test]
fn a_join_that_may_have_been_heard_is_taken_back() {
    let mut rig = consumer();
    rig.subscribe(&["a"]).poll();
    let (under_way, _) = rig.beat();
    rig.do_with(|m, now| m.leave(now, "bye"));
    assert_eq!(left(&mut rig), -1);
    assert_eq!(rig.left, 1);
    rig.answer(under_way, answer(2, Some(&[(A, 0)])));
    assert_eq!((rig.epoch(), rig.run().len()), (None, 0));
}

#[test]
fn who_never_joined_has_nothing_to_leave() {
    let mut rig = consumer();
    rig.subscribe(&["a"]);
    rig.do_with(|m, now| m.leave(now, "bye"));
    assert!(rig.left == 1 && rig.requests.is_empty());
}

#[test]
fn a_join_never_overtakes_a_farewell() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.do_with(|m, now| m.unsubscribe(now));
    rig.run();
    let (farewell, said) = rig.said().unwrap();
    assert_eq!(said.member_epoch, -1);
    rig.subscribe(&["a"]).poll();
    assert!(rig.said().is_none(), "the same id would be thrown out");
    rig.fail(farewell, SendError::Disconnected).coordinator(true);
    rig.poll();
    assert_eq!(rig.beat().1.member_epoch, 0, "a farewell is not repeated then");
}

#[test]
fn an_application_that_does_not_poll_leaves_at_once_and_comes_back_with_its_next_poll() {
    for (mut rig, epoch) in [(consumer(), -1), (static_consumer(), -2)] {
        rig.at_rest(&[(A, 0)]);
        let last_poll = rig.now;
        loop {
            let (ticket, said) = rig.beat();
            if said.member_epoch < 0 {
                assert_eq!(said.member_epoch, epoch);
                rig.answer(ticket, answer(epoch, None));
                break;
            }
            rig.answer(ticket, answer(2, None));
        }
        assert_eq!(rig.now - last_poll, Duration::from_secs(300));
        assert!(rig.member.may_commit().is_err(), "a commit would be another's offset");
        rig.pass_without_answers(Duration::from_secs(1000));
        assert!(rig.requests.is_empty());
        rig.poll();
        assert!(rig.requests.is_empty(), "the loss is told first");
        assert_eq!(rig.run(), ["L(a-0)"]);
        assert_eq!(rig.beat().1.member_epoch, 0);
    }
}

#[test]
fn heartbeats_go_on_while_a_callback_takes_its_time() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.do_with(|m, now| m.leave(now, "bye"));
    let Some(Callback::Revoke(revocation)) = rig.begin() else { panic!("revoked") };
    for _ in 0..4 {
        let said = rig.tell(2, None);
        assert_eq!((said.member_epoch, said.subscribed_topic_names), (2, None), "its share stays its own");
    }
    rig.do_with(|m, now| m.revoke_done(now, revocation));
    assert_eq!(rig.beat().1.member_epoch, -1);
}
