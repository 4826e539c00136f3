//! Requests that no decent client sends: Kafka's errors, no panic, no unbounded memory, and an answer for each.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::Bytes;
use proptest::prelude::*;
use std::{collections::BTreeSet, time::Duration};
use tontine_group::{
    Instant,
    coordinator::{ClientInfo, Coordinator, CoordinatorConfig, Output, Ticket, refuse},
    topics::Topics,
};
use tontine_wire::{
    ErrorCode,
    api::{
        ApiKey, Request, Response, delete_groups::*, describe_groups::*, heartbeat::*, join_group::*,
        leave_group::*, list_groups::*, offset_commit::*, offset_delete::*, offset_fetch::*, sync_group::*,
    },
};

struct Rig {
    coordinator: Coordinator,
    topics: Topics,
    now: Instant,
    tickets: u64,
    log: Vec<(Bytes, Option<Bytes>)>,
}

impl Rig {
    fn new() -> Self {
        let config =
            CoordinatorConfig { group_initial_rebalance_delay: Duration::ZERO, ..Default::default() };
        let mut coordinator = Coordinator::new(config, 1);
        coordinator.loaded(Instant::ZERO);
        let topics = Topics::new().with("t", 3);
        Self { coordinator, topics, now: Instant::ZERO, tickets: 0, log: Vec::new() }
    }

    fn drain(&mut self, answers: &mut Vec<(Ticket, Response)>) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    self.log.extend(records.into_iter().map(|r| (r.key, r.value)));
                    self.coordinator.handle_appended(self.now, id, Ok(()));
                }
                Output::Reply { ticket, response } => answers.push((ticket, response)),
                Output::Transition(_) => {}
                Output::Wait(at) => return at,
            }
        }
    }

    fn send(&mut self, version: i16, request: impl Into<Request>) -> Vec<(Ticket, Response)> {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let client = ClientInfo { client_id: "c".to_owned(), client_host: "/h".to_owned() };
        let request = request.into();
        self.coordinator.handle_request(self.now, ticket, &client, version, request, &self.topics).unwrap();
        let mut answers = Vec::new();
        self.drain(&mut answers);
        answers
    }

    fn join(&mut self, request: JoinGroupRequest) -> JoinGroupResponse {
        match self.send(9, request).pop() {
            Some((_, Response::JoinGroup(join))) => join,
            other => panic!("{other:?}"),
        }
    }

    fn wait(&mut self, duration: Duration) -> Vec<(Ticket, Response)> {
        let to = self.now + duration;
        let mut answers = Vec::new();
        while let Some(at) = self.drain(&mut answers).filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
        }
        self.now = to;
        answers
    }
}

fn decent_join() -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol { name: "range".to_owned(), metadata: Bytes::new() }],
        ..Default::default()
    }
}

#[test]
fn timeouts_out_of_bounds_are_refused_before_anything_else() {
    let mut rig = Rig::new();
    for session_timeout_ms in [i32::MIN, -1, 0, 5_999, 1_800_001, i32::MAX] {
        let answer = rig.join(JoinGroupRequest { session_timeout_ms, ..decent_join() });
        assert_eq!(answer.error_code, ErrorCode::INVALID_SESSION_TIMEOUT);
    }
    assert!(rig.coordinator.groups().is_empty());
}

#[test]
fn a_negative_or_zero_rebalance_timeout_harms_nobody() {
    for rebalance_timeout_ms in [i32::MIN, -1, 0] {
        let mut rig = Rig::new();
        let request = JoinGroupRequest { rebalance_timeout_ms, ..decent_join() };
        let id = rig.join(request.clone()).member_id;
        let answer = rig.join(JoinGroupRequest { member_id: id, ..request });
        assert_eq!(answer.error_code, ErrorCode::NONE);
        rig.wait(Duration::from_secs(60));
        assert!(rig.coordinator.groups()[0].members.is_empty());
    }
}

#[test]
fn a_refused_first_join_makes_no_group() {
    let mut rig = Rig::new();
    let answer = rig.join(JoinGroupRequest { protocols: Vec::new(), ..decent_join() });
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    assert!(rig.coordinator.groups().is_empty() && rig.log.is_empty());
}

