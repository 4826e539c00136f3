//! Balance where members want different topics.
//!
//! Deals what is free to whoever has least among those who want it, the most sought-after topics last. That is nearly
//! balanced already; [`pull`] and [`paths`] do the rest, first with the partitions that were free, then with all, and [`home`] looks after what
//! was moved in vain.

use super::{
    super::layout::{Layout, NOBODY, Subscribers},
    home, loads, paths, pull,
};
use std::{cmp::Reverse, collections::BinaryHeap};

/// A half-made deal.
pub(super) struct Deal<'l, 'a> {
    pub(super) layout: &'l Layout<'a>,
    pub(super) subscribers: Subscribers,
    /// Who has each partition.
    pub(super) owners: Vec<u32>,
    /// Who had it before, if it may stay there.
    pub(super) homes: Vec<u32>,
    /// How many partitions each member has.
    pub(super) loads: Vec<u32>,
}

/// Which partitions may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Movable {
    /// Those that are not with their home.
    Loose,
    /// Every one.
    All,
}

/// Completes and evens out the owners kept so far.
pub(super) fn deal(layout: &Layout<'_>, kept: Vec<u32>) -> Vec<u32> {
    let loads = loads(layout.members.len(), &kept);
    let mut deal =
        Deal { layout, subscribers: layout.subscribers(), owners: kept.clone(), homes: kept, loads };
    let dealt = deal.deal_free();
    for movable in [Movable::Loose, Movable::All] {
        if (movable == Movable::All || dealt) && !deal.is_even() {
            pull::even_out(&mut deal, movable);
            paths::even_out(&mut deal, movable);
        }
    }
    home::bring_home(&mut deal);
    deal.owners
}

impl Deal<'_, '_> {
    /// Whether nobody has two more than anybody: then there is nothing to be evened out.
    pub(super) fn is_even(&self) -> bool {
        let most = self.loads.iter().max();
        most.zip(self.loads.iter().min()).is_none_or(|(most, least)| most - least < 2)
    }

    /// Whether a partition is with the member that had it before.
    pub(super) fn is_home(&self, slot: usize) -> bool {
        self.owners[slot] == self.homes[slot]
    }

    /// Whether a partition may be moved away from its owner.
    pub(super) fn may_move(&self, slot: usize, movable: Movable) -> bool {
        movable == Movable::All || !self.is_home(slot)
    }

    /// How much it costs to move a partition to a member: nothing to bring it home, nothing much while it is not at home.
    pub(super) fn cost(&self, slot: usize, to: u32) -> u8 {
        if self.homes[slot] == to {
            0
        } else if !self.is_home(slot) {
            1
        } else {
            2
        }
    }

    /// Moves a partition.
    pub(super) fn give(&mut self, slot: usize, to: u32) {
        if let Some(load) = self.loads.get_mut(self.owners[slot] as usize) {
            *load -= 1;
        }
        self.owners[slot] = to;
        self.loads[to as usize] += 1;
    }

    /// Deals what is free; says whether anything was.
    fn deal_free(&mut self) -> bool {
        let rows = &self.layout.rows;
        let mut order: Vec<usize> = (0..rows.len()).filter(|row| self.has_free(*row)).collect();
        order.sort_by_key(|row| (self.subscribers.of(*row).len(), Reverse(rows[*row].partitions)));
        let mut heap = BinaryHeap::new();
        for row in &order {
            self.deal_row(*row, &mut heap);
        }
        !order.is_empty()
    }

    fn has_free(&self, row: usize) -> bool {
        self.owners[self.layout.rows[row].range()].contains(&NOBODY)
    }

    /// Each free partition of a topic to whoever has least.
    fn deal_row(&mut self, row: usize, heap: &mut BinaryHeap<Reverse<(u32, u32)>>) {
        let mut candidates = std::mem::take(heap).into_vec();
        candidates.clear();
        candidates
            .extend(self.subscribers.of(row).iter().map(|rank| Reverse((self.loads[*rank as usize], *rank))));
        *heap = BinaryHeap::from(candidates);
        for slot in self.layout.rows[row].range() {
            if self.owners[slot] != NOBODY {
                continue;
            }
            let Some(mut least) = heap.peek_mut() else { return };
            let Reverse((load, rank)) = &mut *least;
            *load += 1;
            self.owners[slot] = *rank;
            self.loads[*rank as usize] += 1;
        }
    }
}
