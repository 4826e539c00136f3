//! A log in memory: each segment is one piece of memory, of which the newest is still written to.
//!
//! A reader at the end gets copies of the newest batches, one that catches up slices of whole segments. A batch is copied
//! into its segment once, so that nothing holds on to the request that brought it.

use super::prepared::Prepared;
use super::{BatchMeta, Storage};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use tontine_wire::ErrorCode;
use tontine_wire::records::RecordBatch;

/// A segment has no more bytes than this, unless it is a single batch.
const SEGMENT_BYTES: usize = 1 << 20;

/// The log of a partition in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    segments: VecDeque<Segment>,
    size: u64,
}

#[derive(Debug, Default)]
struct Segment {
    batches: Vec<Entry>,
    data: Data,
    size: usize,
    max_timestamp: i64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    meta: BatchMeta,
    start: usize,
    end: usize,
}

#[derive(Debug)]
enum Data {
    /// Still written to.
    Open(BytesMut),
    /// Still written to, with room for a whole segment.
    Prepared(Prepared),
    /// Complete.
    Closed(Bytes),
}

impl Default for Data {
    fn default() -> Self {
        Self::Open(BytesMut::new())
    }
}

impl Segment {
    /// A segment of one batch that is as large as a segment: it stays where it is.
    fn of_one(meta: BatchMeta, batch: Bytes) -> Self {
        let mut segment = Self { data: Data::Closed(batch.clone()), ..Self::default() };
        segment.push(meta, &batch);
        segment
    }

    fn push(&mut self, meta: BatchMeta, batch: &[u8]) {
        let start = self.size;
        self.size += batch.len();
        self.max_timestamp = if self.batches.is_empty() {
            meta.max_timestamp
        } else {
            self.max_timestamp.max(meta.max_timestamp)
        };
        self.batches.push(Entry { meta, start, end: self.size });
        match &mut self.data {
            Data::Open(written) => written.extend_from_slice(batch),
            Data::Prepared(memory) => memory.push(batch),
            Data::Closed(_) => {}
        }
    }

    fn close(&mut self) {
        let whole = match std::mem::take(&mut self.data) {
            Data::Open(written) if written.len() < written.capacity() / 2 => Bytes::copy_from_slice(&written),
            Data::Open(written) => written.freeze(),
            Data::Prepared(memory) => memory.freeze(),
            Data::Closed(whole) => whole,
        };
        self.data = Data::Closed(whole);
    }

    fn is_open(&self) -> bool {
        !matches!(self.data, Data::Closed(_))
    }

    /// Whether a batch of this many bytes belongs here.
    fn takes(&self, bytes: usize) -> bool {
        self.is_open() && self.size + bytes <= SEGMENT_BYTES
    }

    fn next(&self) -> i64 {
        self.batches.last().map_or(0, |entry| entry.meta.next)
    }

    /// The bytes of batches `first..last`.
    fn slice(&self, first: usize, last: usize) -> Bytes {
        let from = self.batches.get(first).map_or(self.size, |entry| entry.start);
        let to = last.checked_sub(1).and_then(|at| self.batches.get(at)).map_or(from, |entry| entry.end);
        match &self.data {
            Data::Open(written) => Bytes::copy_from_slice(written.get(from..to).unwrap_or_default()),
            Data::Prepared(memory) => {
                Bytes::copy_from_slice(memory.bytes().get(from..to).unwrap_or_default())
            }
            Data::Closed(whole) if from < to && to <= whole.len() => whole.slice(from..to),
            Data::Closed(_) => Bytes::new(),
        }
    }

    fn cut_from(&mut self, offset: i64) {
        let keep = self.batches.partition_point(|entry| entry.meta.next <= offset);
        self.batches.truncate(keep);
        self.size = self.batches.last().map_or(0, |entry| entry.end);
        self.max_timestamp = self.batches.iter().map(|entry| entry.meta.max_timestamp).max().unwrap_or(-1);
        match &mut self.data {
            Data::Open(written) => written.truncate(self.size),
            Data::Prepared(memory) => memory.truncate(self.size),
            Data::Closed(whole) => whole.truncate(self.size),
        }
    }
}

impl Memory {
    /// The segments from the one that holds `offset` on.
    fn from(&self, offset: i64) -> impl Iterator<Item = &Segment> {
        let first = self.segments.partition_point(|segment| segment.next() <= offset);
        self.segments.iter().skip(first)
    }

