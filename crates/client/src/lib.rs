//! A Kafka consumer for groups: eager, cooperative and consumer protocol, async listeners, safe commits.

pub mod cluster;
pub mod config;
mod error;
pub mod machine;
#[cfg(feature = "net")]
pub mod net;

pub use error::Error;
pub use tontine_group::TopicPartition;
