//! The one place of this crate that reads a clock.

use std::time;
use tontine_group::Instant;

/// Turns the system's monotonic clock into points counted from its own origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: time::Instant,
}

impl Clock {
    /// A clock whose origin is now.
    #[allow(
        clippy::disallowed_methods,
        reason = "machines are given the time by the driver, which reads it here"
    )]
    pub fn start() -> Self {
        Self { origin: time::Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> Instant {
        Instant::from_origin(self.origin.elapsed())
    }

    /// The same point for timers of the runtime.
    pub(super) fn timer(&self, at: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.origin + at.since_origin().min(FAR))
    }

    /// A number that differs from start to start, to spread jitter.
    pub fn seed() -> u64 {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    }
}

/// Timers do not reach further than this; what is later is waited for again.
const FAR: time::Duration = time::Duration::from_secs(365 * 24 * 3600);
