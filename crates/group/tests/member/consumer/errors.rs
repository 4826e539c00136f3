//! What the coordinator refuses, and what becomes of the member.

use super::*;
use tontine_group::member::{MemberError, SendError};

const FENCED: [ErrorCode; 3] =
    [ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::GROUP_ID_NOT_FOUND];

#[test]
fn a_fenced_member_loses_what_it_has_and_joins_again_under_its_id() {
    for code in FENCED {
        let mut rig = consumer();
        rig.at_rest(&[(A, 0)]);
        let id = rig.member.member_id().to_owned();
        rig.refuse(code);
        assert_eq!((rig.member.state(), rig.epoch()), (MemberState::Unjoined, None));
        assert!(rig.said().is_none(), "the loss is told first");
        assert_eq!(rig.run(), ["L(a-0)"]);
        let (ticket, said) = rig.said().expect("it joins at once");
        assert_eq!((said.member_epoch, said.member_id == id), (0, true));
        assert_eq!(said.topic_partitions, Some(Vec::new()));
        rig.answer(ticket, answer(4, Some(&[(A, 0)])));
        assert_eq!(rig.run(), ["A(a-0)"]);
        assert!(rig.errors.is_empty(), "{:?}", rig.errors);
    }
}

#[test]
fn a_fence_while_partitions_are_given_up_loses_the_rest() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0), (A, 1)]);
    rig.tell(2, Some(&[(A, 0)]));
    let revoked = rig.begin().unwrap();
    rig.refuse(ErrorCode::FENCED_MEMBER_EPOCH);
    assert!(rig.begin().is_none());
    rig.done(revoked);
    assert_eq!(rig.run(), ["L(a-0)"]);
    assert_eq!(rig.beat().1.member_epoch, 0);
}

#[test]
fn a_fence_during_assigned_is_told_after_it() {
    let mut rig = consumer();
    rig.subscribe(&["a"]).poll();
    rig.tell(2, Some(&[(A, 0)]));
    let assigned = rig.begin().unwrap();
    rig.refuse(ErrorCode::UNKNOWN_MEMBER_ID);
    rig.done(assigned);
    assert_eq!(rig.run(), ["L(a-0)"]);
}

#[test]
fn a_coordinator_that_fences_every_time_is_not_asked_without_a_pause() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    let from = rig.now;
    let mut joins = 0;
    while rig.now < from + Duration::from_secs(20) {
        rig.run();
        let (ticket, said) = rig.beat();
        if said.member_epoch == 0 {
            joins += 1;
            rig.answer(ticket, answer(joins + 2, Some(&[(A, 0)])));
        } else {
            let error_code = ErrorCode::FENCED_MEMBER_EPOCH;
            rig.answer(ticket, ConsumerGroupHeartbeatResponse { error_code, ..Default::default() });
        }
        rig.poll();
    }
    assert!((5..60).contains(&joins), "{joins} joins in 20 seconds");
}

#[test]
fn what_can_pass_is_waited_for_and_said_again_in_full() {
    let passing = [
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::REQUEST_TIMED_OUT,
        ErrorCode::NOT_ENOUGH_REPLICAS,
        ErrorCode::THROTTLING_QUOTA_EXCEEDED,
    ];
    for code in passing {
        let mut rig = consumer();
        rig.at_rest(&[(A, 0)]);
        rig.refuse(code);
        assert_eq!((rig.epoch(), rig.owned().as_str()), (Some(2), "a-0"), "{code}");
        let refused = rig.now;
        let said = rig.tell(2, None);
        assert!(rig.now > refused && rig.now - refused <= Duration::from_millis(120), "{code}");
        assert_eq!(said.rebalance_timeout_ms, 300_000);
        assert!(rig.run().is_empty() && rig.errors.is_empty());
    }
}

#[test]
fn another_coordinator_is_looked_up_and_nothing_else_happens() {
    for code in [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE] {
        let mut rig = consumer();
        rig.at_rest(&[(A, 0)]);
        let lookups = rig.lookups;
        rig.refuse(code);
        assert_eq!(rig.lookups, lookups + 1);
        assert!(rig.said().is_none());
        rig.coordinator(true);
        assert_eq!(rig.tell(2, None).member_epoch, 2);
        assert!(rig.run().is_empty());
    }
}

