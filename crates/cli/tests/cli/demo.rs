//! `demo`, short.

use super::rig::*;

/// Runs it and checks the one object it prints.
async fn verdict(more: &[&str]) -> serde_json::Value {
    let ran = run(&[&["demo", "--seconds", "5", "--format", "json"], more].concat()).await;
    assert!(ran.stderr.contains("A  started"), "the timeline is talk: {ran:?}");
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    let verdict = ran.json();
    for promise in ["lost", "two_owners", "commits_backwards"] {
        assert_eq!(verdict[promise], 0, "{verdict}");
    }
    assert_eq!(verdict["ok"], true, "{verdict}");
    let count = |field: &str| verdict[field].as_u64().unwrap();
    assert!(count("produced") > 0 && count("delivered") >= count("produced"), "{verdict}");
    assert!(verdict["duplicated"].is_u64(), "{verdict}");
    for rebalance in verdict["rebalances"].as_array().unwrap() {
        assert!(rebalance["cause"].is_string() && rebalance["moved"].is_u64(), "{rebalance}");
        assert!(rebalance["kept_gap_ms_max"].is_number() && rebalance["moved_gap_ms_max"].is_number());
    }
    verdict
}

#[tokio::test]
async fn the_demo_keeps_its_promises_and_prints_one_object() {
    let verdict = verdict(&[]).await;
    let causes: Vec<_> =
        verdict["rebalances"].as_array().unwrap().iter().map(|r| r["cause"].as_str().unwrap()).collect();
    for cause in ["a member joins", "2 members join", "a member leaves", "a member is killed"] {
        assert!(causes.contains(&cause), "{cause} is not in {causes:?}");
    }
    assert!(causes.iter().any(|cause| cause.starts_with("partitions are added")), "{causes:?}");
}

#[tokio::test]
async fn the_demo_keeps_its_promises_with_eager_assignors() {
    tokio::join!(verdict(&["--assignor", "range"]), verdict(&["--assignor", "roundrobin"]));
}

#[tokio::test]
async fn the_demo_keeps_its_promises_with_the_consumer_protocol() {
    verdict(&["--protocol", "consumer"]).await;
}

#[tokio::test]
async fn the_demo_runs_on_a_cluster_of_ones_own_and_cleans_up() {
    let broker = Broker::start(&["--topic", "mine:1", "--config", "group.min.session.timeout.ms=1000"]).await;
    verdict(&["-b", &broker.address]).await;
    let topics = broker.run(&["topic", "list", "--format", "json"]).await.json();
    assert_eq!(topics.as_array().unwrap().len(), 1, "{topics}");
    assert_eq!(broker.run(&["group", "list"]).await.ok().lines().count(), 1);
}

#[tokio::test]
async fn settings_that_no_member_could_have_are_refused_before_anything_starts() {
    run(&["demo", "--assignor", "rnage"]).await.failed(2, "rnage");
    run(&["demo", "--members", "1"]).await.failed(2, "--members");
}
