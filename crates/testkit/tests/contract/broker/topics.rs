//! Topics and their settings: created, grown, described, altered, deleted.

use super::requests::connect;
use std::time::Duration;
use tontine_testkit::cluster::Cluster;
use tontine_testkit::raw::RawConnection;
use tontine_testkit::suite::{Outcome, Suite};
use tontine_testkit::{Failure, bodies, ensure, ensure_eq};
use tontine_wire::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use tontine_wire::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult,
    CreateTopicsRequest,
};
use tontine_wire::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use tontine_wire::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use tontine_wire::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use tontine_wire::api::metadata::{MetadataRequest, MetadataRequestTopic};
use tontine_wire::{ErrorCode, Uuid};

pub fn register(suite: &mut Suite) {
    bodies!(suite, "broker::topics", one: [
        topics_that_cannot_be_are_refused,
        a_topic_is_created_grown_and_deleted_by_its_id,
        settings_are_described_and_altered,
        metadata_names_what_is_wrong,
    ]);
}

fn wanted(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: name.to_owned(), num_partitions, replication_factor, ..Default::default() }
}

async fn create(conn: &mut RawConnection, topic: CreatableTopic) -> Result<CreatableTopicResult, Failure> {
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    Ok(conn.call(7, request).await?.topics.remove(0))
}

