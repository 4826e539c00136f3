//! `produce` and `consume`.

use super::rig::*;
use std::{collections::BTreeMap, process::Stdio};
use tokio::io::{AsyncWriteExt, BufReader};

fn numbers(count: usize) -> String {
    (1..=count).map(|n| format!("{n}\n")).collect()
}

fn sorted(lines: &str) -> Vec<usize> {
    let mut numbers: Vec<usize> = lines.lines().map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[tokio::test]
async fn lines_go_in_and_come_out() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    let ran = broker.feed(&["produce", "-t", "orders"], &numbers(100)).await;
    assert!(ran.stderr.contains("100 records written to orders"), "{ran:?}");
    assert_eq!(ran.ok(), "", "data goes to standard output, and there is none");
    let all = ["consume", "-t", "orders", "--from", "earliest", "--exit-at-end", "--format", "value"];
    assert_eq!(sorted(&broker.run(&all).await.ok()), (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn every_format_shows_keys_and_values_and_keys_choose_partitions() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    broker.feed(&["produce", "-t", "orders", "-K", ":", "-z", "zstd"], "a:1\nb:2\na:3\nbare\n").await.ok();
    let read = ["consume", "-t", "orders", "--from", "earliest", "-e", "--format"];
    let shown = broker.run(&[&read[..], &["json"]].concat()).await.ok();
    let mut by_key: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
    for line in shown.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(record["topic"], "orders");
        assert!(record["timestamp"].as_i64().unwrap() > 0 && record["offset"].is_i64());
        assert_eq!(record["headers"], serde_json::json!([]));
        let key = record["key"].as_str().unwrap_or("-").to_owned();
        let value = record["value"].as_str().unwrap().to_owned();
        by_key.entry(key).or_default().push((record["partition"].as_i64().unwrap(), value));
    }
    let of_a = &by_key["a"];
    assert_eq!((of_a[0].1.as_str(), of_a[1].1.as_str()), ("1", "3"), "in their order");
    assert_eq!(of_a[0].0, of_a[1].0, "in one partition");
    assert_eq!(by_key["-"][0].1, "bare");
    let shown = broker.run(&[&read[..], &["text"]].concat()).await.ok();
    assert!(shown.lines().any(|line| line.starts_with("orders\t") && line.ends_with("\tb\t2")), "{shown}");
    assert!(shown.lines().any(|line| line.ends_with("\t-\tbare")), "{shown}");
}

#[tokio::test]
async fn a_group_goes_on_where_it_stopped_and_counts_to_the_record() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    broker.feed(&["produce", "-t", "orders"], &numbers(100)).await.ok();
    let read = ["consume", "-t", "orders", "-g", "billing", "--from", "earliest", "--format", "value"];
    let first = broker.run(&[&read[..], &["-n", "10"]].concat()).await.ok();
    let second = broker.run(&[&read[..], &["-n", "7", "--assignor", "roundrobin"]].concat()).await.ok();
    let rest = broker.run(&[&read[..], &["--exit-at-end"]].concat()).await.ok();
    assert_eq!(first, numbers(10));
    assert_eq!(sorted(&second), (11..=17).collect::<Vec<_>>());
    assert_eq!(sorted(&rest), (18..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn nothing_to_read_is_the_end_at_once() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    for group in [&[][..], &["-g", "billing"]] {
        let read = ["consume", "-t", "orders", "--from", "earliest", "--exit-at-end"];
        assert_eq!(broker.run(&[&read[..], group].concat()).await.ok(), "");
        assert_eq!(broker.run(&[&["consume", "-t", "orders", "-n", "0"], group].concat()).await.ok(), "");
    }
}

#[tokio::test]
async fn generated_records_are_as_many_and_as_large_as_told() {
    let broker = Broker::start(&["--topic", "orders:3"]).await;
    broker.run(&["produce", "-t", "orders", "-n", "50", "--size", "20", "--acks", "1"]).await.ok();
    let read = ["consume", "-t", "orders", "--from", "earliest", "-e", "--format", "value"];
    let values = broker.run(&read).await.ok();
    assert_eq!(values.lines().count(), 50);
    assert!(values.lines().all(|value| value.len() == 20), "{values}");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_quietly() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    broker.run(&["produce", "-t", "orders", "-n", "20000"]).await.ok();
    let mut child = broker.command(&["consume", "-t", "orders", "--from", "earliest"]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert!(line(&mut stdout).await.starts_with("orders\t0\t0\t"));
    drop(stdout);
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "as in `| head`");
}

#[tokio::test]
async fn an_interrupt_or_a_polite_kill_ends_a_consumer_in_good_order() {
    for name in ["INT", "TERM"] {
        let broker = Broker::start(&["--topic", "orders:1"]).await;
        broker.feed(&["produce", "-t", "orders"], &numbers(3)).await.ok();
        let read = ["consume", "-t", "orders", "-g", "billing", "--from", "earliest", "--format", "value"];
        let mut child = broker.command(&read).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        for number in 1..=3 {
            assert_eq!(line(&mut stdout).await, format!("{number}\n"));
        }
        signal(&child, name);
        let ran = ended(child).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let group = broker.run(&["group", "describe", "billing", "--format", "json"]).await.json();
        assert_eq!(group[0]["state"], "Empty", "it left the group");
        assert_eq!(group[0]["partitions"][0]["current_offset"], 3, "what was written is committed");
    }
}

#[tokio::test]
async fn settings_come_from_a_file_and_then_from_the_command_line() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    broker.feed(&["produce", "-t", "orders"], &numbers(3)).await.ok();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("client.properties");
    std::fs::write(&file, format!("# mine\nbootstrap.servers={}\nmax.poll.records=0\n", broker.address))
        .unwrap();
    let file = file.to_str().unwrap();
    let read = ["consume", "-t", "orders", "--from", "earliest", "-e", "--format", "value", "--config", file];
    run(&read).await.failed(2, "max.poll.records");
    let right = run(&[&read[..], &["-X", "max.poll.records=2"]].concat()).await.ok();
    assert_eq!(right, numbers(3), "the file names the broker, -X corrects the file");
}

#[tokio::test]
async fn the_environment_names_the_cluster() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    let mut command = command(&["topic", "list"]);
    let child =
        command.env("TONTINE_BOOTSTRAP_SERVER", &broker.address).stdin(Stdio::null()).spawn().unwrap();
    assert!(ended(child).await.ok().contains("orders"));
}

