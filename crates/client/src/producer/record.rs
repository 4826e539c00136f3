//! What goes into a producer, and what comes out of it. Mirrors `ProducerRecord` and `RecordMetadata`.

use bytes::Bytes;
use std::sync::Arc;
use tontine_wire::records::BatchBuilder;

/// A record to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerRecord {
    /// Where to.
    pub topic: Arc<str>,
    /// Which partition; the key decides when this is not set, and without a key any will do.
    pub partition: Option<i32>,
    /// The key: records with the same key go to the same partition, in their order.
    pub key: Option<Bytes>,
    /// The value; none is a tombstone in a compacted topic.
    pub value: Option<Bytes>,
    /// Named bytes that travel along.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Milliseconds since 1970; now, when this is not set.
    pub timestamp: Option<i64>,
}

impl ProducerRecord {
    /// A record for a topic, empty so far.
    pub fn to(topic: impl Into<Arc<str>>) -> Self {
        Self {
            topic: topic.into(),
            partition: None,
            key: None,
            value: None,
            headers: Vec::new(),
            timestamp: None,
        }
    }

    /// With this partition.
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// With this key.
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With this value.
    pub fn value(mut self, value: impl Into<Bytes>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// With one more header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// With this timestamp.
    pub fn timestamp(mut self, unix_ms: i64) -> Self {
        self.timestamp = Some(unix_ms);
        self
    }

    pub(super) fn header_refs(&self) -> impl Iterator<Item = (&str, Option<&[u8]>)> + Clone {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// How many bytes the record takes at most.
    pub(super) fn size(&self) -> usize {
        BatchBuilder::record_size(self.key.as_deref(), self.value.as_deref(), self.header_refs())
    }
}

/// Where a record has been stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordMetadata {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset; not known with `acks=0`, and for a batch that a broker had already.
    pub offset: Option<i64>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}
