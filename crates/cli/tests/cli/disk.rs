//! `broker --data-dir`: what a process that was killed in the middle of its work had acknowledged is there again.

use super::rig::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::{sync::Notify, time::timeout};
use tontine::{Producer, ProducerRecord};

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn start(directory: &TempDir, more: &[&str]) -> Broker {
    let path = directory.path().to_str().unwrap();
    Broker::start(&[&["--data-dir", path, "--topic", "orders:1"], more].concat()).await
}

async fn values(broker: &Broker) -> Vec<String> {
    let read = ["consume", "-t", "orders", "--from", "earliest", "-e", "--format", "value"];
    broker.run(&read).await.ok().lines().map(str::to_owned).collect()
}

async fn killed(mut broker: Broker) {
    signal(&broker.process, "KILL");
    timeout(LONG, broker.process.wait()).await.expect("it dies").unwrap();
}

/// Writes until it is aborted; what was acknowledged, and a bell for each of them.
fn load(
    broker: &Broker,
    round: usize,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    bell: Arc<Notify>,
) -> tokio::task::JoinHandle<()> {
    let producer = Producer::builder()
        .set("bootstrap.servers", &broker.address)
        .set("acks", "all")
        .set("linger.ms", "1")
        .build()
        .unwrap();
    tokio::spawn(async move {
        let mut under_way = tokio::task::JoinSet::new();
        for number in 0.. {
            let value = format!("{round}-{number}-{}", "x".repeat(900));
            let Ok(sent) = producer.send(ProducerRecord::to("orders").value(value.clone())).await else {
                break;
            };
            under_way.spawn(async move { sent.await.map(|_| value) });
            while under_way.len() > 50 {
                // One that fails on a busy machine is none that was acknowledged.
                if let Some(Ok(Ok(value))) = under_way.join_next().await {
                    acknowledged.lock().unwrap().insert(value);
                    bell.notify_one();
                }
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_was_acknowledged_is_there_after_a_kill_under_load() {
    let (directory, acknowledged) = (directory(), Arc::new(Mutex::new(BTreeSet::new())));
    let settings = ["--config", "log.segment.bytes=1048576"];
    for round in 0..2 {
        let broker = start(&directory, &settings).await;
        let bell = Arc::new(Notify::new());
        let before = acknowledged.lock().unwrap().len();
        let load = load(&broker, round, acknowledged.clone(), bell.clone());
        timeout(LONG, async {
            while acknowledged.lock().unwrap().len() < before + 1500 {
                bell.notified().await;
            }
        })
        .await
        .expect("the load gets on");
        killed(broker).await;
        load.abort();
        let _ = timeout(LONG, load).await.expect("the load ends");
    }
    let broker = start(&directory, &settings).await;
    let found: BTreeSet<String> = values(&broker).await.into_iter().collect();
    let acknowledged = acknowledged.lock().unwrap();
    let lost: Vec<_> = acknowledged.iter().filter(|value| !found.contains(*value)).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), acknowledged.len());
}

#[tokio::test]
async fn a_group_goes_on_where_it_was_after_a_kill_and_after_a_polite_end() {
    let directory = directory();
    let mut broker = start(&directory, &[]).await;
    let lines: String = (1..=60).map(|number| format!("{number}\n")).collect();
    broker.feed(&["produce", "-t", "orders"], &lines).await.ok();
    let read = ["consume", "-t", "orders", "-g", "billing", "--from", "earliest", "--format", "value"];
    let mut read_so_far = broker.run(&[&read[..], &["-n", "20"]].concat()).await.ok();
    killed(broker).await;

    broker = start(&directory, &[]).await;
    read_so_far += &broker.run(&[&read[..], &["-n", "20"]].concat()).await.ok();
    signal(&broker.process, "TERM");
    let status = timeout(LONG, broker.process.wait()).await.expect("it stops").unwrap();
    assert_eq!(status.code(), Some(0));

    broker = start(&directory, &[]).await;
    read_so_far += &broker.run(&[&read[..], &["-e"]].concat()).await.ok();
    assert_eq!(read_so_far, lines);
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_a_clear_error() {
    let directory = directory();
    let path = directory.path().to_str().unwrap();
    let wrong = async |saying: &str| {
        run(&["broker", "--listen", "127.0.0.1:0", "--data-dir", path]).await.failed(1, saying)
    };
    let broker = start(&directory, &[]).await;
    wrong("is used by another broker").await;
    killed(broker).await;
    let meta = directory.path().join("meta.properties");
    let text = std::fs::read_to_string(&meta).unwrap();
    std::fs::write(&meta, text.replace("format=1", "format=2")).unwrap();
    wrong("newer version").await;
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    run(&["broker", "--listen", "127.0.0.1:0", "--data-dir", file]).await.failed(1, "must be a directory");
}
