//! A Kafka consumer for groups: eager, cooperative and consumer protocol, async listeners, safe commits.

#[cfg(feature = "net")]
pub mod admin;
pub mod audit;
pub mod cluster;
pub mod config;
#[cfg(feature = "net")]
mod consumer;
#[cfg_attr(not(feature = "net"), allow(dead_code))]
pub mod desk;
mod error;
mod fetch;
mod history;
mod lease;
#[cfg(feature = "net")]
mod listener;
pub mod machine;
#[cfg(feature = "net")]
pub mod net;
mod offsets;
pub mod producer;
mod records;
pub mod requester;
#[cfg_attr(not(feature = "net"), allow(dead_code))]
pub mod state;
mod topic_name;

#[cfg(feature = "net")]
pub use admin::Admin;
#[cfg(feature = "net")]
pub use consumer::{CommitFuture, Consumer, GroupMetadata, Offsets, Topics, Waker};
pub use error::Error;
pub use history::{Happening, History};
#[cfg(feature = "net")]
pub use listener::{Assigned, ListenerResult, Lost, RebalanceListener, Revoked};
pub use offsets::{OffsetAndMetadata, OffsetAndTimestamp};
#[cfg(feature = "net")]
pub use producer::Producer;
pub use producer::{ProducerRecord, RecordMetadata};
pub use records::{Header, Headers, Iter as RecordsIter, OwnedRecord, PartitionRecords, Record, Records};
pub use tontine_group::TopicPartition;
/// What an assignor of one's own is made of.
pub use tontine_group::{Assignment, assignor, topics};
