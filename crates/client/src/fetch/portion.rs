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

/// What an answer brought.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) bytes: usize,
    /// What came of the partition that brought most.
    pub(crate) fullest: usize,
    pub(crate) largest_batch: usize,
}

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
    /// What to ask for of each of so many partitions, at most `most`. When one of them alone has records, they must be able
    /// to add up to the `least` that the broker waits for, whole batches only: it would wait with all there is in its hands.
    pub(crate) fn of_each(&self, partitions: usize, least: usize, most: usize) -> usize {
        let fair = self.bytes / partitions.max(1);
        let batches = self.largest_batch.max(least).saturating_mul(2);
        fair.max(LEAST).max(batches).min(most)
    }

    /// What to ask for of so many partitions together, each of which is asked for this much. Those that are left out of an
    /// answer come first in the next one: brokers that keep sessions see to that, and [`super::session`] for the others.
    pub(crate) fn of_all(&self, partitions: usize, each: usize) -> usize {
        let many = partitions.saturating_mul(OF_MANY).min(MANY);
        self.bytes.max(many).max(each)
    }

    /// An answer came after this time, for partitions of which each was asked for this much.
    pub(crate) fn answered(&mut self, took: Duration, asked_of_each: usize, brought: &Brought) {
        self.largest_batch = self.largest_batch.max(brought.largest_batch);
        // An answer that is not full says nothing: it may have waited for records. One partition that has more than it was
        // asked for is enough; the others may have nothing for hours.
        if brought.bytes < self.bytes / 2 && brought.fullest < (asked_of_each / 2).max(1) {
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

    fn brought(bytes: usize, largest_batch: usize) -> Brought {
        Brought { bytes, fullest: bytes, largest_batch }
    }

    /// A broker that has answered in full before.
    fn warm() -> Portion {
        let mut portion = Portion::default();
        portion.answered(Duration::ZERO, usize::MAX, &brought(FIRST, 0));
        portion
    }

    #[test]
    fn the_first_portion_is_the_smallest_however_slow_its_answer_is() {
        for took in [Duration::ZERO, QUICK, SLOW] {
            let mut portion = Portion::default();
            assert_eq!((portion.of_each(8, 1, 1 << 20), portion.of_all(8, LEAST)), (LEAST, FIRST));
            portion.answered(took, usize::MAX, &brought(FIRST, 0));
            assert_eq!(portion.of_each(8, 1, 1 << 20), 256 << 10);
        }
    }

    #[test]
    fn portions_are_small_while_answers_are_quick_and_grow_while_they_are_slow() {
        let mut portion = warm();
        assert_eq!(portion.of_each(8, 1, 1 << 20), 256 << 10);
        for _ in 0..2 {
            portion.answered(SLOW, usize::MAX, &brought(2 << 30, 0));
        }
        assert_eq!(portion.of_each(8, 1, 1 << 20), 1 << 20);
        for _ in 0..100 {
            portion.answered(SLOW, usize::MAX, &brought(2 << 30, 0));
        }
        assert_eq!(portion.of_each(8, 1, 1 << 20), 1 << 20, "never more than what the settings say");
        for _ in 0..100 {
            portion.answered(Duration::ZERO, usize::MAX, &brought(2 << 30, 0));
        }
        assert_eq!(portion.of_each(8, 1, 1 << 20), 256 << 10);
        assert_eq!(portion.of_each(1000, 1, 1 << 20), LEAST);
        assert_eq!(portion.of_each(1, 1, 1000), 1000);
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
        portion.answered(Duration::from_millis(500), usize::MAX, &brought(1000, 500));
        assert_eq!(portion.of_each(8, 1, 1 << 20), 256 << 10);
    }

    #[test]
    fn large_batches_are_asked_for_whole() {
        let mut portion = warm();
        portion.answered(Duration::ZERO, usize::MAX, &brought(900_000, 450_000));
        assert_eq!(portion.of_each(8, 1, 1 << 20), 900_000);
        assert_eq!(portion.of_each(8, 1, 100_000), 100_000);
    }

    #[test]
    fn one_partition_that_has_records_lets_the_portion_grow_while_the_others_have_none() {
        let mut portion = Portion::default();
        let mut answers = |took| {
            let each = portion.of_each(8, 1, 1 << 20);
            portion.answered(took, each, &brought(each - 1_000, 1_000));
            portion.of_each(8, 1, 1 << 20)
        };
        assert_eq!([answers(Duration::ZERO), answers(Duration::ZERO)], [256 << 10, 256 << 10]);
        assert_eq!([answers(SLOW), answers(SLOW), answers(SLOW)], [512 << 10, 1 << 20, 1 << 20]);
    }

    #[test]
    fn each_partition_is_asked_for_more_than_the_broker_waits_for() {
        let portion = Portion::default();
        assert_eq!(portion.of_each(8, 100_000, 1 << 20), 200_000);
        assert_eq!(portion.of_each(8, 1 << 20, 1 << 20), 1 << 20);
    }
}
