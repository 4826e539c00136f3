//! Faults that coordinators really had, each as a small scenario in virtual time: the name says what has to happen.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::Bytes;
use std::{collections::BTreeMap, time::Duration};
use tontine_group::{
    Instant,
    coordinator::{ClientInfo, Coordinator, CoordinatorConfig, GroupState, Output, Ticket},
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        Request, Response, consumer_group_heartbeat::ConsumerGroupHeartbeatRequest, delete_groups::*,
        heartbeat::*, join_group::*, leave_group::*, offset_commit::*, offset_fetch::*, sync_group::*,
    },
    consumer_protocol::{Assignment, Subscription, TopicPartitions},
};

const SESSION: Duration = Duration::from_secs(10);

struct Rig {
    coordinator: Coordinator,
    topics: Topics,
    now: Instant,
    tickets: u64,
    log: Vec<(Bytes, Option<Bytes>)>,
    answers: BTreeMap<Ticket, Response>,
}

impl Rig {
    fn new() -> Self {
        Self::with(CoordinatorConfig::default())
    }

    fn with(config: CoordinatorConfig) -> Self {
        let config = CoordinatorConfig { group_initial_rebalance_delay: Duration::ZERO, ..config };
        let mut coordinator = Coordinator::new(config, 1);
        coordinator.loaded(Instant::ZERO);
        let topics = Topics::new().with("t", 3);
        let answers = BTreeMap::new();
        Self { coordinator, topics, now: Instant::ZERO, tickets: 0, log: Vec::new(), answers }
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    self.log.extend(records.into_iter().map(|r| (r.key, r.value)));
                    self.coordinator.handle_appended(self.now, id, Ok(()));
                }
                Output::Reply { ticket, response } => drop(self.answers.insert(ticket, response)),
                Output::Transition(_) => {}
                Output::Wait(at) => return at,
            }
        }
    }

    fn send(&mut self, version: i16, request: impl Into<Request>) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let client = ClientInfo { client_id: "c".to_owned(), client_host: "/h".to_owned() };
        let request = request.into();
        self.coordinator.handle_request(self.now, ticket, &client, version, request, &self.topics).unwrap();
        self.drain();
        ticket
    }

    fn joined(&mut self, ticket: Ticket) -> JoinGroupResponse {
        match self.answers.remove(&ticket) {
            Some(Response::JoinGroup(join)) => join,
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self, duration: Duration) {
        let to = self.now + duration;
        while let Some(at) = self.drain().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
        }
        self.now = to;
    }

    /// Lets time pass in which these members of a generation send heartbeats.
    fn live(&mut self, duration: Duration, members: &[(&str, i32)]) {
        let step = Duration::from_secs(1);
        let mut left = duration;
        while !left.is_zero() {
            self.wait(step);
            left = left.saturating_sub(step);
            for (id, generation) in members {
                self.heartbeat(id, *generation);
            }
        }
    }

    fn heartbeat(&mut self, id: &str, generation: i32) -> ErrorCode {
        let ticket = self.send(4, heartbeat(id, generation));
        match self.answers.remove(&ticket) {
            Some(Response::Heartbeat(answer)) => answer.error_code,
            other => panic!("{other:?}"),
        }
    }

    fn state(&self) -> Option<GroupState> {
        self.coordinator.groups().first().map(|group| group.state)
    }

    fn members(&self) -> usize {
        self.coordinator.groups().first().map_or(0, |group| group.members.len())
    }

    /// An id that the coordinator hands out, with a first join answered if the group is empty.
    fn id(&mut self) -> String {
        let ticket = self.send(9, join(""));
        self.joined(ticket).member_id
    }

    fn sync(&mut self, id: &str, generation: i32, plan: &[&str]) -> Ticket {
        let share = |id: &&str| SyncGroupRequestAssignment {
            member_id: (*id).to_owned(),
            assignment: Bytes::from_static(b"x"),
        };
        let request = SyncGroupRequest {
            group_id: "g".to_owned(),
            generation_id: generation,
            member_id: id.to_owned(),
            assignments: plan.iter().map(share).collect(),
            ..Default::default()
        };
        self.send(5, request)
    }

    /// One member, alone and at rest.
    fn settled(&mut self) -> (String, i32) {
        let id = self.id();
        let ticket = self.send(9, join(&id));
        let generation = self.joined(ticket).generation_id;
        self.sync(&id, generation, &[&id]);
        assert_eq!(self.state(), Some(GroupState::Stable));
        (id, generation)
    }

    fn commit(&mut self, id: &str, generation: i32) -> ErrorCode {
        let partition = OffsetCommitRequestPartition { committed_offset: 5, ..Default::default() };
        let request = OffsetCommitRequest {
            group_id: "g".to_owned(),
            generation_id_or_member_epoch: generation,
            member_id: id.to_owned(),
            topics: vec![OffsetCommitRequestTopic {
                name: "t".to_owned(),
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        };
        let ticket = self.send(8, request);
        match self.answers.remove(&ticket) {
            Some(Response::OffsetCommit(answer)) => answer.topics[0].partitions[0].error_code,
            other => panic!("{other:?}"),
        }
    }

    fn committed(&mut self) -> Option<i64> {
        let group = OffsetFetchRequestGroup { group_id: "g".to_owned(), ..Default::default() };
        let ticket = self.send(8, OffsetFetchRequest { groups: vec![group], ..Default::default() });
        match self.answers.remove(&ticket) {
            Some(Response::OffsetFetch(answer)) => {
                Some(answer.groups[0].topics.first()?.partitions[0].committed_offset)
            }
            other => panic!("{other:?}"),
        }
    }
}

fn join(id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".to_owned(),
        session_timeout_ms: SESSION.as_millis() as i32,
        rebalance_timeout_ms: 60_000,
        member_id: id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".to_owned(), metadata: Bytes::new() }],
        ..Default::default()
    }
}

