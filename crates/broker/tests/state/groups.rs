//! Groups through the broker: the right node, parked joins, splitting, and moving with nothing lost.

use crate::rig::Rig;
use bytes::Bytes;
use tontine_broker::ConnId;
use tontine_group::TopicPartition;
use tontine_wire::ErrorCode;
use tontine_wire::api::delete_groups::DeleteGroupsRequest;
use tontine_wire::api::describe_groups::DescribeGroupsRequest;
use tontine_wire::api::find_coordinator::FindCoordinatorRequest;
use tontine_wire::api::heartbeat::HeartbeatRequest;
use tontine_wire::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use tontine_wire::api::list_groups::ListGroupsRequest;
use tontine_wire::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use tontine_wire::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use tontine_wire::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};

fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: member_id.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"m"),
        }],
        ..Default::default()
    }
}

pub(crate) fn coordinator(rig: &mut Rig, group: &str) -> ConnId {
    let conn = rig.connect(1);
    let request = FindCoordinatorRequest { coordinator_keys: vec![group.into()], ..Default::default() };
    let node = rig.ask(conn, 6, request).coordinators[0].node_id;
    rig.connect(node)
}

/// A lone member that is stable; its id.
pub(crate) fn stable_member(rig: &mut Rig, conn: ConnId, group: &str) -> String {
    let id = rig.ask(conn, 9, join(group, "")).member_id;
    let joined = rig.ask(conn, 9, join(group, &id));
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 1));
    let sync = SyncGroupRequest {
        group_id: group.into(),
        generation_id: 1,
        member_id: id.clone(),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: id.clone(),
            assignment: Bytes::from_static(b"a"),
        }],
        ..Default::default()
    };
    assert_eq!(rig.ask(conn, 5, sync).error_code, ErrorCode::NONE);
    id
}

pub(crate) fn heartbeat(group: &str, member_id: &str) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: group.into(),
        generation_id: 1,
        member_id: member_id.into(),
        ..Default::default()
    }
}

fn commit(group: &str, member_id: &str, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: if member_id.is_empty() { -1 } else { 1 },
        member_id: member_id.into(),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[test]
fn a_join_waits_for_the_other_member() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = coordinator(&mut rig, "g");
    let first = stable_member(&mut rig, conn, "g");
    let second = rig.connect(1);
    let id = rig.ask(second, 9, join("g", "")).member_id;
    rig.send(second, 9, join("g", &id));
    assert_eq!(rig.answer(second), None);
    assert_eq!(rig.ask(conn, 4, heartbeat("g", &first)).error_code, ErrorCode::REBALANCE_IN_PROGRESS);
    rig.send(conn, 9, join("g", &first));
    for member in [conn, second] {
        let joined: JoinGroupResponse = rig.answer_as(member).unwrap();
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::NONE, 2));
    }
    assert_eq!(rig.state.groups()[0].members.len(), 2);
}

#[test]
fn a_silent_member_is_gone_after_its_session() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = coordinator(&mut rig, "g");
    let id = stable_member(&mut rig, conn, "g");
    rig.advance(9_000);
    assert_eq!(rig.ask(conn, 4, heartbeat("g", &id)).error_code, ErrorCode::NONE);
    rig.advance(10_001);
    assert_eq!(rig.ask(conn, 4, heartbeat("g", &id)).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn only_the_coordinator_answers() {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 1);
    let right = coordinator(&mut rig, "g");
    let wrong = rig.state.coordinator_of("g").unwrap() % 3 + 1;
    let wrong = rig.connect(wrong);
    assert_eq!(rig.ask(wrong, 9, join("g", "")).error_code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(rig.ask(right, 9, join("g", "")).error_code, ErrorCode::MEMBER_ID_REQUIRED);
    let refused = rig.ask(wrong, 9, commit("g", "", 1));
    assert_eq!(refused.topics[0].partitions[0].error_code, ErrorCode::NOT_COORDINATOR);
    let describe = DescribeGroupsRequest { groups: vec!["g".into()], ..Default::default() };
    assert_eq!(rig.ask(wrong, 5, describe).groups[0].error_code, ErrorCode::NOT_COORDINATOR);
}

#[test]
fn a_group_moves_with_its_members_and_offsets() {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 1);
    let conn = coordinator(&mut rig, "g");
    let id = stable_member(&mut rig, conn, "g");
    assert_eq!(rig.ask(conn, 9, commit("g", &id, 42)).topics[0].partitions[0].error_code, ErrorCode::NONE);
    let old = rig.state.coordinator_of("g").unwrap();
    rig.state.stop_node(rig.now, old).unwrap();
    rig.drain();
    let moved = rig.state.coordinator_of("g").unwrap();
    assert_ne!(moved, old);
    let conn = rig.connect(moved);
    assert_eq!(rig.ask(conn, 4, heartbeat("g", &id)).error_code, ErrorCode::NONE);
    assert_eq!(rig.state.committed_offsets("g"), [(TopicPartition::new("t", 0), 42)].into());
    let group = OffsetFetchRequestGroup { group_id: "g".into(), topics: None, ..Default::default() };
    let fetched = rig.ask(conn, 9, OffsetFetchRequest { groups: vec![group], ..Default::default() });
    assert_eq!(fetched.groups[0].topics[0].partitions[0].committed_offset, 42);
}

