//! Commits now and then, and always when partitions leave: the next owner goes on exactly where this one stopped.
//!
//! A commit after each batch costs a round trip. When that hurts, commit in the background while you work, and wait for a
//! commit only where it matters: in `on_partitions_revoked`, before somebody else starts to read.
//!
//! ```sh
//! cargo run -p tontine-examples --bin commit_in_revoked [HOST:PORT]
//! ```

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{task::JoinHandle, time::timeout};
use tontine::{Consumer, ListenerResult, Lost, RebalanceListener, Revoked, Waker};
use tontine_examples::{Playground, Result};

struct CommitOnTheWayOut(&'static str);

impl RebalanceListener for CommitOnTheWayOut {
    /// Runs inside `poll`, so the batch before it has been handled: everything that poll has returned is done. The group
    /// waits while this runs.
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        cx.commit_sync().await?;
        println!("{}: committed, and gave up {} partitions", self.0, cx.partitions().len());
        Ok(())
    }

    /// Too late: somebody else may have read on already. Without this method `on_partitions_revoked` would be called,
    /// and its commit refused.
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        println!(
            "{}: lost {} partitions, their last records are handled again",
            self.0,
            cx.partitions().len()
        );
        Ok(())
    }
}

/// Who handled which record (partition and offset): the example's own check.
type Handled = Arc<Mutex<BTreeMap<(i32, i64), Vec<&'static str>>>>;

fn lock(handled: &Handled) -> MutexGuard<'_, BTreeMap<(i32, i64), Vec<&'static str>>> {
    handled.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work(mut consumer: Consumer, name: &'static str, handled: Handled) -> Result {
    loop {
        let records = match consumer.poll(Duration::from_secs(1)).await {
            Ok(records) => records,
            Err(tontine::Error::Woken) => break,
            Err(error) => return Err(error.into()),
        };
        for record in &records {
            lock(&handled).entry((record.partition(), record.offset())).or_default().push(name);
        }
        if !records.is_empty() {
            // Nobody waits for this one, and nothing is lost if it fails: the next says more.
            drop(consumer.commit_async());
        }
    }
    // Runs `on_partitions_revoked` as well, and with it the last commit.
    Ok(consumer.close().await?)
}

struct Member {
    task: JoinHandle<Result>,
    waker: Waker,
}

impl Member {
    async fn start(playground: &Playground, name: &'static str, handled: &Handled) -> Result<Self> {
        let mut consumer = Consumer::builder()
            .set("bootstrap.servers", &playground.servers)
            .group_id("billing")
            .enable_auto_commit(false)
            .set("auto.offset.reset", "earliest")
            // Only partitions that really move are revoked; the others are read on meanwhile.
            .set("partition.assignment.strategy", "cooperative-sticky")
            // Members hear of newcomers with their next heartbeat; three seconds are long for an example.
            .heartbeat_interval(Duration::from_millis(100))
            .build()?;
        consumer.subscribe([&playground.topic], CommitOnTheWayOut(name)).await?;
        let waker = consumer.waker();
        Ok(Self { task: tokio::spawn(work(consumer, name, handled.clone())), waker })
    }

    async fn stop(self) -> Result {
        self.waker.wake();
        self.task.await?
    }
}

#[tokio::main]
async fn main() -> Result {
    let playground = Playground::open(4, 0).await?;
    let handled = Handled::default();
    let mut produced = 0;
    let mut members = Vec::new();
    for name in ["first", "second"] {
        members.push(Member::start(&playground, name, &handled).await?);
        // Records keep coming until the newcomer has its share; partitions move meanwhile.
        while !lock(&handled).values().any(|by| by.contains(&name)) {
            playground.produce(20).await?;
            produced += 20;
        }
    }
    let all = async {
        while lock(&handled).len() < produced {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), all).await?;
    for member in members {
        member.stop().await?;
    }

    let doubled = lock(&handled).values().filter(|by| by.len() > 1).count();
    println!("two members handled {produced} records, {doubled} of them twice");
    assert_eq!(doubled, 0, "the next owner goes on where the last one stopped");
    playground.close().await
}
