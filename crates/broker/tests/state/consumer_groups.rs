//! Groups of the consumer protocol through the broker: heartbeats, topics that change, commits by topic id, describing
//! and moving.

use crate::rig::Rig;
use std::collections::BTreeMap;
use tontine_broker::ConnId;
use tontine_broker::disk::{Outage, SimulatedDisk};
use tontine_wire::api::ApiKey;
use tontine_wire::api::api_versions::ApiVersionsRequest;
use tontine_wire::api::consumer_group_describe::{ConsumerGroupDescribeRequest, DescribedGroup};
use tontine_wire::api::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use tontine_wire::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use tontine_wire::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use tontine_wire::api::heartbeat::HeartbeatRequest;
use tontine_wire::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use tontine_wire::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use tontine_wire::api::list_groups::ListGroupsRequest;
use tontine_wire::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use tontine_wire::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use tontine_wire::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use tontine_wire::consumer_protocol as embedded;
use tontine_wire::{ErrorCode, Uuid};

/// A member that does at once what it is told.
pub(crate) struct Member {
    conn: ConnId,
    group: String,
    pub(crate) id: String,
    pub(crate) epoch: i32,
    pub(crate) has: BTreeMap<Uuid, Vec<i32>>,
    topics: Vec<String>,
    changed: bool,
}

impl Member {
    pub(crate) fn new(rig: &mut Rig, node: i32, group: &str, id: &str, topics: &[&str]) -> Self {
        Self {
            conn: rig.connect(node),
            group: group.into(),
            id: id.into(),
            epoch: 0,
            has: BTreeMap::new(),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            changed: false,
        }
    }

    fn request(&mut self) -> ConsumerGroupHeartbeatRequest {
        let joins = self.epoch == 0;
        let owned = self.has.iter().map(|(topic_id, partitions)| TopicPartitions {
            topic_id: *topic_id,
            partitions: partitions.clone(),
        });
        ConsumerGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rebalance_timeout_ms: if joins { 60_000 } else { -1 },
            subscribed_topic_names: joins.then(|| self.topics.clone()),
            topic_partitions: (joins || std::mem::take(&mut self.changed)).then(|| owned.collect()),
            ..Default::default()
        }
    }

    pub(crate) fn beat(&mut self, rig: &mut Rig) -> ConsumerGroupHeartbeatResponse {
        let request = self.request();
        let answer = rig.ask(self.conn, 1, request);
        if answer.error_code.is_ok() {
            self.epoch = answer.member_epoch;
            if let Some(assignment) = &answer.assignment {
                let has = assignment.topic_partitions.iter();
                self.has = has.map(|topic| (topic.topic_id, topic.partitions.clone())).collect();
                self.changed = true;
            }
        }
        answer
    }

    fn leave(&mut self, rig: &mut Rig) -> ConsumerGroupHeartbeatResponse {
        self.epoch = -1;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: -1,
            ..Default::default()
        };
        rig.ask(self.conn, 1, request)
    }

    pub(crate) fn size(&self) -> usize {
        self.has.values().map(Vec::len).sum()
    }
}

fn describe(rig: &mut Rig, conn: ConnId, groups: &[&str]) -> Vec<DescribedGroup> {
    let group_ids = groups.iter().map(|group| (*group).to_owned()).collect();
    rig.ask(conn, 1, ConsumerGroupDescribeRequest { group_ids, ..Default::default() }).groups
}

/// Two members of a group, settled.
fn two_members(rig: &mut Rig, topic: &str) -> (Member, Member) {
    let mut a = Member::new(rig, 1, "g", "a", &[topic]);
    a.beat(rig);
    let mut b = Member::new(rig, 1, "g", "b", &[topic]);
    for _ in 0..5 {
        b.beat(rig);
        a.beat(rig);
        rig.advance(20);
    }
    (a, b)
}

