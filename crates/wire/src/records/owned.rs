//! A record that lives on its own: one share of its batch's buffer, and where in it the parts are.

use super::headers::Headers;
use super::record::RecordRef;
use bytes::Bytes;
use std::fmt;

/// A record that shares the buffer of its batch and keeps it alive. Cloning copies no data.
///
/// To keep one small record of a large batch for long, copy its key and value.
#[derive(Clone)]
pub struct Record {
    source: Bytes,
    offset: i64,
    timestamp: i64,
    key: Option<Span>,
    value: Option<Span>,
    header_count: u32,
    headers: Span,
}

/// A part of the buffer.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Where `part`, a part of `whole`, is. Buffers are smaller than 2 GiB, the most a batch's length can say and the
    /// most that is decompressed.
    fn of(whole: &[u8], part: &[u8]) -> Self {
        let start = (part.as_ptr().addr()).wrapping_sub(whole.as_ptr().addr());
        Self { start: start as u32, end: (start + part.len()) as u32 }
    }

    fn get(self, whole: &[u8]) -> &[u8] {
        whole.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl Record {
    pub(super) fn new(source: &Bytes, record: &RecordRef<'_>) -> Self {
        let (header_count, headers) = record.headers().raw();
        let headers = if header_count == 0 { Span { start: 0, end: 0 } } else { Span::of(source, headers) };
        Self {
            source: source.clone(),
            offset: record.offset(),
            timestamp: record.timestamp(),
            key: record.key().map(|key| Span::of(source, key)),
            value: record.value().map(|value| Span::of(source, value)),
            header_count,
            headers,
        }
    }

    /// Where the record is in its partition.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Milliseconds since 1970; -1 when the producer set none.
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// The key.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.map(|span| span.get(&self.source))
    }

    /// The value; none is a tombstone in a compacted topic.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.map(|span| span.get(&self.source))
    }

    /// The headers, in the order in which the producer set them.
    pub fn headers(&self) -> Headers<'_> {
        Headers::checked(self.header_count, self.headers.get(&self.source))
    }

    /// The key as a share of the batch's buffer.
    pub fn key_bytes(&self) -> Option<Bytes> {
        self.key().map(|key| self.source.slice_ref(key))
    }

    /// The value as a share of the batch's buffer.
    pub fn value_bytes(&self) -> Option<Bytes> {
        self.value().map(|value| self.source.slice_ref(value))
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("offset", &self.offset)
            .field("timestamp", &self.timestamp)
            .field("key_bytes", &self.key().map(<[u8]>::len))
            .field("value_bytes", &self.value().map(<[u8]>::len))
            .field("headers", &self.header_count)
            .finish()
    }
}
