//! Apache Kafka for tests: its jars from Maven Central, its nodes as processes on loopback ports.
//!
//! [`unavailable`] says whether this machine can run it. [`ApacheKafka::start`] brings up one node or three in combined
//! mode (broker and controller in one process). Everything ends with the value, or with the test process.

mod detect;
mod jars;
mod kafka;
mod node;

pub use detect::unavailable;
pub use jars::{Jars, KAFKA_VERSION};
pub use kafka::ApacheKafka;
pub(crate) use node::java_arguments;
