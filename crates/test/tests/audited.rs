//! Real consumers with `audit.log` on an embedded broker, and what their logs prove.

#![allow(clippy::panic, clippy::unwrap_used, missing_docs)]

use std::time::Duration;
use tontine::{Consumer, Producer, ProducerRecord};
use tontine_broker::Broker;
use tontine_test::AuditedRun;

#[tokio::test]
async fn the_logs_of_consumers_that_share_a_topic_fit_together() {
    let broker = Broker::builder().topic("orders", 2).start().await.unwrap();
    let run = AuditedRun::new().unwrap();
    let consumer = |name: &str| {
        Consumer::builder()
            .set("bootstrap.servers", broker.bootstrap_servers())
            .set("auto.offset.reset", "earliest")
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("audit.log", run.log(name))
            .group_id("billing")
            .build()
            .unwrap()
    };
    let producer = Producer::builder().set("bootstrap.servers", broker.bootstrap_servers()).build().unwrap();
    for n in 0..20 {
        let record = ProducerRecord::to("orders").value(format!("order {n}"));
        producer.send(record).await.unwrap().await.unwrap();
    }
    let (mut a, mut b) = (consumer("a"), consumer("b"));
    a.subscribe(["orders"], ()).await.unwrap();
    let mut seen = 0;
    while seen < 20 {
        seen += a.poll(Duration::from_secs(1)).await.unwrap().iter().count();
    }
    b.subscribe(["orders"], ()).await.unwrap();
    while b.assignment().is_empty() {
        let (one, other) = tokio::join!(a.poll(Duration::from_millis(50)), b.poll(Duration::from_millis(50)));
        seen += one.unwrap().iter().count() + other.unwrap().iter().count();
    }
    a.close().await.unwrap();
    b.close().await.unwrap();
    assert_eq!(seen, 20, "nothing came twice");
    assert!(run.lines() >= 6, "two assignments at first, one moved, all given up: {}", run.lines());
    run.check();
}
