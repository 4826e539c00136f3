//! What assignors and coordinators know of topics: names, ids, partitions and the racks of their replicas.

use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::Uuid;

/// A snapshot of topics, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    by_name: BTreeMap<Arc<str>, Topic>,
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// Its id; [`Uuid::ZERO`] where the broker does not tell ids.
    pub id: Uuid,
    /// How many partitions it has.
    pub partitions: i32,
    /// For each partition the racks that hold a replica; empty when racks are not known or not used.
    pub racks: Vec<Vec<Arc<str>>>,
}

impl Topics {
    /// No topics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a topic.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, topic: Topic) {
        self.by_name.insert(name.into(), topic);
    }

    /// Adds or replaces a topic of which only the number of partitions matters.
    pub fn with(mut self, name: impl Into<Arc<str>>, partitions: i32) -> Self {
        self.insert(name, Topic { partitions, ..Topic::default() });
        self
    }

    /// Removes a topic.
    pub fn remove(&mut self, name: &str) -> Option<Topic> {
        self.by_name.remove(name)
    }

    /// The topic of this name.
    pub fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name)
    }

    /// The topic of this name with the shared form of the name.
    pub fn get_key_value(&self, name: &str) -> Option<(&Arc<str>, &Topic)> {
        self.by_name.get_key_value(name)
    }

    /// How many partitions the topic has; `None` when it is not known.
    pub fn partitions(&self, name: &str) -> Option<i32> {
        self.by_name.get(name).map(|t| t.partitions)
    }

    /// The name of the topic with this id. Walks all topics.
    pub fn name_of(&self, id: Uuid) -> Option<&Arc<str>> {
        self.by_name.iter().find(|(_, t)| t.id == id).map(|(name, _)| name)
    }

    /// All topics in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Topic)> {
        self.by_name.iter()
    }
}
