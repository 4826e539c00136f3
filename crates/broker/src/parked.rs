//! Fetches that wait for records: woken by bytes, by a change of their partitions, or by their deadline.
//!
//! Mirrors `DelayedFetch` and its purgatory.

use crate::api::fetch::Fetch;
use std::collections::{BTreeMap, BTreeSet};
use tontine_group::Instant;
use tontine_group::coordinator::Ticket;
use tontine_wire::Uuid;

/// A partition as waiting fetches know it: by its topic's id.
pub(crate) type PartitionId = (Uuid, i32);

#[derive(Debug)]
struct Waiting {
    fetch: Fetch,
    deadline: Instant,
    partitions: Vec<PartitionId>,
    missing_bytes: usize,
}

/// All waiting fetches.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    waiting: BTreeMap<Ticket, Waiting>,
    by_partition: BTreeMap<PartitionId, BTreeSet<Ticket>>,
    deadlines: BTreeSet<(Instant, Ticket)>,
}

impl Parked {
    /// Parks a fetch until `missing_bytes` more have come to its partitions.
    pub(crate) fn park(
        &mut self,
        ticket: Ticket,
        fetch: Fetch,
        deadline: Instant,
        partitions: Vec<PartitionId>,
        missing_bytes: usize,
    ) {
        for partition in &partitions {
            self.by_partition.entry(*partition).or_default().insert(ticket);
        }
        self.deadlines.insert((deadline, ticket));
        self.waiting.insert(ticket, Waiting { fetch, deadline, partitions, missing_bytes });
    }

    /// Takes a fetch out, to be answered or forgotten.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Fetch> {
        let waiting = self.waiting.remove(&ticket)?;
        self.deadlines.remove(&(waiting.deadline, ticket));
        for partition in &waiting.partitions {
            if let Some(tickets) = self.by_partition.get_mut(partition) {
                tickets.remove(&ticket);
                if tickets.is_empty() {
                    self.by_partition.remove(partition);
                }
            }
        }
        Some(waiting.fetch)
    }

    /// Bytes came to a partition; answers the fetches that have enough now.
    pub(crate) fn appended(&mut self, partition: PartitionId, bytes: usize) -> Vec<Ticket> {
        let Some(tickets) = self.by_partition.get(&partition) else { return Vec::new() };
        let mut ready = Vec::new();
        for ticket in tickets {
            if let Some(waiting) = self.waiting.get_mut(ticket) {
                waiting.missing_bytes = waiting.missing_bytes.saturating_sub(bytes);
                if waiting.missing_bytes == 0 {
                    ready.push(*ticket);
                }
            }
        }
        ready
    }

    /// The fetches that wait for this partition.
    pub(crate) fn of_partition(&self, partition: PartitionId) -> Vec<Ticket> {
        self.by_partition.get(&partition).into_iter().flatten().copied().collect()
    }

    /// All that wait.
    pub(crate) fn all(&self) -> Vec<Ticket> {
        self.waiting.keys().copied().collect()
    }

    /// The fetches whose deadline has come.
    pub(crate) fn due(&self, now: Instant) -> Vec<Ticket> {
        self.deadlines
            .iter()
            .take_while(|(deadline, _)| *deadline <= now)
            .map(|(_, ticket)| *ticket)
            .collect()
    }

    /// The next deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// How many fetches wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
