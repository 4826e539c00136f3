//! What a member's process does: an ordinary application that commits by hand and tells what it sees.

use super::{
    board::Clock,
    history::{Event, MemberId, Partition, Told, What, runs},
};
use crate::args::DemoMemberArgs;
use std::{
    collections::BTreeMap,
    io::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::io::AsyncReadExt;
use tontine::{Assigned, Consumer, Error, Happening, ListenerResult, Lost, RebalanceListener, Revoked};

/// After so many polls in a row that failed for good, trying once more is no use.
const HOPELESS: u32 = 5;
/// How long a member waits after a poll that failed: some errors come at once.
const AFTER_TROUBLE: Duration = Duration::from_millis(200);

/// Runs the member until its standard input ends.
pub(crate) async fn run(args: DemoMemberArgs) -> Result<(), Error> {
    let clock = Clock::since_unix_us(args.began_us);
    let progress = Arc::new(Progress { id: args.id, clock, next: Mutex::default() });
    progress.tell(What::Started);
    let mut builder = Consumer::builder();
    for (key, value) in args.set {
        builder = builder.set(&key, value);
    }
    let mut consumer = builder.build()?;
    consumer.subscribe([args.topic.as_str()], Listener(progress.clone())).await?;
    let mut stop = std::pin::pin!(end_of_input());
    let (mut told, mut failed) = (0, 0);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            polled = consumer.poll(Duration::from_secs(1)) => {
                told = history(&consumer, &progress, told);
                match polled {
                    Ok(records) => {
                        failed = 0;
                        progress.delivered(&records);
                    }
                    Err(error) if !error.is_retriable() && failed + 1 == HOPELESS => return Err(error),
                    Err(error) => {
                        failed += 1;
                        progress.tell(What::Trouble(error.to_string()));
                        tokio::time::sleep(AFTER_TROUBLE).await;
                    }
                }
            }
        }
        if progress.is_committed() {
            continue;
        }
        match consumer.commit_sync().await {
            Ok(()) => progress.committed(None),
            Err(error) => progress.tell(What::Trouble(error.to_string())),
        }
    }
    let closed = consumer.close().await;
    history(&consumer, &progress, told);
    closed?;
    progress.tell(What::Left);
    Ok(())
}

/// Tells why the group rebalanced and which callback came of it, as far as it was not told yet.
fn history(consumer: &Consumer, progress: &Progress, told: u64) -> u64 {
    let entry = |happening: &Happening| match happening {
        Happening::Transition(transition) => transition.cause.as_ref().map(|c| Told::Cause(c.to_string())),
        Happening::Assigned { .. } | Happening::Revoked { .. } | Happening::Lost { .. } => {
            Some(Told::Callback)
        }
        _ => None,
    };
    let entries: Vec<Told> = consumer.history().since(told).filter_map(entry).collect();
    if !entries.is_empty() {
        progress.tell(What::History(entries));
    }
    consumer.history().count()
}

async fn end_of_input() {
    let mut input = tokio::io::stdin();
    let mut rest = [0; 64];
    while input.read(&mut rest).await.is_ok_and(|n| n > 0) {}
}

/// What has been handed out and not yet been committed.
struct Progress {
    id: MemberId,
    clock: Clock,
    next: Mutex<BTreeMap<Partition, i64>>,
}

impl Progress {
    /// Tells the demo, before anything else is done: what was told happened, and what is not told did not.
    fn tell(&self, what: What) {
        let event = Event { at: self.clock.elapsed(), member: self.id, what };
        let Ok(mut line) = serde_json::to_vec(&event) else { return };
        line.push(b'\n');
        let mut out = std::io::stdout().lock();
        // Nobody listens any more when the demo is gone; the end of the input says so as well.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }

    fn delivered(&self, records: &tontine::Records) {
        let mut batch: BTreeMap<Partition, Vec<i64>> = BTreeMap::new();
        for record in records {
            batch.entry(Partition(record.topic_partition().clone())).or_default().push(record.offset());
        }
        for (partition, offsets) in batch {
            if let Some(last) = offsets.last() {
                let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
                next.insert(partition.clone(), last + 1);
            }
            self.tell(What::Delivered { partition, runs: runs(&offsets) });
        }
    }

    fn is_committed(&self) -> bool {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Tells what was committed; only these partitions, when they are named.
    fn committed(&self, only: Option<&[Partition]>) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *next);
        let (done, rest): (BTreeMap<_, _>, _) =
            all.into_iter().partition(|(p, _)| only.is_none_or(|o| o.contains(p)));
        *next = rest;
        drop(next);
        if !done.is_empty() {
            self.tell(What::Committed(done.into_iter().collect()));
        }
    }

    fn forget(&self, partitions: &[Partition]) {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).retain(|p, _| !partitions.contains(p));
    }
}

struct Listener(Arc<Progress>);

fn named(partitions: &[tontine::TopicPartition]) -> Vec<Partition> {
    partitions.iter().cloned().map(Partition).collect()
}

impl RebalanceListener for Listener {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.0.tell(What::Assigned(named(cx.partitions())));
        Ok(())
    }

    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        let partitions = named(cx.partitions());
        let committed = cx.commit_sync().await;
        if committed.is_ok() {
            self.0.committed(Some(&partitions));
        }
        self.0.forget(&partitions);
        self.0.tell(What::Revoked(partitions));
        Ok(committed?)
    }

    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        let partitions = named(cx.partitions());
        self.0.forget(&partitions);
        self.0.tell(What::Lost(partitions));
        Ok(())
    }
}
