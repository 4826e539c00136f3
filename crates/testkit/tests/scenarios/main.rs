//! Faults that clients of Kafka really had, each as a small scenario against the embedded broker: what has to happen
//! instead is the name of the test. Every scenario stands for a kind of fault; `docs/SCENARIOS.md` lists them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says so when it fails")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod callbacks;
mod commits;
mod deadlocks;
mod delivery;
mod failover;
mod fetching;
mod groups;
mod liveness;
mod offsets_across_ownerships;
mod pausing;
mod rig;
mod silence;
mod static_members;