#[test]
fn the_feature_and_the_apis_are_listed() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    let list = rig.ask(conn, 4, ApiVersionsRequest::default());
    let range = |key: ApiKey| {
        let row = list.api_keys.iter().find(|row| row.api_key == key as i16)?;
        Some((row.min_version, row.max_version))
    };
    assert_eq!(range(ApiKey::ConsumerGroupHeartbeat), Some((0, 1)));
    assert_eq!(range(ApiKey::ConsumerGroupDescribe), Some((0, 1)));
    let finalized = &list.finalized_features[0];
    assert_eq!((finalized.name.as_str(), finalized.max_version_level), ("group.version", 1));
    assert_eq!((list.supported_features[0].min_version, list.supported_features[0].max_version), (0, 1));
    assert!(list.finalized_features_epoch >= 0);
    let old = rig.ask(conn, 3, ApiVersionsRequest::default());
    assert_eq!(old.supported_features, [], "level 0 cannot be said in version 3");
}

#[test]
fn two_members_share_a_topic_as_fast_as_they_speak() {
    let mut rig = Rig::with_topic("t", 6);
    let mut a = Member::new(&mut rig, 1, "g", "a", &["t"]);
    let joined = a.beat(&mut rig);
    assert_eq!((joined.error_code, joined.heartbeat_interval_ms), (ErrorCode::NONE, 50), "it is alone");
    assert_eq!(a.size(), 6);
    let mut b = Member::new(&mut rig, 1, "g", "b", &["t"]);
    let joined = b.beat(&mut rig);
    assert_eq!(joined.heartbeat_interval_ms, 25, "partitions are on their way");
    rig.advance(20);
    a.beat(&mut rig);
    a.beat(&mut rig);
    b.beat(&mut rig);
    assert_eq!((a.size(), b.size(), a.epoch, b.epoch), (3, 3, 3, 3));
    assert_eq!(a.beat(&mut rig).heartbeat_interval_ms, 50);
    let conn = rig.connect(1);
    let group = describe(&mut rig, conn, &["g"]).remove(0);
    assert_eq!((group.group_state.as_str(), group.group_epoch, group.assignment_epoch), ("Stable", 3, 3));
    assert_eq!((group.assignor_name.as_str(), group.members.len()), ("uniform", 2));
    assert_eq!(group.members[0].assignment, group.members[0].target_assignment);
    assert_eq!(group.members[0].assignment.topic_partitions[0].topic_name, "t");
    let listed = rig.ask(conn, 5, ListGroupsRequest::default()).groups.remove(0);
    assert_eq!((listed.group_type.as_str(), listed.group_state.as_str()), ("consumer", "Stable"));
}

#[test]
fn new_partitions_reach_members_with_their_next_heartbeat() {
    let mut rig = Rig::with_topic("t", 2);
    let (mut a, mut b) = two_members(&mut rig, "t");
    assert_eq!((a.size(), b.size()), (1, 1));
    rig.advance(1000);
    let conn = rig.connect(1);
    let topic = CreatePartitionsTopic { name: "t".into(), count: 6, ..Default::default() };
    rig.ask(conn, 3, CreatePartitionsRequest { topics: vec![topic], ..Default::default() });
    a.beat(&mut rig);
    b.beat(&mut rig);
    assert_eq!((a.size(), b.size()), (3, 3));
}

#[test]
fn a_topic_that_is_created_later_is_given_out_at_once() {
    let mut rig = Rig::new(1, &[]);
    let mut a = Member::new(&mut rig, 1, "g", "a", &["late"]);
    a.beat(&mut rig);
    assert_eq!(a.size(), 0);
    rig.advance(1000);
    let id = rig.topic("late", 3);
    a.beat(&mut rig);
    assert_eq!(a.has, [(id, vec![0, 1, 2])].into());
    rig.delete("late").unwrap();
    rig.advance(20);
    a.beat(&mut rig);
    assert_eq!(a.size(), 0);
}

