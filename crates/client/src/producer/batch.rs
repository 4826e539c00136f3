//! Records of one partition that travel together, and the queue of them that a partition has.
//!
//! Decides what goes into which batch and in which order batches leave. One rule keeps the order: after a failure nothing
//! of the partition leaves until everything under way has been answered, and then the failed batches go first.

use super::record::{ProducerRecord, RecordMetadata};
use crate::Error;
use bytes::Bytes;
use std::{collections::VecDeque, sync::Arc};
use tontine_group::{Instant, TopicPartition};
use tontine_wire::records::{BatchBuilder, Compression};

/// A record, and who waits for it.
#[derive(Debug)]
pub(super) struct Entry<D> {
    pub(super) order: u64,
    pub(super) record: ProducerRecord,
    pub(super) timestamp: i64,
    pub(super) token: D,
    /// How many answers about metadata had come when the record's partition was first missed.
    pub(super) looked_at: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Batch<D> {
    pub(super) entries: Vec<Entry<D>>,
    /// How large the records are, not compressed.
    pub(super) size: usize,
    pub(super) created: Instant,
    pub(super) deadline: Instant,
    /// The sequence number of the first record, once the batch has been given one.
    pub(super) sequence: Option<i32>,
    pub(super) attempts: u32,
}

/// The producer's id and epoch, as brokers know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

impl<D> Batch<D> {
    fn new(now: Instant, deadline: Instant) -> Self {
        Self { entries: Vec::new(), size: 0, created: now, deadline, sequence: None, attempts: 0 }
    }

    pub(super) fn order(&self) -> u64 {
        self.entries.first().map_or(0, |e| e.order)
    }

    /// The bytes as they travel; an error names the record that no batch can hold.
    pub(super) fn build(&self, compression: Compression, identity: Option<Identity>) -> Result<Bytes, Error> {
        let mut builder = BatchBuilder::new(compression);
        if let (Some(identity), Some(sequence)) = (identity, self.sequence) {
            builder.producer(identity.id, identity.epoch, sequence);
        }
        for entry in &self.entries {
            let record = &entry.record;
            builder
                .append(entry.timestamp, record.key.as_deref(), record.value.as_deref(), record.header_refs())
                .map_err(|e| Error::misuse(format!("a record for {} cannot be sent: {e}", record.topic)))?;
        }
        Ok(builder.build(0))
    }

    /// Two batches with the same records and the same sequence numbers, for a broker that finds this one too large.
    pub(super) fn split(mut self) -> (Self, Self) {
        let second = self.entries.split_off(self.entries.len() / 2);
        let (created, deadline, attempts) = (self.created, self.deadline, self.attempts);
        let sequence = self.sequence.map(|s| next_sequence(s, self.entries.len()));
        self.size = self.entries.iter().map(|e| e.record.size()).sum();
        let size = second.iter().map(|e| e.record.size()).sum();
        (self, Self { entries: second, size, created, deadline, sequence, attempts })
    }

    /// Tells everybody where their record is.
    pub(super) fn delivered(
        self,
        tp: &TopicPartition,
        base_offset: i64,
        append_time: i64,
    ) -> impl Iterator<Item = (D, Result<RecordMetadata, Error>)> {
        let (topic, partition) = (tp.topic.clone(), tp.partition);
        self.entries.into_iter().enumerate().map(move |(i, entry)| {
            let offset = (base_offset >= 0).then(|| base_offset + i as i64);
            let timestamp = if append_time >= 0 { append_time } else { entry.timestamp };
            (entry.token, Ok(RecordMetadata { topic: topic.clone(), partition, offset, timestamp }))
        })
    }
}

/// Sequence numbers start again at zero after the largest one.
pub(super) fn next_sequence(sequence: i32, records: usize) -> i32 {
    let next = i64::from(sequence) + records as i64;
    i32::try_from(next & i64::from(i32::MAX)).unwrap_or(0)
}

/// The batches of one partition.
#[derive(Debug)]
pub(super) struct Queue<D> {
    /// In the order in which they leave.
    pub(super) waiting: VecDeque<Batch<D>>,
    pub(super) under_way: usize,
    /// The broker that has what is under way. Another one gets nothing before all of that is answered.
    pub(super) sent_to: i32,
    /// Failed, and sent again when nothing is under way any more.
    failed: Vec<Batch<D>>,
    pub(super) next_sequence: i32,
    /// Whether the partition has a batch of the present identity. Of a producer that it has never seen a broker takes any
    /// sequence number (`ProducerAppendInfo.checkSequence`), so a second batch must not be there before the first.
    pub(super) is_introduced: bool,
    /// Nothing leaves before.
    pub(super) not_before: Instant,
    pub(super) last_error: Option<Arc<str>>,
}

impl<D> Default for Queue<D> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: 0,
            sent_to: -1,
            failed: Vec::new(),
            next_sequence: 0,
            is_introduced: false,
            not_before: Instant::ZERO,
            last_error: None,
        }
    }
}

