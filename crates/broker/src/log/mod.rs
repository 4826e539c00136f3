//! One partition's log: which offsets exist, in which leader epoch each was written, and what idempotent producers wrote.
//!
//! Where the bytes are kept is [`Storage`]'s business: in [`memory`], or [`ondisk`]. Mirrors `UnifiedLog`; the high watermark is
//! the end of the log, because the replicas of a test cluster share one copy, or where each answer waits for the disk, the
//! end of what is durable.

mod compact;
mod compaction;
#[cfg(test)]
mod crash;
mod epochs;
mod flushing;
mod index;
mod layout;
mod memory;
mod ondisk;
mod prepared;
mod producers;
mod recovery;
mod segment;
mod snapshot;

pub(crate) use compaction::Compaction;
pub(crate) use epochs::EpochEnd;
pub(crate) use flushing::Flushing;
pub(crate) use layout::{Flush, Layout, Notes};
pub(crate) use memory::Memory;
pub(crate) use ondisk::OnDisk;
pub(crate) use producers::{Aborted, outcome};
pub(crate) use recovery::{DURABLE, Damage, LastEnd, OpenError, Opened, open};

use bytes::Bytes;
use compaction::{Group, Sources};
use epochs::Epochs;
use producers::Producers;
use segment::Segment;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tontine_wire::ErrorCode;
use tontine_wire::records::{Checksum, ControlType, RecordBatch, end_transaction_marker};

/// What a log needs to know of a batch to find it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchMeta {
    /// The offset of the first record.
    pub(crate) base: i64,
    /// The offset behind the last record.
    pub(crate) next: i64,
    /// The largest timestamp of its records.
    pub(crate) max_timestamp: i64,
}

