//! barnabas on tokio. Checks every CRC. There is nothing to tune, and only the classic protocol.

use barnabas_core::group::CooperativeStickyAssignor;
use barnabas_tokio::{Consumer, EARLIEST, IsolationLevel, Tokio};
use measure::{Args, Run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut run = Run::start(Args::parse());
    let args = run.args();
    let bootstrap = [args.bootstrap.clone()];
    let (group, topic) = (args.group.clone(), args.topic.clone());
    let mut consumer = Consumer::new(Tokio, &bootstrap, "barnabas", IsolationLevel::ReadUncommitted).await?;
    run.subscribing();
    consumer.subscribe(&group, vec![topic], Box::new(CooperativeStickyAssignor), EARLIEST).await?;
    while run.go_on() {
        for batch in consumer.poll().await? {
            for record in batch.iter() {
                run.record(record.key().map(|b| b.len()), record.value().map(|b| b.len()));
            }
        }
    }
    run.print("barnabas-tokio", "0.2.0");
    std::process::exit(0);
}
