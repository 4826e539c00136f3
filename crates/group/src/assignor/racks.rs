//! Which members are near which partitions: those with a replica in their own rack may fetch it there (KIP-881).
//!
//! Racks matter for a topic only when some subscriber's rack holds a replica of it and not every partition has a replica
//! in every rack. Mirrors `AbstractPartitionAssignor.useRackAwareAssignment`.

use super::layout::{Layout, Row, Subscribers};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Racks as numbers.
#[derive(Debug)]
pub(crate) struct Racks {
    of_member: Vec<Option<u32>>,
    /// By partition number the racks of its replicas.
    of_partition: Vec<Vec<u32>>,
    /// By row whether racks matter for it.
    matter: Vec<bool>,
}

impl Racks {
    /// The racks, if they matter for any topic.
    pub(crate) fn new(layout: &Layout<'_>, subscribers: &Subscribers) -> Option<Self> {
        let rack = |rank: usize| layout.members[rank].rack.as_ref();
        if (0..layout.members.len()).all(|rank| rack(rank).is_none()) {
            return None;
        }
        let mut numbers = Numbers::default();
        let of_member: Vec<_> =
            (0..layout.members.len()).map(|rank| rack(rank).map(|r| numbers.of(r))).collect();
        let mut of_partition = Vec::with_capacity(layout.partitions);
        for row in &layout.rows {
            of_partition.extend((0..row.partitions).map(|p| replica_racks(row, p, &mut numbers)));
        }
        let matter: Vec<_> = layout
            .rows
            .iter()
            .enumerate()
            .map(|(nth, row)| matters(&of_partition[row.range()], subscribers.of(nth), &of_member))
            .collect();
        matter.contains(&true).then_some(Self { of_member, of_partition, matter })
    }

    /// Whether racks matter for this row.
    pub(crate) fn matter(&self, row: usize) -> bool {
        self.matter[row]
    }

    /// Whether the partition has a replica in the member's rack. A member that tells no rack is near everything.
    pub(crate) fn near(&self, rank: u32, slot: usize) -> bool {
        self.of_member[rank as usize].is_none_or(|rack| self.of_partition[slot].contains(&rack))
    }
}

fn replica_racks(row: &Row<'_>, partition: u32, numbers: &mut Numbers) -> Vec<u32> {
    let racks = row.topic.racks.get(partition as usize).map_or(&[][..], Vec::as_slice);
    let racks: BTreeSet<u32> = racks.iter().map(|rack| numbers.of(rack)).collect();
    racks.into_iter().collect()
}

fn matters(partitions: &[Vec<u32>], subscribers: &[u32], of_member: &[Option<u32>]) -> bool {
    let all: BTreeSet<u32> = partitions.iter().flatten().copied().collect();
    let near =
        subscribers.iter().any(|rank| of_member[*rank as usize].is_some_and(|rack| all.contains(&rack)));
    near && partitions.iter().any(|racks| racks.len() != all.len())
}

/// Numbers given to rack names as they come.
#[derive(Debug, Default)]
struct Numbers {
    by_name: BTreeMap<Arc<str>, u32>,
}

impl Numbers {
    fn of(&mut self, rack: &Arc<str>) -> u32 {
        let next = self.by_name.len() as u32;
        *self.by_name.entry(rack.clone()).or_insert(next)
    }
}
