//! Values that say where a consumer stands or should stand.
//!
//! Mirrors `OffsetAndMetadata` and `OffsetAndTimestamp`.

/// An offset to commit, or a committed one: that of the **next** record to read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetAndMetadata {
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record read, which lets brokers notice a log that was cut off.
    pub leader_epoch: Option<i32>,
    /// Whatever the application wants to keep beside the offset.
    pub metadata: String,
}

impl OffsetAndMetadata {
    /// This offset, nothing beside it.
    pub fn new(offset: i64) -> Self {
        Self { offset, leader_epoch: None, metadata: String::new() }
    }

    /// The same with this text kept beside the offset.
    pub fn with_metadata(mut self, metadata: impl Into<String>) -> Self {
        self.metadata = metadata.into();
        self
    }
}

impl From<i64> for OffsetAndMetadata {
    fn from(offset: i64) -> Self {
        Self::new(offset)
    }
}

/// The first record at or after a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetAndTimestamp {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp, in milliseconds since 1970.
    pub timestamp: i64,
    /// The leader epoch it was written in.
    pub leader_epoch: Option<i32>,
}

/// A place in a partition that a broker has to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// The first record.
    Beginning,
    /// Behind the last record; behind the last stable one when only committed records are read.
    End,
    /// The first record with this timestamp or a later one.
    Timestamp(i64),
}

impl Spot {
    /// The number that stands for it in ListOffsets.
    pub(crate) fn timestamp(self) -> i64 {
        match self {
            Self::Beginning => -2,
            Self::End => -1,
            Self::Timestamp(ms) => ms,
        }
    }
}
