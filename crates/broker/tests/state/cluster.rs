//! Nodes stop and start, leaders and coordinators move.

use crate::rig::{Rig, batch, by_id, fetch_request, produce_request};
use tontine_broker::{Closing, ClusterError, NewTopic};
use tontine_wire::ErrorCode;
use tontine_wire::api::elect_leaders::ElectLeadersRequest;
use tontine_wire::api::fetch::FetchResponse;
use tontine_wire::api::find_coordinator::FindCoordinatorRequest;
use tontine_wire::api::metadata::MetadataRequest;

fn cluster() -> Rig {
    let mut rig = Rig::new(3, &[]);
    rig.topic("t", 3);
    rig
}

fn leaders(rig: &Rig) -> Vec<Option<(i32, i32)>> {
    (0..3).map(|partition| rig.state.leader("t", partition)).collect()
}

#[test]
fn a_stopped_node_loses_its_connections_and_its_partitions() {
    let mut rig = cluster();
    assert_eq!(leaders(&rig), [Some((1, 0)), Some((2, 0)), Some((3, 0))]);
    let (gone, stays) = (rig.connect(2), rig.connect(1));
    rig.state.stop_node(rig.now, 2).unwrap();
    rig.drain();
    assert_eq!(rig.closed, [(gone, Closing::NodeStopped)]);
    assert_eq!(leaders(&rig), [Some((1, 0)), Some((3, 1)), Some((3, 0))]);
    let metadata = rig.ask(stays, 12, MetadataRequest { topics: None, ..Default::default() });
    assert_eq!(metadata.brokers.iter().map(|node| node.node_id).collect::<Vec<_>>(), [1, 3]);
    let partition = &metadata.topics[0].partitions[1];
    assert_eq!((partition.leader_id, partition.leader_epoch), (3, 1));
    assert_eq!((&partition.isr_nodes[..], &partition.offline_replicas[..]), (&[3, 1][..], &[2][..]));
    rig.state.start_node(rig.now, 2).unwrap();
    assert_eq!(leaders(&rig)[1], Some((3, 1)));
    rig.state.elect_preferred_leaders(rig.now);
    assert_eq!(leaders(&rig), [Some((1, 0)), Some((2, 2)), Some((3, 0))]);
}

#[test]
fn a_partition_without_a_live_replica_waits_for_one() {
    let mut rig = Rig::new(3, &[]);
    let topic = NewTopic { replication_factor: Some(1), ..NewTopic::new("t", 3) };
    rig.create(&topic).unwrap();
    rig.state.stop_node(rig.now, 2).unwrap();
    assert_eq!(rig.state.leader("t", 1), None);
    let conn = rig.connect(1);
    let metadata = rig.ask(conn, 12, MetadataRequest { topics: None, ..Default::default() });
    let partition = &metadata.topics[0].partitions[1];
    assert_eq!((partition.error_code, partition.leader_id), (ErrorCode::LEADER_NOT_AVAILABLE, -1));
    rig.state.start_node(rig.now, 2).unwrap();
    assert_eq!(rig.state.leader("t", 1), Some((2, 2)));
}

