//! A Kafka consumer for groups: eager, cooperative and consumer protocol, async listeners, safe commits.

pub mod cluster;
pub mod config;
#[cfg_attr(not(feature = "net"), allow(dead_code))]
mod desk;
mod error;
mod fetch;
mod history;
mod lease;
pub mod machine;
#[cfg(feature = "net")]
pub mod net;
mod offsets;
mod records;
pub mod state;

pub use error::Error;
pub use history::{Happening, History};
pub use offsets::{OffsetAndMetadata, OffsetAndTimestamp};
pub use records::{Header, Headers, Iter as RecordsIter, OwnedRecord, PartitionRecords, Record, Records};
pub use tontine_group::TopicPartition;
