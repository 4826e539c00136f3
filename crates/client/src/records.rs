//! What `poll` returns: records, borrowed in place from the batches they came in.
//!
//! Nothing is copied and nothing allocated per record. [`Records`] keeps the buffers alive, also after the next poll; a
//! record that has to outlive it, or to move to another task, becomes one of its own with [`Record::to_owned`].
//!
//! Mirrors `ConsumerRecords` and `ConsumerRecord`.

use crate::offsets::OffsetAndMetadata;
use bytes::Bytes;
use std::collections::BTreeMap;
use tontine_group::TopicPartition;
use tontine_wire::records as wire;
pub use wire::{Header, Headers};

/// The records that one poll returned. Those of one partition are in their order.
#[derive(Clone, Debug, Default)]
pub struct Records {
    runs: Vec<Run>,
    count: usize,
}

/// Consecutive records of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) partition: TopicPartition,
    pub(crate) records: wire::RecordRun,
    pub(crate) epoch: Option<i32>,
}

impl Records {
    pub(crate) fn new(runs: Vec<Run>) -> Self {
        let count = runs.iter().map(|run| run.records.len()).sum();
        Self { runs, count }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every record.
    pub fn iter(&self) -> Iter<'_> {
        Iter { runs: self.runs.iter(), run: None }
    }

    /// The records by partition, for applications that handle or commit one partition after the other.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionRecords<'_>> {
        let mut by_partition = BTreeMap::<&TopicPartition, Vec<&Run>>::new();
        for run in &self.runs {
            by_partition.entry(&run.partition).or_default().push(run);
        }
        by_partition.into_iter().map(|(partition, runs)| PartitionRecords { partition, runs })
    }

    /// For each partition the offset to commit when everything here has been handled.
    pub fn next_offsets(&self) -> BTreeMap<TopicPartition, OffsetAndMetadata> {
        self.partitions().map(|p| (p.partition.clone(), p.next_offset())).collect()
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Record<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The records of one partition.
#[derive(Clone, Debug)]
pub struct PartitionRecords<'a> {
    partition: &'a TopicPartition,
    runs: Vec<&'a Run>,
}

impl<'a> PartitionRecords<'a> {
    /// The partition.
    pub fn partition(&self) -> &'a TopicPartition {
        self.partition
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.records.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records in their order.
    pub fn iter(&self) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let runs: Vec<&'a Run> = self.runs.clone();
        runs.into_iter().flat_map(|run| {
            run.records.iter().map(move |record| Record { partition: &run.partition, record })
        })
    }

    /// The offset to commit when these have been handled.
    pub fn next_offset(&self) -> OffsetAndMetadata {
        let last = self.runs.last();
        OffsetAndMetadata {
            offset: last.map_or(0, |run| run.records.next_offset()),
            leader_epoch: last.and_then(|run| run.epoch),
            metadata: String::new(),
        }
    }
}

/// Every record of a poll.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    runs: std::slice::Iter<'a, Run>,
    run: Option<(&'a TopicPartition, wire::RunIter<'a>)>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Record<'a>;

    // What the application does not look at is not put together when all of this ends up in its loop.
    #[inline(always)]
    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            if let Some((partition, run)) = &mut self.run
                && let Some(record) = run.next()
            {
                return Some(Record { partition, record });
            }
            if !self.next_run() {
                return None;
            }
        }
    }
}

impl Iter<'_> {
    #[inline(never)]
    fn next_run(&mut self) -> bool {
        self.run = self.runs.next().map(|run| (&run.partition, run.records.iter()));
        self.run.is_some()
    }
}

/// One record, borrowed from the poll that returned it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    partition: &'a TopicPartition,
    record: wire::RecordRef<'a>,
}

impl<'a> Record<'a> {
    /// The topic.
    #[inline]
    pub fn topic(&self) -> &'a str {
        self.partition.topic()
    }

    /// The partition's number.
    #[inline]
    pub fn partition(&self) -> i32 {
        self.partition.partition()
    }

    /// Topic and partition.
    #[inline]
    pub fn topic_partition(&self) -> &'a TopicPartition {
        self.partition
    }

    /// Where the record is in its partition.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.record.offset()
    }

    /// Milliseconds since 1970; -1 when the producer set none.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.record.timestamp()
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.record.key()
    }

    /// The value; none is a tombstone in a compacted topic.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.record.value()
    }

    /// The headers, in the order in which the producer set them.
    #[inline]
    pub fn headers(&self) -> Headers<'a> {
        self.record.headers()
    }

    /// The key as a share of the buffer it came in.
    pub fn key_bytes(&self) -> Option<Bytes> {
        self.record.key_bytes()
    }

    /// The value as a share of the buffer it came in.
    pub fn value_bytes(&self) -> Option<Bytes> {
        self.record.value_bytes()
    }

    /// The record as one that lives on its own. It shares the buffer it came in and copies nothing.
    #[allow(clippy::should_implement_trait)]
    pub fn to_owned(&self) -> OwnedRecord {
        OwnedRecord { partition: self.partition.clone(), record: self.record.to_record() }
    }
}

/// A record that lives on its own and keeps the buffer it came in alive.
#[derive(Clone, Debug)]
pub struct OwnedRecord {
    partition: TopicPartition,
    record: wire::Record,
}

impl OwnedRecord {
    /// The topic.
    pub fn topic(&self) -> &str {
        self.partition.topic()
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.partition.partition()
    }

    /// Topic and partition.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// Where the record is in its partition.
    pub fn offset(&self) -> i64 {
        self.record.offset()
    }

    /// Milliseconds since 1970; -1 when the producer set none.
    pub fn timestamp(&self) -> i64 {
        self.record.timestamp()
    }

    /// The key.
    pub fn key(&self) -> Option<&[u8]> {
        self.record.key()
    }

    /// The value; none is a tombstone in a compacted topic.
    pub fn value(&self) -> Option<&[u8]> {
        self.record.value()
    }

    /// The headers, in the order in which the producer set them.
    pub fn headers(&self) -> Headers<'_> {
        self.record.headers()
    }
}
