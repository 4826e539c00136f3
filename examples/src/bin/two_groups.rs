//! Two groups on one topic: members of one group share the records, each group gets all of them.
//!
//! ```sh
//! cargo run -p tontine-examples --bin two_groups [HOST:PORT]
//! ```

use std::{collections::BTreeSet, time::Duration};
use tontine::Consumer;
use tontine_examples::{Playground, Result};

const RECORDS: usize = 1000;

/// Reads as a member of `group` until it has seen every record.
async fn read(servers: String, topic: String, group: &'static str) -> Result<BTreeSet<Vec<u8>>> {
    let mut consumer = Consumer::builder()
        .set("bootstrap.servers", servers)
        .group_id(group)
        .enable_auto_commit(false)
        .set("auto.offset.reset", "earliest")
        .build()?;
    consumer.subscribe([topic], ()).await?;
    let mut seen = BTreeSet::new();
    while seen.len() < RECORDS {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        seen.extend(records.iter().map(|record| record.value().unwrap_or_default().to_vec()));
        // Each group has offsets of its own; how far the other one is makes no difference.
        consumer.commit_sync().await?;
    }
    consumer.close().await?;
    Ok(seen)
}

#[tokio::main]
async fn main() -> Result {
    let playground = Playground::open(4, RECORDS).await?;
    let group = |name| read(playground.servers.clone(), playground.topic.clone(), name);
    let (billing, shipping) = tokio::try_join!(group("billing"), group("shipping"))?;
    println!("billing read {} records, shipping read {}", billing.len(), shipping.len());
    assert_eq!(billing, shipping, "both groups got everything");
    playground.close().await
}
