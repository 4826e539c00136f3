//! Topics and settings through admin requests.

use crate::rig::Rig;
use tontine_wire::ErrorCode;
use tontine_wire::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use tontine_wire::api::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use tontine_wire::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use tontine_wire::api::describe_cluster::DescribeClusterRequest;
use tontine_wire::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use tontine_wire::api::describe_log_dirs::DescribeLogDirsRequest;
use tontine_wire::api::describe_topic_partitions::{Cursor, DescribeTopicPartitionsRequest};
use tontine_wire::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

pub(crate) fn create(name: &str, num_partitions: i32, replication_factor: i16) -> CreateTopicsRequest {
    let topic =
        CreatableTopic { name: name.into(), num_partitions, replication_factor, ..Default::default() };
    CreateTopicsRequest { topics: vec![topic], ..Default::default() }
}

#[test]
fn topics_are_created_grown_and_deleted() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    let created = rig.ask(conn, 7, create("t", 2, -1)).topics.remove(0);
    assert_eq!(
        (created.error_code, created.num_partitions, created.replication_factor),
        (ErrorCode::NONE, 2, 1)
    );
    assert!(!created.topic_id.is_zero() && created.configs.is_some_and(|configs| configs.len() > 20));
    for (request, code) in [
        (create("t", 2, -1), ErrorCode::TOPIC_ALREADY_EXISTS),
        (create("a b", 2, -1), ErrorCode::INVALID_TOPIC_EXCEPTION),
        (create("", 2, -1), ErrorCode::INVALID_TOPIC_EXCEPTION),
        (create("u", 0, -1), ErrorCode::INVALID_PARTITIONS),
        (create("u", 1, 2), ErrorCode::INVALID_REPLICATION_FACTOR),
        (create("u", 1, 0), ErrorCode::INVALID_REPLICATION_FACTOR),
    ] {
        assert_eq!(rig.ask(conn, 7, request).topics[0].error_code, code);
    }
    let mut wrong_config = create("u", 1, 1);
    wrong_config.topics[0]
        .configs
        .push(CreatableTopicConfig { name: "retention.m".into(), value: Some("1".into()) });
    let refused = rig.ask(conn, 7, wrong_config).topics.remove(0);
    assert_eq!(refused.error_code, ErrorCode::INVALID_CONFIG);
    assert!(refused.error_message.is_some_and(|message| message.contains("retention.ms")));
    let grow = |count| CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic { name: "t".into(), count, assignments: None }],
        ..Default::default()
    };
    assert_eq!(rig.ask(conn, 3, grow(5)).results[0].error_code, ErrorCode::NONE);
    assert_eq!(rig.state.partitions("t"), Some(5));
    for count in [5, 4, -1] {
        assert_eq!(rig.ask(conn, 3, grow(count)).results[0].error_code, ErrorCode::INVALID_PARTITIONS);
    }
    let delete = DeleteTopicsRequest {
        topics: vec![DeleteTopicState { name: None, topic_id: created.topic_id }],
        ..Default::default()
    };
    assert_eq!(rig.ask(conn, 6, delete.clone()).responses[0].name.as_deref(), Some("t"));
    assert_eq!(rig.ask(conn, 6, delete).responses[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(rig.state.partitions("t"), None);
}

#[test]
fn only_checking_creates_nothing_and_names_that_come_twice_are_refused() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    let request = CreateTopicsRequest { validate_only: true, ..create("t", 1, 1) };
    assert_eq!(rig.ask(conn, 7, request).topics[0].error_code, ErrorCode::NONE);
    assert_eq!(rig.state.partitions("t"), None);
    let mut twice = create("t", 1, 1);
    twice.topics.push(twice.topics[0].clone());
    assert_eq!(rig.ask(conn, 7, twice).topics[0].error_code, ErrorCode::INVALID_REQUEST);
}