fn heartbeat(id: &str, generation: i32) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: "g".to_owned(),
        generation_id: generation,
        member_id: id.to_owned(),
        ..Default::default()
    }
}

#[test]
fn first_joins_that_are_never_followed_up_leave_no_crowd_and_hold_nobody_up() {
    // In the versions that hand out an id first, and in the old ones that do not.
    for version in [9, 3] {
        let mut rig = Rig::new();
        let (member, generation) = rig.settled();
        for _ in 0..100 {
            let ticket = rig.send(version, join(""));
            rig.coordinator.handle_disconnected(rig.now, ticket);
            rig.drain();
        }
        if version == 9 {
            assert_eq!(rig.heartbeat(&member, generation), ErrorCode::NONE, "ids alone begin no round");
        }
        let ticket = rig.send(9, join(&member));
        if version == 9 {
            // A round that somebody else began waits for ids that may still be used, as long as a session.
            rig.live(SESSION, &[(&member, generation)]);
        }
        let generation = rig.joined(ticket).generation_id;
        rig.sync(&member, generation, &[&member]);
        // Those who did join are waited for as long as members are, and no longer.
        rig.live(SESSION + Duration::from_secs(1), &[(&member, generation)]);
        assert_eq!(rig.members(), 1, "after joins of version {version}");
    }
}

#[test]
fn a_member_of_the_oldest_version_is_waited_for_as_long_as_its_session() {
    let mut rig = Rig::new();
    let old = |id: &str| JoinGroupRequest { rebalance_timeout_ms: -1, ..join(id) };
    let ticket = rig.send(0, old(""));
    let first = rig.joined(ticket);
    rig.sync(&first.member_id, first.generation_id, &[&first.member_id]);
    let second = rig.send(0, old(""));
    rig.live(SESSION - Duration::from_secs(1), &[(&first.member_id, first.generation_id)]);
    assert!(!rig.answers.contains_key(&second), "the first one may still come");
    let again = rig.send(0, old(&first.member_id));
    let (first, second) = (rig.joined(again), rig.joined(second));
    assert_eq!((first.generation_id, second.generation_id), (2, 2));
    let plan = [first.member_id.as_str(), second.member_id.as_str()];
    rig.sync(plan[0], 2, &plan);
    rig.sync(plan[1], 2, &[]);
    assert_eq!((rig.state(), rig.members()), (Some(GroupState::Stable), 2));
}

