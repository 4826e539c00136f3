//! What the process has used so far.

use std::time::Duration;
use tokio::time::Instant;

/// A point in the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    at: Instant,
    cpu: Duration,
}

/// What lies between two points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
}

impl Usage {
    pub(super) fn now() -> Self {
        Self { at: Instant::now(), cpu: system::cpu() }
    }

    pub(super) fn until(&self, later: &Self) -> Span {
        Span { wall: later.at.saturating_duration_since(self.at), cpu: later.cpu.saturating_sub(self.cpu) }
    }
}

impl Span {
    /// Nanoseconds of CPU for each of so many records.
    pub(super) fn cpu_ns_per(&self, records: u64) -> f64 {
        tenths(self.cpu.as_secs_f64() * 1e9 / records.max(1) as f64)
    }

    /// How many of so many records a second took.
    pub(super) fn per_second(&self, records: u64) -> f64 {
        tenths(records as f64 / self.wall.as_secs_f64().max(1e-9))
    }
}

/// To one digit behind the point: nobody can measure more.
pub(super) fn tenths(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}

pub(super) use system::max_rss_kb;

#[cfg(unix)]
mod system {
    use nix::sys::{
        resource::{Usage, UsageWho, getrusage},
        time::TimeVal,
    };
    use std::time::Duration;

    fn usage() -> Option<Usage> {
        getrusage(UsageWho::RUSAGE_SELF).ok()
    }

    fn duration(time: TimeVal) -> Duration {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or(0))
    }

    /// CPU time of all threads, the kernel's work for them included.
    pub(in super::super) fn cpu() -> Duration {
        usage().map_or(Duration::ZERO, |usage| duration(usage.user_time()) + duration(usage.system_time()))
    }

    /// The most memory that was resident at any time.
    pub(in super::super) fn max_rss_kb() -> i64 {
        usage().map_or(0, |usage| usage.max_rss())
    }
}

#[cfg(not(unix))]
mod system {
    use std::time::Duration;

    pub(in super::super) fn cpu() -> Duration {
        Duration::ZERO
    }

    pub(in super::super) fn max_rss_kb() -> i64 {
        0
    }
}
