//! Metadata: nodes, topics, partitions and their leaders. Mirrors `KafkaApis.handleTopicMetadataRequest`.

use super::authorized;
use crate::creation::NewTopic;
use crate::state::{BrokerState, Call};
use crate::topics::{Partition, Topic, check_name, is_internal};
use tontine_wire::api::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};
use tontine_wire::{ErrorCode, Uuid};

pub(super) fn answer(state: &mut BrokerState, call: &Call, request: &MetadataRequest) -> MetadataResponse {
    let operations = authorized::topic(request.include_topic_authorized_operations);
    let topics = match &request.topics {
        Some(topics) if !(topics.is_empty() && call.version == 0) => {
            topics.iter().map(|topic| one(state, call, request, topic)).collect()
        }
        _ => state.topics.iter().map(|topic| describe(state, topic)).collect(),
    };
    let with_operations = |mut topic: MetadataResponseTopic| {
        if topic.error_code.is_ok() {
            topic.topic_authorized_operations = operations;
        }
        topic
    };
    let topics: Vec<MetadataResponseTopic> = topics;
    MetadataResponse {
        brokers: brokers(state),
        cluster_id: Some(state.cluster_id.clone()),
        controller_id: state.controller(),
        topics: topics.into_iter().map(with_operations).collect(),
        cluster_authorized_operations: authorized::cluster(request.include_cluster_authorized_operations),
        ..Default::default()
    }
}

fn brokers(state: &BrokerState) -> Vec<MetadataResponseBroker> {
    let up = state.nodes.iter().filter(|(_, node)| node.up);
    up.map(|(id, node)| MetadataResponseBroker {
        node_id: *id,
        host: node.host.clone(),
        port: i32::from(node.port),
        rack: node.rack.as_deref().map(str::to_owned),
    })
    .collect()
}

fn one(
    state: &mut BrokerState,
    call: &Call,
    request: &MetadataRequest,
    wanted: &MetadataRequestTopic,
) -> MetadataResponseTopic {
    let Some(name) = &wanted.name else { return by_id(state, wanted.topic_id) };
    if let Some(topic) = state.topics.get(name) {
        return describe(state, topic);
    }
    let allowed =
        state.settings.auto_create_topics && (request.allow_auto_topic_creation || call.version < 4);
    let code = if check_name(name).is_err() {
        ErrorCode::INVALID_TOPIC_EXCEPTION
    } else if allowed && !is_internal(name) {
        let new = NewTopic { name: name.clone(), ..NewTopic::default() };
        match state.create_topic(call.now, &new) {
            Ok(_) => ErrorCode::NONE,
            Err((code, _)) => code,
        }
    } else {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    };
    match state.topics.get(name) {
        Some(topic) if code.is_ok() => describe(state, topic),
        _ => MetadataResponseTopic {
            error_code: code,
            name: Some(name.clone()),
            is_internal: is_internal(name),
            ..Default::default()
        },
    }
}

fn by_id(state: &BrokerState, id: Uuid) -> MetadataResponseTopic {
    match state.topics.name_of(id).and_then(|name| state.topics.get(name)) {
        Some(topic) => describe(state, topic),
        None => MetadataResponseTopic {
            error_code: ErrorCode::UNKNOWN_TOPIC_ID,
            topic_id: id,
            ..Default::default()
        },
    }
}

fn describe(state: &BrokerState, topic: &Topic) -> MetadataResponseTopic {
    MetadataResponseTopic {
        name: Some(topic.name.to_string()),
        topic_id: topic.id,
        is_internal: topic.is_internal(),
        partitions: (0..)
            .zip(&topic.partitions)
            .map(|(index, known)| partition(state, index, known))
            .collect(),
        ..Default::default()
    }
}

fn partition(state: &BrokerState, index: i32, known: &Partition) -> MetadataResponsePartition {
    let (in_sync, offline) = known.replicas.iter().partition(|node| state.is_up(**node));
    MetadataResponsePartition {
        error_code: if known.leader.is_none() { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE },
        partition_index: index,
        leader_id: known.leader.unwrap_or(-1),
        leader_epoch: known.leader_epoch,
        replica_nodes: known.replicas.clone(),
        isr_nodes: in_sync,
        offline_replicas: offline,
    }
}
