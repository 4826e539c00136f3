//! The admin's table: what every client has, and nothing else.

use super::{network::IGNORED, value::Range};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

table_with_network_rows! {
    /// Settings of an admin.
    AdminConfig,
    /// Builds an admin.
    AdminBuilder {},
    ignored &[IGNORED], {}
}
