//! How long to wait before trying again: exponential, with jitter, and a source of jitter that a seed decides.
//!
//! Mirrors `ExponentialBackoff`: `min(max, base * 2^attempts)`, give or take a fifth.

use std::time::Duration;

/// Pseudo-random numbers for jitter and for the choice of brokers (xorshift*). Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        // Nearby seeds must not give nearby sequences, and the state must not be zero.
        let mixed = (seed ^ (seed >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((mixed ^ (mixed >> 29)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from((self.next() >> 16) % (n.max(1) as u64)).unwrap_or(0)
    }

    /// `delay`, give or take a fifth.
    pub(crate) fn around(&mut self, delay: Duration) -> Duration {
        let part = self.below(4_001) as u32;
        delay * (8_000 + part) / 10_000
    }
}

/// The pause before the attempt that follows `attempts` failed ones.
pub(crate) fn backoff(base: Duration, max: Duration, attempts: u32, jitter: &mut Jitter) -> Duration {
    let grown = base.saturating_mul(1u32 << attempts.saturating_sub(1).min(20));
    jitter.around(grown.min(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_stay_within_a_fifth() {
        let (base, max) = (Duration::from_millis(100), Duration::from_secs(1));
        for seed in 0..200 {
            let mut jitter = Jitter::new(seed);
            for (attempts, expected) in
                [(0, 100), (1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (500, 1_000)]
            {
                let pause = backoff(base, max, attempts, &mut jitter);
                let expected = Duration::from_millis(expected);
                assert!(pause >= expected * 8 / 10 && pause <= expected * 12 / 10, "{attempts}: {pause:?}");
            }
        }
    }

    #[test]
    fn a_first_pause_above_the_longest_is_the_longest() {
        let pause = backoff(Duration::from_secs(9), Duration::from_secs(1), 3, &mut Jitter::new(7));
        assert!(pause <= Duration::from_millis(1_200));
    }

    #[test]
    fn different_seeds_give_different_pauses() {
        let pauses: std::collections::BTreeSet<_> =
            (0..50).map(|seed| Jitter::new(seed).around(Duration::from_secs(1))).collect();
        assert!(pauses.len() > 40);
    }
}
