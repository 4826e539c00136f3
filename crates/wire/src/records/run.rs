//! Records taken off the front of a batch: all of them have been checked, so that handing them out cannot fail.

use super::record::{Iter, RecordRef, Records};

/// Consecutive records of one batch, all checked already. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct RecordRun {
    records: Records,
    next_offset: i64,
}

impl RecordRun {
    /// Records that have been checked, with nothing behind them.
    pub(super) fn new(records: Records, next_offset: i64) -> Self {
        Self { records, next_offset }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Where to go on behind these records: when they are the last of their batch, behind the batch.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// How many bytes the records take, decompressed.
    pub fn size(&self) -> usize {
        self.records.size()
    }

    /// The records, borrowed.
    pub fn iter(&self) -> RunIter<'_> {
        RunIter(self.records.iter())
    }
}

impl<'a> IntoIterator for &'a RecordRun {
    type Item = RecordRef<'a>;
    type IntoIter = RunIter<'a>;

    fn into_iter(self) -> RunIter<'a> {
        self.iter()
    }
}

/// The records of a [`RecordRun`].
#[derive(Clone, Debug)]
pub struct RunIter<'a>(Iter<'a>);

impl<'a> Iterator for RunIter<'a> {
    type Item = RecordRef<'a>;

    // What the application does not look at is not put together when all of this ends up in its loop.
    #[inline(always)]
    fn next(&mut self) -> Option<RecordRef<'a>> {
        self.0.next_checked()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.left(), Some(self.0.left()))
    }
}

impl ExactSizeIterator for RunIter<'_> {}