    fn push(&mut self, meta: BatchMeta, batch: Bytes) {
        self.size += batch.len() as u64;
        if batch.len() >= SEGMENT_BYTES {
            self.close_last();
            return self.segments.push_back(Segment::of_one(meta, batch));
        }
        if let Some(segment) = self.segments.back_mut().filter(|segment| segment.takes(batch.len())) {
            return segment.push(meta, &batch);
        }
        self.close_last();
        // A log that has filled a segment will fill another one.
        let (room, prepared) = match self.segments.is_empty() {
            true => (batch.len(), None),
            false => (SEGMENT_BYTES, Prepared::new(SEGMENT_BYTES)),
        };
        let data = prepared.map_or_else(|| Data::Open(BytesMut::with_capacity(room)), Data::Prepared);
        let mut segment = Segment { data, ..Segment::default() };
        segment.push(meta, &batch);
        self.segments.push_back(segment);
    }

    fn close_last(&mut self) {
        if let Some(segment) = self.segments.back_mut() {
            segment.close();
        }
    }

    fn drop_empty(&mut self) {
        self.segments.retain(|segment| !segment.batches.is_empty());
        self.size = self.segments.iter().map(|segment| segment.size as u64).sum();
    }
}

impl Storage for Memory {
    fn append(
        &mut self,
        meta: BatchMeta,
        batch: Bytes,
        _records: u32,
        _now_ms: i64,
    ) -> Result<(), ErrorCode> {
        self.push(meta, batch);
        Ok(())
    }

    fn read(&self, offset: i64, max_bytes: usize, at_least_one: bool) -> Result<Bytes, ErrorCode> {
        let Some(segment) = self.from(offset).next() else { return Ok(Bytes::new()) };
        let first = segment.batches.partition_point(|entry| entry.meta.next <= offset);
        let Some(start) = segment.batches.get(first).map(|entry| entry.start) else {
            return Ok(Bytes::new());
        };
        let fitting = segment.batches.partition_point(|entry| entry.end <= start.saturating_add(max_bytes));
        let last = if at_least_one { fitting.max(first + 1) } else { fitting };
        Ok(if last > first { segment.slice(first, last) } else { Bytes::new() })
    }

    fn batch_at_time(&self, from: i64, timestamp: i64) -> Result<Option<Bytes>, ErrorCode> {
        for segment in self.from(from).filter(|segment| segment.max_timestamp >= timestamp) {
            let wanted = |entry: &Entry| entry.meta.next > from && entry.meta.max_timestamp >= timestamp;
            if let Some(at) = segment.batches.iter().position(wanted) {
                return Ok(Some(segment.slice(at, at + 1)));
            }
        }
        Ok(None)
    }

    fn batch_of_largest_time(&self, from: i64) -> Result<Option<Bytes>, ErrorCode> {
        let largest = self
            .from(from)
            .flat_map(|segment| &segment.batches)
            .filter(|entry| entry.meta.next > from)
            .map(|entry| entry.meta.max_timestamp)
            .max();
        largest.map_or(Ok(None), |timestamp| self.batch_at_time(from, timestamp))
    }

    fn forget_before(&mut self, offset: i64) {
        while self.segments.front().is_some_and(|segment| segment.next() <= offset) {
            if let Some(segment) = self.segments.pop_front() {
                self.size -= segment.size as u64;
            }
        }
    }

    fn cut_from(&mut self, offset: i64) -> Option<i64> {
        for segment in &mut self.segments {
            segment.cut_from(offset);
        }
        self.drop_empty();
        self.segments.back().map(Segment::next)
    }

    fn start_within(&self, bytes: Option<u64>, oldest: Option<i64>) -> Option<i64> {
        let mut size = self.size;
        let mut start = None;
        for segment in &self.segments {
            let too_large = bytes.is_some_and(|most| size.saturating_sub(segment.size as u64) >= most);
            let too_old =
                oldest.is_some_and(|time| segment.max_timestamp >= 0 && segment.max_timestamp < time);
            if !too_large && !too_old {
                break;
            }
            size -= segment.size as u64;
            start = Some(segment.next());
        }
        start
    }

    fn rewrite(&mut self, keep: &mut dyn FnMut(RecordBatch) -> Option<(BatchMeta, Bytes)>) {
        let first_kept = self.segments.partition_point(|segment| !segment.is_open());
        let kept = self.segments.split_off(first_kept);
        for segment in std::mem::take(self).segments {
            let mut bytes = segment.slice(0, segment.batches.len());
            while let Ok(Some(batch)) = RecordBatch::parse(&mut bytes) {
                if let Some((meta, batch)) = keep(batch) {
                    self.push(meta, batch);
                }
            }
        }
        self.close_last();
        self.segments.extend(kept);
        self.drop_empty();
    }

    fn size(&self) -> u64 {
        self.size
    }
}
