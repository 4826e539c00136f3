//! How much is asked of one broker at once.
//!
//! `max.partition.fetch.bytes` is the most; less is better when it comes at once: what is still in the processor's caches
//! when it is read costs a tenth less CPU, and less memory is under way. So portions are small while answers come
//! quickly, and grow while they are slow, so that a long way to the broker does not bound the throughput. Kafka's clients
//! always ask for the most. The first portion is smaller still: it brings the first record sooner.

use std::time::Duration;

/// What a broker that answers at once is asked for, over all partitions. With half of it a consumer of the embedded broker
/// takes a tenth less CPU, but one of Apache Kafka, which needs longer for each answer, a tenth more, and reads a third
/// less in a second; with more of it neither gains anything.
const SMALL: usize = 2 << 20;
/// What a broker is asked for at first, until it has shown that it has more.
const FIRST: usize = 512 << 10;
/// Nothing grows beyond what `fetch.max.bytes` and the partitions' shares allow anyway.
const LARGE: usize = 256 << 20;
/// What one partition is asked for at least.
const LEAST: usize = 64 << 10;
/// What is asked for of many partitions together, for each of them, and at most: they are more than can be answered at
/// once, and putting together what is asked for costs something for each.
const OF_MANY: usize = 4 << 10;
const MANY: usize = 16 << 20;
/// An answer that takes this long is slow, and the next one should bring more.
const SLOW: Duration = Duration::from_millis(20);
/// An answer that takes less is quick.
const QUICK: Duration = Duration::from_millis(5);

/// How much is asked of one broker at once.
#[derive(Debug)]
pub(crate) struct Portion {
    bytes: usize,
    /// The largest batch that came from there: a partition whose next batch is larger than what is asked for is answered
    /// only when it is the first one.
    largest_batch: usize,
}

impl Default for Portion {
    fn default() -> Self {
        Self { bytes: FIRST, largest_batch: 0 }
    }
}

impl Portion {
    /// What to ask for of each of so many partitions, at most `most`.
    pub(crate) fn of_each(&self, partitions: usize, most: usize) -> usize {
        let fair = self.bytes / partitions.max(1);
        fair.max(LEAST).max(self.largest_batch.saturating_mul(2)).min(most)
    }

    /// What to ask for of so many partitions together, each of which is asked for this much. Those that are left out of an
    /// answer come first in the next one: brokers that keep sessions see to that, and [`super::session`] for the others.
    pub(crate) fn of_all(&self, partitions: usize, each: usize) -> usize {
        let many = partitions.saturating_mul(OF_MANY).min(MANY);
        self.bytes.max(many).max(each)
    }

    /// An answer came after this time, with so many bytes and no batch larger than this.
    pub(crate) fn answered(&mut self, took: Duration, bytes: usize, largest_batch: usize) {
        self.largest_batch = self.largest_batch.max(largest_batch);
        // An answer that is not full says nothing: it may have waited for records.
        if bytes < self.bytes / 2 {
            return;
        }
        if took >= SLOW {
            self.bytes = (self.bytes * 2).min(LARGE);
        } else if took < QUICK {
            self.bytes /= 2;
        }
        self.bytes = self.bytes.max(SMALL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broker that has answered in full before.
    fn warm() -> Portion {
        let mut portion = Portion::default();
        portion.answered(Duration::ZERO, FIRST, 0);
        portion
    }

    #[test]
    fn the_first_portion_is_the_smallest_however_slow_its_answer_is() {
        for took in [Duration::ZERO, QUICK, SLOW] {
            let mut portion = Portion::default();
            assert_eq!((portion.of_each(8, 1 << 20), portion.of_all(8, LEAST)), (LEAST, FIRST));
            portion.answered(took, FIRST, 0);
            assert_eq!(portion.of_each(8, 1 << 20), 256 << 10);
        }
    }

    #[test]
    fn portions_are_small_while_answers_are_quick_and_grow_while_they_are_slow() {
        let mut portion = warm();
        assert_eq!(portion.of_each(8, 1 << 20), 256 << 10);
        for _ in 0..2 {
            portion.answered(SLOW, 2 << 30, 0);
        }
        assert_eq!(portion.of_each(8, 1 << 20), 1 << 20);
        for _ in 0..100 {
            portion.answered(SLOW, 2 << 30, 0);
        }
        assert_eq!(portion.of_each(8, 1 << 20), 1 << 20, "never more than what the settings say");
        for _ in 0..100 {
            portion.answered(Duration::ZERO, 2 << 30, 0);
        }
        assert_eq!(portion.of_each(8, 1 << 20), 256 << 10);
        assert_eq!(portion.of_each(1000, 1 << 20), LEAST);
        assert_eq!(portion.of_each(1, 1000), 1000);
    }

    #[test]
    fn an_answer_for_many_partitions_is_no_larger_than_one_for_few() {
        let portion = warm();
        assert_eq!(portion.of_all(8, 256 << 10), 2 << 20);
        assert_eq!(portion.of_all(1_000, LEAST), 4_000 << 10);
        assert_eq!(portion.of_all(100_000, LEAST), MANY);
        assert_eq!(portion.of_all(1, 20 << 20), 20 << 20);
    }

    #[test]
    fn an_answer_that_waited_for_records_is_no_sign_of_a_long_way() {
        let mut portion = warm();
        portion.answered(Duration::from_millis(500), 1000, 500);
        assert_eq!(portion.of_each(8, 1 << 20), 256 << 10);
    }

    #[test]
    fn large_batches_are_asked_for_whole() {
        let mut portion = warm();
        portion.answered(Duration::ZERO, 900_000, 450_000);
        assert_eq!(portion.of_each(8, 1 << 20), 900_000);
        assert_eq!(portion.of_each(8, 100_000), 100_000);
    }
}
