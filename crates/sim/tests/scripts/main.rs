//! Readable scripts in the simulated world: interleavings that are hard to bring about with real time, on both protocols and in
//! groups of both. Every invariant of the drawn histories watches here, too. `docs/SCENARIOS.md` lists them by the ids that
//! stand before each.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod callbacks;
mod closing;
mod commits;
mod coordinator;
mod delivery;
mod failover;
mod liveness;
mod moves;
mod offsets;
mod pausing;
mod reading;
mod silence;
mod stage;
mod static_members;
mod target;
mod whole;
