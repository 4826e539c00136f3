//! Control records: what a transaction's coordinator writes into a log to say how the transaction ended.
//!
//! Mirrors `org.apache.kafka.common.record.ControlRecordType` and `EndTransactionMarker`.

use super::{BatchBuilder, BatchError, Compression};
use bytes::Bytes;

/// What a control record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    /// The transaction was aborted.
    Abort,
    /// The transaction was committed.
    Commit,
    /// Something else that consumers step over.
    Other(i16),
}

impl ControlType {
    /// Reads the key of a control record: a version, then the type. `None` when the key is too short for it.
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let [_, _, high, low, ..] = *key else { return None };
        Some(match i16::from_be_bytes([high, low]) {
            0 => Self::Abort,
            1 => Self::Commit,
            other => Self::Other(other),
        })
    }

    fn code(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::Other(code) => code,
        }
    }

    /// The key of a control record of this type.
    pub fn to_key(self) -> [u8; 4] {
        let [high, low] = self.code().to_be_bytes();
        [0, 0, high, low]
    }
}

/// The batch that ends a transaction in one partition.
pub fn end_transaction_marker(
    outcome: ControlType,
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
    timestamp: i64,
) -> Result<Bytes, BatchError> {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(producer_id, producer_epoch, -1).transactional(true).control(true);
    let mut value = [0; 6];
    value[2..].copy_from_slice(&coordinator_epoch.to_be_bytes());
    builder.append(timestamp, Some(&outcome.to_key()), Some(&value), [])?;
    Ok(builder.build(0))
}
