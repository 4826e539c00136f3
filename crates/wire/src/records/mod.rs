//! Record batches, the form in which records travel and are stored (magic 2, Kafka 0.11 and later).
//!
//! [`RecordBatch::parse`] is the only way to a batch: its length, magic and checksum have been checked. The records of a
//! batch are read in place, from the received bytes or from one decompressed buffer, without a copy and without an
//! allocation. [`BatchBuilder`] writes batches. What is decided elsewhere: offsets, positions, transactions.
//!
//! Mirrors `org.apache.kafka.common.record.DefaultRecordBatch`, `DefaultRecord` and `MemoryRecordsBuilder`.

mod batch;
mod build;
mod compress;
mod control;
mod headers;
mod lz4;
mod owned;
mod parts;
mod record;
mod run;
mod scratch;
#[cfg(test)]
mod tests;
mod varint;

pub use batch::{Checksum, RecordBatch};
pub use build::BatchBuilder;
pub use compress::{Compression, DEFAULT_DECOMPRESSED_LIMIT};
pub use control::{ControlType, end_transaction_marker};
pub use headers::{Header, Headers};
pub use owned::Record;
pub use record::{Iter, RecordRef, Records};
pub use run::{RecordRun, RunIter};

/// How the timestamps of a batch came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer set them.
    #[default]
    CreateTime,
    /// The broker set one for the whole batch when it appended it.
    LogAppendTime,
}

/// Bytes that are no batch that can be read. Each variant names the offset at which the batch says it starts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Another format than magic 2.
    #[error(
        "the batch at offset {offset} has record format {magic}, only format 2 (Kafka 0.11 and later) can be read: \
         rewrite the topic or start behind this batch"
    )]
    UnsupportedMagic {
        /// Where the batch says it starts.
        offset: i64,
        /// The format that was found.
        magic: i8,
    },
    /// A length that no batch can have.
    #[error(
        "the batch at offset {offset} says it is {length} bytes long, which no batch is: the data is corrupt"
    )]
    BadLength {
        /// Where the batch says it starts.
        offset: i64,
        /// What the batch says.
        length: i32,
    },
    /// The checksum does not match the bytes.
    #[error(
        "the batch at offset {offset} is corrupt: its checksum is {computed:#010x}, it should be {stored:#010x} \
         (seek behind the batch to go on)"
    )]
    BadChecksum {
        /// Where the batch says it starts.
        offset: i64,
        /// The checksum in the batch.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A field of the batch's header that contradicts the others.
    #[error("the batch at offset {offset} cannot be right: {what}")]
    BadHeader {
        /// Where the batch says it starts.
        offset: i64,
        /// What is wrong.
        what: &'static str,
    },
    /// A compression that no version of Kafka has.
    #[error("the batch at offset {offset} is compressed with codec {id}, which is unknown here")]
    UnknownCompression {
        /// Where the batch says it starts.
        offset: i64,
        /// The number of the codec.
        id: u8,
    },
    /// The records would take more memory than allowed.
    #[error(
        "the batch at offset {offset} has more than {limit} bytes when decompressed: raise the limit to read it"
    )]
    TooLarge {
        /// Where the batch says it starts.
        offset: i64,
        /// The number of bytes that are allowed.
        limit: usize,
    },
    /// The compressed bytes are not what the codec writes.
    #[error("the batch at offset {offset} cannot be decompressed ({compression:?}): {reason}")]
    BadCompression {
        /// Where the batch says it starts.
        offset: i64,
        /// The codec.
        compression: Compression,
        /// What the codec says.
        reason: String,
    },
    /// A record that contradicts its batch, or bytes that are no record.
    #[error("the batch at offset {offset} has a malformed record: {what}")]
    BadRecord {
        /// Where the batch says it starts.
        offset: i64,
        /// What is wrong.
        what: &'static str,
    },
    /// A batch cannot take this record: it would not fit the format.
    #[error("a batch cannot hold {0} bytes of records")]
    Full(usize),
}

impl BatchError {
    /// The offset at which the batch says it starts; `None` when the error is not about a received batch.
    pub fn offset(&self) -> Option<i64> {
        match self {
            Self::UnsupportedMagic { offset, .. }
            | Self::BadLength { offset, .. }
            | Self::BadChecksum { offset, .. }
            | Self::BadHeader { offset, .. }
            | Self::UnknownCompression { offset, .. }
            | Self::TooLarge { offset, .. }
            | Self::BadCompression { offset, .. }
            | Self::BadRecord { offset, .. } => Some(*offset),
            Self::Full(_) => None,
        }
    }
}

/// Where the fields of a batch's header are.
mod layout {
    pub(super) const BASE_OFFSET: usize = 0;
    pub(super) const LENGTH: usize = 8;
    pub(super) const LEADER_EPOCH: usize = 12;
    pub(super) const MAGIC: usize = 16;
    pub(super) const CRC: usize = 17;
    pub(super) const ATTRIBUTES: usize = 21;
    pub(super) const LAST_OFFSET_DELTA: usize = 23;
    pub(super) const BASE_TIMESTAMP: usize = 27;
    pub(super) const MAX_TIMESTAMP: usize = 35;
    pub(super) const PRODUCER_ID: usize = 43;
    pub(super) const PRODUCER_EPOCH: usize = 51;
    pub(super) const BASE_SEQUENCE: usize = 53;
    pub(super) const COUNT: usize = 57;
    /// The size of a whole header.
    pub(super) const HEADER: usize = 61;
    /// The bytes that the length field does not count: the base offset and itself.
    pub(super) const UNCOUNTED: usize = 12;

    pub(super) const COMPRESSION_BITS: i16 = 0x07;
    pub(super) const LOG_APPEND_TIME: i16 = 0x08;
    pub(super) const TRANSACTIONAL: i16 = 0x10;
    pub(super) const CONTROL: i16 = 0x20;
    pub(super) const DELETE_HORIZON: i16 = 0x40;
}
