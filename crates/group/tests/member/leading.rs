//! The leader: what it plans, what it waits for, what it watches.

use crate::rig::*;
use bytes::Bytes;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tontine_group::{
    Cause, TopicPartition,
    assignor::{Assignor, MemberSubscription, RebalanceProtocol},
    member::*,
    topics::Topics,
};
use tontine_wire::{
    ErrorCode,
    api::{
        Request,
        describe_groups::{DescribeGroupsResponse, DescribedGroup, DescribedGroupMember},
        join_group::JoinGroupResponse,
        sync_group::SyncGroupRequest,
    },
    consumer_protocol::Assignment,
};

/// JoinGroup is answered: this member, `m1`, leads a group with `m2`, which wants `theirs`.
fn lead(rig: &mut Rig, theirs: &[&str]) {
    let (ticket, _) = rig.join_request();
    rig.answer(
        ticket,
        joined("m1", 1, "m1", vec![other_member("m1", &["mine"]), other_member("m2", theirs)]),
    );
}

fn plan(request: &SyncGroupRequest) -> Vec<(String, usize)> {
    let count = |bytes: &bytes::Bytes| {
        let share = Assignment::from_assignment(bytes.clone()).unwrap();
        share.assigned_partitions.iter().map(|t| t.partitions.len()).sum()
    };
    request.assignments.iter().map(|a| (a.member_id.clone(), count(&a.assignment))).collect()
}

#[test]
fn the_leader_waits_for_metadata_of_topics_that_only_others_want() {
    let mut rig = eager();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    lead(&mut rig, &["theirs"]);
    assert!(!rig.sends(|r| matches!(r, Request::SyncGroup(_))));
    assert_eq!(rig.refreshes.last().unwrap(), &names(&["mine", "theirs"]));
    rig.topics(Topics::new().with("mine", 2).with("theirs", 3));
    assert_eq!(plan(&rig.sync_request().1), [("m1".to_owned(), 2), ("m2".to_owned(), 3)]);
}

#[test]
fn a_topic_that_does_not_exist_does_not_hold_the_group_up() {
    let mut rig = eager();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    lead(&mut rig, &["nowhere"]);
    rig.topics(Topics::new().with("mine", 2));
    assert_eq!(plan(&rig.sync_request().1), [("m1".to_owned(), 2), ("m2".to_owned(), 0)]);
}

#[test]
fn a_leader_without_metadata_plans_with_what_it_has_after_a_while() {
    let mut rig = eager();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    lead(&mut rig, &["theirs"]);
    rig.pass(Duration::from_secs(5));
    assert_eq!(plan(&rig.sync_request().1), [("m1".to_owned(), 2), ("m2".to_owned(), 0)]);
}

#[test]
fn a_follower_sends_no_plan_and_watches_nothing() {
    let mut rig = cooperative();
    rig.subscribe(&["t"]).topics(Topics::new().with("t", 1)).poll().follow(1);
    let (ticket, request) = rig.sync_request();
    assert!(request.assignments.is_empty());
    rig.answer(ticket, synced(&[("t", 0)])).run();
    rig.topics(Topics::new().with("t", 9));
    assert!(!rig.is_joining());
    assert!(!rig.member.is_leader());
}

#[test]
fn the_leader_rejoins_for_topics_of_others_that_change() {
    let changes = [
        (Topics::new().with("mine", 2).with("theirs", 4), "partitions of theirs changed from 3 to 4"),
        (Topics::new().with("mine", 2), "topic deleted: theirs"),
    ];
    for (topics, reason) in changes {
        let mut rig = cooperative();
        rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2).with("theirs", 3)).poll();
        lead(&mut rig, &["theirs"]);
        rig.give(&[("mine", 0), ("mine", 1)]).run();
        rig.topics(topics);
        assert_eq!(rig.join_request().1.reason.as_deref(), Some(reason));
    }
}

#[test]
fn what_changed_while_the_group_was_busy_is_compared_with_what_the_plan_was_made_from() {
    let mut rig = cooperative();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    lead(&mut rig, &["mine"]);
    rig.topics(Topics::new().with("mine", 3)).give(&[("mine", 0)]).run();
    assert_eq!(rig.last_cause(), Cause::PartitionsChanged { topic: "mine".into(), from: 2, to: 3 });
}

