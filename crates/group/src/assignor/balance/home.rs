//! Brings partitions home that were moved without need.
//!
//! Evening out looks at one chain of moves at a time, so it may have moved two partitions where one would have done. Here
//! such moves are taken back in exchange: a ring of moves, each member passing one partition on, that brings more
//! partitions home than it takes away from there. Two members whose loads differ by one may also trade places, since
//! that leaves as many members with as many partitions. When there is no such ring, no assignment as even moves less.
//!
//! This is the cancelling of negative cycles of a minimum-cost flow (Klein), with Bellman and Ford's search for them.
//! Moving home costs -1, moving away from home 1, everything else 0. As only rings through a member that a partition can
//! come home to can gain anything, the search starts there and does not go where nothing is gained.

use super::{
    holdings::Holdings,
    mixed::{Deal, Movable},
};
use std::collections::{BTreeMap, VecDeque};

/// How many steps may be spent altogether. Groups of any usual size need a small part of it; it bounds the time that a
/// hopeless one costs.
const EFFORT: usize = 5_000_000;

/// Sends home what can be sent home.
pub(super) fn bring_home(deal: &mut Deal<'_, '_>) {
    let away: Vec<u32> = (0..deal.owners.len() as u32).filter(|slot| deal.is_away(*slot)).collect();
    if away.is_empty() {
        return;
    }
    let mut rings = Rings::new(deal, away);
    while let Some(ring) = rings.find(deal) {
        rings.turn(deal, &ring);
    }
}

impl Deal<'_, '_> {
    /// Whether it has a home and is not there.
    fn is_away(&self, slot: u32) -> bool {
        (self.homes[slot as usize] as usize) < self.loads.len() && !self.is_home(slot as usize)
    }

    /// The topic of a partition.
    fn row_of(&self, slot: u32) -> u32 {
        self.layout.rows.partition_point(|row| row.first <= slot) as u32 - 1
    }
}

/// A place on a ring: the number of a member; behind all members that of a topic, one of whose partitions is moved from
/// the member before to the one after; behind all topics that of a load, whose owner trades places with one that has one
/// more.
type Place = usize;

/// A place on a ring, and the partition that is moved home from the place before, if one is.
type Link = (Place, Option<u32>);

/// The search for rings that gain something.
struct Rings {
    holdings: Holdings,
    /// Partitions that are not at home.
    away: Vec<u32>,
    /// The same by owner.
    to_send: BTreeMap<usize, Vec<u32>>,
    /// By load the members that have it.
    levels: BTreeMap<u32, Vec<usize>>,
    members: usize,
    rows: usize,
    /// By place what it costs to come there, and from where.
    cost: Vec<i32>,
    from: Vec<Option<Link>>,
    queue: VecDeque<Place>,
    queued: Vec<bool>,
    effort: usize,
}

impl Rings {
    fn new(deal: &Deal<'_, '_>, away: Vec<u32>) -> Self {
        Self {
            holdings: Holdings::new(deal, Movable::All),
            away,
            to_send: BTreeMap::new(),
            levels: BTreeMap::new(),
            members: deal.loads.len(),
            rows: deal.layout.rows.len(),
            cost: Vec::new(),
            from: Vec::new(),
            queue: VecDeque::new(),
            queued: Vec::new(),
            effort: 0,
        }
    }

    /// A ring that brings more home than it takes away.
    fn find(&mut self, deal: &Deal<'_, '_>) -> Option<Vec<Link>> {
        self.start(deal);
        while let Some(place) = self.queue.pop_front() {
            self.queued[place] = false;
            let ring = self.go_on(deal, place);
            if ring.is_some() || self.effort > EFFORT {
                return ring;
            }
        }
        None
    }

    /// Starts where something is to be sent home.
    fn start(&mut self, deal: &Deal<'_, '_>) {
        self.away.retain(|slot| deal.is_away(*slot));
        self.to_send.clear();
        for slot in &self.away {
            self.to_send.entry(deal.owners[*slot as usize] as usize).or_default().push(*slot);
        }
        self.levels.clear();
        for (member, load) in deal.loads.iter().enumerate() {
            self.levels.entry(*load).or_default().push(member);
        }
        let places = self.members + self.rows + self.levels.len();
        self.effort += places + self.away.len();
        self.cost = vec![0; places];
        self.from = vec![None; places];
        self.queued = vec![false; places];
        self.queue.clear();
        for owner in self.to_send.keys() {
            self.queue.push_back(*owner);
            self.queued[*owner] = true;
        }
    }

    fn go_on(&mut self, deal: &Deal<'_, '_>, place: Place) -> Option<Vec<Link>> {
        let ways = if place < self.members {
            self.ways_from_member(deal, place)
        } else if place < self.members + self.rows {
            deal.subscribers.of(place - self.members).iter().map(|rank| (*rank as usize, None, 0)).collect()
        } else {
            let above = self.levels.values().nth(place - self.members - self.rows + 1);
            above.into_iter().flatten().map(|member| (*member, None, 0)).collect()
        };
        self.effort += ways.len();
        ways.into_iter().find_map(|(to, slot, cost)| self.reach(place, (to, slot), cost))
    }

    /// Where a surplus of a member can go, and at what cost.
    fn ways_from_member(&self, deal: &Deal<'_, '_>, member: usize) -> Vec<(Place, Option<u32>, i32)> {
        let home = |slot: &u32| (deal.homes[*slot as usize] as usize, Some(*slot), -1);
        let mut ways: Vec<_> = self.to_send.get(&member).into_iter().flatten().map(home).collect();
        let held = self.holdings.of(member).iter().filter(|held| held.loose + held.sticky > 0);
        ways.extend(held.map(|held| (self.members + held.row as usize, None, i32::from(held.loose == 0))));
        let load = deal.loads[member];
        if self.levels.contains_key(&(load + 1)) {
            let level = self.levels.range(..load).count();
            ways.push((self.members + self.rows + level, None, 0));
        }
        ways
    }

    /// Notes a cheaper way to a place; the ring, if the way leads round to where it came from.
    fn reach(&mut self, place: Place, (to, slot): Link, cost: i32) -> Option<Vec<Link>> {
        let cost = self.cost[place] + cost;
        if cost >= self.cost[to] {
            return None;
        }
        self.cost[to] = cost;
        self.from[to] = Some((place, slot));
        if !std::mem::replace(&mut self.queued[to], true) {
            self.queue.push_back(to);
        }
        self.ring(to)
    }

    /// The places of a ring in order, if there is one through this place.
    fn ring(&mut self, start: Place) -> Option<Vec<Link>> {
        let mut ring = Vec::new();
        let mut at = start;
        while let Some((before, slot)) = self.from[at] {
            self.effort += 1;
            ring.push((at, slot));
            at = before;
            if at == start {
                ring.reverse();
                return Some(ring);
            }
        }
        None
    }

    /// Moves every partition of a ring one place on.
    fn turn(&mut self, deal: &mut Deal<'_, '_>, ring: &[Link]) {
        let next = |nth: usize| ring[(nth + 1) % ring.len()];
        for nth in (0..ring.len()).filter(|nth| ring[*nth].0 < self.members) {
            let from = ring[nth].0 as u32;
            let (to, slot) = next(nth);
            if let Some(slot) = slot {
                self.holdings.give(deal, slot as usize, deal.row_of(slot), to as u32);
            } else if to < self.members + self.rows {
                let row = (to - self.members) as u32;
                self.holdings.hand_over(deal, from, row, next(nth + 1).0 as u32, 1);
            }
        }
    }
}
