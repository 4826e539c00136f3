//! The consumer against the embedded broker, from the application's side.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says so when it fails")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod bad_input;
mod callbacks;
mod cluster;
mod first;
mod positions;
mod rig;