#[test]
fn offsets_of_a_group_with_members_never_expire_whatever_state_it_is_in() {
    let mut rig = Rig::with(CoordinatorConfig {
        offsets_retention: Duration::from_secs(1),
        offsets_retention_check_interval: Duration::from_millis(100),
        ..CoordinatorConfig::default()
    });
    let (member, generation) = rig.settled();
    assert_eq!(rig.commit(&member, generation), ErrorCode::NONE);
    let newcomer = rig.id();
    let parked = rig.send(9, join(&newcomer));
    assert_eq!(rig.state(), Some(GroupState::PreparingRebalance));
    rig.live(Duration::from_secs(5), &[(&member, generation)]);
    assert_eq!(rig.committed(), Some(5));
    rig.send(9, join(&member));
    let generation = rig.joined(parked).generation_id;
    assert_eq!(rig.state(), Some(GroupState::CompletingRebalance));
    rig.live(Duration::from_secs(5), &[(&member, generation), (&newcomer, generation)]);
    assert_eq!(rig.committed(), Some(5));
    rig.sync(&member, generation, &[&member, &newcomer]);
    rig.live(Duration::from_secs(5), &[(&member, generation), (&newcomer, generation)]);
    assert_eq!(rig.committed(), Some(5));
    // Nobody is left: now they do.
    rig.wait(SESSION + SESSION);
    assert_eq!((rig.members(), rig.committed()), (0, None));
}

