//! The rules of a rebalance that both sides agree on.

pub mod cooperative;
pub mod eager;
