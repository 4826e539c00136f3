//! An embedded Kafka broker, and a test cluster of several nodes in one process.
//!
//! [`BrokerState`] is the whole cluster as one pure value: requests and time go in, answers come out. With the feature
//! `net` (on by default) [`Broker`] puts it on real sockets:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let broker = tontine_broker::Broker::builder().topic("orders", 8).start().await?;
//! println!("bootstrap.servers={}", broker.bootstrap_servers());
//! # Ok(()) }
//! ```
//!
//! Records live in memory, or in a data directory ([`Builder::data_dir`]) where they survive. The nodes of a test cluster share one copy of each partition: stopping a node moves leaders
//! and coordinators as Kafka does, but nothing is ever lost by it. It is a test double, not a replicated store.

mod api;
mod cluster;
pub mod config;
mod creation;
pub mod disk;
mod gather;
mod groups;
mod inspect;
mod intercept;
mod log;
#[cfg(feature = "net")]
mod net;
mod parked;
mod random;
mod sessions;
mod settling;
mod state;
mod store;
mod topics;
mod transactions;
mod work;

pub use cluster::{ClusterError, Node, NodeId};
pub use config::{BrokerConfig, ConfigError, Effect};
pub use creation::NewTopic;
pub use intercept::{Hook, Verdict};
#[cfg(feature = "net")]
pub use net::{Broker, Builder, StartError, StartNodeError};
pub use state::{BrokerOutput, BrokerState, Closing, ConnId};
pub use store::StoreError;
pub use work::{Done, Work};