#[test]
fn offsets_are_committed_and_fetched_by_topic_id_and_epoch() {
    let mut rig = Rig::new(1, &[]);
    let id = rig.topic("t", 2);
    let mut a = Member::new(&mut rig, 1, "g", "a", &["t"]);
    a.beat(&mut rig);
    let commit = |epoch, topic_id| OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: epoch,
        member_id: "a".into(),
        topics: vec![OffsetCommitRequestTopic {
            topic_id,
            partitions: vec![OffsetCommitRequestPartition { committed_offset: 7, ..Default::default() }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let code = |rig: &mut Rig, epoch, topic| {
        rig.ask(a.conn, 10, commit(epoch, topic)).topics.remove(0).partitions.remove(0).error_code
    };
    assert_eq!(code(&mut rig, a.epoch, id), ErrorCode::NONE);
    assert_eq!(code(&mut rig, a.epoch + 1, id), ErrorCode::STALE_MEMBER_EPOCH);
    assert_eq!(code(&mut rig, a.epoch, Uuid::from_u128(77)), ErrorCode::UNKNOWN_TOPIC_ID);
    let fetch = |member_epoch| {
        let topic =
            OffsetFetchRequestTopics { topic_id: id, partition_indexes: vec![0], ..Default::default() };
        let group = OffsetFetchRequestGroup {
            group_id: "g".into(),
            member_id: Some("a".into()),
            member_epoch,
            topics: Some(vec![topic]),
        };
        OffsetFetchRequest { groups: vec![group], ..Default::default() }
    };
    let fetched = rig.ask(a.conn, 10, fetch(a.epoch)).groups.remove(0);
    assert_eq!((fetched.topics[0].topic_id, fetched.topics[0].partitions[0].committed_offset), (id, 7));
    let stale = rig.ask(a.conn, 10, fetch(a.epoch + 1)).groups.remove(0);
    assert_eq!((stale.error_code, stale.topics.len()), (ErrorCode::STALE_MEMBER_EPOCH, 0));
}

#[test]
fn groups_on_several_coordinators_are_described_together_and_only_by_their_coordinators() {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 1);
    let names = ["one", "two", "three", "four", "five"];
    for name in names {
        let node = rig.state.coordinator_of(name).unwrap_or(1);
        let mut member = Member::new(&mut rig, node, name, "m", &["t"]);
        // The first request creates `__consumer_offsets`; only then it is known who coordinates.
        if member.beat(&mut rig).error_code == ErrorCode::NOT_COORDINATOR {
            member.conn = rig.connect(rig.state.coordinator_of(name).unwrap());
            assert_eq!(member.beat(&mut rig).error_code, ErrorCode::NONE);
        }
    }
    let conn = rig.connect(1);
    let groups = describe(&mut rig, conn, &names);
    assert_eq!(groups.len(), names.len());
    for group in groups {
        let here = rig.state.coordinator_of(&group.group_id) == Some(1);
        let expected = if here { ErrorCode::NONE } else { ErrorCode::NOT_COORDINATOR };
        assert_eq!(group.error_code, expected, "{}", group.group_id);
        assert_eq!(group.members.len(), usize::from(here));
    }
}

#[test]
fn a_group_moves_with_its_members_and_what_they_have() {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 4);
    let first = rig.connect(1);
    rig.ask(
        first,
        5,
        tontine_wire::api::describe_groups::DescribeGroupsRequest {
            groups: vec!["g".into()],
            ..Default::default()
        },
    );
    let node = rig.state.coordinator_of("g").unwrap();
    let mut a = Member::new(&mut rig, node, "g", "a", &["t"]);
    a.beat(&mut rig);
    let (epoch, has) = (a.epoch, a.has.clone());
    rig.state.move_coordinator(rig.now, "g", node % 3 + 1).unwrap();
    rig.drain();
    assert_eq!(a.beat(&mut rig).error_code, ErrorCode::NOT_COORDINATOR);
    a.conn = rig.connect(node % 3 + 1);
    assert_eq!(a.beat(&mut rig).error_code, ErrorCode::NONE);
    assert_eq!((a.epoch, &a.has), (epoch, &has));
    rig.advance(46_000);
    assert_eq!(a.beat(&mut rig).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_member_that_leaves_hands_its_partitions_over() {
    let mut rig = Rig::with_topic("t", 4);
    let (mut a, mut b) = two_members(&mut rig, "t");
    assert_eq!((a.size(), b.size()), (2, 2));
    rig.advance(1000);
    assert_eq!(b.leave(&mut rig).member_epoch, -1);
    a.beat(&mut rig);
    assert_eq!(a.size(), 4);
}

/// Metadata of a classic member that owns these partitions of `t`.
fn metadata(owned: &[i32], generation_id: i32) -> bytes::Bytes {
    let owned = embedded::TopicPartitions { topic: "t".into(), partitions: owned.to_vec() };
    let owned_partitions = if owned.partitions.is_empty() { Vec::new() } else { vec![owned] };
    let subscription = embedded::Subscription {
        topics: vec!["t".into()],
        owned_partitions,
        generation_id,
        ..Default::default()
    };
    subscription.to_metadata(3)
}

fn join(id: &str, owned: &[i32], generation: i32) -> JoinGroupRequest {
    let protocol =
        JoinGroupRequestProtocol { name: "cooperative-sticky".into(), metadata: metadata(owned, generation) };
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: id.into(),
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    }
}

fn sync(rig: &mut Rig, conn: ConnId, id: &str, generation_id: i32, leads: Option<&[i32]>) -> Vec<i32> {
    let assignment = |partitions: &[i32]| {
        let all = embedded::TopicPartitions { topic: "t".into(), partitions: partitions.to_vec() };
        let assignment = embedded::Assignment { assigned_partitions: vec![all], user_data: None };
        SyncGroupRequestAssignment { member_id: id.into(), assignment: assignment.to_assignment(3) }
    };
    let request = SyncGroupRequest {
        group_id: "g".into(),
        generation_id,
        member_id: id.into(),
        assignments: leads.map(assignment).into_iter().collect(),
        ..Default::default()
    };
    let answer = rig.ask(conn, 5, request);
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let assigned = embedded::Assignment::from_assignment(answer.assignment).unwrap().assigned_partitions;
    assigned.into_iter().flat_map(|topic| topic.partitions).collect()
}

#[test]
fn a_classic_group_goes_over_and_comes_back_and_nobody_loses_what_it_keeps() {
    let mut rig = Rig::with_topic("t", 4);
    let a = rig.connect(1);
    let id = rig.ask(a, 9, join("", &[], -1)).member_id;
    rig.ask(a, 9, join(&id, &[], -1));
    assert_eq!(sync(&mut rig, a, &id, 1, Some(&[0, 1, 2, 3])), [0, 1, 2, 3]);
    let mut b = Member::new(&mut rig, 1, "g", "b", &["t"]);
    b.beat(&mut rig);
    assert_eq!((b.epoch, b.size()), (2, 0));
    let heartbeat = |generation_id| HeartbeatRequest {
        group_id: "g".into(),
        generation_id,
        member_id: id.clone(),
        ..Default::default()
    };
    assert_eq!(rig.ask(a, 4, heartbeat(1)).error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    let joined = rig.ask(a, 9, join(&id, &[0, 1, 2, 3], 1));
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
    let keeps = sync(&mut rig, a, &id, 1, None);
    assert_eq!(keeps.len(), 2);
    let joined = rig.ask(a, 9, join(&id, &keeps, 1));
    assert_eq!(joined.generation_id, 2);
    assert_eq!(sync(&mut rig, a, &id, 2, None), keeps);
    b.beat(&mut rig);
    assert_eq!(b.size(), 2);
    let conn = rig.connect(1);
    let group = describe(&mut rig, conn, &["g"]).remove(0);
    assert_eq!(group.members.iter().map(|member| member.member_type).collect::<Vec<_>>(), [1, 0]);
    b.leave(&mut rig);
    assert_eq!(rig.ask(a, 4, heartbeat(2)).error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    let joined = rig.ask(a, 9, join(&id, &keeps, 2));
    assert_eq!((joined.generation_id, joined.leader), (3, id.clone()));
    assert_eq!(sync(&mut rig, a, &id, 3, Some(&[0, 1, 2, 3])), [0, 1, 2, 3]);
    let listed = rig.ask(conn, 5, ListGroupsRequest::default()).groups.remove(0);
    assert_eq!((listed.group_type.as_str(), listed.group_state.as_str()), ("classic", "Stable"));
}

/// Two members of the consumer protocol leave within one interval of the classic member's heartbeats: the first makes the
/// group's epoch rise, the second makes the group classic.
#[test]
fn a_classic_member_that_is_behind_when_the_group_comes_back_keeps_what_it_has() {
    let mut rig = Rig::with_topic("t", 6);
    let a = rig.connect(1);
    let id = rig.ask(a, 9, join("", &[], -1)).member_id;
    rig.ask(a, 9, join(&id, &[], -1));
    let mut keeps = sync(&mut rig, a, &id, 1, Some(&[0, 1, 2, 3, 4, 5]));
    let heartbeat = |generation_id| HeartbeatRequest {
        group_id: "g".into(),
        generation_id,
        member_id: id.clone(),
        ..Default::default()
    };
    let (mut b, mut c) =
        (Member::new(&mut rig, 1, "g", "b", &["t"]), Member::new(&mut rig, 1, "g", "c", &["t"]));
    let mut generation = 1;
    for _ in 0..20 {
        b.beat(&mut rig);
        c.beat(&mut rig);
        rig.advance(50);
        if rig.ask(a, 4, heartbeat(generation)).error_code == ErrorCode::REBALANCE_IN_PROGRESS {
            generation = rig.ask(a, 9, join(&id, &keeps, generation)).generation_id;
            keeps = sync(&mut rig, a, &id, generation, None);
        }
    }
    assert_eq!((keeps.len(), b.size(), c.size()), (2, 2, 2));

    b.leave(&mut rig);
    rig.advance(50);
    c.leave(&mut rig);
    let commit = |generation_id_or_member_epoch| OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch,
        member_id: id.clone(),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: keeps[0],
                committed_offset: 7,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let code = |answer: tontine_wire::api::offset_commit::OffsetCommitResponse| {
        answer.topics[0].partitions[0].error_code
    };
    assert_eq!(rig.ask(a, 4, heartbeat(generation)).error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(code(rig.ask(a, 9, commit(generation))), ErrorCode::NONE);
    assert_eq!(rig.ask(a, 4, heartbeat(generation - 1)).error_code, ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(code(rig.ask(a, 9, commit(generation - 1))), ErrorCode::ILLEGAL_GENERATION);
    let joined = rig.ask(a, 9, join(&id, &keeps, generation));
    assert!(joined.generation_id > generation + 1, "the group went on meanwhile: {}", joined.generation_id);
    assert_eq!(sync(&mut rig, a, &id, joined.generation_id, Some(&[0, 1, 2, 3, 4, 5])).len(), 6);
    assert_eq!(rig.ask(a, 4, heartbeat(generation)).error_code, ErrorCode::ILLEGAL_GENERATION);
}

#[test]
fn a_live_group_stays_what_it_is_when_migration_is_disabled() {
    let mut rig = Rig::new(1, &[("group.consumer.migration.policy", "disabled")]);
    rig.topic("t", 4);
    let a = rig.connect(1);
    let id = rig.ask(a, 9, join("", &[], -1)).member_id;
    rig.ask(a, 9, join(&id, &[], -1));
    sync(&mut rig, a, &id, 1, Some(&[0, 1, 2, 3]));
    let mut b = Member::new(&mut rig, 1, "g", "b", &["t"]);
    assert_eq!(b.beat(&mut rig).error_code, ErrorCode::GROUP_ID_NOT_FOUND);
}

#[test]
fn an_interval_that_the_broker_was_given_is_the_one_of_members_at_rest() {
    let mut rig = Rig::new(1, &[("group.consumer.heartbeat.interval.ms", "5000")]);
    rig.topic("t", 2);
    let (mut a, mut b) = two_members(&mut rig, "t");
    assert_eq!(a.beat(&mut rig).heartbeat_interval_ms, 5000);
    assert_eq!(b.beat(&mut rig).heartbeat_interval_ms, 5000);
}

#[test]
fn the_more_members_all_groups_have_the_less_often_each_is_asked_to_speak() {
    let mut rig = Rig::new(1, &[("offsets.topic.num.partitions", "1")]);
    rig.topic("t", 1);
    let mut members: Vec<Member> =
        (0..20).map(|i| Member::new(&mut rig, 1, &format!("g{}", i % 4), &format!("m{i}"), &["t"])).collect();
    for _ in 0..3 {
        members.iter_mut().for_each(|member| drop(member.beat(&mut rig)));
        rig.advance(20);
    }
    let of = |rig: &mut Rig, member: &mut Member| member.beat(rig).heartbeat_interval_ms;
    assert!(members.iter_mut().all(|member| of(&mut rig, member) == 400));
    members.drain(5..).for_each(|mut member| drop(member.leave(&mut rig)));
    rig.advance(20);
    members.iter_mut().for_each(|member| drop(member.beat(&mut rig)));
    assert!(members.iter_mut().all(|member| of(&mut rig, member) == 100));
}

#[test]
fn heartbeats_that_make_no_sense_are_refused_as_kafka_refuses_them_and_the_group_stays_as_it_is() {
    let mut rig = Rig::new(1, &[("group.consumer.max.size", "2")]);
    rig.topic("t", 2);
    let (mut a, mut b) = two_members(&mut rig, "t");
    let conn = rig.connect(1);
    let before = describe(&mut rig, conn, &["g"]);
    let join = Member::new(&mut rig, 1, "g", "c", &["t"]).request();
    let stay = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "a".into(),
        member_epoch: a.epoch,
        rebalance_timeout_ms: -1,
        ..Default::default()
    };
    let some = |text: &str| Some(text.to_owned());
    for (request, code) in [
        (join.clone(), ErrorCode::GROUP_MAX_SIZE_REACHED),
        (ConsumerGroupHeartbeatRequest { group_id: " ".into(), ..join.clone() }, ErrorCode::INVALID_REQUEST),
        (ConsumerGroupHeartbeatRequest { member_id: " ".into(), ..join.clone() }, ErrorCode::INVALID_REQUEST),
        (
            ConsumerGroupHeartbeatRequest { rebalance_timeout_ms: -1, ..join.clone() },
            ErrorCode::INVALID_REQUEST,
        ),
        (
            ConsumerGroupHeartbeatRequest { topic_partitions: None, ..join.clone() },
            ErrorCode::INVALID_REQUEST,
        ),
        (ConsumerGroupHeartbeatRequest { subscribed_topic_names: None, ..join }, ErrorCode::INVALID_REQUEST),
        (
            ConsumerGroupHeartbeatRequest { member_epoch: a.epoch + 1, ..stay.clone() },
            ErrorCode::FENCED_MEMBER_EPOCH,
        ),
        (
            ConsumerGroupHeartbeatRequest { member_epoch: i32::MAX, ..stay.clone() },
            ErrorCode::FENCED_MEMBER_EPOCH,
        ),
        (ConsumerGroupHeartbeatRequest { member_epoch: -2, ..stay.clone() }, ErrorCode::INVALID_REQUEST),
        (
            ConsumerGroupHeartbeatRequest { member_epoch: i32::MIN, ..stay.clone() },
            ErrorCode::INVALID_REQUEST,
        ),
        (
            ConsumerGroupHeartbeatRequest { member_id: "z".into(), ..stay.clone() },
            ErrorCode::UNKNOWN_MEMBER_ID,
        ),
        (
            ConsumerGroupHeartbeatRequest { instance_id: some("i"), ..stay.clone() },
            ErrorCode::UNKNOWN_MEMBER_ID,
        ),
        (ConsumerGroupHeartbeatRequest { instance_id: some(""), ..stay.clone() }, ErrorCode::INVALID_REQUEST),
        (
            ConsumerGroupHeartbeatRequest { server_assignor: some("x"), ..stay.clone() },
            ErrorCode::UNSUPPORTED_ASSIGNOR,
        ),
        (
            ConsumerGroupHeartbeatRequest { subscribed_topic_regex: some("["), ..stay },
            ErrorCode::INVALID_REGULAR_EXPRESSION,
        ),
    ] {
        let shown = format!("{request:?}");
        let answer = rig.ask(conn, 1, request);
        assert_eq!((answer.error_code, answer.member_id, answer.assignment), (code, None, None), "{shown}");
        assert!(answer.error_message.is_some(), "{shown}");
    }
    assert_eq!(describe(&mut rig, conn, &["g"]), before);
    assert!(a.beat(&mut rig).error_code.is_ok() && b.beat(&mut rig).error_code.is_ok());
}

#[test]
fn an_instance_id_belongs_to_one_member_until_that_one_leaves() {
    let mut rig = Rig::with_topic("t", 2);
    let conn = rig.connect(1);
    let join = |rig: &mut Rig, id: &str, epoch: i32| {
        let mut request = Member::new(rig, 1, "g", id, &["t"]).request();
        (request.instance_id, request.member_epoch) = (Some("i1".into()), epoch);
        rig.ask(conn, 1, request)
    };
    assert_eq!(join(&mut rig, "a", 0).error_code, ErrorCode::NONE);
    assert_eq!(join(&mut rig, "b", 0).error_code, ErrorCode::UNRELEASED_INSTANCE_ID);
    assert_eq!(join(&mut rig, "b", 2).error_code, ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(join(&mut rig, "a", -2).error_code, ErrorCode::NONE);
    let returned = join(&mut rig, "b", 0);
    assert_eq!(
        (returned.error_code, returned.member_epoch),
        (ErrorCode::NONE, 2),
        "the same epoch: nothing moved"
    );
    assert_eq!(join(&mut rig, "a", 2).error_code, ErrorCode::FENCED_INSTANCE_ID);
}

#[test]
fn only_assignors_that_the_broker_was_given_can_be_asked_for_and_the_first_is_the_default() {
    let mut rig = Rig::new(1, &[("group.consumer.assignors", "range")]);
    rig.topic("t", 2);
    let conn = rig.connect(1);
    let mut a = Member::new(&mut rig, 1, "g", "a", &["t"]);
    let mut asks = a.request();
    asks.server_assignor = Some("uniform".into());
    let refused = rig.ask(conn, 1, asks);
    assert_eq!(refused.error_code, ErrorCode::UNSUPPORTED_ASSIGNOR);
    let message = "ServerAssignor uniform is not supported. Supported assignors: range.";
    assert_eq!(refused.error_message.as_deref(), Some(message));
    assert_eq!(a.beat(&mut rig).error_code, ErrorCode::NONE);
    assert_eq!(describe(&mut rig, conn, &["g"])[0].assignor_name, "range");
}

#[test]
fn without_the_consumer_protocol_its_requests_are_answered_with_unsupported_version() {
    let mut rig = Rig::new(1, &[("group.coordinator.rebalance.protocols", "classic")]);
    rig.topic("t", 2);
    let conn = rig.connect(1);
    let list = rig.ask(conn, 4, ApiVersionsRequest::default());
    assert!(list.api_keys.iter().any(|row| row.api_key == ApiKey::ConsumerGroupHeartbeat as i16));
    let mut a = Member::new(&mut rig, 1, "g", "a", &["t"]);
    assert_eq!(a.beat(&mut rig).error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(describe(&mut rig, conn, &["g"])[0].error_code, ErrorCode::UNSUPPORTED_VERSION);
    let joined = rig.ask(conn, 9, join("", &[], -1));
    assert_eq!(joined.error_code, ErrorCode::MEMBER_ID_REQUIRED, "classic groups are served");
}

#[test]
fn settings_of_a_group_are_found_again_at_the_next_start() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[]).unwrap();
    let conn = rig.connect(1);
    let (interval, session) = ("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms");
    for (key, value) in [(interval, "7000"), (session, "50000"), (session, "55000")] {
        assert_eq!(alter(&mut rig, conn, key, Some(value)), (ErrorCode::NONE, None));
    }
    let disk = disk.after(Outage::Machine);
    let mut rig = Rig::on(&disk, 2, &[]).unwrap();
    rig.topic("t", 1);
    let mut a = Member::new(&mut rig, 1, "g", "a", &["t"]);
    assert_eq!(a.beat(&mut rig).heartbeat_interval_ms, 7000);
    let conn = rig.connect(1);
    assert_eq!(group_config(&mut rig, conn, session), Some("55000".into()));
    for key in [interval, session] {
        assert_eq!(alter(&mut rig, conn, key, None), (ErrorCode::NONE, None));
    }
    let mut rig = Rig::on(&disk.after(Outage::Machine), 3, &[]).unwrap();
    let conn = rig.connect(1);
    assert_eq!(group_config(&mut rig, conn, session), Some("45000".into()), "the broker's again");
}

fn group_config(rig: &mut Rig, conn: ConnId, key: &str) -> Option<String> {
    let resource = DescribeConfigsResource {
        resource_type: 32,
        resource_name: "g".into(),
        configuration_keys: Some(vec![key.into()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    rig.ask(conn, 4, request).results.remove(0).configs.remove(0).value
}

fn alter(rig: &mut Rig, conn: ConnId, key: &str, value: Option<&str>) -> (ErrorCode, Option<String>) {
    let config = AlterableConfig {
        name: key.into(),
        config_operation: i8::from(value.is_none()),
        value: value.map(str::to_owned),
    };
    let resource =
        AlterConfigsResource { resource_type: 32, resource_name: "g".into(), configs: vec![config] };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = rig.ask(conn, 1, request).responses.remove(0);
    (answer.error_code, answer.error_message)
}

#[test]
fn a_group_has_settings_of_its_own_between_the_bounds_of_the_broker() {
    let mut rig = Rig::new(
        1,
        &[
            ("group.consumer.min.heartbeat.interval.ms", "100"),
            ("group.consumer.min.session.timeout.ms", "1000"),
        ],
    );
    rig.topic("t", 2);
    let conn = rig.connect(1);
    let mut a = Member::new(&mut rig, 1, "g", "a", &["t"]);
    assert_eq!(a.beat(&mut rig).heartbeat_interval_ms, 50);
    let interval = "consumer.heartbeat.interval.ms";
    assert_eq!(alter(&mut rig, conn, interval, Some("300")), (ErrorCode::NONE, None));
    assert_eq!(a.beat(&mut rig).heartbeat_interval_ms, 300);
    let (code, message) = alter(&mut rig, conn, interval, Some("99"));
    assert_eq!(code, ErrorCode::INVALID_CONFIG);
    assert!(message.unwrap().contains("group.consumer.min.heartbeat.interval.ms"));
    assert_eq!(alter(&mut rig, conn, "consumer.size", Some("1")).0, ErrorCode::INVALID_CONFIG);
    assert_eq!(alter(&mut rig, conn, "consumer.session.timeout.ms", Some("1500")).0, ErrorCode::NONE);
    let describe = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 32,
            resource_name: "g".into(),
            configuration_keys: Some(vec![interval.into()]),
        }],
        ..Default::default()
    };
    let described = rig.ask(conn, 4, describe.clone()).results.remove(0).configs.remove(0);
    assert_eq!((described.value.as_deref(), described.config_source), (Some("300"), 8));
    a.beat(&mut rig);
    rig.advance(1600);
    assert_eq!(a.beat(&mut rig).error_code, ErrorCode::UNKNOWN_MEMBER_ID, "its session has ended");
    assert_eq!(alter(&mut rig, conn, interval, None).0, ErrorCode::INVALID_CONFIG, "longer than the session");
    for key in ["consumer.session.timeout.ms", interval] {
        assert_eq!(alter(&mut rig, conn, key, None).0, ErrorCode::NONE);
    }
    let described = rig.ask(conn, 4, describe).results.remove(0).configs.remove(0);
    assert_eq!((described.value.as_deref(), described.config_source), (Some("5000"), 5));
}
