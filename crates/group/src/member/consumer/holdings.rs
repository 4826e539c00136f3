//! What the application has, by name and by topic id.
//!
//! A topic that was deleted and created again has the same name and another id: its partitions are others. So what the
//! coordinator says is compared by id, and what the application hears of is named.

use crate::{TopicPartition, topics::Topics};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_wire::{
    Uuid,
    api::consumer_group_heartbeat::{Assignment, TopicPartitions},
};

/// Partitions by topic id, as heartbeats carry them. Never with an empty topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<Uuid, BTreeSet<i32>>);

impl Places {
    /// What an answer says. A partition that is in it twice is one partition, one that cannot exist is none.
    pub(super) fn read(assignment: &Assignment) -> Self {
        let mut places = Self::default();
        for topic in &assignment.topic_partitions {
            topic.partitions.iter().filter(|p| **p >= 0).for_each(|p| places.insert(topic.topic_id, *p));
        }
        places
    }

    pub(super) fn write(&self) -> Vec<TopicPartitions> {
        let topic = |(id, partitions): (&Uuid, &BTreeSet<i32>)| TopicPartitions {
            topic_id: *id,
            partitions: partitions.iter().copied().collect(),
        };
        self.0.iter().map(topic).collect()
    }

    pub(super) fn insert(&mut self, topic: Uuid, partition: i32) {
        self.0.entry(topic).or_default().insert(partition);
    }

    pub(super) fn extend(&mut self, other: &Self) {
        for (topic, partitions) in &other.0 {
            self.0.entry(*topic).or_default().extend(partitions);
        }
    }

    fn contains(&self, topic: Uuid, partition: i32) -> bool {
        self.0.get(&topic).is_some_and(|partitions| partitions.contains(&partition))
    }
}

/// What is owned, as callbacks have told the application.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    names: BTreeSet<TopicPartition>,
    ids: BTreeMap<Arc<str>, Uuid>,
}

impl Holdings {
    pub(super) fn names(&self) -> &BTreeSet<TopicPartition> {
        &self.names
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn places(&self) -> Places {
        let mut places = Places::default();
        for name in &self.names {
            places.insert(self.id(name), name.partition);
        }
        places
    }

    fn id(&self, name: &TopicPartition) -> Uuid {
        self.ids.get(&name.topic).copied().unwrap_or(Uuid::ZERO)
    }

    pub(super) fn remove(&mut self, gone: &[TopicPartition]) {
        gone.iter().for_each(|name| {
            self.names.remove(name);
        });
        let names = &self.names;
        self.ids.retain(|topic, _| names.iter().any(|name| name.topic == *topic));
    }

    pub(super) fn add(&mut self, added: impl IntoIterator<Item = (TopicPartition, Uuid)>) {
        for (name, id) in added {
            self.ids.insert(name.topic.clone(), id);
            self.names.insert(name);
        }
    }

    /// What is owned and not in these places.
    pub(super) fn outside(&self, places: &Places) -> Vec<TopicPartition> {
        self.names.iter().filter(|name| !places.contains(self.id(name), name.partition)).cloned().collect()
    }

    /// What is in these places and not owned, as far as the names of the topics, and the partitions, are known. A partition
    /// whose namesake of a deleted topic is still owned has to wait until that is given up.
    pub(super) fn missing(&self, places: &Places, names: &Names) -> BTreeMap<TopicPartition, Uuid> {
        let mut missing = BTreeMap::new();
        for (id, partitions) in &places.0 {
            let Some(topic) = self.name(*id).or_else(|| names.get(*id)) else { continue };
            for partition in partitions {
                if !names.may_have(*id, *partition) {
                    continue;
                }
                let name = TopicPartition::new(topic.clone(), *partition);
                let has_namesake = self.ids.get(topic).is_some_and(|known| known != id);
                if !has_namesake && !self.names.contains(&name) {
                    missing.insert(name, *id);
                }
            }
        }
        missing
    }

    /// Whether all topics have names, and all partitions exist.
    pub(super) fn knows_all(&self, places: &Places, names: &Names) -> bool {
        places.0.iter().all(|(id, partitions)| {
            (self.name(*id).is_some() || names.get(*id).is_some())
                && partitions.last().is_none_or(|last| names.may_have(*id, *last))
        })
    }

    /// A topic of which something is owned has a name also when it is deleted.
    fn name(&self, id: Uuid) -> Option<&Arc<str>> {
        self.ids.iter().find(|(_, known)| **known == id).map(|(name, _)| name)
    }
}

/// The names of topic ids and how many partitions each has, from metadata.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<Uuid, (Arc<str>, i32)>);

impl Names {
    pub(super) fn of(topics: &Topics) -> Self {
        let known = topics.iter().filter(|(_, topic)| !topic.id.is_zero());
        Self(known.map(|(name, topic)| (topic.id, (name.clone(), topic.partitions))).collect())
    }

