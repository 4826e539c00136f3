//! Who gets what: an owner for each partition, so that no partition can have two.

use crate::{TopicPartition, topics::Topics};
use std::{collections::BTreeMap, sync::Arc};

/// An index into the slice of members that an assignor was given.
pub type MemberIndex = usize;

/// No topic has more partitions than this. Whatever an assignor says of others is not worth the memory.
const MOST_PARTITIONS: usize = 1_000_000;

/// An owner, or none, for each partition of the topics in question. One slot a partition: two owners cannot be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    owners: BTreeMap<Arc<str>, Vec<Option<u32>>>,
}

impl Assignment {
    /// Nothing assigned yet. Partitions are known as soon as [`Assignment::assign`] names them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a partition to a member, and takes it from whoever had it. Numbers that no partition can have, negative or
    /// above a million, are ignored.
    pub fn assign(&mut self, topic: &Arc<str>, partition: i32, member: MemberIndex) {
        let Some(slot) = usize::try_from(partition).ok().filter(|slot| *slot < MOST_PARTITIONS) else {
            return;
        };
        if !self.owners.contains_key(topic) {
            self.owners.insert(topic.clone(), Vec::new());
        }
        let Some(slots) = self.owners.get_mut(topic) else { return };
        if slots.len() <= slot {
            slots.resize(slot + 1, None);
        }
        slots[slot] = u32::try_from(member).ok();
    }

    /// Sets the owners of a whole topic, partition by partition.
    pub fn assign_topic(&mut self, topic: Arc<str>, owners: Vec<Option<u32>>) {
        self.owners.insert(topic, owners);
    }

    /// Takes a partition from whoever has it.
    pub fn withhold(&mut self, topic: &str, partition: i32) {
        let slot = usize::try_from(partition).ok();
        let slots = self.owners.get_mut(topic);
        if let Some(owner) = slots.zip(slot).and_then(|(slots, slot)| slots.get_mut(slot)) {
            *owner = None;
        }
    }

    /// Who has this partition.
    pub fn owner(&self, topic: &str, partition: i32) -> Option<MemberIndex> {
        let slot = usize::try_from(partition).ok()?;
        self.owners.get(topic)?.get(slot).copied().flatten().map(|m| m as MemberIndex)
    }

    /// The owners topic by topic, partition by partition.
    pub fn topics(&self) -> impl Iterator<Item = (&Arc<str>, &[Option<u32>])> {
        self.owners.iter().map(|(topic, owners)| (topic, owners.as_slice()))
    }

    /// The partitions of each of `members` members, sorted.
    pub fn by_member(&self, members: usize) -> Vec<Vec<TopicPartition>> {
        let mut all = vec![Vec::new(); members];
        for (topic, owners) in &self.owners {
            for (partition, owner) in owners.iter().enumerate() {
                if let Some(list) = owner.and_then(|m| all.get_mut(m as usize)) {
                    list.push(TopicPartition::new(topic.clone(), partition as i32));
                }
            }
        }
        all
    }

    /// Partitions that exist and have no owner.
    pub fn unassigned(&self, topics: &Topics) -> Vec<TopicPartition> {
        let mut free = Vec::new();
        for (name, topic) in topics.iter() {
            for partition in 0..topic.partitions {
                if self.owner(name, partition).is_none() {
                    free.push(TopicPartition::new(name.clone(), partition));
                }
            }
        }
        free
    }
}

/// Owners topic by topic, as [`Assignment::assign_topic`] takes them.
impl FromIterator<(Arc<str>, Vec<Option<u32>>)> for Assignment {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Vec<Option<u32>>)>>(topics: I) -> Self {
        Self { owners: topics.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_partition_has_take_no_room() {
        let (topic, mut assignment): (Arc<str>, _) = ("t".into(), Assignment::new());
        for partition in [i32::MAX, -1, 1_000_000] {
            assignment.assign(&topic, partition, 0);
        }
        assignment.assign(&topic, 2, 0);
        assert_eq!(assignment.by_member(1), [[TopicPartition::new("t", 2)]]);
        assert_eq!(assignment.owners["t"].len(), 3);
    }
}
