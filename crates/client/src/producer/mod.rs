//! The producer: batches, acknowledgements, retries, idempotence. Small, but with Kafka's promises: the order of a
//! partition is kept, and with idempotence nothing is stored twice.
//!
//! [`Sender`] is the pure machine; [`Producer`] is its async front.

mod answers;
mod batch;
#[cfg(feature = "net")]
mod front;
mod partitioner;
mod record;
mod sender;
#[cfg(test)]
mod tests;

#[cfg(feature = "net")]
pub use front::{Delivery, Producer};
pub use record::{ProducerRecord, RecordMetadata};
pub use sender::{Command, Event, Sender};