#[test]
fn settings_are_described_with_their_source_and_altered() {
    let mut rig = Rig::new(1, &[("log.retention.hours", "1")]);
    rig.topic("t", 1);
    let conn = rig.connect(1);
    let describe = |kind: i8, name: &str, key: &str| DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: kind,
            resource_name: name.into(),
            configuration_keys: Some(vec![key.into()]),
        }],
        include_synonyms: true,
        ..Default::default()
    };
    let look = |rig: &mut Rig, kind, name, key| {
        let config = rig.ask(conn, 4, describe(kind, name, key)).results.remove(0).configs.remove(0);
        (config.value.unwrap_or_default(), config.config_source)
    };
    assert_eq!(look(&mut rig, 2, "t", "retention.ms"), ("3600000".into(), 4));
    assert_eq!(look(&mut rig, 4, "1", "log.retention.hours"), ("1".into(), 4));
    let alter = |key: &str, operation, value: Option<&str>| IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: 2,
            resource_name: "t".into(),
            configs: vec![AlterableConfig {
                name: key.into(),
                config_operation: operation,
                value: value.map(str::to_owned),
            }],
        }],
        ..Default::default()
    };
    let change = |rig: &mut Rig, key, operation, value| {
        rig.ask(conn, 1, alter(key, operation, value)).responses.remove(0).error_code
    };
    assert_eq!(change(&mut rig, "retention.ms", 0, Some("5")), ErrorCode::NONE);
    assert_eq!(look(&mut rig, 2, "t", "retention.ms"), ("5".into(), 1));
    assert_eq!(change(&mut rig, "retention.ms", 1, None), ErrorCode::NONE);
    assert_eq!(look(&mut rig, 2, "t", "retention.ms"), ("3600000".into(), 4));
    assert_eq!(change(&mut rig, "cleanup.policy", 2, Some("compact")), ErrorCode::NONE);
    assert_eq!(look(&mut rig, 2, "t", "cleanup.policy"), ("delete,compact".into(), 1));
    assert_eq!(change(&mut rig, "cleanup.policy", 3, Some("delete")), ErrorCode::NONE);
    assert_eq!(look(&mut rig, 2, "t", "cleanup.policy"), ("compact".into(), 1));
    assert_eq!(change(&mut rig, "retention.ms", 2, Some("5")), ErrorCode::INVALID_CONFIG);
    assert_eq!(change(&mut rig, "retention.ms", 0, Some("x")), ErrorCode::INVALID_CONFIG);
    assert_eq!(change(&mut rig, "nonsense", 0, Some("x")), ErrorCode::INVALID_CONFIG);
}

#[test]
fn partitions_are_described_page_by_page() {
    let mut rig = Rig::new(1, &[]);
    rig.topic("a", 3);
    rig.topic("b", 1);
    let conn = rig.connect(1);
    let page =
        |cursor| DescribeTopicPartitionsRequest { response_partition_limit: 2, cursor, ..Default::default() };
    let first = rig.ask(conn, 0, page(None));
    assert_eq!(first.topics[0].partitions.len(), 2);
    assert_eq!(first.next_cursor, Some(Cursor { topic_name: "a".into(), partition_index: 2 }));
    let second = rig.ask(conn, 0, page(first.next_cursor));
    let shape: Vec<_> =
        second.topics.iter().map(|topic| (topic.name.clone(), topic.partitions.len())).collect();
    assert_eq!(shape, [(Some("a".into()), 1), (Some("b".into()), 1)]);
    assert_eq!(second.next_cursor, None);
}

#[test]
fn the_cluster_and_its_sizes_are_described() {
    let mut rig = Rig::new(2, &[]);
    rig.topic("t", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "t", 0, &["a"]);
    let cluster = rig.ask(conn, 1, DescribeClusterRequest { endpoint_type: 1, ..Default::default() });
    assert_eq!((cluster.cluster_id.as_str(), cluster.brokers.len()), (rig.state.cluster_id(), 2));
    let wrong = rig.ask(conn, 1, DescribeClusterRequest { endpoint_type: 2, ..Default::default() });
    assert_eq!(wrong.error_code, ErrorCode::MISMATCHED_ENDPOINT_TYPE);
    let dirs = rig.ask(conn, 4, DescribeLogDirsRequest { topics: None });
    assert!(dirs.results[0].topics[0].partitions[0].partition_size > 60);
}