/// Where batches are kept. They come in the order of their offsets.
pub(crate) trait Storage: fmt::Debug + Send {
    /// Keeps a batch of so many records behind the others.
    fn append(&mut self, meta: BatchMeta, batch: Bytes, records: u32, now_ms: i64) -> Result<(), ErrorCode>;
    /// Whole batches from the one that holds `offset` on: at most `max_bytes`, or one batch when `at_least_one`.
    fn read(&self, offset: i64, max_bytes: usize, at_least_one: bool) -> Result<Bytes, ErrorCode>;
    /// The first batch at or behind `from` with a record of at least this timestamp.
    fn batch_at_time(&self, from: i64, timestamp: i64) -> Result<Option<Bytes>, ErrorCode>;
    /// The first batch among those with the largest timestamp.
    fn batch_of_largest_time(&self, from: i64) -> Result<Option<Bytes>, ErrorCode>;
    /// Forgets batches of which every record lies before `offset`, as far as is cheap.
    fn forget_before(&mut self, offset: i64);
    /// Forgets the batches from the one that holds `offset` on; answers the offset that comes next.
    fn cut_from(&mut self, offset: i64) -> Option<i64>;
    /// Where the log could start when it should be no larger than `bytes`, or hold nothing that is older than `time`.
    fn start_within(&self, bytes: Option<u64>, oldest: Option<i64>) -> Option<i64>;
    /// Replaces each batch by what `keep` leaves of it, except in the part that is still written to. Nothing happens where
    /// there are [`Storage::sources`].
    fn rewrite(&mut self, _keep: &mut dyn FnMut(RecordBatch) -> Option<(BatchMeta, Bytes)>) {}
    /// What is rewritten elsewhere and swapped in; `None` when it is rewritten in place.
    fn sources(&mut self) -> Option<Sources> {
        None
    }
    /// Puts a rewritten segment in the place of a group.
    fn swap(&mut self, _group: &Group, _fresh: Segment) -> Result<(), ErrorCode> {
        Ok(())
    }
    /// Says why the log stays as it is.
    fn say_not_compacted(&self, _error: &io::Error) {}
    /// Files that are to be removed.
    fn take_rubbish(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// How many bytes there are.
    fn size(&self) -> u64;
    /// Begins another part to write to.
    fn roll(&mut self) -> Result<(), ErrorCode> {
        Ok(())
    }
    /// Whether another part was begun since the last call.
    fn take_rolled(&mut self) -> bool {
        false
    }
    /// Other settings are in force from now on.
    fn configure(&mut self, _layout: Layout) {}
    /// The work of making durable what is to be; `None` when there is none.
    fn begin_flush(&mut self) -> Option<Flushing> {
        None
    }
    /// Takes in what came of that work.
    fn end_flush(&mut self, _flushing: &Flushing, _result: io::Result<()>) -> Result<(), ErrorCode> {
        Ok(())
    }
    /// Makes everything durable here and now.
    fn flush(&mut self) -> Result<(), ErrorCode> {
        Ok(())
    }
    /// Whether a sync is wanted soon though nobody waits for it.
    fn wants_sync(&self) -> bool {
        false
    }
    /// Whether something has waited for long enough to be made durable.
    fn flush_is_due(&self, _now_ms: i64) -> bool {
        false
    }
    /// The change that has to be durable before what is there may be answered for; `None` when it may.
    fn pending(&self) -> Option<u64> {
        None
    }
    /// How many changes are durable.
    fn durable(&self) -> u64 {
        u64::MAX
    }
    /// Whether nothing can be written any more.
    fn is_broken(&self) -> bool {
        false
    }
    /// The end of what may be read, where that is not all.
    fn visible(&self) -> Option<i64> {
        None
    }
    /// Everything before is durable; `None` where nothing ever is.
    fn flushed(&self) -> Option<i64> {
        None
    }
    /// Keeps what a log knows besides its records up to an offset.
    fn keep_state(&mut self, _offset: i64, _state: &str) -> Result<(), ErrorCode> {
        Ok(())
    }
    /// Keeps where the log begins; answers the change that has to be durable for that.
    fn keep_start(&mut self, _start: i64) -> Option<u64> {
        None
    }
    /// Makes everything durable, with what a log knows besides its records, so that it is found quickly the next time.
    fn close(&mut self, _offset: i64, _state: &str) -> Result<(), ErrorCode> {
        Ok(())
    }
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Appended {
    /// The offset of the first record.
    pub(crate) base_offset: i64,
    /// How many bytes came; 0 for a batch that was there before.
    pub(crate) bytes: usize,
    /// The change that has to be durable before this is answered for.
    pub(crate) pending: Option<u64>,
    /// Whether the log is to be synced soon though nobody waits for it.
    pub(crate) sync_soon: bool,
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransactionEnd {
    /// Whose it is.
    pub(crate) producer_id: i64,
    /// The epoch of the producer.
    pub(crate) producer_epoch: i16,
    /// The epoch of the coordinator's leader.
    pub(crate) coordinator_epoch: i32,
    /// Whether its records count.
    pub(crate) committed: bool,
}

/// A timestamp and the offset that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimedOffset {
    /// The record's timestamp.
    pub(crate) timestamp: i64,
    /// The record's offset.
    pub(crate) offset: i64,
}

/// The log of a partition.
#[derive(Debug)]
pub(crate) struct Log {
    storage: Box<dyn Storage>,
    start: i64,
    end: i64,
    epochs: Epochs,
    producers: Producers,
    /// The size at which compaction is worth its while; none is begun while one is on its way.
    compact_at: u64,
    compacting: bool,
}

/// Logs below this size are not compacted.
const COMPACT_FROM: u64 = 2 << 20;

impl Log {
    /// An empty log whose leader has `epoch`.
    pub(crate) fn new(storage: Box<dyn Storage>, epoch: i32) -> Self {
        let mut epochs = Epochs::default();
        epochs.begin(epoch, 0);
        Self {
            storage,
            start: 0,
            end: 0,
            epochs,
            producers: Producers::default(),
            compact_at: COMPACT_FROM,
            compacting: false,
        }
    }

    /// A log that was found on the disk. What came behind its noted state is read again.
    pub(crate) fn reopened(opened: Opened, epoch: i32) -> Self {
        let (from, (epochs, producers)) = match &opened.state {
            Some((offset, text)) => (*offset, snapshot::read(text)),
            None => (opened.start, Default::default()),
        };
        let (start, end) = (opened.start, opened.end);
        let storage = Box::new(opened.storage);
        let mut log =
            Self { storage, start, end, epochs, producers, compact_at: COMPACT_FROM, compacting: false };
        log.take_in_from(from.max(start));
        log.epochs.forget_before(start);
        log.begin_epoch(epoch);
        log
    }

    fn take_in_from(&mut self, from: i64) {
        let (mut epochs, mut producers) =
            (std::mem::take(&mut self.epochs), std::mem::take(&mut self.producers));
        for batch in self.batches_from(from) {
            epochs.begin(batch.leader_epoch(), batch.base_offset());
            producers.note(&batch, batch.max_timestamp());
        }
        (self.epochs, self.producers) = (epochs, producers);
    }

    /// The first offset that can be read.
    pub(crate) fn start(&self) -> i64 {
        self.start
    }

    /// The offset that the next record will get.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// The end of what may be read: Kafka's high watermark.
    pub(crate) fn high_watermark(&self) -> i64 {
        self.storage.visible().map_or(self.end, |visible| visible.clamp(self.start, self.end))
    }

    /// How many bytes the log has.
    pub(crate) fn size(&self) -> u64 {
        self.storage.size()
    }

    /// What is known of idempotent producers.
    pub(crate) fn producers(&self) -> &Producers {
        &self.producers
    }

    /// A leader with this epoch writes from now on.
    pub(crate) fn begin_epoch(&mut self, epoch: i32) {
        self.epochs.begin(epoch, self.end);
    }

    /// The epoch in which the record at `offset` was written.
    pub(crate) fn epoch_at(&self, offset: i64) -> Option<i32> {
        self.epochs.at(offset)
    }

    /// Where the last epoch that is not newer than `epoch` ends.
    pub(crate) fn end_of_epoch(&self, epoch: i32) -> Option<EpochEnd> {
        self.epochs.end_of(epoch, self.high_watermark())
    }

    /// Appends a batch that has been validated. `append_time` is given where the broker's clock stamps the records.
    pub(crate) fn append(
        &mut self,
        batch: RecordBatch,
        epoch: i32,
        append_time: Option<i64>,
        now_ms: i64,
    ) -> Result<Appended, ErrorCode> {
        if self.storage.is_broken() {
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        if let Some(base_offset) = self.producers.check(&batch)? {
            return Ok(Appended { base_offset, bytes: 0, pending: self.storage.pending(), sync_soon: false });
        }
        let stamped = stamp(batch, self.end, epoch, append_time).ok_or(ErrorCode::INVALID_RECORD)?;
        let base_offset = stamped.base_offset();
        let meta = BatchMeta {
            base: base_offset,
            next: stamped.next_offset(),
            max_timestamp: stamped.max_timestamp(),
        };
        let bytes = stamped.size();
        self.storage.append(meta, stamped.bytes().clone(), stamped.record_count(), now_ms)?;
        self.producers.note(&stamped, now_ms);
        self.end = meta.next;
        if self.storage.take_rolled() {
            self.keep_state();
        }
        let (pending, sync_soon) = (self.storage.pending(), self.storage.wants_sync());
        Ok(Appended { base_offset, bytes, pending, sync_soon })
    }

    /// Ends the transaction of a producer; answers how many bytes came.
    pub(crate) fn end_transaction(
        &mut self,
        end: TransactionEnd,
        epoch: i32,
        now_ms: i64,
    ) -> Result<Appended, ErrorCode> {
        let outcome = if end.committed { ControlType::Commit } else { ControlType::Abort };
        let bytes = end_transaction_marker(
            outcome,
            end.producer_id,
            end.producer_epoch,
            end.coordinator_epoch,
            now_ms,
        );
        let batch = bytes.ok().and_then(parsed).ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)?;
        self.append(batch, epoch, None, now_ms)
    }

    /// Where the first transaction that is not over begins, or the end of the log.
    pub(crate) fn last_stable(&self) -> i64 {
        let end = self.high_watermark();
        self.producers.first_unstable().map_or(end, |first| first.clamp(self.start, end))
    }

    /// Batches from `offset` on that lie before the first transaction that is not over, and the transactions among them
    /// that were aborted.
    pub(crate) fn read_stable(
        &self,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<(Bytes, Vec<Aborted>), ErrorCode> {
        let stable = self.last_stable();
        let bytes = self.read(offset, max_bytes, at_least_one)?;
        let (end, next) = stable_part(&bytes, stable);
        let aborted = self.producers.aborted(offset, next.unwrap_or(offset)).copied().collect();
        Ok((bytes.slice(..end), aborted))
    }

    /// Batches from `offset` on that may be read.
    pub(crate) fn read(&self, offset: i64, max_bytes: usize, at_least_one: bool) -> Result<Bytes, ErrorCode> {
        if offset < self.start || offset > self.end {
            return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
        }
        let end = self.high_watermark();
        if offset >= end {
            return Ok(Bytes::new());
        }
        let bytes = self.storage.read(offset, max_bytes, at_least_one)?;
        if end == self.end {
            return Ok(bytes);
        }
        let (len, _) = stable_part(&bytes, end);
        Ok(bytes.slice(..len))
    }

    /// The first record with at least this timestamp.
    pub(crate) fn offset_at_time(&self, timestamp: i64) -> Result<Option<TimedOffset>, ErrorCode> {
        let batch = self.storage.batch_at_time(self.start, timestamp)?;
        let end = self.high_watermark();
        let found = batch.and_then(|bytes| first_record(bytes, self.start, timestamp));
        Ok(found.filter(|found| found.offset < end))
    }

    /// The first record with the largest timestamp.
    pub(crate) fn offset_of_largest_time(&self) -> Result<Option<TimedOffset>, ErrorCode> {
        let Some(bytes) = self.storage.batch_of_largest_time(self.start)? else { return Ok(None) };
        let largest = parsed(bytes.clone()).map_or(i64::MIN, |batch| batch.max_timestamp());
        let end = self.high_watermark();
        Ok(first_record(bytes, self.start, largest).filter(|found| found.offset < end))
    }

    /// Records before `offset` cannot be read any more. Answers the change that has to be durable before that is said.
    pub(crate) fn delete_before(&mut self, offset: i64) -> Option<u64> {
        if offset <= self.start || offset > self.end {
            return None;
        }
        let change = self.storage.keep_start(offset);
        self.start = offset;
        self.storage.forget_before(offset);
        self.epochs.forget_before(offset);
        self.producers.forget_before(offset);
        change
    }

    /// Loses the records from the batch that holds `offset` on, as a leader does that was elected uncleanly.
    pub(crate) fn truncate_to(&mut self, offset: i64) {
        if offset >= self.end {
            return;
        }
        self.end = self.storage.cut_from(offset).unwrap_or(offset).max(self.start);
        self.epochs.forget_from(self.end);
        self.producers.forget_from(self.end);
    }

    /// Applies the limits of size and age. Answers the change that has to be durable for that to be for good.
    pub(crate) fn retain(
        &mut self,
        bytes: Option<u64>,
        oldest: Option<i64>,
    ) -> Result<Option<u64>, ErrorCode> {
        let Some(start) = self.storage.start_within(bytes, oldest) else { return Ok(None) };
        if start >= self.end {
            self.roll()?;
        }
        Ok(self.delete_before(start.min(self.end)))
    }

    fn roll(&mut self) -> Result<(), ErrorCode> {
        self.storage.roll()?;
        self.keep_state();
        Ok(())
    }

    /// Keeps what would have to be read again otherwise. Without it the next start only takes longer.
    fn keep_state(&mut self) {
        let _ = self.storage.keep_state(self.end, &snapshot::write(&self.epochs, &self.producers));
    }

    /// Compacts when the log has doubled since the last time, so that the work stays a fixed share of what is appended.
    /// Tombstones that are older than `oldest_tombstone` go. What comes back is work to be done elsewhere. When it fails,
    /// the log stays as it was and is tried again when it has doubled.
    pub(crate) fn compact_if_grown(
        &mut self,
        oldest_tombstone: i64,
        stop: &Arc<AtomicBool>,
    ) -> Option<Compaction> {
        if self.compacting || self.storage.size() < self.compact_at {
            return None;
        }
        let compaction = self.compact(oldest_tombstone, stop.clone());
        self.compacting = compaction.is_some();
        self.compact_at = COMPACT_FROM.max(self.storage.size() * 2);
        compaction
    }

    fn compact(&mut self, oldest_tombstone: i64, stop: Arc<AtomicBool>) -> Option<Compaction> {
        // A failure has been said by the storage.
        self.roll().ok()?;
        let stable = self.last_stable();
        let aborted = self.producers.aborted(self.start, self.end).copied().collect();
        let mut newest = compact::Newest::new(stable, aborted);
        if let Some(sources) = self.storage.sources() {
            return Some(Compaction::new(sources, newest, oldest_tombstone, stop));
        }
        self.batches().for_each(|batch| newest.see(&batch));
        self.storage.rewrite(&mut |batch| newest.rest_of(&batch, oldest_tombstone));
        None
    }

    /// Swaps in what a compaction has written; what comes back is the rest of its work.
    pub(crate) fn go_on_compacting(
        &mut self,
        mut compaction: Compaction,
        result: io::Result<()>,
    ) -> Option<Compaction> {
        let swapped = match (result, compaction.written.take()) {
            (Ok(()), Some((group, fresh))) => self.storage.swap(&group, fresh).is_ok(),
            (Ok(()), None) => true,
            (Err(error), _) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.storage.say_not_compacted(&error);
                }
                false
            }
        };
        if swapped && !compaction.is_done() {
            return Some(compaction);
        }
        self.compacting = false;
        self.compact_at = COMPACT_FROM.max(self.storage.size() * 2);
        None
    }

    /// Files that are no part of the log any more and have to be removed.
    pub(crate) fn take_rubbish(&mut self) -> Vec<String> {
        self.storage.take_rubbish()
    }

    /// Other settings are in force from now on.
    pub(crate) fn configure(&mut self, layout: Layout) {
        self.storage.configure(layout);
    }

    /// The work of making durable what is to be; `None` when there is none.
    pub(crate) fn begin_flush(&mut self) -> Option<Flushing> {
        self.storage.begin_flush()
    }

    /// Takes in what came of that work. After an error the log is read but not written.
    pub(crate) fn end_flush(&mut self, flushing: &Flushing, result: io::Result<()>) -> Result<(), ErrorCode> {
        self.storage.end_flush(flushing, result)
    }

    /// Makes everything durable here and now.
    pub(crate) fn flush(&mut self) -> Result<(), ErrorCode> {
        self.storage.flush()
    }

    /// Whether something has waited for long enough to be made durable.
    pub(crate) fn flush_is_due(&self, now_ms: i64) -> bool {
        self.storage.flush_is_due(now_ms)
    }

    /// The change that has to be durable before what is there may be answered for; `None` when it may.
    pub(crate) fn pending(&self) -> Option<u64> {
        self.storage.pending()
    }

    /// How many changes are durable.
    pub(crate) fn durable(&self) -> u64 {
        self.storage.durable()
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.storage.is_broken()
    }

    /// Everything before is durable; `None` in memory.
    pub(crate) fn flushed(&self) -> Option<i64> {
        self.storage.flushed()
    }

    /// Makes everything durable, so that it is found quickly the next time.
    pub(crate) fn close(&mut self) -> Result<(), ErrorCode> {
        self.storage.close(self.end, &snapshot::write(&self.epochs, &self.producers))
    }

    /// Forgets producers that have been silent since `oldest_ms`.
    pub(crate) fn expire_producers(&mut self, oldest_ms: i64) {
        self.producers.expire(oldest_ms);
    }

    /// Every batch that can be read, in order.
    pub(crate) fn batches(&self) -> impl Iterator<Item = RecordBatch> + '_ {
        self.batches_from(self.start)
    }

