//! The loop that is right in most cases: poll, handle everything, commit, and again.
//!
//! ```sh
//! cargo run -p tontine-examples --bin commit_each_batch [HOST:PORT]
//! ```

use std::time::Duration;
use tontine::{Consumer, Record};
use tontine_examples::{Playground, Result};

const RECORDS: usize = 1000;

#[tokio::main]
async fn main() -> Result {
    let playground = Playground::open(4, RECORDS).await?;
    let mut consumer = Consumer::builder()
        .set("bootstrap.servers", &playground.servers)
        .group_id("billing")
        // Only the commits below count: a record is done when it has been handled, not when the next poll begins.
        .enable_auto_commit(false)
        // A group that has committed nothing yet starts with the oldest record, not with the next new one.
        .set("auto.offset.reset", "earliest")
        .build()?;
    consumer.subscribe([&playground.topic], ()).await?;

    let mut handled = 0;
    // An application loops until it is told to stop; this one stops when it has seen everything.
    while handled < RECORDS {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        for record in &records {
            handle(record).await?;
            handled += 1;
        }
        // One request for the whole batch. After a crash the next owner starts here: what was handled and not yet
        // committed is handled again, and nothing is left out.
        consumer.commit_sync().await?;
    }

    let partitions: Vec<_> = consumer.assignment().into_iter().collect();
    let ends = consumer.end_offsets(&partitions).await?;
    for (partition, committed) in consumer.committed(&partitions).await? {
        let committed = committed.map(|at| at.offset);
        println!("{partition}: committed {committed:?}");
        assert_eq!(committed.as_ref(), ends.get(&partition), "everything handled is committed");
    }
    consumer.close().await?;
    println!("handled {handled} records, and committed after each batch");
    playground.close().await
}

/// Stands for what the application does.
async fn handle(_record: Record<'_>) -> Result {
    Ok(())
}