#[test]
fn a_commit_is_checked_for_its_member_then_its_generation_then_the_state() {
    let stranger = "stranger";
    let check = |rig: &mut Rig, member: &str, generation: i32, current: ErrorCode| {
        let state = rig.state();
        for old in [generation - 1, generation, generation + 1] {
            assert_eq!(rig.commit(stranger, old), ErrorCode::UNKNOWN_MEMBER_ID, "{state:?}");
        }
        assert_eq!(rig.commit(member, generation - 1), ErrorCode::ILLEGAL_GENERATION, "{state:?}");
        assert_eq!(rig.commit(member, generation + 1), ErrorCode::ILLEGAL_GENERATION, "{state:?}");
        assert_eq!(rig.commit(member, generation), current, "{state:?}");
    };
    let mut rig = Rig::new();
    // No group at all.
    assert_eq!(rig.commit(stranger, 3), ErrorCode::ILLEGAL_GENERATION);
    let (member, generation) = rig.settled();
    check(&mut rig, &member, generation, ErrorCode::NONE);
    let newcomer = rig.id();
    rig.send(9, join(&newcomer));
    assert_eq!(rig.state(), Some(GroupState::PreparingRebalance));
    check(&mut rig, &member, generation, ErrorCode::NONE);
    rig.send(9, join(&member));
    assert_eq!(rig.state(), Some(GroupState::CompletingRebalance));
    check(&mut rig, &member, generation + 1, ErrorCode::REBALANCE_IN_PROGRESS);
    rig.wait(Duration::from_secs(120));
    assert_eq!(rig.state(), Some(GroupState::Empty));
    assert_eq!(rig.commit(&member, generation + 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(rig.commit("", -1), ErrorCode::NONE);
    rig.send(2, DeleteGroupsRequest { groups_names: vec!["g".to_owned()] });
    assert_eq!(rig.state(), None);
    assert_eq!(rig.commit(&member, generation + 1), ErrorCode::ILLEGAL_GENERATION);
}

#[test]
fn five_hundred_members_that_join_at_once_are_stable_after_one_round() {
    let mut rig = Rig::new();
    let (first, generation) = rig.settled();
    let others: Vec<String> = (1..500).map(|_| rig.id()).collect();
    let parked: Vec<Ticket> = others.iter().map(|id| rig.send(9, join(id))).collect();
    assert_eq!(rig.heartbeat(&first, generation), ErrorCode::REBALANCE_IN_PROGRESS);
    let again = rig.send(9, join(&first));
    assert_eq!(rig.joined(again).members.len(), 500);
    for ticket in parked {
        assert_eq!(rig.joined(ticket).generation_id, generation + 1);
    }
    let plan: Vec<&str> = others.iter().chain([&first]).map(String::as_str).collect();
    let waiting: Vec<Ticket> = others.iter().map(|id| rig.sync(id, generation + 1, &[])).collect();
    rig.sync(&first, generation + 1, &plan);
    assert_eq!((rig.state(), rig.members()), (Some(GroupState::Stable), 500));
    for ticket in waiting {
        let Some(Response::SyncGroup(answer)) = rig.answers.remove(&ticket) else { panic!("not answered") };
        assert_eq!((answer.error_code, &answer.assignment[..]), (ErrorCode::NONE, &b"x"[..]));
    }
}

#[test]
fn a_log_that_lost_any_one_of_its_records_is_read_and_its_group_goes_on() {
    let mut rig = Rig::new();
    let (first, generation) = rig.settled();
    rig.commit(&first, generation);
    let second = rig.id();
    let parked = rig.send(9, join(&second));
    rig.send(9, join(&first));
    let generation = rig.joined(parked).generation_id;
    rig.sync(&first, generation, &[&first, &second]);
    rig.sync(&second, generation, &[]);
    rig.commit(&second, generation);
    let gone = MemberIdentity { member_id: second, ..Default::default() };
    rig.send(5, LeaveGroupRequest { group_id: "g".to_owned(), members: vec![gone], ..Default::default() });
    let again = rig.send(9, join(&first));
    let generation = rig.joined(again).generation_id;
    rig.sync(&first, generation, &[&first]);
    rig.commit(&first, generation);
    assert!(rig.log.len() > 5);
    for lost in 0..rig.log.len() {
        let mut next = Rig::new();
        next.coordinator = Coordinator::new(CoordinatorConfig::default(), 2);
        for (at, (key, value)) in rig.log.iter().enumerate() {
            if at != lost {
                next.coordinator.replay(key.clone(), value.clone()).unwrap();
            }
        }
        next.coordinator.loaded(Instant::ZERO);
        next.drain();
        // Whoever is not known is told so, and whoever comes gets in, at the latest when the sessions of others are over.
        let code = next.heartbeat(&first, generation);
        let fine = [ErrorCode::NONE, ErrorCode::ILLEGAL_GENERATION, ErrorCode::UNKNOWN_MEMBER_ID];
        assert!(fine.contains(&code), "{code} without record {lost}");
        let newcomer = next.id();
        let ticket = next.send(9, join(&newcomer));
        next.wait(Duration::from_secs(120));
        assert!(next.joined(ticket).error_code.is_ok(), "without record {lost}");
        assert_eq!(next.committed(), Some(5), "one commit of several is missed by nobody");
    }
}

/// Joins with epoch 0, leaves with -1.
fn consumer(id: &str, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    let joins = epoch == 0;
    ConsumerGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        member_id: id.to_owned(),
        member_epoch: epoch,
        rebalance_timeout_ms: if joins { 60_000 } else { -1 },
        subscribed_topic_names: joins.then(|| vec!["t".to_owned()]),
        topic_partitions: joins.then(Vec::new),
        ..Default::default()
    }
}

/// A join of a member that is a consumer.
fn real_join(id: &str, instance: Option<&str>) -> JoinGroupRequest {
    let subscription = Subscription { topics: vec!["t".to_owned()], ..Subscription::default() };
    let protocol =
        JoinGroupRequestProtocol { name: "range".to_owned(), metadata: subscription.to_metadata(1) };
    JoinGroupRequest {
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        group_instance_id: instance.map(str::to_owned),
        ..join(id)
    }
}

/// What a coordinator makes of this log.
fn successor(log: Vec<(Bytes, Option<Bytes>)>) -> Rig {
    let mut coordinator = Coordinator::new(CoordinatorConfig::default(), 2);
    for (key, value) in log {
        coordinator.replay(key, value).unwrap();
    }
    coordinator.loaded(Instant::ZERO);
    Rig { coordinator, ..Rig::new() }
}

#[test]
fn a_group_that_became_classic_at_rest_rests_under_the_next_coordinator_too() {
    let mut rig = Rig::new();
    let instance =
        |epoch| ConsumerGroupHeartbeatRequest { instance_id: Some("i".to_owned()), ..consumer("n", epoch) };
    rig.send(1, instance(0));
    rig.send(1, instance(-2));
    // Whoever takes the place of the last member of the consumer protocol has what that one had: nobody has to move.
    let ticket = rig.send(9, real_join("", Some("i")));
    let joined = rig.joined(ticket);
    assert_eq!(joined.error_code, ErrorCode::NONE);
    assert_eq!(rig.state(), Some(GroupState::Stable));
    let next = successor(rig.log.clone());
    assert_eq!(next.coordinator.groups(), rig.coordinator.groups());
}

#[test]
fn a_group_that_became_classic_comes_together_under_the_next_coordinator_too() {
    let mut rig = Rig::new();
    rig.send(1, consumer("n", 0));
    let ticket = rig.send(9, real_join("", None));
    let id = rig.joined(ticket).member_id;
    let ticket = rig.send(9, real_join(&id, None));
    let generation = rig.joined(ticket).generation_id;
    rig.send(1, consumer("n", -1));
    assert_eq!(rig.state(), Some(GroupState::PreparingRebalance));

    let mut next = successor(rig.log);
    assert_eq!(next.state(), Some(GroupState::PreparingRebalance));
    let ticket = next.send(9, real_join(&id, None));
    assert!(next.joined(ticket).generation_id > generation, "the round that it owes");
}

#[test]
fn a_commit_of_a_static_member_whose_twin_is_in_the_consumer_group_is_fenced() {
    let mut rig = Rig::new();
    rig.send(1, consumer("n", 0));
    let ticket = rig.send(9, real_join("", Some("i")));
    let first = rig.joined(ticket);
    let ticket = rig.send(9, real_join("", Some("i")));
    assert_ne!(rig.joined(ticket).member_id, first.member_id);
    let partition = OffsetCommitRequestPartition { committed_offset: 5, ..Default::default() };
    let commit = |instance: Option<&str>| OffsetCommitRequest {
        group_id: "g".to_owned(),
        generation_id_or_member_epoch: first.generation_id,
        member_id: first.member_id.clone(),
        group_instance_id: instance.map(str::to_owned),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![partition.clone()],
            ..Default::default()
        }],
        ..Default::default()
    };
    for (instance, code) in [(Some("i"), ErrorCode::FENCED_INSTANCE_ID), (None, ErrorCode::UNKNOWN_MEMBER_ID)]
    {
        let ticket = rig.send(8, commit(instance));
        let Some(Response::OffsetCommit(answer)) = rig.answers.remove(&ticket) else { panic!("no answer") };
        assert_eq!(answer.topics[0].partitions[0].error_code, code);
    }
}

