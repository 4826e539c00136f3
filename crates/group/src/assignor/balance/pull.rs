//! Members that have little take from those that have most, one partition at a time, directly.
//!
//! This does all there is to do after a member joined, quickly. Where a partition would have to pass through a third
//! member, [`super::paths`] goes on.

use super::mixed::{Deal, Movable};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Each round lets every member take once. What is not even after so many is left to the search for paths.
const ROUNDS: usize = 8;

/// Evens out what direct takes can even out.
pub(super) fn even_out(deal: &mut Deal<'_, '_>, movable: Movable) {
    let mut offers = Offers::new(deal.loads.len());
    for _ in 0..ROUNDS {
        let highest = highest_by_row(deal, movable);
        let mut takers: Vec<u32> = (0..deal.loads.len() as u32).collect();
        takers.sort_by_key(|taker| deal.loads[*taker as usize]);
        let mut taken = false;
        for taker in takers {
            offers.collect(deal, taker, &highest, movable);
            taken |= offers.take(deal, taker);
        }
        if !taken || deal.is_even() {
            return;
        }
    }
}

/// For each topic the highest load of a member that could give a partition of it.
fn highest_by_row(deal: &Deal<'_, '_>, movable: Movable) -> Vec<u32> {
    let load = |slot: usize| if deal.may_move(slot, movable) { deal.load_of(slot) } else { 0 };
    deal.layout.rows.iter().map(|row| row.range().map(load).max().unwrap_or(0)).collect()
}

impl Deal<'_, '_> {
    /// How many partitions the owner of this one has.
    fn load_of(&self, slot: usize) -> u32 {
        self.loads.get(self.owners[slot] as usize).copied().unwrap_or(0)
    }
}

/// What members with more have to offer to one that takes.
struct Offers {
    by_giver: Vec<Vec<u32>>,
    givers: Vec<u32>,
}

impl Offers {
    fn new(members: usize) -> Self {
        Self { by_giver: vec![Vec::new(); members], givers: Vec::new() }
    }

    /// Partitions that the taker wants, of members that have at least two more. Stops as soon as there are enough from
    /// those that have most and not at home there: nothing better can come.
    fn collect(&mut self, deal: &Deal<'_, '_>, taker: u32, highest: &[u32], movable: Movable) {
        let load = deal.loads[taker as usize];
        let rows = || deal.layout.subscriptions[taker as usize].iter().map(|row| *row as usize);
        let top = rows().map(|row| highest[row]).max().unwrap_or(0);
        let mut wanting = top.saturating_sub(load + 1);
        for row in rows().filter(|row| highest[*row] >= load + 2) {
            for slot in deal.layout.rows[row].range() {
                if wanting == 0 {
                    return;
                }
                if deal.load_of(slot) >= load + 2 && deal.may_move(slot, movable) {
                    let first = self.add(deal.owners[slot], slot as u32);
                    wanting -= u32::from(first && deal.load_of(slot) >= top && !deal.is_home(slot));
                }
            }
        }
    }

    /// Says whether it is the first of this giver.
    fn add(&mut self, giver: u32, slot: u32) -> bool {
        let offers = &mut self.by_giver[giver as usize];
        let first = offers.is_empty();
        if first {
            self.givers.push(giver);
        }
        offers.push(slot);
        first
    }

    /// Takes from whoever has most as long as that evens things out; says whether anything was taken. Of givers that
    /// have as much, those come first whose partitions are not at home.
    fn take(&mut self, deal: &mut Deal<'_, '_>, taker: u32) -> bool {
        let mut most: BinaryHeap<_> = self.givers.iter().map(|giver| self.bid(deal, *giver, taker)).collect();
        let mut taken = false;
        while let Some(Bid { load, giver: Reverse(giver), sorted, .. }) = most.pop() {
            if load < deal.loads[taker as usize] + 2 {
                break;
            }
            let offers = &mut self.by_giver[giver as usize];
            if !sorted {
                offers.sort_by_cached_key(|slot| Reverse((deal.cost(*slot as usize, taker), scatter(*slot))));
            }
            let Some(slot) = offers.pop() else { continue };
            deal.give(slot as usize, taker);
            taken = true;
            let cost = offers.last().map_or(u8::MAX, |slot| deal.cost(*slot as usize, taker));
            let load = deal.loads[giver as usize];
            most.push(Bid { load, cost: Reverse(cost), giver: Reverse(giver), sorted: true });
        }
        self.givers.drain(..).for_each(|giver| self.by_giver[giver as usize].clear());
        taken
    }

    fn bid(&self, deal: &Deal<'_, '_>, giver: u32, taker: u32) -> Bid {
        let costs = self.by_giver[giver as usize].iter().map(|slot| deal.cost(*slot as usize, taker));
        let cost = Reverse(costs.min().unwrap_or(u8::MAX));
        Bid { load: deal.loads[giver as usize], cost, giver: Reverse(giver), sorted: false }
    }
}

/// What a giver is compared by: the greatest gives first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Bid {
    load: u32,
    cost: Reverse<u8>,
    giver: Reverse<u32>,
    /// Whether its offers have been put in order, the cheapest last.
    sorted: bool,
}

/// An order that has nothing to do with topics, so that a newcomer gets a bit of every topic. The same in every run.
fn scatter(slot: u32) -> u32 {
    slot.wrapping_mul(0x9E37_79B1).rotate_left(15).wrapping_mul(0x85EB_CA77)
}