#[test]
fn ids_that_nobody_uses_are_forgotten() {
    let mut rig = Rig::new();
    for _ in 0..1_000 {
        assert_eq!(rig.join(decent_join()).error_code, ErrorCode::MEMBER_ID_REQUIRED);
    }
    rig.wait(Duration::from_secs(11));
    let id = rig.join(decent_join()).member_id;
    let answer = rig.join(JoinGroupRequest { member_id: id, ..decent_join() });
    assert_eq!(answer.error_code, ErrorCode::NONE, "the others' ids would have to be waited for");
    let answer = rig.join(JoinGroupRequest { member_id: "unknown".to_owned(), ..decent_join() });
    assert_eq!(answer.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn large_arrays_are_answered_item_by_item() {
    let mut rig = Rig::new();
    let member = MemberIdentity { member_id: "nobody".to_owned(), ..Default::default() };
    let leave =
        LeaveGroupRequest { group_id: "g".to_owned(), members: vec![member; 10_000], ..Default::default() };
    let Some((_, Response::LeaveGroup(left))) = rig.send(5, leave).pop() else { panic!() };
    assert_eq!(left.members.len(), 10_000);

    let partition = OffsetCommitRequestPartition { partition_index: i32::MAX, ..Default::default() };
    let topic = OffsetCommitRequestTopic {
        name: "t".to_owned(),
        partitions: vec![partition; 10_000],
        ..Default::default()
    };
    let commit = OffsetCommitRequest { group_id: "g".to_owned(), topics: vec![topic], ..Default::default() };
    let Some((_, Response::OffsetCommit(committed))) = rig.send(9, commit).pop() else { panic!() };
    let codes = committed.topics[0].partitions.iter().map(|p| p.error_code).collect::<BTreeSet<_>>();
    assert_eq!(codes, [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION].into());
    assert!(rig.coordinator.groups().is_empty(), "a commit of nothing makes no group");
}

#[test]
fn a_protocol_listed_many_times_counts_once() {
    let mut rig = Rig::new();
    let protocol = JoinGroupRequestProtocol { name: "range".to_owned(), metadata: Bytes::new() };
    let many = JoinGroupRequest { protocols: vec![protocol; 1_000], ..decent_join() };
    let id = rig.join(many.clone()).member_id;
    assert_eq!(rig.join(JoinGroupRequest { member_id: id, ..many }).protocol_name.as_deref(), Some("range"));
    let other = JoinGroupRequestProtocol { name: "other".to_owned(), metadata: Bytes::new() };
    let answer = rig.join(JoinGroupRequest { protocols: vec![other], ..decent_join() });
    assert_eq!(answer.error_code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn what_coordinators_do_not_answer_is_given_back() {
    let mut rig = Rig::new();
    let request: Request = tontine_wire::api::metadata::MetadataRequest::default().into();
    assert_eq!(refuse(&request, 0, ErrorCode::NOT_COORDINATOR), None);
    let client = ClientInfo::default();
    assert!(rig.coordinator.handle_request(rig.now, Ticket(0), &client, 0, request, &rig.topics).is_err());
}

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        Just(String::new()),
        Just("g".to_owned()),
        Just("c".to_owned()),
        Just("t".to_owned()),
        ".{0,4}"
    ]
    .boxed()
}

fn number() -> BoxedStrategy<i32> {
    prop_oneof![
        Just(i32::MIN),
        Just(-1),
        Just(0),
        Just(1),
        Just(2),
        Just(10_000),
        Just(i32::MAX),
        any::<i32>()
    ]
    .boxed()
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..12).prop_map(Bytes::from)
}

fn instance() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.3, text())
}

fn join_request() -> BoxedStrategy<Request> {
    let protocol = (text(), bytes()).prop_map(|(name, metadata)| JoinGroupRequestProtocol { name, metadata });
    let session = prop_oneof![4 => Just(10_000), 1 => number()];
    (text(), session, number(), text(), instance(), text(), prop::collection::vec(protocol, 0..4))
        .prop_map(
            |(
                group_id,
                session_timeout_ms,
                rebalance_timeout_ms,
                member_id,
                group_instance_id,
                protocol_type,
                protocols,
            )| {
                let request = JoinGroupRequest {
                    group_id,
                    session_timeout_ms,
                    rebalance_timeout_ms,
                    member_id,
                    group_instance_id,
                    protocol_type,
                    protocols,
                    reason: None,
                };
                request.into()
            },
        )
        .boxed()
}

fn sync_request() -> BoxedStrategy<Request> {
    let assignment = (text(), bytes())
        .prop_map(|(member_id, assignment)| SyncGroupRequestAssignment { member_id, assignment });
    (text(), number(), text(), instance(), prop::collection::vec(assignment, 0..4))
        .prop_map(|(group_id, generation_id, member_id, group_instance_id, assignments)| {
            let (protocol_type, protocol_name) = (None, None);
            let request = SyncGroupRequest {
                group_id,
                generation_id,
                member_id,
                group_instance_id,
                protocol_type,
                protocol_name,
                assignments,
            };
            request.into()
        })
        .boxed()
}

fn commit_request() -> BoxedStrategy<Request> {
    let partition = (number(), any::<i64>(), number(), instance());
    let partition = partition.prop_map(
        |(partition_index, committed_offset, committed_leader_epoch, committed_metadata)| {
            OffsetCommitRequestPartition {
                partition_index,
                committed_offset,
                committed_leader_epoch,
                committed_metadata,
            }
        },
    );
    let topic = (text(), prop::collection::vec(partition, 0..4));
    let topic = topic.prop_map(|(name, partitions)| OffsetCommitRequestTopic {
        name,
        partitions,
        ..Default::default()
    });
    (text(), number(), text(), instance(), any::<i64>(), prop::collection::vec(topic, 0..4))
        .prop_map(
            |(
                group_id,
                generation_id_or_member_epoch,
                member_id,
                group_instance_id,
                retention_time_ms,
                topics,
            )| {
                let request = OffsetCommitRequest {
                    group_id,
                    generation_id_or_member_epoch,
                    member_id,
                    group_instance_id,
                    retention_time_ms,
                    topics,
                };
                request.into()
            },
        )
        .boxed()
}

