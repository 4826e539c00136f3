//! A batch as it was received: the header's fields, the checks that make it one, and the fields that brokers rewrite.

use super::compress::{self, Compression, DEFAULT_DECOMPRESSED_LIMIT};
use super::record::{Frame, Records};
use super::{BatchError, TimestampType, layout};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// Whether the checksum is computed when a batch is parsed (`check.crcs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// A batch whose checksum does not match is an error.
    #[default]
    Verify,
    /// The checksum is not looked at. Nothing in a damaged batch panics; it may only mean something else.
    Ignore,
}

/// A batch of records whose length, format and checksum are right. It shares the bytes it was parsed from.
#[derive(Clone, PartialEq)]
pub struct RecordBatch {
    bytes: Bytes,
    fields: Fields,
}

/// The header's fields, read once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fields {
    base_offset: i64,
    leader_epoch: i32,
    attributes: i16,
    compression: Compression,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    count: u32,
}

/// `N` bytes at a place that is known to be inside; zeros if it were not, so that nothing can panic.
fn at<const N: usize>(bytes: &[u8], place: usize) -> [u8; N] {
    bytes.get(place..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

impl RecordBatch {
    /// Takes the next batch off `buffer`, its checksum verified.
    ///
    /// `None` means that the buffer ends within the batch: brokers cut their answers off anywhere. After an error the
    /// buffer still starts with the batch that caused it.
    pub fn parse(buffer: &mut Bytes) -> Result<Option<Self>, BatchError> {
        Self::parse_with(buffer, Checksum::Verify)
    }

    /// Takes the next batch off `buffer`; says whether the checksum counts.
    pub fn parse_with(buffer: &mut Bytes, checksum: Checksum) -> Result<Option<Self>, BatchError> {
        let Some(size) = whole_size(buffer)? else { return Ok(None) };
        let Some(bytes) = buffer.get(..size) else { return Ok(None) };
        if checksum == Checksum::Verify {
            verify(bytes)?;
        }
        let fields = Fields::read(bytes)?;
        Ok(Some(Self { bytes: buffer.split_to(size), fields }))
    }

    /// The whole batch as it travels.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole batch as it travels.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// How many bytes the batch takes on the wire.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of the first record, or of the first that was there before compaction.
    pub fn base_offset(&self) -> i64 {
        self.fields.base_offset
    }

    /// The offset of the last record, also when compaction has removed it.
    pub fn last_offset(&self) -> i64 {
        self.fields.base_offset + i64::from(self.fields.last_offset_delta)
    }

    /// The offset behind the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset() + 1
    }

    /// How many records there are.
    pub fn record_count(&self) -> u32 {
        self.fields.count
    }

    /// The epoch of the leader that appended the batch; -1 when it was never appended.
    pub fn leader_epoch(&self) -> i32 {
        self.fields.leader_epoch
    }

    /// How the records are compressed.
    pub fn compression(&self) -> Compression {
        self.fields.compression
    }

    /// Whether these records are marks of a transaction or of the cluster's own, not for applications.
    pub fn is_control(&self) -> bool {
        self.fields.attributes & layout::CONTROL != 0
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.fields.attributes & layout::TRANSACTIONAL != 0
    }

    /// Whether the base timestamp is the time at which the batch's tombstones may go.
    pub fn has_delete_horizon(&self) -> bool {
        self.fields.attributes & layout::DELETE_HORIZON != 0
    }

    /// The producer; -1 without idempotence.
    pub fn producer_id(&self) -> i64 {
        self.fields.producer_id
    }

    /// The epoch of the producer; -1 without idempotence.
    pub fn producer_epoch(&self) -> i16 {
        self.fields.producer_epoch
    }

    /// The sequence number of the first record; -1 without idempotence.
    pub fn base_sequence(&self) -> i32 {
        self.fields.base_sequence
    }

    /// The sequence number of the last record, which wraps from the largest to zero; -1 without idempotence.
    pub fn last_sequence(&self) -> i32 {
        match self.fields.base_sequence {
            none if none < 0 => -1,
            base => (i64::from(base) + i64::from(self.fields.last_offset_delta)).rem_euclid(1 << 31) as i32,
        }
    }

    /// The time from which the records' timestamps count.
    pub fn base_timestamp(&self) -> i64 {
        self.fields.base_timestamp
    }

    /// The largest timestamp in the batch; with [`TimestampType::LogAppendTime`] that of every record.
    pub fn max_timestamp(&self) -> i64 {
        self.fields.max_timestamp
    }

    /// How the timestamps came about.
    pub fn timestamp_type(&self) -> TimestampType {
        match self.fields.attributes & layout::LOG_APPEND_TIME {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// The records, decompressed to at most [`DEFAULT_DECOMPRESSED_LIMIT`] bytes.
    pub fn records(&self) -> Result<Records, BatchError> {
        self.records_within(DEFAULT_DECOMPRESSED_LIMIT)
    }

    /// The records, decompressed to at most `limit` bytes.
    pub fn records_within(&self, limit: usize) -> Result<Records, BatchError> {
        let offset = self.fields.base_offset;
        let payload =
            compress::decompress(self.fields.compression, self.bytes.slice(layout::HEADER..), limit)
                .map_err(|fault| fault.at(offset, self.fields.compression))?;
        let append_time =
            (self.timestamp_type() == TimestampType::LogAppendTime).then_some(self.max_timestamp());
        let frame = Frame {
            base_offset: offset,
            base_timestamp: self.fields.base_timestamp,
            append_time,
            last_offset_delta: self.fields.last_offset_delta,
        };
        Ok(Records::new(payload, frame, self.fields.count))
    }

    /// The batch as a leader stores it: with its place in the log, its leader's epoch and, when the topic asks for it,
    /// the time of the append.
    ///
    /// The bytes are rewritten in place when nobody else holds them and copied otherwise. Only the time is covered by
    /// the checksum; without one the checksum stays as the producer sent it, so damage on the way is still noticed.
    /// `None` when no offset is left behind the batch.
    pub fn stamped(self, base_offset: i64, leader_epoch: i32, append_time: Option<i64>) -> Option<Self> {
        if base_offset < 0 || base_offset.checked_add(i64::from(self.fields.last_offset_delta) + 1).is_none()
        {
            return None;
        }
        let Self { bytes, mut fields } = self;
        let mut bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        set_base_offset(&mut bytes, base_offset);
        set_leader_epoch(&mut bytes, leader_epoch);
        (fields.base_offset, fields.leader_epoch) = (base_offset, leader_epoch);
        if let Some(time) = append_time {
            fields.attributes |= layout::LOG_APPEND_TIME;
            fields.max_timestamp = time;
            put(&mut bytes, layout::ATTRIBUTES, &fields.attributes.to_be_bytes());
            put(&mut bytes, layout::MAX_TIMESTAMP, &time.to_be_bytes());
            seal(&mut bytes);
        }
        Some(Self { bytes: bytes.freeze(), fields })
    }
}

impl fmt::Debug for RecordBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBatch").field("size", &self.bytes.len()).field("header", &self.fields).finish()
    }
}

/// The size of the batch at the front; `None` when the bytes end too early to tell, or before the batch does.
///
/// The format is looked at before the length is judged: older formats have shorter entries.
fn whole_size(bytes: &[u8]) -> Result<Option<usize>, BatchError> {
    if bytes.len() <= layout::MAGIC {
        return Ok(None);
    }
    let offset = i64::from_be_bytes(at(bytes, layout::BASE_OFFSET));
    let magic = i8::from_be_bytes(at(bytes, layout::MAGIC));
    if magic != 2 {
        return Err(BatchError::UnsupportedMagic { offset, magic });
    }
    let length = i32::from_be_bytes(at(bytes, layout::LENGTH));
    match usize::try_from(length) {
        Ok(n) if n >= layout::HEADER - layout::UNCOUNTED => {
            Ok(Some(n + layout::UNCOUNTED).filter(|size| *size <= bytes.len()))
        }
        _ => Err(BatchError::BadLength { offset, length }),
    }
}

fn checksum_of(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes.get(layout::ATTRIBUTES..).unwrap_or_default())
}

