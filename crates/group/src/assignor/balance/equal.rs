//! Balance where all members want the same topics: everybody ends with as many partitions, give or take one.
//!
//! Counting gives the fewest moves possible: who has more than its share gives up the surplus, who has less gets what is
//! free. Linear in partitions and members.

use super::{
    super::layout::{Layout, NOBODY},
    loads,
};

/// Completes and evens out the owners kept so far.
pub(super) fn deal(layout: &Layout<'_>, mut owners: Vec<u32>) -> Vec<u32> {
    let members = layout.members.len();
    let mut counts = loads(members, &owners);
    give_up_surplus(&mut owners, &mut counts);
    let mut turns = Turns::new(&counts);
    for owner in owners.iter_mut().filter(|owner| **owner == NOBODY) {
        *owner = turns.take();
    }
    owners
}

/// Takes from each member what exceeds its share. The members that may have one more than the others are first of all
/// those that have it already.
fn give_up_surplus(owners: &mut [u32], counts: &mut [u32]) {
    let (share, mut extra) = (owners.len() / counts.len(), owners.len() % counts.len());
    let mut surplus = false;
    let shares: Vec<u32> = counts
        .iter()
        .map(|count| {
            let more = *count as usize > share && extra > 0;
            extra -= usize::from(more);
            surplus |= *count as usize > share + usize::from(more);
            (share + usize::from(more)) as u32
        })
        .collect();
    if surplus {
        thin_out(owners, counts, &shares);
    }
}

/// Leaves each member no more than its share, taking evenly from all it has, so that what it gives up is spread over the
/// topics. The first it has stays with it, as Kafka has it.
fn thin_out(owners: &mut [u32], counts: &mut [u32], shares: &[u32]) {
    let mut seen = vec![0u64; counts.len()];
    for owner in owners.iter_mut().filter(|owner| **owner != NOBODY) {
        let member = *owner as usize;
        let (count, share) = (u64::from(counts[member]), u64::from(shares[member]));
        let nth = seen[member];
        seen[member] += 1;
        if count > share && ((nth + 1) * share).div_ceil(count) == (nth * share).div_ceil(count) {
            *owner = NOBODY;
        }
    }
    for (count, share) in counts.iter_mut().zip(shares) {
        *count = (*count).min(*share);
    }
}

/// Whose turn it is: always one of those that have least, in their order.
struct Turns {
    /// Members that have more than those in the circle, who has most first.
    waiting: Vec<(u32, u32)>,
    /// Members that have the least, in order. Those before `at` have got one more in this turn.
    circle: Vec<u32>,
    level: u32,
    at: usize,
}

impl Turns {
    fn new(counts: &[u32]) -> Self {
        let mut waiting: Vec<_> =
            counts.iter().enumerate().map(|(rank, count)| (*count, rank as u32)).collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        let level = waiting.last().map_or(0, |(count, _)| *count);
        let mut turns = Self { waiting, circle: Vec::new(), level, at: 0 };
        turns.admit();
        turns
    }

    fn take(&mut self) -> u32 {
        if self.at == self.circle.len() {
            self.at = 0;
            self.level += 1;
            self.admit();
        }
        self.at += 1;
        self.circle[self.at - 1]
    }

    /// Lets those in that have as much as the circle now.
    fn admit(&mut self) {
        let before = self.circle.len();
        while let Some((_, rank)) = self.waiting.pop_if(|(count, _)| *count <= self.level) {
            self.circle.push(rank);
        }
        if self.circle.len() > before {
            self.circle.sort();
        }
    }
}