#[test]
fn a_parked_join_is_told_when_the_coordinator_moves() {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 1);
    let conn = coordinator(&mut rig, "g");
    stable_member(&mut rig, conn, "g");
    let node = rig.state.coordinator_of("g").unwrap();
    let second = rig.connect(node);
    let id = rig.ask(second, 9, join("g", "")).member_id;
    rig.send(second, 9, join("g", &id));
    rig.state.move_coordinator(rig.now, "g", node % 3 + 1).unwrap();
    rig.drain();
    let refused: JoinGroupResponse = rig.answer_as(second).unwrap();
    assert_eq!(refused.error_code, ErrorCode::NOT_COORDINATOR);
}

#[test]
fn requests_about_several_groups_are_split_and_put_together() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    for name in &names {
        assert_eq!(rig.ask(conn, 9, commit(name, "", 7)).topics[0].partitions[0].error_code, ErrorCode::NONE);
    }
    let mut listed: Vec<String> = rig
        .ask(conn, 5, ListGroupsRequest::default())
        .groups
        .into_iter()
        .map(|group| group.group_id)
        .collect();
    listed.sort();
    assert_eq!(listed, names);
    let describe = DescribeGroupsRequest { groups: names.clone(), ..Default::default() };
    assert_eq!(rig.ask(conn, 5, describe).groups.len(), 4);
    let groups = names
        .iter()
        .map(|name| OffsetFetchRequestGroup { group_id: name.clone(), topics: None, ..Default::default() })
        .collect();
    let fetched = rig.ask(conn, 9, OffsetFetchRequest { groups, ..Default::default() });
    assert!(fetched.groups.iter().all(|group| group.topics[0].partitions[0].committed_offset == 7));
    let deleted = rig.ask(conn, 2, DeleteGroupsRequest { groups_names: names });
    assert!(deleted.results.iter().all(|result| result.error_code.is_ok()), "{deleted:?}");
    assert_eq!(rig.ask(conn, 5, ListGroupsRequest::default()).groups, []);
}

#[test]
fn a_deleted_topic_takes_its_offsets_along() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    rig.ask(conn, 9, commit("g", "", 7));
    rig.delete("t").unwrap();
    rig.drain();
    assert_eq!(rig.state.committed_offsets("g"), [].into());
}

#[test]
fn a_group_that_commits_for_ever_does_not_grow_for_ever() {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 1);
    let conn = coordinator(&mut rig, "g");
    let id = stable_member(&mut rig, conn, "g");
    for offset in 0..30_000 {
        rig.ask(conn, 9, commit("g", &id, offset));
    }
    let shard =
        (0..50).find(|shard| rig.state.log_offsets("__consumer_offsets", *shard) > Some((0, 0))).unwrap();
    let size: usize = rig.state.batches("__consumer_offsets", shard).iter().map(|batch| batch.size()).sum();
    assert!(size < 3_000_000, "{size} bytes for one offset");
    let node = rig.state.coordinator_of("g").unwrap();
    rig.state.stop_node(rig.now, node).unwrap();
    rig.drain();
    let conn = rig.connect(rig.state.coordinator_of("g").unwrap());
    assert_eq!(rig.ask(conn, 4, heartbeat("g", &id)).error_code, ErrorCode::NONE);
    assert_eq!(rig.state.committed_offsets("g"), [(TopicPartition::new("t", 0), 29_999)].into());
}
