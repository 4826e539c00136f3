//! DescribeTopicPartitions: Metadata for topics with very many partitions, page by page (KIP-966).

use super::authorized;
use crate::state::{BrokerState, Call};
use crate::topics::{Topic, check_name};
use tontine_wire::ErrorCode;
use tontine_wire::api::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};

/// The most partitions of one answer (`max.request.partition.size.limit`).
const MOST: usize = 2000;

pub(super) fn answer(
    state: &BrokerState,
    _: &Call,
    request: &DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let mut names: Vec<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    if names.is_empty() {
        names = state.topics.iter().map(|topic| &*topic.name).collect();
    }
    names.sort_unstable();
    names.dedup();
    let (from, first) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index.max(0)),
        None => ("", 0),
    };
    let mut response = DescribeTopicPartitionsResponse::default();
    let mut room = usize::try_from(request.response_partition_limit).unwrap_or(MOST).clamp(1, MOST);
    for name in names.into_iter().filter(|name| *name >= from) {
        let skip = if name == from { first } else { 0 };
        if room == 0 {
            response.next_cursor = Some(Cursor { topic_name: name.to_owned(), partition_index: skip });
            break;
        }
        let Some(topic) = state.topics.get(name) else {
            response.topics.push(unknown(name));
            continue;
        };
        let page = describe(state, topic, skip, room);
        room -= page.partitions.len();
        let reached = i32::try_from(page.partitions.len()).unwrap_or(i32::MAX).saturating_add(skip);
        response.topics.push(page);
        if usize::try_from(reached).is_ok_and(|reached| reached < topic.partitions.len()) {
            response.next_cursor = Some(Cursor { topic_name: name.to_owned(), partition_index: reached });
            break;
        }
    }
    response
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let code = match check_name(name) {
        Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: code,
        name: Some(name.to_owned()),
        ..Default::default()
    }
}

fn describe(
    state: &BrokerState,
    topic: &Topic,
    skip: i32,
    room: usize,
) -> DescribeTopicPartitionsResponseTopic {
    let from = usize::try_from(skip).unwrap_or_default();
    let partitions = (0..).zip(&topic.partitions).skip(from).take(room).map(|(index, partition)| {
        let (isr_nodes, offline_replicas) = partition.replicas.iter().partition(|node| state.is_up(**node));
        DescribeTopicPartitionsResponsePartition {
            error_code: if partition.leader.is_none() {
                ErrorCode::LEADER_NOT_AVAILABLE
            } else {
                ErrorCode::NONE
            },
            partition_index: index,
            leader_id: partition.leader.unwrap_or(-1),
            leader_epoch: partition.leader_epoch,
            replica_nodes: partition.replicas.clone(),
            isr_nodes,
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            offline_replicas,
        }
    });
    DescribeTopicPartitionsResponseTopic {
        name: Some(topic.name.to_string()),
        topic_id: topic.id,
        is_internal: topic.is_internal(),
        partitions: partitions.collect(),
        topic_authorized_operations: authorized::topic(true),
        ..Default::default()
    }
}
