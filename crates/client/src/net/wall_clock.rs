//! The wall clock, for what is about calendar time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; zero when the clock is set to before that.
#[allow(clippy::disallowed_methods)]
pub(crate) fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
