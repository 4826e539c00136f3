//! Room in the queue that the actor has not been told of yet.
//!
//! Telling it wakes its thread, which costs more than a hundred records. It has to know only before partitions look full
//! to it that are not, so room is told of in parts of a share; of several partitions together, where there are several.

use crate::{lease::Incarnation, state::Ask};
use std::collections::BTreeMap;
use tontine_group::TopicPartition;

/// Room is told of when it is this part of a share; of so many partitions each may be one behind the others.
const PART: usize = 4;
/// So much room is always told of, however many partitions it is spread over, if it is not just a part of one share.
const MUCH: usize = 256 << 10;

/// What has left the queue since the actor was told.
#[derive(Debug, Default)]
pub(super) struct Credits {
    of: BTreeMap<TopicPartition, (Incarnation, usize)>,
    total: usize,
}

impl Credits {
    /// Bytes of a partition have left the queue. What is known of an earlier ownership or place is void.
    pub(super) fn add(&mut self, name: &TopicPartition, incarnation: Incarnation, bytes: usize) {
        self.total += bytes;
        match self.of.get_mut(name) {
            Some((of, before)) if *of == incarnation => *before += bytes,
            Some(known) => *known = (incarnation, bytes),
            None => drop(self.of.insert(name.clone(), (incarnation, bytes))),
        }
    }

    /// Whether there is room that may keep the actor from fetching, given the share of each of so many partitions.
    pub(super) fn matter(&self, share: usize, partitions: usize) -> bool {
        let part = share / PART;
        let enough = part.saturating_mul(partitions.div_ceil(PART)).min(MUCH).max(part);
        self.total > 0 && self.total >= enough
    }

    /// What to tell the actor.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Ask> + use<> {
        self.total = 0;
        let all = std::mem::take(&mut self.of).into_iter();
        all.map(|(partition, (incarnation, bytes))| Ask::Credit { partition, incarnation, bytes })
    }
}
