//! Answers as the proxy changes them: addresses of nodes become its own, and requests are refused in a broker's place.

use std::collections::BTreeMap;
use tontine_wire::ErrorCode;
use tontine_wire::api::{ApiKey, Request, Response};
use tontine_wire::api::{
    consumer_group_heartbeat, find_coordinator, heartbeat, join_group, leave_group, offset_commit,
    offset_fetch, sync_group,
};

/// Whether answers of this API name nodes.
pub(super) fn has_addresses(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::Metadata
            | ApiKey::FindCoordinator
            | ApiKey::DescribeCluster
            | ApiKey::DescribeTopicPartitions
            | ApiKey::Produce
            | ApiKey::Fetch
    )
}

/// Calls `with` on the host and port of every node that the answer names.
fn each_address(response: &mut Response, with: &mut dyn FnMut(&mut String, &mut i32)) {
    match response {
        Response::Metadata(m) => m.brokers.iter_mut().for_each(|b| with(&mut b.host, &mut b.port)),
        Response::DescribeCluster(m) => m.brokers.iter_mut().for_each(|b| with(&mut b.host, &mut b.port)),
        Response::FindCoordinator(m) => {
            with(&mut m.host, &mut m.port);
            m.coordinators.iter_mut().for_each(|c| with(&mut c.host, &mut c.port));
        }
        Response::Produce(m) => m.node_endpoints.iter_mut().for_each(|n| with(&mut n.host, &mut n.port)),
        Response::Fetch(m) => m.node_endpoints.iter_mut().for_each(|n| with(&mut n.host, &mut n.port)),
        _ => {}
    }
}

/// The addresses of the nodes that the answer names.
pub(super) fn addresses(response: &mut Response) -> Vec<String> {
    let mut found = Vec::new();
    each_address(response, &mut |host, port| {
        if *port > 0 {
            found.push(format!("{host}:{port}"));
        }
    });
    found
}

/// Puts the proxy's ports where the nodes' own were.
pub(super) fn readdress(response: &mut Response, ports: &BTreeMap<String, u16>) {
    each_address(response, &mut |host, port| {
        if let Some(own) = ports.get(&format!("{host}:{port}")) {
            *host = "127.0.0.1".to_owned();
            *port = i32::from(*own);
        }
    });
}

/// An answer that refuses the request with `code` as a broker does; `None` for APIs that no test refuses.
pub(super) fn refusal(request: &Request, code: ErrorCode) -> Option<Response> {
    Some(match request {
        Request::Heartbeat(_) => {
            heartbeat::HeartbeatResponse { error_code: code, ..Default::default() }.into()
        }
        Request::ConsumerGroupHeartbeat(_) => consumer_group_heartbeat::ConsumerGroupHeartbeatResponse {
            error_code: code,
            error_message: Some("as the test wants it".to_owned()),
            ..Default::default()
        }
        .into(),
        Request::JoinGroup(m) => join_group::JoinGroupResponse {
            error_code: code,
            member_id: m.member_id.clone(),
            ..Default::default()
        }
        .into(),
        Request::SyncGroup(_) => {
            sync_group::SyncGroupResponse { error_code: code, ..Default::default() }.into()
        }
        Request::LeaveGroup(_) => {
            leave_group::LeaveGroupResponse { error_code: code, ..Default::default() }.into()
        }
        Request::OffsetCommit(m) => refused_commit(m, code).into(),
        Request::OffsetFetch(m) => refused_fetch(m, code).into(),
        Request::FindCoordinator(m) => refused_lookup(m, code).into(),
        _ => return None,
    })
}

fn refused_commit(
    request: &offset_commit::OffsetCommitRequest,
    code: ErrorCode,
) -> offset_commit::OffsetCommitResponse {
    let topic = |topic: &offset_commit::OffsetCommitRequestTopic| offset_commit::OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|p| offset_commit::OffsetCommitResponsePartition {
                partition_index: p.partition_index,
                error_code: code,
            })
            .collect(),
    };
    offset_commit::OffsetCommitResponse {
        topics: request.topics.iter().map(topic).collect(),
        ..Default::default()
    }
}

fn refused_fetch(
    request: &offset_fetch::OffsetFetchRequest,
    code: ErrorCode,
) -> offset_fetch::OffsetFetchResponse {
    let group = |group: &offset_fetch::OffsetFetchRequestGroup| offset_fetch::OffsetFetchResponseGroup {
        group_id: group.group_id.clone(),
        error_code: code,
        ..Default::default()
    };
    offset_fetch::OffsetFetchResponse {
        error_code: code,
        groups: request.groups.iter().map(group).collect(),
        ..Default::default()
    }
}

fn refused_lookup(
    request: &find_coordinator::FindCoordinatorRequest,
    code: ErrorCode,
) -> find_coordinator::FindCoordinatorResponse {
    let coordinator = |key: &String| find_coordinator::Coordinator {
        key: key.clone(),
        node_id: -1,
        port: -1,
        error_code: code,
        ..Default::default()
    };
    find_coordinator::FindCoordinatorResponse {
        error_code: code,
        node_id: -1,
        port: -1,
        coordinators: request.coordinator_keys.iter().map(coordinator).collect(),
        ..Default::default()
    }
}
