//! Settings: one table for each kind of client. A row gives the field, Kafka's key, the default, the range, the scope and
//! the documentation; `set("key", "value")`, the typed builders, the checks and docs/CONFIG.md all come from the row.
//!
//! Keys are Kafka's own. What only the Java client can use is recognised and left alone, so that a `.properties` file
//! loads as it is. Mirrors `ConsumerConfig`, `ProducerConfig` and `AdminClientConfig`.

#[macro_use]
mod table;
#[macro_use]
mod network;
mod admin;
mod check;
mod choices;
mod consumer;
mod page;
mod producer;
mod properties;
mod suggest;
mod value;

pub use admin::{AdminBuilder, AdminConfig};
pub use choices::{Acks, AutoOffsetReset, CompressionType, GroupProtocol, IsolationLevel};
pub use consumer::{ConsumerBuilder, ConsumerConfig};
pub use page::page;
pub use producer::{ProducerBuilder, ProducerConfig};
pub use properties::properties;
pub use table::{Row, Scope};
pub use value::{IntoSetting, Range, Value};

/// Whether some kind of client accepts `key`: for programs that share one file of settings among several clients and
/// leave out, for each of them, what belongs to the others.
pub fn is_key_of_a_client(key: &str) -> bool {
    ConsumerConfig::knows(key) || ProducerConfig::knows(key) || AdminConfig::knows(key)
}
