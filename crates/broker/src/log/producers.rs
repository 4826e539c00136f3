//! What idempotent producers have written: the last batches of each, so that a batch that is sent again is recognised.
//!
//! Of transactions: where each one that is not over begins, and which offsets were aborted. Mirrors
//! `ProducerStateManager`, `ProducerAppendInfo` and `TransactionIndex`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use tontine_wire::ErrorCode;
use tontine_wire::records::{ControlType, RecordBatch};

/// How many batches are remembered; a producer has no more in flight.
const REMEMBERED: usize = 5;

/// The sequence numbers of a batch and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// The number of the first record.
    pub(crate) first: i32,
    /// The number of the last record.
    pub(crate) last: i32,
    /// The offset of the first record.
    pub(crate) base_offset: i64,
    /// The offset of the last record.
    pub(crate) last_offset: i64,
}

/// One producer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Producer {
    /// Its epoch.
    pub(crate) epoch: i16,
    /// When it wrote last.
    pub(crate) last_ms: i64,
    /// The first offset of its transaction, while that is not over.
    pub(crate) transaction: Option<i64>,
    batches: VecDeque<Sequence>,
}

impl Producer {
    /// The last batch it wrote.
    pub(crate) fn last(&self) -> Option<&Sequence> {
        self.batches.back()
    }
}

/// A transaction whose records do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Aborted {
    /// Who wrote it.
    pub(crate) producer_id: i64,
    /// The offset of its first record.
    pub(crate) first: i64,
    /// The offset of the mark that ends it.
    pub(crate) last: i64,
}

/// All producers of a partition.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    by_id: BTreeMap<i64, Producer>,
    /// By the offsets of their ends.
    aborted: Vec<Aborted>,
}

