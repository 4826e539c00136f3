//! krafka. Checks every CRC, reads uncommitted by default. Tuned: no limit on what a poll returns.

use krafka::{
    Kafka,
    consumer::{AutoOffsetReset, GroupProtocol, PartitionAssignmentStrategy},
};
use measure::{Args, Run};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut run = Run::start(Args::parse());
    let args = run.args();
    let kafka = Kafka::builder(args.bootstrap.clone()).client_id("krafka").connect().await?;
    let mut builder = kafka
        .consumer(args.group.clone())
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .partition_assignment_strategy(PartitionAssignmentStrategy::CooperativeSticky)
        .enable_auto_commit(false);
    if args.is_consumer_protocol() {
        builder = builder.group_protocol(GroupProtocol::Consumer);
    }
    if args.is_tuned() {
        builder = builder.max_poll_records(-1);
    }
    let consumer = builder.build().await?;
    let topic = args.topic.clone();
    run.subscribing();
    consumer.subscribe([topic]).await?;
    while run.go_on() {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        for record in &records {
            run.record(record.key.as_ref().map(|b| b.len()), record.value.as_ref().map(|b| b.len()));
        }
    }
    run.print("krafka", "0.28.1");
    std::process::exit(0);
}
