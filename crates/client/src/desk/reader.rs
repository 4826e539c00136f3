//! Reads the batches of one chunk, lazily: a batch is checked and decompressed when its first record is wanted.
//!
//! Decides which records an application sees: none before the position, no control records, and none of aborted
//! transactions when only committed ones are wanted. A batch that cannot be read stops here, and stays in the way until
//! the application seeks: the position does not move past what was not handed out.

use crate::{Error, fetch::position::Position, lease::Chunk, records::Run};
use bytes::Bytes;
use std::collections::BTreeSet;
use tontine_group::TopicPartition;
use tontine_wire::{
    api::fetch::AbortedTransaction,
    records::{BatchError, Checksum, ControlType, RecordBatch, Records},
};

/// A chunk that is being read.
#[derive(Debug)]
pub(crate) struct Reader {
    rest: Bytes,
    open: Option<Open>,
    aborted: Option<Aborted>,
    checksum: Checksum,
    /// Nothing at or behind the position has been found yet. A chunk that holds nothing of the kind, not even one whole
    /// batch, will not do so when it is asked for again.
    fresh: bool,
    done: bool,
}

/// The batch that is being handed out.
#[derive(Debug)]
struct Open {
    records: Records,
    epoch: Option<i32>,
}

impl Reader {
    pub(crate) fn new(chunk: Chunk, rules: Rules) -> Self {
        let aborted = rules.committed_only.then(|| Aborted::new(chunk.aborted));
        Self { rest: chunk.records, open: None, aborted, checksum: rules.checksum, fresh: true, done: false }
    }

    /// Whether everything has been handed out.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Hands out at most `most` records and moves the position behind them. An error that comes after some records is
    /// left for the next time.
    pub(crate) fn take(
        &mut self,
        name: &TopicPartition,
        position: &mut Position,
        most: usize,
        runs: &mut Vec<Run>,
    ) -> Result<usize, Error> {
        let mut taken = 0;
        while taken < most && !self.done {
            match self.step(name, position, most - taken, runs) {
                Ok(count) => taken += count,
                Err(_) if taken > 0 => break,
                Err(error) => return Err(unreadable(name, *position, &error)),
            }
        }
        Ok(taken)
    }

    fn step(
        &mut self,
        name: &TopicPartition,
        position: &mut Position,
        most: usize,
        runs: &mut Vec<Run>,
    ) -> Result<usize, BatchError> {
        let Some(open) = &mut self.open else {
            self.open_next(position)?;
            return Ok(0);
        };
        let run = open.records.split_front(most)?;
        let count = run.len();
        let epoch = open.epoch;
        *position = Position { offset: run.next_offset().max(position.offset), epoch };
        if count > 0 {
            runs.push(Run { partition: name.clone(), records: run, epoch });
        }
        if open.records.is_empty() {
            self.open = None;
        }
        Ok(count)
    }

    fn open_next(&mut self, position: &mut Position) -> Result<(), BatchError> {
        let mut rest = self.rest.clone();
        let Some(batch) = RecordBatch::parse_with(&mut rest, self.checksum)? else {
            if self.fresh {
                let what = "there is no whole batch with this offset in the broker's answer";
                return Err(BatchError::BadHeader { offset: position.offset, what });
            }
            self.done = true;
            return Ok(());
        };
        let epoch = (batch.leader_epoch() >= 0).then_some(batch.leader_epoch());
        if batch.next_offset() > position.offset {
            self.fresh = false;
            if self.is_hidden(&batch) {
                *position = Position { offset: batch.next_offset(), epoch };
            } else {
                let mut records = batch.records()?;
                records.skip_before(position.offset)?;
                self.open = Some(Open { records, epoch });
            }
        }
        self.rest = rest;
        Ok(())
    }

    fn is_hidden(&mut self, batch: &RecordBatch) -> bool {
        match &mut self.aborted {
            Some(aborted) => aborted.covers(batch) || batch.is_control(),
            None => batch.is_control(),
        }
    }
}

/// How batches are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// `isolation.level=read_committed`.
    pub(crate) committed_only: bool,
    /// `check.crcs`.
    pub(crate) checksum: Checksum,
}

fn unreadable(name: &TopicPartition, position: Position, error: &BatchError) -> Error {
    Error::Malformed(format!("{name} at offset {}: {error}", position.offset).into())
}

/// Which producers' records are void from where on, within one chunk.
#[derive(Debug)]
struct Aborted {
    /// Sorted, the earliest last.
    to_come: Vec<AbortedTransaction>,
    open: BTreeSet<i64>,
}

impl Aborted {
    fn new(mut transactions: Vec<AbortedTransaction>) -> Self {
        transactions.sort_by_key(|t| std::cmp::Reverse(t.first_offset));
        Self { to_come: transactions, open: BTreeSet::new() }
    }

    /// Whether the batch belongs to an aborted transaction. An abort marker ends its producer's transaction.
    fn covers(&mut self, batch: &RecordBatch) -> bool {
        while self.to_come.last().is_some_and(|t| t.first_offset <= batch.last_offset()) {
            self.open.extend(self.to_come.pop().map(|t| t.producer_id));
        }
        if batch.is_control() {
            if is_abort_marker(batch) {
                self.open.remove(&batch.producer_id());
            }
            return true;
        }
        batch.is_transactional() && self.open.contains(&batch.producer_id())
    }
}

fn is_abort_marker(batch: &RecordBatch) -> bool {
    let Ok(records) = batch.records() else { return false };
    let first = records.iter().next();
    let key = first.and_then(Result::ok).and_then(|record| record.key());
    key.and_then(ControlType::from_key) == Some(ControlType::Abort)
}
