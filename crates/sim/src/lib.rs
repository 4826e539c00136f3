//! Simulates groups of Kafka consumers and an embedded broker in one thread and in virtual time.
//!
//! That this crate builds is the proof that wire, group and the state machines of client and broker need no runtime.
