//! Who owns which partition by the members' own word, and whom to believe when two claim the same one.
//!
//! A claim of a higher generation beats one of a lower generation: who was left behind does not know yet that it lost the
//! partition. Two claims of the same generation contradict each other, so nobody is believed; but as both may be working
//! on the partition, it counts as owned by somebody. Mirrors `AbstractStickyAssignor`'s reading of member data.

use super::layout::{Follow, Layout, NOBODY};

/// A partition that several members of one generation claim.
pub(crate) const CONTESTED: u32 = u32::MAX - 1;

/// The believed owner of each partition: a rank, [`NOBODY`] or [`CONTESTED`].
#[derive(Debug)]
pub(crate) struct Claims {
    pub(crate) owners: Vec<u32>,
}

/// What one member tells of itself.
pub(crate) trait Testimony {
    /// The generation in which it got its partitions; -1 when it does not say.
    fn generation(&self) -> i32;

    /// Calls `claim` with a topic and some partitions of it, until all that the member claims is said.
    fn each(&self, claim: impl FnMut(&str, &mut dyn Iterator<Item = i32>));
}

impl Claims {
    /// Weighs what the members (by rank) say.
    pub(crate) fn new<T: Testimony>(layout: &Layout<'_>, testimonies: &[T]) -> Self {
        let mut owners = vec![NOBODY; layout.partitions];
        let generations: Vec<_> = testimonies.iter().map(T::generation).collect();
        let mut ranks: Vec<usize> = (0..testimonies.len()).collect();
        ranks.sort_by_key(|rank| std::cmp::Reverse(generations[*rank]));
        for rank in ranks {
            let mut hearing =
                Hearing { layout, follow: layout.follow(), owners: &mut owners, generations: &generations };
            testimonies[rank].each(|topic, partitions| hearing.hear(rank, topic, partitions));
        }
        Self { owners }
    }
}

/// Hears members in the order of their generations, the newest first.
struct Hearing<'c, 'l, 'a> {
    layout: &'l Layout<'a>,
    follow: Follow<'l, 'a>,
    owners: &'c mut [u32],
    generations: &'c [i32],
}

impl Hearing<'_, '_, '_> {
    fn hear(&mut self, rank: usize, topic: &str, partitions: &mut dyn Iterator<Item = i32>) {
        let Some(row) = self.follow.find(topic) else { return };
        for partition in partitions {
            if let Some(slot) = self.layout.rows[row as usize].slot(partition) {
                self.weigh(rank, slot);
            }
        }
    }

    fn weigh(&mut self, rank: usize, slot: usize) {
        match self.owners[slot] {
            NOBODY => self.owners[slot] = rank as u32,
            CONTESTED => {}
            owner if owner == rank as u32 => {}
            owner if self.generations[owner as usize] == self.generations[rank] => {
                self.owners[slot] = CONTESTED
            }
            _ => {}
        }
    }
}