fn verify(bytes: &[u8]) -> Result<(), BatchError> {
    let stored = u32::from_be_bytes(at(bytes, layout::CRC));
    let computed = checksum_of(bytes);
    if stored == computed {
        return Ok(());
    }
    let offset = i64::from_be_bytes(at(bytes, layout::BASE_OFFSET));
    Err(BatchError::BadChecksum { offset, stored, computed })
}

impl Fields {
    fn read(bytes: &[u8]) -> Result<Self, BatchError> {
        let base_offset = i64::from_be_bytes(at(bytes, layout::BASE_OFFSET));
        let bad = |what| BatchError::BadHeader { offset: base_offset, what };
        let attributes = i16::from_be_bytes(at(bytes, layout::ATTRIBUTES));
        let codec = (attributes & layout::COMPRESSION_BITS) as u8;
        let last_offset_delta = i32::from_be_bytes(at(bytes, layout::LAST_OFFSET_DELTA));
        if base_offset < 0 || last_offset_delta < 0 {
            return Err(bad("its offsets are negative"));
        }
        if base_offset.checked_add(i64::from(last_offset_delta) + 1).is_none() {
            return Err(bad("its offsets are larger than offsets can be"));
        }
        let count = i32::from_be_bytes(at(bytes, layout::COUNT));
        let count = u32::try_from(count).map_err(|_| bad("its number of records is negative"))?;
        if i64::from(count) > i64::from(last_offset_delta) + 1 {
            return Err(bad("it has more records than offsets"));
        }
        Ok(Self {
            base_offset,
            leader_epoch: i32::from_be_bytes(at(bytes, layout::LEADER_EPOCH)),
            attributes,
            compression: Compression::from_id(codec)
                .ok_or(BatchError::UnknownCompression { offset: base_offset, id: codec })?,
            last_offset_delta,
            base_timestamp: i64::from_be_bytes(at(bytes, layout::BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(at(bytes, layout::MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(at(bytes, layout::PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(at(bytes, layout::PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(at(bytes, layout::BASE_SEQUENCE)),
            count,
        })
    }
}

/// Overwrites bytes of a header.
pub(super) fn put(bytes: &mut [u8], place: usize, value: &[u8]) {
    if let Some(room) = bytes.get_mut(place..place + value.len()) {
        room.copy_from_slice(value);
    }
}

fn set_base_offset(bytes: &mut [u8], base_offset: i64) {
    put(bytes, layout::BASE_OFFSET, &base_offset.to_be_bytes());
}

fn set_leader_epoch(bytes: &mut [u8], leader_epoch: i32) {
    put(bytes, layout::LEADER_EPOCH, &leader_epoch.to_be_bytes());
}

/// Writes the checksum over everything from the attributes on.
pub(super) fn seal(bytes: &mut [u8]) {
    let checksum = checksum_of(bytes);
    put(bytes, layout::CRC, &checksum.to_be_bytes());
}