#[test]
fn what_is_refused_for_good_loses_everything_and_is_final() {
    let final_ones = [
        ErrorCode::GROUP_AUTHORIZATION_FAILED,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::UNSUPPORTED_ASSIGNOR,
        ErrorCode::INVALID_REGULAR_EXPRESSION,
        ErrorCode::GROUP_MAX_SIZE_REACHED,
        ErrorCode(30_000),
    ];
    for code in final_ones {
        let mut rig = consumer();
        rig.at_rest(&[(A, 0)]);
        rig.refuse(code);
        assert_eq!(rig.member.state(), MemberState::Failed);
        assert!(rig.errors.iter().all(MemberError::is_fatal) && rig.errors.len() == 1, "{:?}", rig.errors);
        assert!(
            rig.errors[0].to_string().contains("because"),
            "in the coordinator's words: {}",
            rig.errors[0]
        );
        assert!(rig.said().is_none());
        assert_eq!(rig.run(), ["L(a-0)"]);
        let (_, said) = rig.said().expect("its partitions are for others now");
        assert_eq!(said.member_epoch, -1);
    }
}

#[test]
fn a_join_that_is_refused_for_good_sends_nothing_more() {
    for code in
        [ErrorCode::UNSUPPORTED_ASSIGNOR, ErrorCode::GROUP_ID_NOT_FOUND, ErrorCode::GROUP_MAX_SIZE_REACHED]
    {
        let mut rig = consumer();
        rig.subscribe(&["a"]).poll();
        rig.refuse(code);
        rig.pass_without_answers(Duration::from_secs(60));
        rig.poll();
        assert!(rig.requests.is_empty() && rig.run().is_empty());
        assert_eq!(rig.member.state(), MemberState::Failed);
        rig.do_with(|m, now| m.leave(now, "bye"));
        assert_eq!((rig.left, rig.requests.len()), (1, 0));
    }
}

