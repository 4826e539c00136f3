//! Requests about groups: each goes to the coordinator of its group, and those that name several groups are split.

use crate::gather::merge;
use crate::state::{Answer, BrokerState, Call};
use std::collections::BTreeMap;
use tontine_group::coordinator;
use tontine_wire::ErrorCode;
use tontine_wire::api::api_versions::ApiVersionsResponse;
use tontine_wire::api::consumer_group_describe::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse,
};
use tontine_wire::api::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use tontine_wire::api::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
use tontine_wire::api::list_groups::{ListGroupsRequest, ListGroupsResponse};
use tontine_wire::api::offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};
use tontine_wire::api::{Request, Response};

pub(super) fn answer<R: Into<Request>>(state: &mut BrokerState, call: &Call, request: R) -> Answer {
    match request.into() {
        Request::DescribeGroups(request) => describe(state, call, request),
        Request::ConsumerGroupDescribe(request) => describe_consumers(state, call, request),
        Request::DeleteGroups(request) => delete(state, call, request),
        Request::ListGroups(request) => list(state, call, &request),
        Request::OffsetFetch(request) if call.version >= 8 => fetch_offsets(state, call, request),
        request => match group_of(&request).map(str::to_owned) {
            Some(group) => state.ask_coordinator(call, &group, request),
            None => Answer::Now(super::refuse_unserved(&request)),
        },
    }
}

/// Refuses a request about groups.
pub(super) fn refuse<R>(request: &Request, _: &R, version: i16, code: ErrorCode) -> Response {
    // A coordinator knows all requests about groups; ApiVersions is read by every client.
    coordinator::refuse(request, version, code)
        .unwrap_or_else(|| ApiVersionsResponse { error_code: code, ..Default::default() }.into())
}

/// The one group that a request is about.
fn group_of(request: &Request) -> Option<&str> {
    match request {
        Request::JoinGroup(request) => Some(&request.group_id),
        Request::SyncGroup(request) => Some(&request.group_id),
        Request::Heartbeat(request) => Some(&request.group_id),
        Request::LeaveGroup(request) => Some(&request.group_id),
        Request::OffsetCommit(request) => Some(&request.group_id),
        Request::OffsetFetch(request) => Some(&request.group_id),
        Request::OffsetDelete(request) => Some(&request.group_id),
        Request::ConsumerGroupHeartbeat(request) => Some(&request.group_id),
        _ => None,
    }
}

fn describe(state: &mut BrokerState, call: &Call, request: DescribeGroupsRequest) -> Answer {
    let include_authorized_operations = request.include_authorized_operations;
    let parts = by_shard(state, request.groups, |group| group);
    let parts = parts.into_iter().map(|(shard, groups)| {
        (shard, DescribeGroupsRequest { groups, include_authorized_operations }.into())
    });
    let parts = parts.collect();
    split(state, call, parts, DescribeGroupsResponse::default().into())
}

fn describe_consumers(state: &mut BrokerState, call: &Call, request: ConsumerGroupDescribeRequest) -> Answer {
    let include_authorized_operations = request.include_authorized_operations;
    let parts = by_shard(state, request.group_ids, |group| group);
    let parts = parts.into_iter().map(|(shard, group_ids)| {
        (shard, ConsumerGroupDescribeRequest { group_ids, include_authorized_operations }.into())
    });
    let parts = parts.collect();
    split(state, call, parts, ConsumerGroupDescribeResponse::default().into())
}

fn delete(state: &mut BrokerState, call: &Call, request: DeleteGroupsRequest) -> Answer {
    let parts = by_shard(state, request.groups_names, |group| group);
    let parts =
        parts.into_iter().map(|(shard, groups_names)| (shard, DeleteGroupsRequest { groups_names }.into()));
    let parts = parts.collect();
    split(state, call, parts, DeleteGroupsResponse::default().into())
}

fn fetch_offsets(state: &mut BrokerState, call: &Call, request: OffsetFetchRequest) -> Answer {
    let require_stable = request.require_stable;
    let parts = by_shard(state, request.groups, |group| &group.group_id);
    let parts = parts.into_iter().map(|(shard, groups)| {
        (shard, OffsetFetchRequest { groups, require_stable, ..Default::default() }.into())
    });
    let parts = parts.collect();
    split(state, call, parts, OffsetFetchResponse::default().into())
}

/// Every coordinator on this node is asked; the admin client asks every node.
fn list(state: &mut BrokerState, call: &Call, request: &ListGroupsRequest) -> Answer {
    let here = state.groups.shards.iter().filter(|(_, shard)| shard.node == call.node);
    let parts = here.map(|(index, _)| (*index, request.clone().into())).collect();
    split(state, call, parts, ListGroupsResponse::default().into())
}

fn by_shard<T>(state: &BrokerState, items: Vec<T>, group: impl Fn(&T) -> &str) -> Vec<(i32, Vec<T>)> {
    let mut parts: BTreeMap<i32, Vec<T>> = BTreeMap::new();
    for item in items {
        parts.entry(state.shard_of(group(&item))).or_default().push(item);
    }
    parts.into_iter().collect()
}

/// Asks several coordinators and answers when all of them have.
fn split(state: &mut BrokerState, call: &Call, parts: Vec<(i32, Request)>, mut merged: Response) -> Answer {
    let mut asked = Vec::new();
    for (shard, request) in parts {
        match state.check_coordinator(call.now, call.node, shard) {
            Ok(()) => asked.push((shard, request)),
            Err(code) => merge(&mut merged, super::refuse(&request, call.version, code)),
        }
    }
    if asked.is_empty() {
        return Answer::Now(merged);
    }
    let whole = state.park_call(call, None);
    let tickets: Vec<_> = asked.iter().map(|_| state.ticket()).collect();
    state.groups.gathering.begin(whole, &tickets, merged);
    for ((shard, request), ticket) in asked.into_iter().zip(tickets) {
        state.ask(call, shard, ticket, request);
    }
    Answer::Later
}
