//! `topic`: create, list, describe, alter, delete.

use super::rig::*;
use serde_json::json;

#[tokio::test]
async fn a_topic_is_created_described_altered_and_deleted() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    broker
        .run(&["topic", "create", "invoices", "--partitions", "2", "--set", "retention.ms=1000"])
        .await
        .ok();
    let listed = broker.run(&["topic", "list"]).await.ok();
    let mut rows = listed.lines().map(|row| row.split_whitespace().take(2).collect::<Vec<_>>());
    assert_eq!(rows.next().unwrap(), ["TOPIC", "PARTITIONS"]);
    assert_eq!(rows.next().unwrap(), ["invoices", "2"]);
    assert_eq!(rows.next().unwrap(), ["orders", "3"]);

    let listed = broker.run(&["topic", "list", "--format", "json"]).await.json();
    assert_eq!(listed[0]["topic"], "invoices");
    assert_eq!(listed[1]["partitions"], 3);

    broker.run(&["topic", "alter", "invoices", "--partitions", "4", "--set", "retention.ms=2000"]).await.ok();
    let described = broker.run(&["topic", "describe", "invoices", "--format", "json"]).await.json();
    let partitions = described[0]["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 4);
    for (number, partition) in partitions.iter().enumerate() {
        assert_eq!(partition["partition"], number);
        assert_eq!(partition["leader"], 1);
        assert_eq!(partition["replicas"], json!([1]));
        assert_eq!(partition["log_end_offset"], 0);
    }
    let described = broker.run(&["topic", "describe", "invoices"]).await.ok();
    assert_eq!(described.lines().count(), 5);

    broker.run(&["topic", "delete", "invoices", "orders"]).await.ok();
    assert_eq!(broker.run(&["topic", "list", "--format", "json"]).await.json(), json!([]));
}

#[tokio::test]
async fn internal_topics_are_listed_on_request() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    broker.feed(&["produce", "-t", "orders"], "1\n").await.ok();
    broker.run(&["consume", "-t", "orders", "-g", "g", "--from", "earliest", "-n", "1"]).await.ok();
    let names = |listed: &serde_json::Value| listed.as_array().unwrap().len();
    assert_eq!(names(&broker.run(&["topic", "list", "--format", "json"]).await.json()), 1);
    assert_eq!(names(&broker.run(&["topic", "list", "--internal", "--format", "json"]).await.json()), 2);
}

#[tokio::test]
async fn what_the_broker_refuses_is_an_error_with_its_reason() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    let refused = async |arguments: &[&str], saying: &str| broker.run(arguments).await.failed(1, saying);
    refused(&["topic", "create", "orders"], "TOPIC_ALREADY_EXISTS").await;
    refused(&["topic", "alter", "orders", "--partitions", "2"], "INVALID_PARTITIONS").await;
    refused(&["topic", "alter", "orders", "--set", "retention.mss=1"], "did you mean `retention.ms`").await;
    refused(&["topic", "alter", "nope", "--partitions", "2"], "UNKNOWN_TOPIC_OR_PARTITION").await;
    refused(&["topic", "delete", "nope"], "UNKNOWN_TOPIC_OR_PARTITION").await;
    broker.run(&["topic", "alter", "orders"]).await.failed(2, "nothing to alter");
}

#[tokio::test]
async fn one_wrong_name_among_right_ones_costs_only_itself_and_the_exit_code() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    let ran = broker.run(&["topic", "describe", "orders", "nope", "--format", "json"]).await;
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stderr.matches("nope").count(), 1, "{ran:?}");
    let described: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(described.as_array().unwrap().len(), 1);
}
