//! Bytes to types and back: Kafka's messages, headers, frames and record batches.
//!
//! This crate knows no group, no socket and no clock. Each API of the protocol is one readable table in [`api`]; the
//! tables are written with the `message!` macro of [`codec`], which derives the encoding of every version from them.
//! Names are Kafka's own, in Rust's spelling: `SessionTimeoutMs` of `JoinGroupRequest` is
//! [`api::join_group::JoinGroupRequest`]`::session_timeout_ms`.

#[macro_use]
pub mod codec;
pub mod api;
pub mod consumer_protocol;
pub mod error_code;
pub mod frame;
pub mod group_records;
pub mod header;
pub mod records;
pub mod subscription_view;
pub mod transaction_records;
pub mod types;

pub use codec::DecodeError;
pub use error_code::ErrorCode;
pub use types::Uuid;