impl Rig {
    /// The topic `t` is there now, with this id, or is not.
    fn topic(&mut self, id: Option<u128>) {
        match id {
            Some(id) => {
                let topic = Topic { id: Uuid::from_u128(id), partitions: 3, racks: Vec::new() };
                self.topics.insert("t", topic);
            }
            None => drop(self.topics.remove("t")),
        }
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
        self.wait(Duration::from_secs(1));
    }

    /// A member of the consumer protocol that reads `t`: its epoch, and what it has of it, as far as it is told.
    fn beat(&mut self, id: &str, epoch: i32) -> (i32, Option<Vec<i32>>) {
        let ticket = self.send(1, consumer(id, epoch));
        let Some(Response::ConsumerGroupHeartbeat(answer)) = self.answers.remove(&ticket) else {
            panic!("no answer")
        };
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let numbers = |a: tontine_wire::api::consumer_group_heartbeat::Assignment| {
            a.topic_partitions.into_iter().flat_map(|topic| topic.partitions).collect()
        };
        (answer.member_epoch, answer.assignment.map(numbers))
    }

    /// A cooperative member joins with what it has of `t`: its generation, and what it has then.
    fn join_with(&mut self, id: &str, owned: &[i32]) -> (i32, Vec<i32>) {
        let ticket = self.send(9, owning_join(id, owned));
        let generation = self.joined(ticket).generation_id;
        let ticket = self.sync(id, generation, &[]);
        let Some(Response::SyncGroup(answer)) = self.answers.remove(&ticket) else { panic!("no answer") };
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let assignment = Assignment::from_assignment(answer.assignment).unwrap();
        (generation, assignment.assigned_partitions.into_iter().flat_map(|t| t.partitions).collect())
    }
}

fn owning_join(id: &str, owned: &[i32]) -> JoinGroupRequest {
    let owned = TopicPartitions { topic: "t".to_owned(), partitions: owned.to_vec() };
    let subscription =
        Subscription { topics: vec!["t".to_owned()], owned_partitions: vec![owned], ..Default::default() };
    let mut join = real_join(id, None);
    join.protocols[0].metadata = subscription.to_metadata(1);
    join
}

/// A classic member that has all of `t` in a consumer group, with its generation.
fn classic_among_consumers(rig: &mut Rig) -> (String, i32) {
    rig.topic(Some(1));
    // There is another member only to make it a consumer group, which wants nothing of it.
    let other = ConsumerGroupHeartbeatRequest {
        subscribed_topic_names: Some(vec!["other".to_owned()]),
        ..consumer("other", 0)
    };
    rig.send(1, other);
    let ticket = rig.send(9, real_join("", None));
    let id = rig.joined(ticket).member_id;
    let (mut generation, mut has) = rig.join_with(&id, &[]);
    // Targets are computed once a second at most.
    for _ in 0..3 {
        rig.wait(Duration::from_secs(1));
        if rig.heartbeat(&id, generation) == ErrorCode::REBALANCE_IN_PROGRESS {
            (generation, has) = rig.join_with(&id, &has);
        }
    }
    assert_eq!(has, [0, 1, 2]);
    (id, generation)
}