#[test]
fn a_leader_whose_sync_is_lost_sends_the_same_plan_again() {
    let mut rig = cooperative();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    lead(&mut rig, &["mine"]);
    let (ticket, first) = rig.sync_request();
    rig.fail(ticket, SendError::Disconnected).coordinator(true).pass(ms(200));
    assert_eq!(rig.sync_request().1, first);
}

#[test]
fn heartbeats_go_on_while_the_assignor_works_and_a_plan_for_a_round_of_the_past_does_nothing() {
    for mut rig in both() {
        rig.plans_slowly = true;
        rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
        lead(&mut rig, &["mine"]);
        let late = rig.plannings.pop().unwrap();
        rig.pass(ms(2_999));
        assert_eq!(rig.heartbeats_waiting(), 0);
        rig.pass_without_answers(ms(1));
        assert_eq!(rig.heartbeats_waiting(), 1);
        assert!(!rig.sends(|request| matches!(request, Request::SyncGroup(_))));
        // It was put out meanwhile, and leads another round by now.
        rig.heartbeat_says(ErrorCode::UNKNOWN_MEMBER_ID).run();
        lead(&mut rig, &["mine"]);
        rig.do_with(|member, now| member.handle_plan(now, late.run()));
        assert!(!rig.sends(|request| matches!(request, Request::SyncGroup(_))));
        let plan_now = rig.plannings.pop().unwrap();
        rig.do_with(|member, now| member.handle_plan(now, plan_now.run()));
        assert_eq!(plan(&rig.sync_request().1), [("m1".to_owned(), 1), ("m2".to_owned(), 1)]);
    }
}

#[test]
fn a_follower_that_was_the_leader_stops_watching() {
    let mut rig = cooperative();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    lead(&mut rig, &["mine"]);
    rig.give(&[("mine", 0)]).run();
    rig.heartbeat_says(ErrorCode::REBALANCE_IN_PROGRESS).round(2, &[("mine", 0)]).run();
    rig.topics(Topics::new().with("mine", 5));
    assert!(!rig.is_joining());
}

// A static leader that comes back to a stable group.

fn returned() -> Rig {
    let mut rig = static_member();
    rig.subscribe(&["mine"]).poll();
    let (ticket, _) = rig.join_request();
    let members = vec![other_member("m1", &["mine"]), other_member("m2", &["theirs"])];
    rig.answer(ticket, JoinGroupResponse { skip_assignment: true, ..joined("m1", 7, "m1", members) });
    let (ticket, request) = rig.sync_request();
    assert!(request.assignments.is_empty(), "it does not plan");
    rig.answer(ticket, synced(&[("mine", 0), ("mine", 1)]));
    assert_eq!(rig.run(), ["A(mine-0 mine-1)"]);
    rig
}

fn everybody_has(rig: &mut Rig, theirs: &[(&str, i32)]) {
    let index =
        rig.requests.iter().position(|(_, r)| matches!(r, Request::DescribeGroups(_))).expect("an audit");
    let (ticket, _) = rig.requests.remove(index).unwrap();
    let member = |id: &str, share: &[(&str, i32)]| DescribedGroupMember {
        member_id: id.into(),
        member_assignment: synced(share).assignment,
        ..Default::default()
    };
    let group = DescribedGroup {
        group_id: "g".into(),
        group_state: "Stable".into(),
        members: vec![member("m1", &[("mine", 0), ("mine", 1)]), member("m2", theirs)],
        ..Default::default()
    };
    rig.answer(ticket, DescribeGroupsResponse { groups: vec![group], ..Default::default() });
}

#[test]
fn a_returned_static_leader_leaves_a_complete_plan_alone_and_watches_on() {
    let mut rig = returned();
    rig.topics(Topics::new().with("mine", 2).with("theirs", 1));
    everybody_has(&mut rig, &[("theirs", 0)]);
    assert!(!rig.is_joining(), "its restart costs nobody a rebalance");
    rig.topics(Topics::new().with("mine", 2).with("theirs", 2));
    assert!(rig.is_joining());
}

