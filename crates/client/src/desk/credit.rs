//! Room in the queue that the actor has not been told of yet.
//!
//! Telling it wakes its thread, which costs more than a hundred records. It has to know only before partitions look full
//! to it that are not: it is told once half of any partition's share has been given up; while there is more to hand out, not
//! before a good part of everything has been.

use crate::{lease::Incarnation, state::Ask};
use std::collections::BTreeMap;
use tontine_group::TopicPartition;

/// While there is more to hand out, so much room is told of together, or the fourth part of all that may wait.
const MUCH: usize = 1 << 20;

/// What has left the queue since the actor was told.
#[derive(Debug, Default)]
pub(super) struct Credits {
    of: BTreeMap<TopicPartition, (Incarnation, usize)>,
    total: usize,
    /// The most of one partition.
    most: usize,
}

impl Credits {
    /// Bytes of a partition have left the queue. What is known of an earlier ownership or place is void.
    pub(super) fn add(&mut self, name: &TopicPartition, incarnation: Incarnation, bytes: usize) {
        let known = match self.of.get_mut(name) {
            Some(known) => known,
            None => self.of.entry(name.clone()).or_insert((incarnation, 0)),
        };
        if known.0 != incarnation {
            *known = (incarnation, 0);
        }
        known.1 += bytes;
        self.most = self.most.max(known.1);
        self.total += bytes;
    }

    /// Whether to tell of it, given the share of each of so many partitions. `idle`: nothing is left to hand out.
    pub(super) fn matter(&self, share: usize, partitions: usize, idle: bool) -> bool {
        let enough = (share / 4).saturating_mul(partitions).min(MUCH);
        self.most > 0 && self.most >= share / 2 && (idle || self.total >= enough)
    }

    /// What to tell the actor.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Ask> + use<> {
        (self.total, self.most) = (0, 0);
        let all = std::mem::take(&mut self.of).into_iter();
        all.map(|(partition, (incarnation, bytes))| Ask::Credit { partition, incarnation, bytes })
    }
}
