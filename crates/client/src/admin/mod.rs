//! The admin: topics, groups, offsets, configurations and leaders, asked for from outside of a group.
//!
//! Decides whom to ask and when to ask again. Mirrors Kafka's `KafkaAdminClient`. Operations on several things give one
//! result for each of them.
//!
//! ```no_run
//! # async fn example() -> Result<(), tontine::Error> {
//! use tontine::admin::{Admin, NewTopic};
//!
//! let admin = Admin::builder().set("bootstrap.servers", "127.0.0.1:9092").build()?;
//! admin.create_topic(NewTopic::new("orders", 8)).await?;
//! for group in admin.list_groups().await? {
//!     println!("{} is {}", group.id, group.state);
//! }
//! # Ok(())
//! # }
//! ```

mod caller;
mod cluster;
mod configs;
mod groups;
mod offsets;
mod topics;

pub use cluster::{ClusterDescription, ElectionType};
pub use configs::{ConfigChange, ConfigEntry, ConfigResource};
pub use groups::{GroupDescription, GroupListing, MemberDescription};
pub use offsets::{ListedOffset, OffsetSpec};
pub use topics::{CreatedTopic, NewTopic, TopicListing};

use crate::{Error, config::AdminBuilder};
use caller::Caller;
use std::{collections::BTreeMap, time::Duration};

/// A result for each thing that was asked about.
pub type Each<K, V> = BTreeMap<K, Result<V, Error>>;

/// A client for administration. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Admin {
    caller: Caller,
}

impl AdminBuilder {
    /// The admin. Nothing is sent before the first operation.
    pub fn build(self) -> Result<Admin, Error> {
        let mut config = self.checked()?;
        if config.client_id.is_empty() {
            "admin".clone_into(&mut config.client_id);
        }
        Ok(Admin { caller: Caller::start(config)? })
    }
}

impl Admin {
    /// Starts with Kafka's defaults.
    pub fn builder() -> AdminBuilder {
        AdminBuilder::default()
    }

    /// The same admin, with this long for each operation instead of `default.api.timeout.ms`.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.caller.timeout = timeout;
        self
    }
}

/// The one result of an operation on one thing.
fn only<K, V>(each: Each<K, V>, context: &str) -> Result<V, Error> {
    let missing = || Error::Malformed(format!("{context}: the broker's answer does not mention it").into());
    each.into_values().next().unwrap_or_else(|| Err(missing()))
}
