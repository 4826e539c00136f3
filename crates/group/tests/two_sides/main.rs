//! Members and a coordinator against each other in virtual time, over a network that delays, reorders and breaks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod broker;
mod chaos;
mod client;
mod dice;
mod handover;
mod world;
