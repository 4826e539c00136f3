//! CreateTopics: answered when the topic can be produced to.

use super::admin::repeated;
use super::describe_configs;
use crate::creation::NewTopic;
use crate::state::{BrokerState, Call};
use crate::topics::Refusal;
use tontine_wire::ErrorCode;
use tontine_wire::api::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};

pub(super) fn answer(
    state: &mut BrokerState,
    call: &Call,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let repeated = repeated(request.topics.iter().map(|topic| topic.name.as_str()));
    let mut topics: Vec<CreatableTopicResult> = repeated.iter().map(|name| twice(name)).collect();
    for topic in request.topics.into_iter().filter(|topic| !repeated.contains(&topic.name)) {
        let name = topic.name.clone();
        topics.push(match create(state, call, topic, request.validate_only) {
            Ok(created) => created,
            Err(refusal) => CreatableTopicResult {
                name,
                error_code: refusal.code,
                error_message: Some(refusal.message),
                topic_config_error_code: ErrorCode::NONE,
                configs: Some(Vec::new()),
                ..Default::default()
            },
        });
    }
    CreateTopicsResponse { topics, ..Default::default() }
}

fn twice(name: &str) -> CreatableTopicResult {
    CreatableTopicResult {
        name: name.to_owned(),
        error_code: ErrorCode::INVALID_REQUEST,
        error_message: Some("Duplicate topic name.".into()),
        configs: Some(Vec::new()),
        ..Default::default()
    }
}

fn create(
    state: &mut BrokerState,
    call: &Call,
    topic: CreatableTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult, Refusal> {
    let name = topic.name.clone();
    let checked = state.check_topic(&wanted(topic)?)?;
    let num_partitions = i32::try_from(checked.replicas.len()).unwrap_or(i32::MAX);
    let factor = checked.replicas.first().map_or(0, Vec::len);
    let configs = describe_configs::of_topic(state, &checked.config).map(|config| CreatableTopicConfigs {
        name: config.name,
        value: config.value,
        read_only: config.read_only,
        config_source: config.config_source,
        is_sensitive: config.is_sensitive,
    });
    let configs = configs.collect();
    let topic_id =
        if validate_only { tontine_wire::Uuid::ZERO } else { state.add_topic(call.now, checked)? };
    Ok(CreatableTopicResult {
        name,
        topic_id,
        num_partitions,
        replication_factor: i16::try_from(factor).unwrap_or(i16::MAX),
        configs: Some(configs),
        ..Default::default()
    })
}

fn wanted(topic: CreatableTopic) -> Result<NewTopic, Refusal> {
    let mut assignments = topic.assignments;
    if !assignments.is_empty() && (topic.num_partitions != -1 || topic.replication_factor != -1) {
        return Err(Refusal::new(
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.",
        ));
    }
    assignments.sort_by_key(|assignment| assignment.partition_index);
    if (0..).zip(&assignments).any(|(index, assignment)| assignment.partition_index != index) {
        return Err(Refusal::new(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ));
    }
    let config = |(name, value): (String, Option<String>)| match value {
        Some(value) => Ok((name, value)),
        None => Err(Refusal::new(
            ErrorCode::INVALID_CONFIG,
            format!("Null value not supported for topic configs: {name}"),
        )),
    };
    Ok(NewTopic {
        name: topic.name,
        partitions: (topic.num_partitions != -1).then_some(topic.num_partitions),
        replication_factor: (topic.replication_factor != -1).then_some(topic.replication_factor),
        assignments: assignments.into_iter().map(|assignment| assignment.broker_ids).collect(),
        configs: topic
            .configs
            .into_iter()
            .map(|entry| config((entry.name, entry.value)))
            .collect::<Result<_, _>>()?,
    })
}
