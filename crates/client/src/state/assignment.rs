//! Which partitions the consumer has on the actor's side, and what the application does with them.
//!
//! A new ownership has a new incarnation; whatever is under way for an older one is dropped when it comes.

use super::{ConsumerState, SeekTarget};
use crate::{
    Error,
    cluster::Lane,
    fetch::{
        partition::{Partition, Phase},
        position::Position,
    },
    lease::{Delivery, Incarnation},
};
use std::collections::BTreeSet;
use tontine_group::{TopicPartition, member::Due};
use tontine_wire::Uuid;

impl ConsumerState {
    /// The group gives these: their committed offsets are looked up, and their leaders connected to, while the callback
    /// runs.
    pub(super) fn take_over(&mut self, names: &[TopicPartition]) -> Vec<(TopicPartition, Incarnation)> {
        let leaders: BTreeSet<i32> =
            names.iter().filter_map(|name| self.cluster.metadata().leader(name)).collect();
        for leader in leaders {
            self.cluster.prepare(self.now, leader, Lane::Fetch);
        }
        names.iter().map(|name| (name.clone(), self.add(name, None))).collect()
    }

    fn add(&mut self, name: &TopicPartition, by_hand: Option<Incarnation>) -> Incarnation {
        let incarnation = by_hand.unwrap_or_else(|| self.next_incarnation());
        let mut partition = Partition::new(incarnation, self.first_phase(), by_hand.is_some());
        partition.topic_id = self.cluster.metadata().topic(&name.topic).map_or(Uuid::ZERO, |topic| topic.id);
        let stuck = partition.phase == Phase::Stuck;
        self.fetches.partitions.insert(name.clone(), partition);
        self.fetches.reindex();
        self.fetches.seeking = true;
        self.interest_is_stale = true;
        if stuck {
            self.deliver(name, incarnation, Delivery::Failed(Error::NoOffset(vec![name.clone()])));
        }
        incarnation
    }

    /// What has to be found out first about a partition.
    pub(super) fn first_phase(&self) -> Phase {
        if self.group.is_some() { Phase::Committed } else { self.reset_phase() }
    }

    pub(super) fn incarnations_of(&self, names: &[TopicPartition]) -> Vec<(TopicPartition, Incarnation)> {
        let known = |name: &TopicPartition| self.fetches.partitions.get(name).map(|p| p.incarnation);
        names.iter().map(|name| (name.clone(), known(name).unwrap_or(Incarnation::granted(0)))).collect()
    }

    /// The callback that announced these has returned: they may be fetched.
    pub(super) fn open(&mut self, names: &[TopicPartition]) {
        for name in names {
            if let Some(partition) = self.fetches.partitions.get_mut(name) {
                partition.open = true;
            }
        }
        self.fetches.stale = true;
    }

    /// These are not ours any more.
    pub(super) fn let_go(&mut self, names: &[TopicPartition]) {
        for name in names {
            self.fetches.partitions.remove(name);
        }
        self.fetches.reindex();
        self.interest_is_stale = true;
    }

    /// What is about to go away is fetched no more.
    pub(super) fn mark_leaving(&mut self, due: Option<&Due>) {
        let going: &[TopicPartition] = match due {
            Some(Due::Revoke { partitions, .. } | Due::Lost { partitions }) => partitions,
            Some(Due::Assign { .. }) | None => &[],
        };
        for (name, partition) in &mut self.fetches.partitions {
            partition.leaving = going.binary_search(name).is_ok();
        }
        self.fetches.stale = true;
    }

    pub(super) fn assign_by_hand(&mut self, partitions: Vec<(TopicPartition, Incarnation)>) {
        let wanted: BTreeSet<_> = partitions.iter().map(|(name, _)| name.clone()).collect();
        self.fetches.partitions.retain(|name, _| wanted.contains(name));
        for (name, incarnation) in partitions {
            if !self.fetches.partitions.contains_key(&name) {
                self.add(&name, Some(incarnation));
            }
        }
        self.fetches.reindex();
    }

    pub(super) fn seek(&mut self, name: &TopicPartition, incarnation: Incarnation, target: &SeekTarget) {
        let Some(partition) = self.fetches.partitions.get_mut(name) else { return };
        if partition.incarnation.ownership != incarnation.ownership {
            return;
        }
        let phase = match *target {
            SeekTarget::Offset { offset, epoch } => Phase::Fetching(Position { offset, epoch }),
            SeekTarget::Spot(spot) => Phase::Spot(spot),
        };
        partition.restart(incarnation, phase);
        self.fetches.reindex();
        self.fetches.seeking = true;
        self.doubt(name);
    }

    pub(super) fn pause(&mut self, names: &[TopicPartition], paused: bool) {
        for name in names {
            if let Some(partition) = self.fetches.partitions.get_mut(name) {
                partition.paused = paused;
            }
        }
        self.fetches.stale = true;
    }

    pub(super) fn credit(&mut self, name: &TopicPartition, incarnation: Incarnation, bytes: usize) {
        let Some(partition) = self.fetches.partitions.get_mut(name) else { return };
        if partition.incarnation == incarnation {
            partition.queued = partition.queued.saturating_sub(bytes);
            match partition.node {
                Some(node) => drop(self.fetches.touched.insert(node)),
                None => self.fetches.stale = true,
            }
        }
    }
}
