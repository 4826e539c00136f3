//! What the logs say of transactions: which records are still undecided, which count, which never will, and where the marks
//! are that no member is handed out.

use crate::{fact::Fact, world::World};
use std::collections::BTreeMap;
use tontine::TopicPartition;
use tontine_wire::records::{ControlType, RecordBatch};

/// How far a log was looked at.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    next: i64,
    open: BTreeMap<i64, Vec<(i64, i64)>>,
}

fn is_commit(batch: &RecordBatch) -> bool {
    let Ok(records) = batch.records() else { return false };
    let first = records.iter().next().and_then(Result::ok);
    first.and_then(|record| ControlType::from_key(record.key()?)) == Some(ControlType::Commit)
}

impl Scan {
    fn see(&mut self, what: &TopicPartition, batch: &RecordBatch) -> Vec<Fact> {
        let (from, to) = (batch.base_offset(), batch.next_offset());
        self.next = to;
        if batch.is_control() {
            let committed = is_commit(batch);
            let mut facts = vec![Fact::Mark(what.clone(), from)];
            for (from, to) in self.open.remove(&batch.producer_id()).unwrap_or_default() {
                facts.push(Fact::Decided(what.clone(), from, to, committed));
            }
            return facts;
        }
        if !batch.is_transactional() {
            return Vec::new();
        }
        self.open.entry(batch.producer_id()).or_default().push((from, to));
        vec![Fact::Undecided(what.clone(), from, to)]
    }
}

impl World {
    /// Looks at what has come to a log, if there are transactions in this world.
    pub(crate) fn scan(&mut self, what: &TopicPartition) {
        if self.plan.transactions.is_none() || &*what.topic != "t0" {
            return;
        }
        let Some((_, end)) = self.broker.log_offsets(&what.topic, what.partition) else { return };
        let mut scan = self.scans.remove(what).unwrap_or_default();
        let mut facts = Vec::new();
        if scan.next < end {
            let batches = self.broker.batches(&what.topic, what.partition);
            let new = batches.iter().filter(|batch| batch.base_offset() >= scan.next).collect::<Vec<_>>();
            facts.extend(new.into_iter().flat_map(|batch| scan.see(what, batch)));
        }
        self.scans.insert(what.clone(), scan);
        facts.into_iter().for_each(|fact| self.record(fact));
    }

    pub(crate) fn scan_all(&mut self) {
        if self.plan.transactions.is_some() {
            self.partitions().iter().for_each(|what| self.scan(what));
        }
    }
}
