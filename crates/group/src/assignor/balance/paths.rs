//! Evening out along chains: a partition from A to B, one of B's to C, where A and C want nothing in common.
//!
//! From the members with the highest load a breadth-first search looks for one that has at least two less, preferring
//! chains that move few partitions away from their homes. When there is none, everybody within reach of the highest is
//! as even as can be, and is left alone from then on: whoever could reach them has no more than they have. So the whole
//! search for what cannot be improved costs one walk over all subscriptions.

use super::{
    holdings::{Holding, Holdings},
    mixed::{Deal, Movable},
};
use std::collections::VecDeque;

/// Evens out all there is to even out.
pub(super) fn even_out(deal: &mut Deal<'_, '_>, movable: Movable) {
    if deal.is_even() {
        return;
    }
    let mut search = Search::new(deal, movable);
    while let Some(highest) = search.highest(deal) {
        match search.find(deal, highest) {
            Some(target) => search.shift(deal, target, highest),
            None => search.settle(),
        }
    }
}

/// Where a member was reached from.
#[derive(Clone, Copy)]
struct Step {
    from: u32,
    row: u32,
    /// Whether the move costs nothing.
    loose: bool,
}

const FAR: u32 = u32::MAX;

struct Search {
    holdings: Holdings,
    settled: Vec<bool>,
    /// By member: moves from home on the way there.
    distance: Vec<u32>,
    visited: Vec<bool>,
    steps: Vec<Option<Step>>,
    /// By topic: the distance at which its subscribers were reached.
    row_distance: Vec<u32>,
}

impl Search {
    fn new(deal: &Deal<'_, '_>, movable: Movable) -> Self {
        let members = deal.loads.len();
        Self {
            holdings: Holdings::new(deal, movable),
            settled: vec![false; members],
            distance: vec![FAR; members],
            visited: vec![false; members],
            steps: vec![None; members],
            row_distance: vec![FAR; deal.layout.rows.len()],
        }
    }

    /// The highest load that may still have to be lowered.
    fn highest(&self, deal: &Deal<'_, '_>) -> Option<u32> {
        let open =
            || deal.loads.iter().zip(&self.settled).filter(|(_, settled)| !**settled).map(|(load, _)| *load);
        let (least, most) = (open().min()?, open().max()?);
        (most - least > 1).then_some(most)
    }

    /// The nearest member that has at least two less than the highest.
    fn find(&mut self, deal: &Deal<'_, '_>, highest: u32) -> Option<usize> {
        self.distance.fill(FAR);
        self.visited.fill(false);
        self.steps.fill(None);
        self.row_distance.fill(FAR);
        let mut queue: VecDeque<usize> =
            (0..deal.loads.len()).filter(|m| !self.settled[*m] && deal.loads[*m] == highest).collect();
        queue.iter().for_each(|source| self.distance[*source] = 0);
        while let Some(member) = queue.pop_front() {
            if std::mem::replace(&mut self.visited[member], true) {
                continue;
            }
            if deal.loads[member] + 2 <= highest {
                return Some(member);
            }
            for nth in 0..self.holdings.of(member).len() {
                self.reach(deal, member, self.holdings.of(member)[nth], &mut queue);
            }
        }
        None
    }

    /// Goes on to everybody who wants one of the member's partitions of a topic.
    fn reach(&mut self, deal: &Deal<'_, '_>, member: usize, held: Holding, queue: &mut VecDeque<usize>) {
        let loose = held.loose > 0;
        let distance = self.distance[member] + u32::from(!loose);
        if held.loose + held.sticky == 0 || distance >= self.row_distance[held.row as usize] {
            return;
        }
        self.row_distance[held.row as usize] = distance;
        for next in deal.subscribers.of(held.row as usize).iter().map(|rank| *rank as usize) {
            if self.settled[next] || distance >= self.distance[next] {
                continue;
            }
            self.distance[next] = distance;
            self.steps[next] = Some(Step { from: member as u32, row: held.row, loose });
            if loose { queue.push_front(next) } else { queue.push_back(next) }
        }
    }

    /// Moves partitions along the way to `target`, as many as keep their first owner among the highest.
    fn shift(&mut self, deal: &mut Deal<'_, '_>, target: usize, highest: u32) {
        let way = self.way(target);
        let room = (highest - deal.loads[target]) / 2;
        let width = way.iter().map(|(step, _)| self.width(*step)).min().unwrap_or(0);
        let amount = room.min(width).min(self.lead(deal, highest)).max(1);
        for (step, to) in way {
            self.holdings.hand_over(deal, step.from, step.row, to, amount as usize);
        }
    }

    /// The steps to a member, the last first.
    fn way(&self, target: usize) -> Vec<(Step, u32)> {
        let mut way = Vec::new();
        let mut at = target;
        while let Some(step) = self.steps[at] {
            way.push((step, at as u32));
            at = step.from as usize;
        }
        way
    }

    /// By how much the highest exceeds the next; 0 when there are several.
    fn lead(&self, deal: &Deal<'_, '_>, highest: u32) -> u32 {
        let mut open =
            deal.loads.iter().zip(&self.settled).filter(|(_, settled)| !**settled).map(|(load, _)| *load);
        let alone = open.clone().filter(|load| *load == highest).count() == 1;
        let next = open.by_ref().filter(|load| *load < highest).max();
        if alone { highest - next.unwrap_or(0) } else { 0 }
    }

    /// How many partitions a step can move at its cost.
    fn width(&self, step: Step) -> u32 {
        let held = self.holdings.of_row(step.from, step.row);
        held.map_or(0, |held| if step.loose { held.loose } else { held.sticky })
    }

    /// Leaves all that were reached alone from now on.
    fn settle(&mut self) {
        for (settled, visited) in self.settled.iter_mut().zip(&self.visited) {
            *settled |= *visited;
        }
    }
}
