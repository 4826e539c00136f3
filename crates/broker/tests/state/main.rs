//! The whole broker without a socket, in virtual time. Requests and answers go through their bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admin;
mod cluster;
mod consumer_groups;
mod crash;
mod damaged;
mod disk;
mod dispatch;
mod fetch;
mod groups;
mod mutated;
mod produce;
mod protocol;
mod rig;
mod sessions;
mod settling;
mod transactions;