/// Kafka's client does not notice this.
#[test]
fn a_returned_static_leader_finds_partitions_that_came_while_it_was_away() {
    let mut rig = returned();
    rig.topics(Topics::new().with("mine", 2).with("theirs", 2));
    everybody_has(&mut rig, &[("theirs", 0)]);
    assert_eq!(rig.last_cause(), Cause::PartitionsChanged { topic: "theirs".into(), from: 1, to: 2 });
    assert!(rig.is_joining());
}

/// Kafka's coordinator stores the new subscription without a rebalance, and nobody acts on it.
#[test]
fn a_returned_static_follower_with_another_subscription_makes_the_group_notice() {
    let mut rig = static_member();
    rig.subscribe(&["mine", "new"]).topics(Topics::new().with("mine", 2).with("new", 1)).poll();
    rig.round(7, &[("mine", 0), ("mine", 1)]).run();
    rig.pass(Duration::from_secs(2));
    everybody_has(&mut rig, &[]);
    assert_eq!(rig.last_cause(), Cause::PartitionsChanged { topic: "new".into(), from: 0, to: 1 });
    assert!(rig.is_joining());
}

#[test]
fn a_returned_static_follower_asks_nothing_when_it_has_a_part_of_everything() {
    let mut rig = static_member();
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    rig.round(7, &[("mine", 0)]).run();
    rig.pass(Duration::from_secs(10));
    assert!(!rig.sends(|r| matches!(r, Request::DescribeGroups(_))));
}

/// Panics the first time, as the application's own may.
#[derive(Debug, Default)]
struct Faulty(AtomicBool);

impl Assignor for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }
    fn user_data(&self, _: &[TopicPartition], _: i32) -> Option<Bytes> {
        panic!("a fault of the application, where it remembers");
    }
    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> tontine_group::Assignment {
        assert!(self.0.swap(true, Ordering::Relaxed), "a fault of the application");
        Dealer("deal", RebalanceProtocol::Eager).assign(topics, members)
    }
}

#[test]
fn an_assignor_that_panics_is_an_error_and_the_next_poll_joins_again() {
    let mut rig = Rig::new(MemberConfig { assignors: vec![Arc::new(Faulty::default())], ..config() });
    rig.subscribe(&["mine"]).topics(Topics::new().with("mine", 2)).poll();
    let (ticket, request) = rig.join_request();
    assert_eq!(request.protocols.len(), 1);
    rig.answer(ticket, led("faulty"));
    let message = "a fault of the application".to_owned();
    assert_eq!(rig.errors, [MemberError::AssignorPanicked { assignor: "faulty".into(), message }]);
    rig.pass(Duration::from_secs(2));
    assert!(!rig.sends(|r| matches!(r, Request::SyncGroup(_) | Request::JoinGroup(_))), "before a poll");
    rig.poll();
    let (ticket, _) = rig.join_request();
    rig.answer(ticket, led("faulty"));
    assert_eq!(plan(&rig.sync_request().1), [("m1".to_owned(), 2)]);
}

/// The only member leads.
fn led(assignor: &str) -> JoinGroupResponse {
    let alone = joined("m1", 1, "m1", vec![other_member("m1", &["mine"])]);
    JoinGroupResponse { protocol_name: Some(assignor.to_owned()), ..alone }
}

#[test]
fn a_member_of_a_group_without_a_leader_sees_by_itself_that_a_topic_grows() {
    // A consumer group has none, and may become a classic group without telling anybody that it leads now.
    let mut rig = cooperative();
    rig.subscribe(&["t"]).topics(Topics::new().with("t", 1)).poll();
    let (ticket, _) = rig.join_request();
    rig.answer(ticket, joined("m1", 1, "", Vec::new())).give(&[("t", 0)]);
    assert_eq!(rig.run(), ["A(t-0)"]);
    assert!(!rig.is_joining());
    rig.topics(Topics::new().with("t", 2));
    assert_eq!(rig.last_cause(), Cause::PartitionsChanged { topic: "t".into(), from: 1, to: 2 });
    assert!(rig.is_joining());
}