async fn topics_that_cannot_be_are_refused(cluster: Cluster) -> Outcome {
    let mut conn = connect(&cluster).await?;
    let name = cluster.unique("t");
    let config =
        |key: &str, value: &str| CreatableTopicConfig { name: key.into(), value: Some(value.into()) };
    let with = |configs| CreatableTopic { configs, ..wanted(&name, 1, 1) };
    let assigned = |index, nodes: &[i32]| CreatableTopic {
        assignments: vec![CreatableReplicaAssignment { partition_index: index, broker_ids: nodes.to_vec() }],
        ..wanted(&name, -1, -1)
    };
    for (topic, code, what) in [
        (wanted("a b", 1, 1), ErrorCode::INVALID_TOPIC_EXCEPTION, "a blank in the name"),
        (wanted("", 1, 1), ErrorCode::INVALID_TOPIC_EXCEPTION, "no name"),
        (wanted("..", 1, 1), ErrorCode::INVALID_TOPIC_EXCEPTION, "two dots"),
        (wanted(&"x".repeat(250), 1, 1), ErrorCode::INVALID_TOPIC_EXCEPTION, "a long name"),
        (wanted(&name, 0, 1), ErrorCode::INVALID_PARTITIONS, "no partitions"),
        (wanted(&name, -2, 1), ErrorCode::INVALID_PARTITIONS, "fewer partitions"),
        (wanted(&name, 1, 0), ErrorCode::INVALID_REPLICATION_FACTOR, "no replicas"),
        (wanted(&name, 1, 9), ErrorCode::INVALID_REPLICATION_FACTOR, "too many replicas"),
        (with(vec![config("no.such.key", "1")]), ErrorCode::INVALID_CONFIG, "an unknown key"),
        (with(vec![config("retention.ms", "x")]), ErrorCode::INVALID_CONFIG, "a value that is no number"),
        (with(vec![config("retention.ms", "-2")]), ErrorCode::INVALID_CONFIG, "a value out of range"),
        (with(vec![config("cleanup.policy", "burn")]), ErrorCode::INVALID_CONFIG, "an unknown policy"),
        (assigned(0, &[99]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "an unknown node"),
        (assigned(0, &[]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "no node"),
        (assigned(1, &[1]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "a partition that is not the first"),
    ] {
        let answer = create(&mut conn, topic).await?;
        ensure_eq!(answer.error_code, code, "{what}: {:?}", answer.error_message);
        ensure!(answer.error_message.is_some_and(|message| !message.is_empty()), "{what} is explained");
    }
    let request =
        CreateTopicsRequest { topics: vec![wanted(&name, 1, 1)], validate_only: true, timeout_ms: 10_000 };
    ensure_eq!(conn.call(7, request).await?.topics[0].error_code, ErrorCode::NONE, "only checked");
    let twice = CreateTopicsRequest {
        topics: vec![wanted(&name, 1, 1); 2],
        timeout_ms: 10_000,
        ..Default::default()
    };
    let answer = conn.call(7, twice).await?;
    let codes: Vec<_> = answer.topics.iter().map(|topic| topic.error_code).collect();
    ensure_eq!(codes, [ErrorCode::INVALID_REQUEST], "the same name twice");
    ensure_eq!(create(&mut conn, wanted(&name, 1, 1)).await?.error_code, ErrorCode::NONE, "created");
    ensure_eq!(
        create(&mut conn, wanted(&name, 1, 1)).await?.error_code,
        ErrorCode::TOPIC_ALREADY_EXISTS,
        "again"
    );
    let (dots, lines) = (format!("{name}.x"), format!("{name}_x"));
    ensure_eq!(create(&mut conn, wanted(&dots, 1, 1)).await?.error_code, ErrorCode::NONE, "with a dot");
    let collides = create(&mut conn, wanted(&lines, 1, 1)).await?.error_code;
    ensure_eq!(collides, ErrorCode::INVALID_TOPIC_EXCEPTION, "a name that differs in a dot only");
    Ok(())
}

async fn a_topic_is_created_grown_and_deleted_by_its_id(cluster: Cluster) -> Outcome {
    let mut conn = connect(&cluster).await?;
    let name = cluster.unique("t");
    let created = create(&mut conn, wanted(&name, 2, -1)).await?;
    ensure_eq!(
        (created.error_code, created.num_partitions, created.replication_factor),
        (ErrorCode::NONE, 2, 1),
        "created"
    );
    ensure!(!created.topic_id.is_zero(), "it has an id");
    ensure!(
        created.configs.is_some_and(|configs| configs.iter().any(|c| c.name == "retention.ms")),
        "its settings"
    );
    for (count, code) in [
        (5, ErrorCode::NONE),
        (5, ErrorCode::INVALID_PARTITIONS),
        (4, ErrorCode::INVALID_PARTITIONS),
        (-1, ErrorCode::INVALID_PARTITIONS),
    ] {
        let topics = vec![CreatePartitionsTopic { name: name.clone(), count, assignments: None }];
        let request = CreatePartitionsRequest { topics, timeout_ms: 10_000, ..Default::default() };
        ensure_eq!(conn.call(3, request).await?.results[0].error_code, code, "{count} partitions");
    }
    let by_id = |topic_id| DeleteTopicsRequest {
        topics: vec![DeleteTopicState { name: None, topic_id }],
        timeout_ms: 10_000,
        ..Default::default()
    };
    let unknown = conn.call(6, by_id(Uuid::from_u128(99))).await?.responses.remove(0);
    ensure_eq!((unknown.error_code, unknown.name), (ErrorCode::UNKNOWN_TOPIC_ID, None), "an unknown id");
    let deleted = conn.call(6, by_id(created.topic_id)).await?.responses.remove(0);
    ensure_eq!((deleted.error_code, deleted.name), (ErrorCode::NONE, Some(name.clone())), "deleted");
    let by_name = DeleteTopicsRequest { topic_names: vec![name], timeout_ms: 10_000, ..Default::default() };
    let again = conn.call(5, by_name).await?.responses.remove(0);
    ensure_eq!(again.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "by its name, afterwards");
    Ok(())
}

async fn value_of(conn: &mut RawConnection, topic: &str, key: &str) -> Result<(String, i8), Failure> {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 2,
            resource_name: topic.to_owned(),
            configuration_keys: Some(vec![key.to_owned()]),
        }],
        ..Default::default()
    };
    let mut result = conn.call(4, request).await?.results.remove(0);
    if result.error_code.is_err() || result.configs.is_empty() {
        return Err(tontine_testkit::failure!("{key}: {} {:?}", result.error_code, result.error_message));
    }
    let config = result.configs.remove(0);
    Ok((config.value.unwrap_or_default(), config.config_source))
}