impl Producers {
    /// The producers with their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.by_id.iter().map(|(id, producer)| (*id, producer))
    }

    /// Whether the batch may be appended: `Some(offset)` says that it is there already.
    ///
    /// A producer that is not known may start with any number: its records may have been deleted.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<Option<i64>, ErrorCode> {
        if batch.producer_id() < 0 || batch.is_control() {
            return Ok(None);
        }
        let Some(producer) = self.by_id.get(&batch.producer_id()) else { return Ok(None) };
        if batch.producer_epoch() < producer.epoch {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        let (first, last) = (batch.base_sequence(), batch.last_sequence());
        if first < 0 {
            // Offsets of groups in a transaction have no numbers.
            return Ok(None);
        }
        if batch.producer_epoch() > producer.epoch {
            return if first == 0 { Ok(None) } else { Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER) };
        }
        if let Some(same) = producer.batches.iter().find(|known| known.first == first && known.last == last) {
            return Ok(Some(same.base_offset));
        }
        match producer.last() {
            Some(known) if first != next_sequence(known.last) => Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER),
            _ => Ok(None),
        }
    }

    /// Remembers a batch that was appended.
    pub(super) fn note(&mut self, batch: &RecordBatch, now_ms: i64) {
        if batch.producer_id() < 0 {
            return;
        }
        if batch.is_control() {
            return self.note_end(batch, now_ms);
        }
        let producer = self.by_id.entry(batch.producer_id()).or_default();
        if producer.epoch != batch.producer_epoch() {
            producer.batches.clear();
        }
        if batch.is_transactional() {
            producer.transaction.get_or_insert(batch.base_offset());
        }
        (producer.epoch, producer.last_ms) = (batch.producer_epoch(), now_ms);
        if batch.base_sequence() < 0 {
            return;
        }
        if producer.batches.len() == REMEMBERED {
            producer.batches.pop_front();
        }
        producer.batches.push_back(Sequence {
            first: batch.base_sequence(),
            last: batch.last_sequence(),
            base_offset: batch.base_offset(),
            last_offset: batch.last_offset(),
        });
    }

    /// A mark that ends a transaction. One of a newer epoch shuts out whoever still has the old one.
    fn note_end(&mut self, batch: &RecordBatch, now_ms: i64) {
        let Some(outcome) = outcome(batch) else { return };
        let producer = self.by_id.entry(batch.producer_id()).or_default();
        if producer.epoch != batch.producer_epoch() {
            producer.batches.clear();
        }
        (producer.epoch, producer.last_ms) = (batch.producer_epoch(), now_ms);
        let first = producer.transaction.take();
        if let (ControlType::Abort, Some(first)) = (outcome, first) {
            let last = batch.last_offset();
            self.aborted.push(Aborted { producer_id: batch.producer_id(), first, last });
        }
    }

    /// The first offset of the oldest transaction that is not over.
    pub(super) fn first_unstable(&self) -> Option<i64> {
        self.by_id.values().filter_map(|producer| producer.transaction).min()
    }

    /// The aborted transactions that have something between two offsets.
    pub(super) fn aborted(&self, from: i64, to: i64) -> impl Iterator<Item = &Aborted> {
        self.aborted.iter().filter(move |aborted| aborted.last >= from && aborted.first < to)
    }

    /// Writes everything as lines of text.
    pub(super) fn write(&self, text: &mut String) {
        for (id, producer) in self.iter() {
            let _ = write!(text, "producer {id} {} {}", producer.epoch, producer.last_ms);
            for batch in &producer.batches {
                let _ = write!(
                    text,
                    " {} {} {} {}",
                    batch.first, batch.last, batch.base_offset, batch.last_offset
                );
            }
            text.push('\n');
            if let Some(first) = producer.transaction {
                let _ = writeln!(text, "transaction {id} {first}");
            }
        }
        for Aborted { producer_id, first, last } in &self.aborted {
            let _ = writeln!(text, "aborted {producer_id} {first} {last}");
        }
    }

    /// Reads one of those lines.
    pub(super) fn read_line(&mut self, kind: &str, numbers: &[i64]) {
        let (id, epoch, last_ms, batches) = match (kind, numbers) {
            ("producer", [id, epoch, last_ms, batches @ ..]) => (id, epoch, last_ms, batches),
            ("transaction", [id, first]) => {
                self.by_id.entry(*id).or_default().transaction = Some(*first);
                return;
            }
            ("aborted", [producer_id, first, last]) => {
                self.aborted.push(Aborted { producer_id: *producer_id, first: *first, last: *last });
                return;
            }
            _ => return,
        };
        let small = |number: i64| i32::try_from(number).unwrap_or(-1);
        let batches = batches.chunks_exact(4).filter_map(|numbers| match *numbers {
            [first, last, base_offset, last_offset] => {
                Some(Sequence { first: small(first), last: small(last), base_offset, last_offset })
            }
            _ => None,
        });
        let epoch = i16::try_from(*epoch).unwrap_or(-1);
        let producer = Producer { epoch, last_ms: *last_ms, transaction: None, batches: batches.collect() };
        self.by_id.insert(*id, producer);
    }

    /// Forgets producers that wrote nothing since `oldest_ms`.
    pub(super) fn expire(&mut self, oldest_ms: i64) {
        self.by_id.retain(|_, producer| producer.last_ms >= oldest_ms || producer.transaction.is_some());
    }

    /// The log starts at `offset` now.
    pub(super) fn forget_before(&mut self, offset: i64) {
        self.by_id.retain(|_, producer| {
            producer.transaction.is_some() || producer.last().is_some_and(|last| last.last_offset >= offset)
        });
        self.aborted.retain(|aborted| aborted.last >= offset);
    }

    /// The log ends at `offset` now.
    pub(super) fn forget_from(&mut self, offset: i64) {
        for producer in self.by_id.values_mut() {
            producer.batches.retain(|known| known.last_offset < offset);
            producer.transaction = producer.transaction.filter(|first| *first < offset);
        }
        self.aborted.retain(|aborted| aborted.last < offset);
        self.by_id.retain(|_, producer| !producer.batches.is_empty());
    }
}

/// How a transaction ended, by the mark that ends it.
pub(crate) fn outcome(batch: &RecordBatch) -> Option<ControlType> {
    let records = batch.records().ok()?;
    let record = records.iter().next()?.ok()?;
    ControlType::from_key(record.key()?)
        .filter(|outcome| matches!(outcome, ControlType::Abort | ControlType::Commit))
}

/// Numbers start again at 0 behind the largest one.
fn next_sequence(last: i32) -> i32 {
    last.checked_add(1).unwrap_or(0)
}
