//! Writes batches. Records are encoded as they come; compression and checksum happen once, when the batch is built.

use super::batch::{put, seal};
use super::compress::{self, Compression};
use super::{BatchError, TimestampType, layout, varint};
use bytes::{Bytes, BytesMut};

/// The most bytes that the length field of a batch can tell.
const MOST: usize = i32::MAX as usize;

/// A batch in the making.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    /// Room for the header, then the records, not compressed.
    buffer: BytesMut,
    compression: Compression,
    attributes: i16,
    count: u32,
    next_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    leader_epoch: i32,
}

impl BatchBuilder {
    /// An empty batch; its records will be compressed in this way.
    pub fn new(compression: Compression) -> Self {
        Self {
            buffer: BytesMut::zeroed(layout::HEADER),
            compression,
            attributes: 0,
            count: 0,
            next_delta: 0,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            leader_epoch: -1,
        }
    }

    /// The producer, its epoch, and the sequence number of the first record.
    pub fn producer(&mut self, id: i64, epoch: i16, base_sequence: i32) -> &mut Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, base_sequence);
        self
    }

    /// Whether the batch is part of a transaction.
    pub fn transactional(&mut self, yes: bool) -> &mut Self {
        self.set(layout::TRANSACTIONAL, yes)
    }

    /// Whether these are control records.
    pub fn control(&mut self, yes: bool) -> &mut Self {
        self.set(layout::CONTROL, yes)
    }

    /// How the timestamps came about. With the time of the append, all records have the largest timestamp.
    pub fn timestamp_type(&mut self, kind: TimestampType) -> &mut Self {
        self.set(layout::LOG_APPEND_TIME, kind == TimestampType::LogAppendTime)
    }

    /// The epoch of the leader that appends the batch; a producer leaves it unset.
    pub fn leader_epoch(&mut self, epoch: i32) -> &mut Self {
        self.leader_epoch = epoch;
        self
    }

    fn set(&mut self, bit: i16, yes: bool) -> &mut Self {
        self.attributes = if yes { self.attributes | bit } else { self.attributes & !bit };
        self
    }

    /// Appends a record. The first one sets the time from which the others' timestamps count.
    pub fn append<'h, H>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<(), BatchError>
    where
        H: IntoIterator<Item = (&'h str, Option<&'h [u8]>)> + Clone,
    {
        let base_timestamp = if self.count == 0 { timestamp } else { self.base_timestamp };
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let delta = self.next_delta;
        let (header_count, body) = body_size(timestamp_delta, delta, key, value, headers.clone());
        let whole = self.buffer.len().saturating_add(body).saturating_add(varint::size(body as i64));
        if whole - layout::UNCOUNTED > MOST || delta == i32::MAX {
            return Err(BatchError::Full(whole));
        }
        self.base_timestamp = base_timestamp;
        self.max_timestamp = if self.count == 0 { timestamp } else { self.max_timestamp.max(timestamp) };
        self.count += 1;
        self.next_delta += 1;
        let out = &mut self.buffer;
        out.reserve(whole - out.len());
        varint::put(out, body as i64);
        out.extend_from_slice(&[0]);
        varint::put(out, timestamp_delta);
        varint::put(out, i64::from(delta));
        put_nullable(out, key);
        put_nullable(out, value);
        varint::put(out, header_count as i64);
        for (name, value) in headers {
            put_nullable(out, Some(name.as_bytes()));
            put_nullable(out, value);
        }
        Ok(())
    }

    /// Leaves out an offset, as compaction does.
    pub fn skip_offsets(&mut self, offsets: u32) -> &mut Self {
        self.next_delta = self.next_delta.saturating_add(i32::try_from(offsets).unwrap_or(i32::MAX));
        self
    }

    /// How many bytes a record takes at most, wherever in a batch it stands.
    pub fn record_size<'h, H>(key: Option<&[u8]>, value: Option<&[u8]>, headers: H) -> usize
    where
        H: IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
    {
        let (_, body) = body_size(i64::MIN, i32::MAX, key, value, headers);
        body + varint::size(body as i64)
    }

    /// How many bytes the batch has, not compressed.
    pub fn size(&self) -> usize {
        self.buffer.len()
    }

    /// How many records the batch has.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch has no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The batch, as one that starts at this offset. Producers start at zero and leave the rest to the broker.
    pub fn build(self, base_offset: i64) -> Bytes {
        // What a codec cannot compress goes out as it is: a larger batch is better than none.
        let (compression, mut bytes) =
            match compress::compress(self.compression, &self.buffer, layout::HEADER) {
                Some(bytes) => (self.compression, bytes),
                None => (Compression::None, self.buffer),
            };
        let attributes = self.attributes | i16::from(compression.id());
        let length = (bytes.len() - layout::UNCOUNTED) as i32;
        put(&mut bytes, layout::BASE_OFFSET, &base_offset.to_be_bytes());
        put(&mut bytes, layout::LENGTH, &length.to_be_bytes());
        put(&mut bytes, layout::LEADER_EPOCH, &self.leader_epoch.to_be_bytes());
        put(&mut bytes, layout::MAGIC, &[2]);
        put(&mut bytes, layout::ATTRIBUTES, &attributes.to_be_bytes());
        put(&mut bytes, layout::LAST_OFFSET_DELTA, &(self.next_delta - 1).max(0).to_be_bytes());
        put(&mut bytes, layout::BASE_TIMESTAMP, &self.base_timestamp.to_be_bytes());
        put(&mut bytes, layout::MAX_TIMESTAMP, &self.max_timestamp.to_be_bytes());
        put(&mut bytes, layout::PRODUCER_ID, &self.producer_id.to_be_bytes());
        put(&mut bytes, layout::PRODUCER_EPOCH, &self.producer_epoch.to_be_bytes());
        put(&mut bytes, layout::BASE_SEQUENCE, &self.base_sequence.to_be_bytes());
        put(&mut bytes, layout::COUNT, &self.count.to_be_bytes());
        seal(&mut bytes);
        bytes.freeze()
    }
}

/// The number of headers, and the size of a record without the length in front of it.
fn body_size<'h>(
    timestamp_delta: i64,
    delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl IntoIterator<Item = (&'h str, Option<&'h [u8]>)>,
) -> (usize, usize) {
    let mut size = 1 + varint::size(timestamp_delta) + varint::size(i64::from(delta));
    size += nullable_size(key) + nullable_size(value);
    let mut count = 0;
    for (name, value) in headers {
        count += 1;
        size += nullable_size(Some(name.as_bytes())) + nullable_size(value);
    }
    (count, size + varint::size(count as i64))
}

fn nullable_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::size(bytes.len() as i64) + bytes.len())
}

fn put_nullable(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::put(out, -1),
        Some(bytes) => {
            varint::put(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
