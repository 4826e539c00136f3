//! The producer: batches, acknowledgements, retries, idempotence. Small, but with Kafka's promises: the order of a
//! partition is kept, and with idempotence nothing is stored twice.
//!
//! [`Sender`] is the pure machine; `Producer` is its async front:
//!
//! ```no_run
//! # #[cfg(feature = "net")]
//! # async fn example() -> Result<(), tontine::Error> {
//! use tontine::{Producer, ProducerRecord};
//!
//! let producer = Producer::builder().set("bootstrap.servers", "127.0.0.1:9092").set("linger.ms", "10").build()?;
//! let delivery = producer.send(ProducerRecord::to("orders").key("customer 7").value("3 apples")).await?;
//! let stored = delivery.await?; // or later, or never: the record is on its way
//! println!("partition {}, offset {:?}", stored.partition, stored.offset);
//! producer.close().await?;
//! # Ok(())
//! # }
//! ```

mod answers;
mod batch;
#[cfg(feature = "net")]
mod front;
mod leave;
mod partitioner;
mod place;
mod record;
mod sender;
#[cfg(test)]
mod tests;

#[cfg(feature = "net")]
pub use front::{Delivery, Producer};
pub use record::{ProducerRecord, RecordMetadata};
pub use sender::{Command, Event, Sender};