    fn batches_from(&self, from: i64) -> impl Iterator<Item = RecordBatch> + '_ {
        let mut at = from;
        let mut buffer = Bytes::new();
        std::iter::from_fn(move || {
            if buffer.is_empty() && (self.start..self.end).contains(&at) {
                buffer = self.storage.read(at, 1 << 20, true).ok()?;
            }
            let batch = RecordBatch::parse(&mut buffer).ok()??;
            at = batch.next_offset();
            Some(batch)
        })
    }
}

/// How much of these batches lies before an offset: bytes, and the offset behind.
fn stable_part(bytes: &Bytes, stable: i64) -> (usize, Option<i64>) {
    let (mut rest, mut end, mut next) = (bytes.clone(), 0, None);
    while let Ok(Some(batch)) = RecordBatch::parse_with(&mut rest, Checksum::Ignore) {
        if batch.base_offset() >= stable {
            break;
        }
        end += batch.size();
        next = Some(batch.next_offset());
    }
    (end, next)
}

/// Small batches get memory of their own: one that shares the buffer of a connection would keep all of it alive.
const OWN_MEMORY_BELOW: usize = 64 << 10;

fn stamp(batch: RecordBatch, base: i64, epoch: i32, append_time: Option<i64>) -> Option<RecordBatch> {
    let shared = (batch.size() < OWN_MEMORY_BELOW).then(|| batch.bytes().clone());
    let stamped = batch.stamped(base, epoch, append_time);
    drop(shared);
    stamped
}

fn parsed(mut bytes: Bytes) -> Option<RecordBatch> {
    RecordBatch::parse(&mut bytes).ok().flatten()
}

fn first_record(bytes: Bytes, from: i64, timestamp: i64) -> Option<TimedOffset> {
    let records = parsed(bytes)?.records().ok()?;
    records
        .iter()
        .filter_map(Result::ok)
        .find(|record| record.timestamp() >= timestamp && record.offset() >= from)
        .map(|record| TimedOffset { timestamp: record.timestamp(), offset: record.offset() })
}
