//! Errors put where each API has room for them: instead of an answer, or over an answer that may not leave.

use super::classic::{join_refused, sync_refused};
use tontine_wire::{
    ErrorCode,
    api::{
        Request, Response,
        consumer_group_describe::{self, ConsumerGroupDescribeResponse},
        consumer_group_heartbeat::ConsumerGroupHeartbeatResponse,
        delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse},
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup},
        heartbeat::HeartbeatResponse,
        leave_group::LeaveGroupResponse,
        list_groups::ListGroupsResponse,
        offset_commit::{
            OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
            OffsetCommitResponseTopic,
        },
        offset_delete::OffsetDeleteResponse,
        offset_fetch::{
            OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition,
            OffsetFetchResponseTopic,
        },
    },
};

/// The answer that refuses a request with this error, wherever the API has room for it; `None` for an API that
/// coordinators do not answer. For drivers that cannot reach a coordinator.
pub fn refuse(request: &Request, version: i16, code: ErrorCode) -> Option<Response> {
    Some(match request {
        Request::JoinGroup(join) => join_refused(&join.member_id, code, version).into(),
        Request::SyncGroup(_) => sync_refused(code).into(),
        Request::Heartbeat(_) => HeartbeatResponse { error_code: code, ..Default::default() }.into(),
        Request::LeaveGroup(_) => LeaveGroupResponse { error_code: code, ..Default::default() }.into(),
        Request::OffsetCommit(commit) => refuse_commit(commit, code).into(),
        Request::OffsetFetch(fetch) => refuse_fetch(fetch, version, code).into(),
        Request::OffsetDelete(_) => OffsetDeleteResponse { error_code: code, ..Default::default() }.into(),
        Request::DescribeGroups(describe) => refuse_describe(describe, code).into(),
        Request::ListGroups(_) => ListGroupsResponse { error_code: code, ..Default::default() }.into(),
        Request::DeleteGroups(delete) => refuse_delete(delete, code).into(),
        Request::ConsumerGroupHeartbeat(_) => {
            ConsumerGroupHeartbeatResponse { error_code: code, ..Default::default() }.into()
        }
        Request::ConsumerGroupDescribe(describe) => {
            let group = |id: &String| consumer_group_describe::DescribedGroup {
                error_code: code,
                group_id: id.clone(),
                ..Default::default()
            };
            let groups = describe.group_ids.iter().map(group).collect();
            ConsumerGroupDescribeResponse { groups, ..Default::default() }.into()
        }
        _ => return None,
    })
}

fn refuse_commit(request: &OffsetCommitRequest, error_code: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter();
        let partition = |partition_index| OffsetCommitResponsePartition { partition_index, error_code };
        OffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: partitions.map(|p| partition(p.partition_index)).collect(),
        }
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

fn refuse_fetch(request: &OffsetFetchRequest, version: i16, error_code: ErrorCode) -> OffsetFetchResponse {
    let groups = request.groups.iter().map(|group| OffsetFetchResponseGroup {
        group_id: group.group_id.clone(),
        error_code,
        ..Default::default()
    });
    let partition = |partition_index| OffsetFetchResponsePartition {
        partition_index,
        committed_offset: -1,
        metadata: Some(String::new()),
        error_code,
        ..Default::default()
    };
    // Version 1 has no error of the group, only errors of partitions.
    let topics =
        request.topics.iter().flatten().filter(|_| version < 2).map(|topic| OffsetFetchResponseTopic {
            name: topic.name.clone(),
            partitions: topic.partition_indexes.iter().map(|p| partition(*p)).collect(),
        });
    OffsetFetchResponse {
        groups: groups.collect(),
        topics: topics.collect(),
        error_code: if version < 8 { error_code } else { ErrorCode::NONE },
        ..Default::default()
    }
}

fn refuse_describe(request: &DescribeGroupsRequest, error_code: ErrorCode) -> DescribeGroupsResponse {
    let groups = request.groups.iter().map(|group| DescribedGroup {
        error_code,
        group_id: group.clone(),
        ..Default::default()
    });
    DescribeGroupsResponse { groups: groups.collect(), ..Default::default() }
}

fn refuse_delete(request: &DeleteGroupsRequest, error_code: ErrorCode) -> DeleteGroupsResponse {
    let results = request.groups_names.iter().map(|group| DeletableGroupResult {
        group_id: group.clone(),
        error_code,
        error_message: None,
    });
    DeleteGroupsResponse { results: results.collect(), ..Default::default() }
}

/// Turns an answer that waited for the log into one that says that the log failed. Errors in it stay.
pub(super) fn spoil(response: Response, code: ErrorCode) -> Response {
    let over = |was: ErrorCode| if was.is_ok() { code } else { was };
    match response {
        Response::JoinGroup(join) => join_refused("", code, version_of(&join.protocol_name)).into(),
        Response::SyncGroup(sync) => sync_refused(over(sync.error_code)).into(),
        Response::Heartbeat(mut heartbeat) => {
            heartbeat.error_code = over(heartbeat.error_code);
            heartbeat.into()
        }
        Response::LeaveGroup(_) => LeaveGroupResponse { error_code: code, ..Default::default() }.into(),
        Response::OffsetCommit(mut commit) => {
            for partition in commit.topics.iter_mut().flat_map(|t| &mut t.partitions) {
                partition.error_code = over(partition.error_code);
            }
            commit.into()
        }
        Response::OffsetDelete(_) => OffsetDeleteResponse { error_code: code, ..Default::default() }.into(),
        Response::ConsumerGroupHeartbeat(_) => {
            ConsumerGroupHeartbeatResponse { error_code: code, ..Default::default() }.into()
        }
        Response::DeleteGroups(mut delete) => {
            for result in &mut delete.results {
                result.error_code = over(result.error_code);
            }
            delete.into()
        }
        // What only reads does not wait for the log.
        other => other,
    }
}

/// Whether a refused join has null or an empty name depends on the version; the answer at hand shows which it was.
fn version_of(protocol_name: &Option<String>) -> i16 {
    if protocol_name.is_none() { 7 } else { 6 }
}