/// The classic member joins as often as it is asked to; until it does without what goes to the other, that has to wait.
fn hands_over(rig: &mut Rig, id: &str, mut generation: i32, mut has: Vec<i32>) {
    let (mut epoch, told) = rig.beat("n", 0);
    let mut others = told.unwrap_or_default();
    for _ in 0..20 {
        rig.wait(Duration::from_secs(1));
        let (now, told) = rig.beat("n", epoch);
        epoch = now;
        others = told.unwrap_or(others);
        assert!(others.iter().all(|partition| !has.contains(partition)), "two have one of {others:?}");
        if rig.heartbeat(id, generation) == ErrorCode::REBALANCE_IN_PROGRESS {
            (generation, has) = rig.join_with(id, &has);
        }
        if has.len() + others.len() == 3 && !others.is_empty() {
            return;
        }
    }
    panic!("{has:?} and {others:?} are all that is had");
}

#[test]
fn what_a_classic_member_uses_by_name_is_dealt_under_no_other_id_before_it_lets_go() {
    let mut rig = Rig::new();
    let (id, generation) = classic_among_consumers(&mut rig);
    rig.topic(None);
    rig.topic(Some(2));
    hands_over(&mut rig, &id, generation, vec![0, 1, 2]);
}

#[test]
fn a_classic_member_that_joins_while_its_topic_is_gone_has_it_until_it_says_otherwise() {
    let mut rig = Rig::new();
    let (id, generation) = classic_among_consumers(&mut rig);
    rig.topic(None);
    assert_eq!(rig.heartbeat(&id, generation), ErrorCode::REBALANCE_IN_PROGRESS);
    // Its answer is on its way, and it goes on with what it has.
    let ticket = rig.send(9, owning_join(&id, &[0, 1, 2]));
    let generation = rig.joined(ticket).generation_id;
    rig.topic(Some(2));
    hands_over(&mut rig, &id, generation, vec![0, 1, 2]);
}

#[test]
fn a_group_that_becomes_classic_and_consumer_again_forgets_nobody_who_uses_a_topic_that_was_gone() {
    let mut rig = Rig::new();
    let (id, generation) = classic_among_consumers(&mut rig);
    rig.topic(None);
    rig.send(1, consumer("other", -1));
    assert_eq!(rig.state(), Some(GroupState::PreparingRebalance), "it is classic");
    rig.topic(Some(2));
    hands_over(&mut rig, &id, generation, vec![0, 1, 2]);
}

#[test]
fn a_group_that_goes_over_while_a_topic_is_gone_forgets_nobody_who_uses_it() {
    let mut rig = Rig::new();
    rig.topic(Some(1));
    let ticket = rig.send(9, real_join("", None));
    let id = rig.joined(ticket).member_id;
    let ticket = rig.send(9, owning_join(&id, &[]));
    let generation = rig.joined(ticket).generation_id;
    let all = TopicPartitions { topic: "t".to_owned(), partitions: vec![0, 1, 2] };
    let request = SyncGroupRequest {
        group_id: "g".to_owned(),
        generation_id: generation,
        member_id: id.clone(),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: id.clone(),
            assignment: Assignment { assigned_partitions: vec![all], user_data: None }.to_assignment(1),
        }],
        ..Default::default()
    };
    rig.send(5, request);
    assert_eq!(rig.state(), Some(GroupState::Stable));
    rig.topic(None);
    rig.beat("n", 0);
    rig.topic(Some(2));
    hands_over(&mut rig, &id, generation, vec![0, 1, 2]);
}

#[test]
fn a_classic_member_that_was_put_out_of_a_consumer_group_hears_of_it_when_it_joins() {
    let mut rig = Rig::new();
    let (id, _) = classic_among_consumers(&mut rig);
    rig.live(SESSION * 2, &[]);
    let ticket = rig.send(1, consumer("n", 0));
    rig.answers.remove(&ticket);
    let ticket = rig.send(9, owning_join(&id, &[0, 1, 2]));
    assert_eq!(rig.joined(ticket).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let ticket = rig.send(9, owning_join(&id, &[]));
    assert_eq!(rig.joined(ticket).error_code, ErrorCode::NONE, "who has nothing may be new");
}