#[tokio::test]
async fn an_interrupt_ends_the_reading_of_a_producer_and_what_was_read_is_written_and_counted() {
    for name in ["INT", "TERM"] {
        let broker = Broker::start(&["--topic", "orders:1"]).await;
        let produce = ["produce", "-t", "orders", "-X", "linger.ms=0"];
        let mut child = broker.command(&produce).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"1\n2\n3\nnot a whole li").await.unwrap();
        let read = ["consume", "-t", "orders", "--from", "earliest", "-n", "3", "--format", "value"];
        assert_eq!(broker.run(&read).await.ok(), "1\n2\n3\n", "it has read them");
        signal(&child, name);
        let ran = ended(child).await;
        assert_eq!(ran.stderr, "3 records written to orders\n");
        assert_eq!(ran.ok(), "");
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_generating_of_records_as_well() {
    let broker = Broker::start(&["--topic", "orders:1"]).await;
    let child = broker
        .command(&[
            "produce",
            "-t",
            "orders",
            "-n",
            "1000000000",
            "--size",
            "1000",
            "-X",
            "buffer.memory=20000",
        ])
        .spawn()
        .unwrap();
    let read = ["consume", "-t", "orders", "--from", "earliest", "-n", "1", "--format", "value"];
    broker.run(&read).await.ok();
    signal(&child, "INT");
    let ran = ended(child).await;
    let count: u64 = ran.stderr.split(' ').next().unwrap().parse().unwrap();
    let read = ["consume", "-t", "orders", "--from", "earliest", "-e", "--format", "value"];
    assert_eq!(broker.run(&read).await.ok().lines().count() as u64, count, "it counts what it wrote");
    ran.ok();
}
