//! Waiting before trying again: exponential, bounded, jittered. Mirrors `ExponentialBackoff` (KIP-580).

use std::time::Duration;

/// A small generator for jitter (splitmix64): good enough for spreading retries, and repeatable from its seed.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    /// A generator that repeats itself for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// This long, give or take 20 %. Whatever waits for longer than a day waits for a day.
    pub(crate) fn around(&mut self, wait: Duration) -> Duration {
        let wait = wait.min(Duration::from_secs(86_400));
        let part = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        wait.mul_f64(0.8 + 0.4 * part)
    }
}

/// How long to wait before the next try of one kind of request. Success resets it.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits `first`, then twice as long each time, at most `most`.
    pub(crate) fn new(first: Duration, most: Duration) -> Self {
        Self { first: first.min(most), most, failures: 0 }
    }

    /// Another failure: how long to wait now.
    pub(crate) fn fail(&mut self, jitter: &mut Jitter) -> Duration {
        self.fail_freely(0, jitter)
    }

    /// A failure whose answer said how to do better: tried again at once, but only `free` times in a row.
    pub(crate) fn fail_freely(&mut self, free: u32, jitter: &mut Jitter) -> Duration {
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        match failures.checked_sub(free) {
            None => Duration::ZERO,
            Some(waits) => jitter.around(self.first.saturating_mul(1 << waits.min(20)).min(self.most)),
        }
    }

    /// Success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_start_over_after_success() {
        let mut jitter = Jitter::new(7);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for expected in [100, 200, 400, 800, 1000, 1000] {
            let wait = backoff.fail(&mut jitter).as_millis() as i64;
            assert!((wait - expected).abs() <= expected / 5 + 1, "{wait} is not about {expected}");
        }
        backoff.reset();
        assert!(backoff.fail(&mut jitter) <= Duration::from_millis(120));
    }

    #[test]
    fn the_same_seed_waits_the_same() {
        let waits = |seed| {
            let mut jitter = Jitter::new(seed);
            let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
            [backoff.fail(&mut jitter), backoff.fail(&mut jitter)]
        };
        assert_eq!(waits(3), waits(3));
        assert_ne!(waits(3), waits(4));
    }

    #[test]
    fn the_first_failures_can_be_free() {
        let mut jitter = Jitter::new(7);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        assert_eq!(backoff.fail_freely(1, &mut jitter), Duration::ZERO);
        assert!(backoff.fail_freely(1, &mut jitter) > Duration::ZERO);
    }
}
