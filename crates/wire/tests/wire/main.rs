//! The wire format against witnesses from outside: another encoder's bytes, another crate, and damaged bytes.

// Functions that tests share are tests to nobody but us.
#![allow(clippy::unwrap_used, clippy::panic)]

mod damage;
mod differential;
mod hostile;
mod java_batches;
mod record_batches;
mod schema;
mod targets;
mod vectors;
