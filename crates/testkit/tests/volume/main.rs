//! Much at once: topics, partitions and brokers by the thousand, and chains of groups under a network that fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says so when it fails")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod chain;
mod many;
