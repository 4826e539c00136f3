//! `demo`, short.

use super::rig::*;
use tokio::{
    io::{AsyncReadExt, BufReader},
    time::timeout,
};

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
        let partitions = rebalance["partitions"].as_array().unwrap();
        let both = rebalance["moved"].as_u64().unwrap() + rebalance["kept"].as_u64().unwrap();
        assert_eq!(partitions.len() as u64, both, "{rebalance}");
        assert!(
            partitions.iter().all(|p| p["silent_ms"].is_number() && p["from"].is_string()),
            "{rebalance}"
        );
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

/// Waits until the demo has deleted what was its own.
async fn nothing_is_left(broker: &Broker) {
    assert_eq!(broker.run(&["topic", "list", "--format", "json"]).await.json(), serde_json::json!([]));
    assert_eq!(broker.run(&["group", "list", "--format", "json"]).await.json(), serde_json::json!([]));
}

fn short_sessions() -> [&'static str; 2] {
    ["--config", "group.min.session.timeout.ms=1000"]
}

#[tokio::test]
async fn an_interrupted_demo_leaves_nothing_on_a_cluster() {
    for name in ["INT", "TERM", "HUP"] {
        let broker = Broker::start(&short_sessions()).await;
        let mut child = broker.command(&["demo"]).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        loop {
            let said = line(&mut stdout).await;
            assert_ne!(said, "", "it ends before anybody has partitions");
            if said.contains("assigned") {
                break;
            }
        }
        signal(&child, name);
        let mut rest = String::new();
        timeout(LONG, stdout.read_to_string(&mut rest)).await.expect("it ends").unwrap();
        ended(child).await.failed(1, "interrupted before the end: no verdict");
        nothing_is_left(&broker).await;
    }
}

#[tokio::test]
async fn a_demo_that_nobody_reads_any_more_ends_quietly_and_leaves_nothing_on_a_cluster() {
    let broker = Broker::start(&short_sessions()).await;
    let mut child = broker.command(&["demo"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    line(&mut stdout).await;
    drop(stdout);
    let ran = ended(child).await;
    assert!(!ran.stderr.contains("panic"), "{ran:?}");
    ran.ok();
    nothing_is_left(&broker).await;
}

#[tokio::test]
async fn a_demo_without_standard_output_or_standard_error_does_not_panic() {
    for arguments in [&["demo"][..], &["demo", "--seconds", "5", "--format", "json"]] {
        let mut child = command(arguments).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let status = timeout(LONG, child.wait()).await.expect("it ends").unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[tokio::test]
async fn the_demo_takes_its_cluster_from_the_environment_and_settings_as_every_command_does() {
    let broker = Broker::start(&["--config", "group.min.session.timeout.ms=1000"]).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("client.properties");
    std::fs::write(&file, "max.poll.records=50\nlinger.ms=1\ngroup.instance.id=one\n").unwrap();
    let mut demo =
        command(&["demo", "--seconds", "5", "--format", "json", "--config", file.to_str().unwrap()]);
    let child = demo.env("TONTINE_BOOTSTRAP_SERVER", &broker.address).spawn().unwrap();
    let ran = ended(child).await;
    assert!(ran.stderr.contains(&format!("on {}, with a topic", broker.address)), "{ran:?}");
    assert_eq!(ran.json()["ok"], true);
    nothing_is_left(&broker).await;
    run(&["demo", "-X", "sesion.timeout.ms=1"]).await.failed(2, "did you mean `session.timeout.ms`?");
}

#[tokio::test]
async fn the_timeline_tells_who_came_and_went_why_and_what_it_cost() {
    let text = run(&["demo", "--seconds", "5"]).await.ok();
    let timeline = text.split("Who owned what").next().unwrap();
    let has = |what: &str| assert!(timeline.contains(what), "{what} is missing in\n{timeline}");
    for what in ["a member joins: A", "2 members join: B, C", "a member leaves: C", "a member is killed: D"] {
        has(&format!(" s  >  {what}"));
    }
    for what in
        ["A  rebalance, because member joined: A", "A  assigned", "A  revoked", "A  committed ", "A  left"]
    {
        has(&format!(" s  {what}"));
    }
    has("because the coordinator asked for it: 2 members join: B, C");
    has("at rest after");
    has("silent, ms, moved  ");
    has("silent, ms, kept   ");
    let first = |what: &str| timeline.find(what).unwrap();
    assert!(first("because member joined: A") < first("A  assigned"), "the cause comes first:\n{timeline}");
}
