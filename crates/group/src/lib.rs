//! Both sides of Kafka's group protocols as pure state machines.
//!
//! Nothing here does I/O, reads a clock, spawns, locks, sleeps or logs. [`member`] is the client's side, [`coordinator`]
//! the broker's; they never import each other. What they share lives in [`ids`], [`topics`], [`assignment`],
//! [`assignor`], [`rebalance`], [`pattern`] and [`cause`].
//!
//! Every machine has the same five verbs: `handle_<input>(now, ..)`, `handle_timeout(now)`, commands such as
//! `subscribe(now, ..)`, `poll_output()` which is drained until it answers `Wait`, and getters without a prefix.

pub mod assignment;
pub mod assignor;
pub mod cause;
pub mod coordinator;
pub mod ids;
pub mod member;
pub mod pattern;
pub mod rebalance;
pub mod time;
pub mod topics;

pub use assignment::Assignment;
pub use cause::Cause;
pub use ids::TopicPartition;
pub use time::Instant;