async fn settings_are_described_and_altered(cluster: Cluster) -> Outcome {
    let mut conn = connect(&cluster).await?;
    let topic = cluster.topic("t", 1).await?;
    ensure_eq!(value_of(&mut conn, &topic, "cleanup.policy").await?, ("delete".into(), 5), "the default");
    let alter = |key: &str, config_operation, value: Option<&str>| IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: 2,
            resource_name: topic.clone(),
            configs: vec![AlterableConfig {
                name: key.into(),
                config_operation,
                value: value.map(str::to_owned),
            }],
        }],
        ..Default::default()
    };
    for (key, operation, value, code, then) in [
        ("retention.ms", 0, Some("5"), ErrorCode::NONE, "5"),
        ("retention.ms", 1, None, ErrorCode::NONE, "604800000"),
        ("cleanup.policy", 2, Some("compact"), ErrorCode::NONE, "delete,compact"),
        ("cleanup.policy", 3, Some("delete"), ErrorCode::NONE, "compact"),
        ("retention.ms", 2, Some("5"), ErrorCode::INVALID_CONFIG, "604800000"),
        ("retention.ms", 0, Some("x"), ErrorCode::INVALID_CONFIG, "604800000"),
        ("retention.ms", 0, Some("-2"), ErrorCode::INVALID_CONFIG, "604800000"),
    ] {
        let answer = conn.call(1, alter(key, operation, value)).await?.responses.remove(0);
        let what = format!("operation {operation} on {key} with {value:?}");
        ensure_eq!(answer.error_code, code, "{what}: {:?}", answer.error_message);
        let until = tokio::time::Instant::now() + Duration::from_secs(20);
        while value_of(&mut conn, &topic, key).await?.0 != then {
            ensure!(tokio::time::Instant::now() < until, "{key} is not {then} after {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let unknown = conn.call(1, alter("nonsense", 0, Some("x"))).await?.responses.remove(0);
    ensure_eq!(unknown.error_code, ErrorCode::INVALID_CONFIG, "an unknown key");
    let mut nowhere = alter("retention.ms", 0, Some("5"));
    nowhere.resources[0].resource_name = cluster.unique("nowhere");
    let answer = conn.call(1, nowhere).await?.responses.remove(0);
    ensure_eq!(answer.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "an unknown topic");
    Ok(())
}

async fn metadata_names_what_is_wrong(cluster: Cluster) -> Outcome {
    let mut conn = connect(&cluster).await?;
    let ask = |topic_id, name: Option<String>| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { topic_id, name }]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let nowhere = cluster.unique("nowhere");
    for (name, code) in [
        (nowhere.as_str(), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ErrorCode::INVALID_TOPIC_EXCEPTION),
    ] {
        let topic = conn.call(12, ask(Uuid::ZERO, Some(name.to_owned()))).await?.topics.remove(0);
        ensure_eq!((topic.error_code, topic.name.as_deref()), (code, Some(name)), "{name}");
        ensure_eq!((topic.topic_id, topic.partitions.len()), (Uuid::ZERO, 0), "what else it says of {name}");
    }
    let unknown = conn.call(12, ask(Uuid::from_u128(99), None)).await?.topics.remove(0);
    ensure_eq!((unknown.error_code, unknown.name), (ErrorCode::UNKNOWN_TOPIC_ID, None), "an unknown id");
    ensure_eq!(unknown.topic_id, Uuid::from_u128(99), "the id comes back");
    let name = cluster.topic("t", 2).await?;
    let topic = conn.call(12, ask(Uuid::ZERO, Some(name.clone()))).await?.topics.remove(0);
    ensure_eq!(
        (topic.error_code, topic.is_internal, topic.partitions.len()),
        (ErrorCode::NONE, false, 2),
        "a topic"
    );
    let partition = topic.partitions.iter().find(|partition| partition.partition_index == 1);
    ensure!(
        partition.is_some_and(|p| p.leader_epoch == 0
            && p.replica_nodes == [p.leader_id]
            && p.isr_nodes == p.replica_nodes),
        "its second partition: {partition:?}"
    );
    let same = conn.call(12, ask(topic.topic_id, None)).await?.topics.remove(0);
    ensure_eq!((same.error_code, same.name), (ErrorCode::NONE, Some(name)), "the topic by its id");
    Ok(())
}
