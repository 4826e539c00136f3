//! The built binary as people and scripts use it: arguments in, data on standard output, talk on standard error, exit codes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod bad_input;
mod bench;
mod broker;
mod demo;
mod disk;
mod groups;
mod records;
mod rig;
mod server_properties;
mod topics;