#[test]
fn a_topic_that_may_not_be_read_is_an_error_and_the_member_stays() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.refuse(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert!(rig.errors.len() == 1 && !rig.errors[0].is_fatal());
    rig.refuse(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert_eq!((rig.errors.len(), rig.owned().as_str()), (1, "a-0"));
    rig.tell(2, None);
}

#[test]
fn a_broker_without_the_protocol_is_a_clear_error() {
    for unsupported_by_version in [true, false] {
        let mut rig = consumer();
        rig.subscribe(&["a"]).poll();
        if unsupported_by_version {
            let (ticket, _) = rig.beat();
            rig.fail(ticket, SendError::Unsupported);
        } else {
            rig.refuse(ErrorCode::UNSUPPORTED_VERSION);
        }
        assert_eq!(rig.errors, [MemberError::ProtocolUnsupported]);
        assert!(rig.errors[0].is_fatal() && rig.errors[0].to_string().contains("consumer,classic"));
    }
}

#[test]
fn a_broker_that_resolves_no_expressions_is_a_clear_error_whatever_else_it_speaks() {
    for protocol in [GroupProtocol::Consumer, GroupProtocol::ConsumerOrClassic] {
        let mut rig = consumer_with(|config| config.protocol = protocol);
        rig.member.subscribe_matching(rig.now, "a.*");
        rig.poll();
        let (ticket, heartbeat) = rig.beat();
        assert_eq!(heartbeat.subscribed_topic_regex.as_deref(), Some("a.*"));
        rig.fail(ticket, SendError::TooOld);
        assert_eq!(rig.errors, [MemberError::RegexUnsupported]);
        assert!(rig.errors[0].is_fatal() && rig.errors[0].to_string().contains("by name"));
    }
}

#[test]
fn both_protocols_go_on_with_the_classic_one_where_there_is_no_other() {
    let mut rig = consumer_with(|config| {
        config.protocol = GroupProtocol::ConsumerOrClassic;
        let dealer = crate::rig::Dealer("deal", tontine_group::assignor::RebalanceProtocol::Cooperative);
        config.assignors = vec![std::sync::Arc::new(dealer)];
    });
    rig.subscribe(&["a"]).poll();
    let (ticket, _) = rig.beat();
    rig.fail(ticket, SendError::Unsupported);
    assert_eq!(rig.member.protocol(), GroupProtocol::Classic);
    assert!(rig.errors.is_empty() && rig.said().is_none());
    rig.round(1, &[("a", 0)]);
    assert_eq!(rig.run(), ["A(a-0)"]);
}

#[test]
fn a_classic_group_that_is_not_moved_is_joined_as_what_it_is_or_is_a_clear_error() {
    let mut rig = consumer();
    rig.subscribe(&["a"]).poll();
    rig.refuse(ErrorCode::GROUP_ID_NOT_FOUND);
    let said = rig.errors[0].to_string();
    assert!(
        rig.errors[0].is_fatal() && said.contains("because") && said.contains("consumer,classic"),
        "{said}"
    );

    let mut rig = consumer_with(|config| {
        config.protocol = GroupProtocol::ConsumerOrClassic;
        let dealer = crate::rig::Dealer("deal", tontine_group::assignor::RebalanceProtocol::Cooperative);
        config.assignors = vec![std::sync::Arc::new(dealer)];
    });
    rig.at_rest(&[(A, 0)]);
    rig.refuse(ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(rig.member.protocol(), GroupProtocol::Consumer, "an established member was put out first");
    assert_eq!(rig.run(), ["L(a-0)"]);
    rig.refuse(ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(rig.member.protocol(), GroupProtocol::Classic);
    assert_eq!(rig.warnings.len(), 1);
    let said = rig.warnings[0].to_string();
    assert!(rig.errors.is_empty() && said.contains("classic protocol") && said.contains("because"), "{said}");
    rig.follow(1).give(&[("a", 0)]);
    assert_eq!(rig.run(), ["A(a-0)"]);
}

#[test]
fn a_dynamic_member_that_is_taken_for_a_static_one_is_told_so() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    rig.refuse(ErrorCode::FENCED_INSTANCE_ID);
    let said = rig.errors[0].to_string();
    assert!(
        rig.errors[0].is_fatal() && said.contains("though it has none") && !said.contains("``"),
        "{said}"
    );
}

#[test]
fn a_coordinator_that_says_something_else_each_time_is_not_asked_without_a_pause() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    let (from, mut asked) = (rig.now, 0);
    while rig.now < from + Duration::from_secs(20) {
        let (ticket, _) = rig.beat();
        asked += 1;
        rig.answer(ticket, answer(2 + asked, Some(&[(A, asked % 4)])));
        rig.run();
        rig.poll();
    }
    assert!((20..450).contains(&asked), "{asked} heartbeats in 20 seconds");
}

#[test]
fn a_static_member_waits_for_the_end_of_its_former_session_but_not_for_ever() {
    let mut rig = static_consumer();
    rig.subscribe(&["a"]).poll();
    let began = rig.now;
    rig.refuse(ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(rig.warnings.len(), 1, "it does not wait in silence");
    let said = rig.warnings[0].to_string();
    assert!(said.contains("group.instance.id `i1`") && said.contains("60 s"), "{said}");
    while rig.errors.is_empty() {
        rig.refuse(ErrorCode::UNRELEASED_INSTANCE_ID);
        rig.poll();
    }
    assert!(rig.now - began >= Duration::from_secs(60));
    assert_eq!(rig.errors, [MemberError::InstanceInUse { instance: "i1".into() }]);
    assert!((2..5).contains(&rig.warnings.len()), "{:?}", rig.warnings);

    let mut rig = static_consumer();
    rig.subscribe(&["a"]).poll();
    for _ in 0..20 {
        rig.refuse(ErrorCode::UNRELEASED_INSTANCE_ID);
    }
    rig.tell(5, Some(&[(A, 0)]));
    assert_eq!(rig.run(), ["A(a-0)"]);
}

#[test]
fn a_member_whose_twin_has_taken_over_is_at_its_end() {
    let mut rig = static_consumer();
    rig.at_rest(&[(A, 0)]);
    rig.refuse(ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(rig.errors, [MemberError::InstanceFenced { instance: "i1".into() }]);
    assert_eq!(rig.run(), ["L(a-0)"]);
    rig.poll();
    assert!(rig.requests.is_empty(), "it would throw the other one out");
}

#[test]
fn an_answer_that_makes_no_sense_changes_nothing() {
    let mut rig = consumer();
    rig.at_rest(&[(A, 0)]);
    for epoch in [0, -1, -2, i32::MIN] {
        rig.tell(epoch, Some(&[]));
        assert_eq!((rig.epoch(), rig.owned().as_str()), (Some(2), "a-0"));
        assert!(rig.run().is_empty());
    }
    for interval in [0, -5, i32::MIN] {
        let (ticket, _) = rig.beat();
        rig.answer(
            ticket,
            ConsumerGroupHeartbeatResponse { heartbeat_interval_ms: interval, ..answer(2, None) },
        );
        let before = rig.now;
        rig.tell(2, None);
        assert!(rig.now - before >= Duration::from_secs(1), "it does not spin");
    }
    let asked = rig.refreshes.len();
    rig.tell(3, Some(&[(A, 0), (A, 4), (A, i32::MAX)]));
    assert_eq!(rig.refreshes.len(), asked + 1, "there may be more partitions than it knows");
    rig.topics(topics(&[("a", A), ("b", B)]));
    assert!(rig.run().is_empty(), "nobody hears of partitions that do not exist");
    rig.tell(i32::MAX, Some(&[(A, 0), (A, 0), (A, -3)]));
    assert_eq!((rig.epoch(), rig.run().len()), (Some(i32::MAX), 0));
}
