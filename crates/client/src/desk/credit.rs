//! Room in the queue that the actor has not been told of yet.
//!
//! Telling it wakes its thread, which costs more than a hundred records. It has to know only before a partition's share of
//! the queue looks full to it, so room is told of in parts of a share, that of all partitions together.

use crate::{lease::Incarnation, state::Ask};
use std::collections::BTreeMap;
use tontine_group::TopicPartition;

/// Room is told of when it is this part of a share.
const PART: usize = 4;

/// What has left the queue since the actor was told.
#[derive(Debug, Default)]
pub(super) struct Credits {
    of: BTreeMap<TopicPartition, (Incarnation, usize)>,
    most: usize,
}

impl Credits {
    /// Bytes of a partition have left the queue. What is known of an earlier ownership or place is void.
    pub(super) fn add(&mut self, name: &TopicPartition, incarnation: Incarnation, bytes: usize) {
        let mut sum = bytes;
        match self.of.get_mut(name) {
            Some((of, before)) => {
                if *of == incarnation {
                    sum += *before;
                }
                (*of, *before) = (incarnation, sum);
            }
            None => drop(self.of.insert(name.clone(), (incarnation, bytes))),
        }
        self.most = self.most.max(sum);
    }

    /// Whether any partition has room that may keep the actor from fetching, given each one's share.
    pub(super) fn matter(&self, share: usize) -> bool {
        self.most > 0 && self.most >= share / PART
    }

    /// What to tell the actor.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Ask> + use<> {
        self.most = 0;
        let all = std::mem::take(&mut self.of).into_iter();
        all.map(|(partition, (incarnation, bytes))| Ask::Credit { partition, incarnation, bytes })
    }
}
