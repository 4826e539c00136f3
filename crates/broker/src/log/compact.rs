//! Compaction: of all records with one key only the newest stays. Offsets never change. Mirrors `LogCleaner`.

use super::{Aborted, BatchMeta};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use tontine_wire::records::{BatchBuilder, RecordBatch, RecordRef};

/// The newest offset of each key. Only looked up, never walked. What was aborted, or may still be, is not counted.
#[derive(Debug)]
pub(super) struct Newest {
    offsets: HashMap<Bytes, i64>,
    /// Transactions before this offset are over.
    stable: i64,
    aborted: Vec<Aborted>,
    /// Producers of transactions of which something is left: their next mark stays.
    marks: BTreeSet<i64>,
}

impl Newest {
    /// Nothing seen yet.
    pub(super) fn new(stable: i64, aborted: Vec<Aborted>) -> Self {
        Self { offsets: HashMap::new(), stable, aborted, marks: BTreeSet::new() }
    }

    fn is_aborted(&self, batch: &RecordBatch) -> bool {
        let holds = |aborted: &Aborted| {
            aborted.producer_id == batch.producer_id()
                && (aborted.first..=aborted.last).contains(&batch.base_offset())
        };
        batch.is_transactional() && self.aborted.iter().any(holds)
    }

    /// Takes in a batch; batches come in order.
    pub(super) fn see(&mut self, batch: &RecordBatch) {
        if batch.is_control() || batch.base_offset() >= self.stable || self.is_aborted(batch) {
            return;
        }
        let Ok(records) = batch.records() else { return };
        for record in records.iter().filter_map(Result::ok) {
            if let Some(key) = record.key() {
                // A copy: a slice would keep all that was read in memory until the compaction is over.
                self.offsets.insert(Bytes::copy_from_slice(key), record.offset());
            }
        }
    }

    /// Whether the record stays. Without a key there is nothing to compare; an old tombstone has told what it had to.
    fn keeps(&self, record: &RecordRef<'_>, oldest_tombstone: i64) -> bool {
        let newest = record.key().is_none_or(|key| self.offsets.get(key) == Some(&record.offset()));
        newest && (record.value().is_some() || record.timestamp() >= oldest_tombstone)
    }

    /// What is left of a batch; `None` when nothing is. A batch that cannot be read stays as it is.
    pub(super) fn rest_of(
        &mut self,
        batch: &RecordBatch,
        oldest_tombstone: i64,
    ) -> Option<(BatchMeta, Bytes)> {
        if batch.is_control() {
            // A mark is needed for as long as there is something that it ends, and for a while by those who read it.
            let ends_something = self.marks.remove(&batch.producer_id());
            let stays = ends_something
                || batch.base_offset() >= self.stable
                || batch.max_timestamp() >= oldest_tombstone;
            return stays.then(|| self.parts_of(batch, oldest_tombstone)).flatten();
        }
        if self.is_aborted(batch) && batch.base_offset() < self.stable {
            return None;
        }
        let rest = self.parts_of(batch, oldest_tombstone);
        if batch.is_transactional() && rest.is_some() {
            self.marks.insert(batch.producer_id());
        }
        rest
    }

    fn parts_of(&self, batch: &RecordBatch, oldest_tombstone: i64) -> Option<(BatchMeta, Bytes)> {
        let whole = |batch: &RecordBatch| {
            let meta = BatchMeta {
                base: batch.base_offset(),
                next: batch.next_offset(),
                max_timestamp: batch.max_timestamp(),
            };
            (meta, batch.bytes().clone())
        };
        if batch.base_offset() >= self.stable {
            return Some(whole(batch));
        }
        let Ok(records) = batch.records() else { return Some(whole(batch)) };
        let kept: Vec<RecordRef<'_>> = records
            .iter()
            .filter_map(Result::ok)
            .filter(|record| self.keeps(record, oldest_tombstone))
            .collect();
        if kept.is_empty() && !batch.is_control() {
            return None;
        }
        if kept.len() == records.len() || batch.is_control() {
            return Some(whole(batch));
        }
        let bytes = rebuild(batch, &kept)?;
        let (mut meta, _) = whole(batch);
        meta.max_timestamp = kept.iter().map(RecordRef::timestamp).max().unwrap_or(meta.max_timestamp);
        Some((meta, bytes))
    }
}

/// The batch with these records only: same offsets, same producer, same end.
fn rebuild(batch: &RecordBatch, kept: &[RecordRef<'_>]) -> Option<Bytes> {
    let mut builder = BatchBuilder::new(batch.compression());
    builder
        .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence())
        .timestamp_type(batch.timestamp_type())
        .transactional(batch.is_transactional())
        .leader_epoch(batch.leader_epoch());
    let mut next = batch.base_offset();
    for record in kept {
        builder.skip_offsets(gap(next, record.offset())?);
        let headers: Vec<_> = record.headers().collect();
        let names: Vec<_> = headers.iter().map(|header| header.key()).collect();
        let headers = names.iter().zip(&headers).map(|(name, header)| (&**name, header.value()));
        builder.append(record.timestamp(), record.key(), record.value(), headers).ok()?;
        next = record.offset() + 1;
    }
    builder.skip_offsets(gap(next, batch.next_offset())?);
    Some(builder.build(batch.base_offset()))
}

fn gap(from: i64, to: i64) -> Option<u32> {
    u32::try_from(to - from).ok()
}
