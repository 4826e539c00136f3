//! `bench`: lines that other programs can read. What the figures say is for a quiet machine to show.

use super::rig::*;

#[tokio::test]
async fn a_loaded_topic_is_consumed_to_the_record_and_the_line_has_every_figure() {
    let broker = Broker::start(&[]).await;
    let load = ["bench", "load", "-t", "orders", "--partitions", "3", "-n", "2000", "--size", "50"];
    let ran = broker.run(&[&load[..], &["-z", "lz4"]].concat()).await;
    assert!(ran.stderr.contains("2000 records of 50 bytes written to orders"), "{ran:?}");
    assert_eq!(ran.ok(), "", "figures go to standard output, and there are none");
    for protocol in ["classic", "consumer"] {
        let read = ["bench", "consume", "-t", "orders", "-n", "2000", "-g", protocol, "--protocol", protocol];
        let tuned = ["--mode", "tuned", "-X", "fetch.max.bytes=100000"];
        let line = broker.run(&[&read[..], &tuned].concat()).await.json();
        assert_eq!((&line["peer"], &line["mode"]), (&"tontine".into(), &"tuned".into()));
        assert_eq!(line["protocol"], protocol);
        assert_eq!((line["records"].as_u64(), line["bytes"].as_u64()), (Some(2000), Some(100_000)));
        for figure in FIGURES {
            assert!(line[figure].as_f64().is_some_and(|value| value >= 0.0), "{figure}: {line}");
        }
    }
}

const FIGURES: [&str; 10] = [
    "first_record_ms",
    "wall_s",
    "cpu_s",
    "cpu_ns_per_record",
    "records_per_s",
    "subscribe_wall_s",
    "subscribe_cpu_s",
    "subscribe_cpu_ns_per_record",
    "subscribe_records_per_s",
    "max_rss_kb",
];

#[tokio::test]
async fn loading_a_topic_that_exists_fills_all_its_partitions() {
    let broker = Broker::start(&["--topic", "orders:2"]).await;
    broker.run(&["bench", "load", "-t", "orders", "-n", "300", "--size", "10"]).await.ok();
    let read = ["consume", "-t", "orders", "--from", "earliest", "-e", "--format", "json"];
    let shown = broker.run(&read).await.ok();
    let of = |n: i64| {
        let all = shown.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        all.filter(|record| record["partition"] == n).count()
    };
    assert_eq!((of(0), of(1)), (128 + 44, 128));
}

#[tokio::test]
async fn what_never_comes_is_not_waited_for_and_what_is_impossible_is_refused() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    broker.run(&["bench", "load", "-t", "orders", "-n", "10"]).await.ok();
    let read = ["bench", "consume", "-t", "orders", "-g", "g", "-n", "11", "--patience", "1"];
    broker.run(&read).await.failed(1, "no more came after 10");
    run(&["bench", "consume", "-t", "orders", "-g", "g", "-n", "0"]).await.failed(2, "--records");
    run(&["bench", "load", "-t", "orders", "-n", "1", "-z", "brotli"]).await.failed(2, "compression.type");
    run(&["bench", "gap", "-t", "orders", "-g", "g", "--protocol", "eager"]).await.failed(2, "--protocol");
}

#[tokio::test]
async fn a_gap_line_tells_callbacks_and_the_longest_silence_of_each_partition() {
    let broker = Broker::start(&["--topic", "orders:2"]).await;
    let gap = ["bench", "gap", "-t", "orders", "-g", "g", "--seconds", "600", "--member", "a"];
    let gap = [&gap[..], &["-X", "auto.offset.reset=earliest"]].concat();
    let child = broker.command(&gap).spawn().unwrap();
    // It is a member, and has committed what it read, when the group has no lag.
    broker.run(&["bench", "load", "-t", "orders", "-n", "256", "--size", "10"]).await.ok();
    until_no_lag(&broker).await;
    signal(&child, "INT");
    let line = ended(child).await.json();
    assert_eq!((&line["member"], &line["protocol"]), (&"a".into(), &"classic".into()));
    let events = line["events"].as_array().unwrap();
    let what: Vec<_> = events.iter().map(|event| event["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["assigned", "revoked"], "{line}");
    assert_eq!(events[0]["partitions"], serde_json::json!(["orders-0", "orders-1"]));
    let partitions = line["partitions"].as_array().unwrap();
    let records: u64 = partitions.iter().map(|one| one["records"].as_u64().unwrap()).sum();
    assert_eq!((partitions.len(), records), (2, 256), "{line}");
    for one in partitions {
        assert!(one["longest_silence_ms"].as_f64().unwrap() <= one["last_ms"].as_f64().unwrap());
        assert!(one["first_ms"].as_f64().unwrap() <= one["last_ms"].as_f64().unwrap());
    }
}

async fn until_no_lag(broker: &Broker) {
    let committed = async || {
        let ran = broker.run(&["group", "describe", "g", "--format", "json"]).await;
        let Ok(shown) = serde_json::from_str::<serde_json::Value>(&ran.stdout) else { return 0 };
        total_committed(&shown)
    };
    let all = async {
        while committed().await < 256 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, all).await.expect("everything is read and committed in time");
}

/// Every committed offset anywhere in the value, summed.
fn total_committed(value: &serde_json::Value) -> u64 {
    match value {
        serde_json::Value::Object(fields) => {
            let own = fields.get("current_offset").and_then(serde_json::Value::as_u64).unwrap_or(0);
            own + fields.values().map(total_committed).sum::<u64>()
        }
        serde_json::Value::Array(items) => items.iter().map(total_committed).sum(),
        _ => 0,
    }
}