fn short_request() -> BoxedStrategy<Request> {
    let texts = || prop::collection::vec(text(), 0..4);
    prop_oneof![
        (text(), number(), text(), instance()).prop_map(
            |(group_id, generation_id, member_id, group_instance_id)| {
                HeartbeatRequest { group_id, generation_id, member_id, group_instance_id }.into()
            }
        ),
        (text(), text(), prop::collection::vec((text(), instance()), 0..4)).prop_map(
            |(group_id, member_id, members)| {
                let member = |(member_id, group_instance_id)| MemberIdentity {
                    member_id,
                    group_instance_id,
                    reason: None,
                };
                LeaveGroupRequest { group_id, member_id, members: members.into_iter().map(member).collect() }
                    .into()
            }
        ),
        texts().prop_map(|groups| DescribeGroupsRequest { groups, ..Default::default() }.into()),
        texts().prop_map(|groups_names| DeleteGroupsRequest { groups_names }.into()),
        (texts(), texts()).prop_map(|(states_filter, types_filter)| ListGroupsRequest {
            states_filter,
            types_filter
        }
        .into()),
        (text(), text(), number()).prop_map(|(group_id, name, partition_index)| {
            let partitions = vec![OffsetDeleteRequestPartition { partition_index }];
            OffsetDeleteRequest { group_id, topics: vec![OffsetDeleteRequestTopic { name, partitions }] }
                .into()
        }),
        (text(), text(), number(), any::<bool>()).prop_map(|(group_id, name, partition, batched)| {
            let partition_indexes = vec![partition];
            if batched {
                let topics = OffsetFetchRequestTopics { name, partition_indexes, ..Default::default() };
                let group =
                    OffsetFetchRequestGroup { group_id, topics: Some(vec![topics]), ..Default::default() };
                return OffsetFetchRequest { groups: vec![group], ..Default::default() }.into();
            }
            let topics = Some(vec![OffsetFetchRequestTopic { name, partition_indexes }]);
            OffsetFetchRequest { group_id, topics, ..Default::default() }.into()
        }),
    ]
    .boxed()
}

fn any_request() -> BoxedStrategy<(usize, Request)> {
    let request = prop_oneof![join_request(), sync_request(), commit_request(), short_request()];
    (any::<usize>(), request).boxed()
}

fn some_version(key: ApiKey, pick: usize) -> i16 {
    let versions: Vec<i16> = key.versions().collect();
    versions[pick % versions.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_is_answered_once(requests in prop::collection::vec(any_request(), 1..60)) {
        let mut rig = Rig::new();
        let mut answered = BTreeSet::new();
        let count = requests.len() as u64;
        for (pick, request) in requests {
            let version = some_version(request.key(), pick);
            let mut answers = rig.send(version, request);
            if pick % 5 == 0 {
                answers.extend(rig.wait(Duration::from_millis(pick as u64 % 5_000)));
            }
            for (ticket, _) in answers {
                prop_assert!(answered.insert(ticket), "answered twice");
            }
        }
        answered.extend(rig.wait(Duration::from_secs(86_400)).into_iter().map(|(ticket, _)| ticket));
        prop_assert_eq!(answered.len() as u64, count);
        let mut again = Coordinator::new(CoordinatorConfig::default(), 1);
        for (key, value) in &rig.log {
            again.replay(key.clone(), value.clone()).unwrap();
        }
        prop_assert_eq!(again.durable(), rig.coordinator.durable());
    }

    #[test]
    fn rubbish_in_the_log_is_an_error_and_no_panic(
        kind in -1..20i16,
        key in prop::collection::vec(any::<u8>(), 0..40),
        value in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
    ) {
        let mut coordinator = Coordinator::new(CoordinatorConfig::default(), 1);
        let key: Bytes = kind.to_be_bytes().into_iter().chain(key).collect();
        let _ = coordinator.replay(key.clone(), value.map(Bytes::from));
        let _ = coordinator.replay(key.slice(..1), None);
        coordinator.loaded(Instant::ZERO);
    }

    #[test]
    fn a_refusal_fits_every_version(
        (pick, request) in any_request(),
        code in prop_oneof![Just(ErrorCode::NOT_COORDINATOR), Just(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)],
    ) {
        let version = some_version(request.key(), pick);
        let response = refuse(&request, version, code).unwrap();
        prop_assert_eq!(response.key(), request.key());
        let mut out = tontine_wire::codec::Writer::new();
        response.encode(version, &mut out);
        Response::decode(request.key(), version, out.into_bytes()).unwrap();
    }
}
