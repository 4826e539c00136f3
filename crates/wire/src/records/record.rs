//! The records of a batch, read in place: nothing is copied and nothing allocated, headers are only stepped over.
//!
//! Every record that an iterator yields has been checked to its last byte, so that its key, value and headers can be
//! handed out without a further error.

use super::BatchError;
use super::headers::Headers;
use super::owned::Record;
use super::parts::Parts;
use super::run::RecordRun;
use bytes::Bytes;

/// What the records of one batch share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) base_offset: i64,
    pub(super) base_timestamp: i64,
    /// The time of the append, when it replaces the records' own timestamps.
    pub(super) append_time: Option<i64>,
    pub(super) last_offset_delta: i32,
}

/// The records of a batch that have not been taken yet, over one shared buffer. Cloning is cheap.
///
/// As an iterator it yields [`Record`]s of their own; [`Records::iter`] yields borrowed ones, which cost less;
/// [`Records::split_front`] takes the first ones off as a [`RecordRun`] which is known to be right.
#[derive(Clone, Debug)]
pub struct Records {
    payload: Bytes,
    at: usize,
    left: u32,
    /// The lowest offset delta that the next record may have.
    floor: i32,
    frame: Frame,
}

impl Records {
    pub(super) fn new(payload: Bytes, frame: Frame, count: u32) -> Self {
        Self { payload, at: 0, left: count, floor: 0, frame }
    }

    /// How many records are left.
    pub fn len(&self) -> usize {
        self.left as usize
    }

    /// Whether no record is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Where to go on when everything up to here has been taken: behind the last taken record, or behind the batch when
    /// none is left.
    pub fn next_offset(&self) -> i64 {
        let delta =
            if self.left == 0 { i64::from(self.frame.last_offset_delta) + 1 } else { i64::from(self.floor) };
        self.frame.base_offset + delta
    }

    /// The records that are left, borrowed; after an error there are no more.
    pub fn iter(&self) -> Iter<'_> {
        let rest = self.payload.get(self.at..).unwrap_or_default();
        Iter { source: &self.payload, rest, left: self.left, floor: self.floor, frame: self.frame }
    }

    /// Leaves out the records before `offset`: a fetch answers with the whole batch in which the wanted offset lies.
    pub fn skip_before(&mut self, offset: i64) -> Result<(), BatchError> {
        while self.left > 0 && self.next_offset() < offset {
            let mut iter = self.iter();
            match iter.next() {
                Some(Ok(record)) if record.offset < offset => {}
                Some(Err(error)) => return Err(error),
                Some(Ok(_)) | None => return Ok(()),
            }
            let state = iter.state();
            self.go_on_from(state);
        }
        Ok(())
    }

    /// Takes off at most `most` records, all of them checked.
    pub fn split_front(&mut self, most: usize) -> Result<RecordRun, BatchError> {
        let mut iter = self.iter();
        let mut count = 0;
        while (count as usize) < most {
            match iter.next() {
                Some(record) => record?,
                None => break,
            };
            count += 1;
        }
        let state = iter.state();
        let end = self.payload.len() - state.0;
        let front = Self { payload: self.payload.slice(..end), left: count, ..self.clone() };
        self.go_on_from(state);
        Ok(RecordRun::new(front, self.next_offset()))
    }

    /// How many bytes the records that are left take, decompressed.
    pub fn size(&self) -> usize {
        self.payload.len() - self.at
    }

    fn go_on_from(&mut self, (rest, left, floor): (usize, u32, i32)) {
        self.at = self.payload.len() - rest;
        (self.left, self.floor) = (left, floor);
    }
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut iter = self.iter();
        let item = iter.next()?.map(|record| record.to_record());
        let state = iter.state();
        self.go_on_from(state);
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left as usize + 1))
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Result<RecordRef<'a>, BatchError>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Borrowed records of a batch.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    source: &'a Bytes,
    rest: &'a [u8],
    left: u32,
    floor: i32,
    frame: Frame,
}

impl<'a> Iter<'a> {
    /// How many records are left.
    pub(super) fn left(&self) -> usize {
        self.left as usize
    }

    fn state(&self) -> (usize, u32, i32) {
        (self.rest.len(), self.left, self.floor)
    }

    /// The next record as it stands there; `None` when the bytes are no record.
    #[inline(always)]
    fn decode(&mut self) -> Option<RecordRef<'a>> {
        let parts = Parts::cut(&mut self.rest)?;
        Headers::check(parts.tail)?;
        let delta = parts.offset_delta;
        if delta < self.floor || delta > self.frame.last_offset_delta {
            return None;
        }
        // A delta of i32::MAX is the last one of its batch: nothing can come after it, whatever the floor says.
        self.floor = delta.saturating_add(1);
        Some(self.record(parts))
    }

    /// The next record of a run, which has been checked before: nothing is looked at twice.
    #[inline(always)]
    pub(super) fn next_checked(&mut self) -> Option<RecordRef<'a>> {
        self.left = self.left.checked_sub(1)?;
        let parts = Parts::cut(&mut self.rest)?;
        Some(self.record(parts))
    }

    #[inline(always)]
    fn record(&self, parts: Parts<'a>) -> RecordRef<'a> {
        let Parts { timestamp_delta, offset_delta, key, value, tail } = parts;
        let timestamp = match self.frame.append_time {
            Some(time) => time,
            None => self.frame.base_timestamp.wrapping_add(timestamp_delta),
        };
        let offset = self.frame.base_offset + i64::from(offset_delta);
        RecordRef { offset, timestamp, key, value, tail, source: self.source }
    }

    #[cold]
    fn fail(&mut self, what: &'static str) -> BatchError {
        self.left = 0;
        self.rest = &[];
        BatchError::BadRecord { offset: self.frame.base_offset, what }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Result<RecordRef<'a>, BatchError>;

    // Left to itself the compiler calls this, which costs more than half of the reading.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            if self.rest.is_empty() {
                return None;
            }
            return Some(Err(self.fail("bytes are left over behind the last one")));
        }
        self.left -= 1;
        match self.decode() {
            Some(record) => Some(Ok(record)),
            None => Some(Err(self.fail("its lengths or its offset cannot be right"))),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left as usize + 1))
    }
}

/// One record, borrowed from the buffer of its batch.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    offset: i64,
    timestamp: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    /// The headers, their count in front.
    tail: &'a [u8],
    source: &'a Bytes,
}

impl<'a> RecordRef<'a> {
    /// Where the record is in its partition.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Milliseconds since 1970; -1 when the producer set none.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key
    }

    /// The value; none is a tombstone in a compacted topic.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.value
    }

    /// The headers, in the order in which the producer set them.
    pub fn headers(&self) -> Headers<'a> {
        Headers::counted(self.tail)
    }

    /// The key as a share of the batch's buffer.
    pub fn key_bytes(&self) -> Option<Bytes> {
        self.key.map(|key| self.source.slice_ref(key))
    }

    /// The value as a share of the batch's buffer.
    pub fn value_bytes(&self) -> Option<Bytes> {
        self.value.map(|value| self.source.slice_ref(value))
    }

    /// The record as one that lives on its own; it shares the batch's buffer and copies nothing.
    pub fn to_record(&self) -> Record {
        Record::new(self.source, self)
    }
}
