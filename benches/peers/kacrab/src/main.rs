//! kacrab. Checks CRCs and reads uncommitted by default. Tuned: a poll may return much more.

use kacrab::consumer::Consumer;
use measure::{Args, Run};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut run = Run::start(Args::parse());
    let args = run.args();
    let mut settings = vec![
        ("bootstrap.servers", args.bootstrap.as_str()),
        ("group.id", &args.group),
        ("group.protocol", &args.protocol),
        ("auto.offset.reset", "earliest"),
        ("enable.auto.commit", "false"),
        ("check.crcs", "true"),
    ];
    if !args.is_consumer_protocol() {
        settings.push(("partition.assignment.strategy", "cooperative-sticky"));
    }
    if args.is_tuned() {
        settings.push(("max.poll.records", "50000"));
    }
    let mut consumer = Consumer::from_map(settings).await?;
    let topic = args.topic.clone();
    run.subscribing();
    consumer.subscribe([topic])?;
    while run.go_on() {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        for record in &records {
            run.record(record.key.as_ref().map(|b| b.len()), record.value.as_ref().map(|b| b.len()));
        }
    }
    run.print("kacrab", "0.4.0");
    std::process::exit(0);
}