    fn get(&self, id: Uuid) -> Option<&Arc<str>> {
        self.0.get(&id).map(|(name, _)| name)
    }

    /// A partition that the metadata do not have is a new one, or none: nobody knows before the next metadata.
    fn may_have(&self, id: Uuid, partition: i32) -> bool {
        self.0.get(&id).is_none_or(|(_, partitions)| partition < *partitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::Topic;

    fn places(all: &[(u128, i32)]) -> Places {
        let mut places = Places::default();
        all.iter().for_each(|(topic, partition)| places.insert(Uuid::from_u128(*topic), *partition));
        places
    }

    fn names(all: &[(&str, u128)]) -> Names {
        let mut topics = Topics::new();
        for (name, id) in all {
            topics.insert(*name, Topic { id: Uuid::from_u128(*id), partitions: 4, racks: Vec::new() });
        }
        Names::of(&topics)
    }

    #[test]
    fn a_topic_that_was_created_again_is_another_one() {
        let mut held = Holdings::default();
        held.add(held.missing(&places(&[(1, 0), (1, 1)]), &names(&[("t", 1)])));
        assert_eq!(held.outside(&places(&[(2, 0)])).len(), 2);
        assert_eq!(held.missing(&places(&[(2, 0)]), &names(&[("t", 2)])).len(), 0, "its namesake is owned");
        let gone: Vec<_> = held.names().iter().cloned().collect();
        held.remove(&gone);
        assert_eq!(held.missing(&places(&[(2, 0)]), &names(&[("t", 2)])).len(), 1);
    }

    #[test]
    fn a_topic_without_a_name_is_set_aside_and_an_owned_one_keeps_its_name() {
        let mut held = Holdings::default();
        let told = places(&[(1, 0), (7, 0)]);
        assert!(!held.knows_all(&told, &names(&[("t", 1)])));
        held.add(held.missing(&told, &names(&[("t", 1)])));
        assert_eq!(held.names().len(), 1);
        assert!(held.knows_all(&places(&[(1, 0), (1, 1)]), &Names::default()));
    }

    #[test]
    fn a_partition_that_the_metadata_do_not_have_is_set_aside() {
        let mut held = Holdings::default();
        let told = places(&[(1, 3), (1, 4), (1, i32::MAX)]);
        let names = names(&[("t", 1)]);
        assert!(!held.knows_all(&told, &names) && held.knows_all(&places(&[(1, 3)]), &names));
        held.add(held.missing(&told, &names));
        assert_eq!(held.names().iter().map(|name| name.partition).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn an_answer_with_a_partition_twice_or_an_impossible_one_is_read_as_what_it_can_mean() {
        let topic = |partitions: &[i32]| TopicPartitions {
            topic_id: Uuid::from_u128(1),
            partitions: partitions.to_vec(),
        };
        let assignment = Assignment { topic_partitions: vec![topic(&[0, 0, -1]), topic(&[0, 1])] };
        assert_eq!(Places::read(&assignment), places(&[(1, 0), (1, 1)]));
    }
}
