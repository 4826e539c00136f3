//! The member driven by hand: every request, answer, callback and second is the test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod callbacks;
mod close;
mod commits;
mod consumer;
mod errors;
mod joining;
mod leading;
mod liveness;
mod rig;