impl<D> Queue<D> {
    /// Adds a record to the last batch, or to a new one when it does not fit.
    pub(super) fn push(
        &mut self,
        now: Instant,
        entry: Entry<D>,
        size: usize,
        limit: usize,
        deadline: Instant,
    ) {
        let fits = |b: &&mut Batch<D>| b.sequence.is_none() && b.attempts == 0 && b.size + size <= limit;
        if let Some(batch) = self.waiting.back_mut().filter(fits) {
            batch.size += size;
            batch.entries.push(entry);
            return;
        }
        let mut batch = Batch::new(now, deadline);
        batch.size = size;
        batch.entries.push(entry);
        self.waiting.push_back(batch);
    }

    /// Whether failed batches wait for the answers of others.
    pub(super) fn is_held(&self) -> bool {
        !self.failed.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way == 0 && self.failed.is_empty()
    }

    /// The first record's order of all that is not answered, as far as it is not under way.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.waiting.front().into_iter().chain(&self.failed).map(Batch::order).min()
    }

    /// The order of the first batch that failed.
    pub(super) fn oldest_failed(&self) -> Option<u64> {
        self.failed.iter().map(Batch::order).min()
    }

    /// A batch has to be sent again.
    pub(super) fn put_back(&mut self, batch: Batch<D>) {
        self.failed.push(batch);
    }

    /// Everything under way has been answered: what failed goes first, in the order it was sent.
    pub(super) fn requeue(&mut self) {
        if self.under_way > 0 {
            return;
        }
        self.failed.sort_by_key(Batch::order);
        for batch in self.failed.drain(..).rev() {
            self.waiting.push_front(batch);
        }
    }

    /// Starts the sequence numbers again, for a new identity.
    pub(super) fn restart_sequence(&mut self) {
        self.next_sequence = 0;
        self.is_introduced = false;
        for batch in self.waiting.iter_mut().chain(&mut self.failed) {
            batch.sequence = None;
        }
    }

    /// Takes out the batches whose time is over.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<Batch<D>> {
        let mut expired: Vec<_> = self.failed.extract_if(.., |b| b.deadline <= now).collect();
        while self.waiting.front().is_some_and(|b| b.deadline <= now) {
            expired.extend(self.waiting.pop_front());
        }
        expired
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.front().into_iter().chain(&self.failed).map(|b| b.deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(order: u64) -> Entry<u64> {
        Entry {
            order,
            record: ProducerRecord::to("t").value(vec![0; 50]),
            timestamp: 7,
            token: order,
            looked_at: None,
        }
    }

    fn queue(records: u64) -> Queue<u64> {
        let mut queue = Queue::default();
        for order in 0..records {
            queue.push(Instant::ZERO, entry(order), 60, 200, Instant::ZERO);
        }
        queue
    }

    #[test]
    fn a_batch_takes_records_until_it_is_full() {
        let sizes: Vec<usize> = queue(7).waiting.iter().map(|b| b.entries.len()).collect();
        assert_eq!(sizes, [3, 3, 1]);
    }

    #[test]
    fn failed_batches_go_first_and_in_order_once_nothing_is_under_way() {
        let mut queue = queue(12);
        let (a, b) = (queue.waiting.pop_front().unwrap(), queue.waiting.pop_front().unwrap());
        queue.under_way = 1;
        queue.put_back(b);
        queue.requeue();
        assert!(queue.is_held());
        queue.under_way = 0;
        queue.put_back(a);
        queue.requeue();
        assert!(!queue.is_held());
        let orders: Vec<u64> = queue.waiting.iter().map(Batch::order).collect();
        assert_eq!(orders, [0, 3, 6, 9]);
    }

    #[test]
    fn halves_of_a_batch_keep_its_sequence_numbers() {
        let mut batch = queue(3).waiting.pop_front().unwrap();
        batch.sequence = Some(i32::MAX);
        let (first, second) = batch.split();
        assert_eq!((first.entries.len(), first.sequence), (1, Some(i32::MAX)));
        assert_eq!((second.entries.len(), second.sequence), (2, Some(0)));
    }
}