#[test]
fn whoever_asks_the_wrong_node_is_told_the_right_one() {
    let mut rig = cluster();
    let conn = rig.connect(1);
    let metadata = rig.ask(conn, 12, MetadataRequest { topics: None, ..Default::default() });
    let response = rig.ask(conn, 16, by_id(fetch_request("t", &[(1, 0)], 0), metadata.topics[0].topic_id));
    let data = &response.responses[0].partitions[0];
    assert_eq!(data.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((data.current_leader.leader_id, data.current_leader.leader_epoch), (2, 0));
    assert_eq!(
        response.node_endpoints.iter().map(|node| (node.node_id, node.port)).collect::<Vec<_>>(),
        [(2, 9002)]
    );
    let response = rig.ask(conn, 10, produce_request("t", 1, -1, batch(&["a"])));
    let refused = &response.responses[0].partition_responses[0];
    assert_eq!(
        (refused.error_code, refused.current_leader.leader_id),
        (ErrorCode::NOT_LEADER_OR_FOLLOWER, 2)
    );
    assert_eq!(response.node_endpoints[0].port, 9002);
}

#[test]
fn a_fetch_that_waits_is_told_when_the_leader_moves() {
    let mut rig = cluster();
    let conn = rig.connect(1);
    rig.send(conn, 12, fetch_request("t", &[(0, 0)], 10_000));
    rig.state.move_leader(rig.now, "t", 0, 2).unwrap();
    rig.drain();
    let answer: FetchResponse = rig.answer_as(conn).unwrap();
    let data = &answer.responses[0].partitions[0];
    assert_eq!((data.error_code, data.current_leader.leader_id), (ErrorCode::NOT_LEADER_OR_FOLLOWER, 2));
    // The records are there: the replicas of a test cluster share them.
    let other = rig.connect(2);
    assert_eq!(rig.produce(other, "t", 0, &["x"]).base_offset, 0);
    assert_eq!(rig.state.batches("t", 0)[0].leader_epoch(), 1);
}

#[test]
fn too_few_replicas_refuse_acks_of_all() {
    let mut rig = Rig::new(3, &[("min.insync.replicas", "3")]);
    rig.topic("t", 1);
    let conn = rig.connect(1);
    assert_eq!(rig.produce(conn, "t", 0, &["a"]).error_code, ErrorCode::NONE);
    rig.state.stop_node(rig.now, 3).unwrap();
    assert_eq!(rig.produce(conn, "t", 0, &["a"]).error_code, ErrorCode::NOT_ENOUGH_REPLICAS);
    assert_eq!(rig.produce_bytes(conn, "t", 0, 1, batch(&["a"])).error_code, ErrorCode::NONE);
}

#[test]
fn commands_that_make_no_sense_say_why() {
    let mut rig = cluster();
    let now = rig.now;
    assert_eq!(rig.state.stop_node(now, 9), Err(ClusterError::UnknownNode(9)));
    assert_eq!(rig.state.move_leader(now, "u", 0, 1), Err(ClusterError::UnknownPartition("u".into(), 0)));
    rig.state.stop_node(now, 3).unwrap();
    assert_eq!(rig.state.move_leader(now, "t", 0, 3), Err(ClusterError::NodeDown(3)));
    let topic = NewTopic { replication_factor: Some(1), ..NewTopic::new("one", 1) };
    rig.state.create_topic(now, &topic).unwrap();
    let error = rig.state.move_leader(now, "one", 0, 2).unwrap_err();
    assert_eq!(error.to_string(), "node 2 holds no replica of `one-0`: its replicas are on [1]");
}

#[test]
fn elections_can_be_asked_for() {
    let mut rig = cluster();
    let conn = rig.connect(1);
    rig.state.move_leader(rig.now, "t", 0, 3).unwrap();
    let all = rig.ask(conn, 2, ElectLeadersRequest { topic_partitions: None, ..Default::default() });
    assert_eq!(all.replica_election_results.len(), 1);
    assert_eq!(all.replica_election_results[0].partition_result[0].partition_id, 0);
    assert_eq!(leaders(&rig)[0], Some((1, 2)));
}

#[test]
fn the_coordinator_of_a_group_hangs_on_its_name_and_moves() {
    let mut rig = cluster();
    let conn = rig.connect(1);
    let find = |rig: &mut Rig, version: i16| {
        let request = FindCoordinatorRequest {
            key: "g".into(),
            coordinator_keys: vec!["g".into()],
            ..Default::default()
        };
        let response = rig.ask(conn, version, request);
        match version {
            0..=3 => (response.node_id, response.port),
            _ => (response.coordinators[0].node_id, response.coordinators[0].port),
        }
    };
    let first = find(&mut rig, 6);
    assert_eq!(first, find(&mut rig, 2));
    assert_eq!(first.1, 9000 + first.0);
    let other = first.0 % 3 + 1;
    rig.state.move_coordinator(rig.now, "g", other).unwrap();
    assert_eq!(find(&mut rig, 6), (other, 9000 + other));
    rig.state.stop_node(rig.now, other).unwrap();
    assert_ne!(find(&mut rig, 6).0, other);
}
