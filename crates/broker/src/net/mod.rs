//! The broker on real sockets. Everything that names tokio or reads a clock is below this folder.

mod address;
mod broker;
mod buffers;
mod builder;
mod connection;
mod listener;
mod shared;

pub use broker::{Broker, StartNodeError};
pub use builder::{Builder, StartError};
