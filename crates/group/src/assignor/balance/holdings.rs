//! How many partitions of each topic each member has: what chains of moves are made of.

use super::mixed::{Deal, Movable};

/// How many partitions of a topic a member has that may be moved.
#[derive(Clone, Copy)]
pub(super) struct Holding {
    pub(super) row: u32,
    /// Not at home: they cost nothing to move.
    pub(super) loose: u32,
    /// At home.
    pub(super) sticky: u32,
}

/// All holdings, by member, in the order of the topics.
pub(super) struct Holdings {
    movable: Movable,
    by_member: Vec<Vec<Holding>>,
}

impl Holdings {
    pub(super) fn new(deal: &Deal<'_, '_>, movable: Movable) -> Self {
        let mut by_member: Vec<Vec<Holding>> = vec![Vec::new(); deal.loads.len()];
        for (nth, row) in deal.layout.rows.iter().enumerate() {
            for slot in row.range().filter(|slot| deal.may_move(*slot, movable)) {
                let Some(holdings) = by_member.get_mut(deal.owners[slot] as usize) else { continue };
                if holdings.last().is_none_or(|held| held.row != nth as u32) {
                    holdings.push(Holding { row: nth as u32, loose: 0, sticky: 0 });
                }
                let Some(held) = holdings.last_mut() else { continue };
                if deal.is_home(slot) { held.sticky += 1 } else { held.loose += 1 }
            }
        }
        Self { movable, by_member }
    }

    /// What a member has.
    pub(super) fn of(&self, member: usize) -> &[Holding] {
        &self.by_member[member]
    }

    /// What a member has of a topic.
    pub(super) fn of_row(&self, member: u32, row: u32) -> Option<Holding> {
        let holdings = &self.by_member[member as usize];
        holdings.binary_search_by_key(&row, |held| held.row).ok().map(|at| holdings[at])
    }

    /// Moves partitions of a topic, those first that it costs least to move.
    pub(super) fn hand_over(&mut self, deal: &mut Deal<'_, '_>, from: u32, row: u32, to: u32, amount: usize) {
        let range = deal.layout.rows[row as usize].range();
        let mut slots: Vec<usize> =
            range.filter(|slot| deal.owners[*slot] == from && deal.may_move(*slot, self.movable)).collect();
        slots.sort_by_key(|slot| deal.cost(*slot, to));
        for slot in slots.into_iter().take(amount) {
            self.give(deal, slot, row, to);
        }
    }

    /// Moves one partition.
    pub(super) fn give(&mut self, deal: &mut Deal<'_, '_>, slot: usize, row: u32, to: u32) {
        self.count(deal.owners[slot], row, deal.is_home(slot), -1);
        deal.give(slot, to);
        self.count(to, row, deal.is_home(slot), 1);
    }

    /// Counts a partition that came or went. One that has come home may not be moved again if only loose ones may.
    fn count(&mut self, member: u32, row: u32, home: bool, change: i32) {
        if home && self.movable == Movable::Loose {
            return;
        }
        let holdings = &mut self.by_member[member as usize];
        let at = holdings.binary_search_by_key(&row, |held| held.row).unwrap_or_else(|at| {
            holdings.insert(at, Holding { row, loose: 0, sticky: 0 });
            at
        });
        let count = if home { &mut holdings[at].sticky } else { &mut holdings[at].loose };
        *count = count.saturating_add_signed(change);
    }
}
