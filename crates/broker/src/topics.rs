//! The topics of the cluster: ids, partitions, replicas, leaders and settings. Who leads is decided in [`crate::cluster`].

use crate::cluster::NodeId;
use crate::config::{TopicConfig, TopicSettings};
use crate::log::Log;
use std::collections::BTreeMap;
use std::sync::Arc;
use tontine_group::topics;
use tontine_wire::{ErrorCode, Uuid};

/// The topic in which groups are kept.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// The topic in which transactions are kept.
pub(crate) const TRANSACTIONS_TOPIC: &str = "__transaction_state";

/// Topics of Kafka's own.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, OFFSETS_TOPIC | TRANSACTIONS_TOPIC | "__share_group_state")
}

/// One partition.
#[derive(Debug)]
pub(crate) struct Partition {
    /// The nodes that hold it, the preferred leader first.
    pub(crate) replicas: Vec<NodeId>,
    /// The node that leads it; `None` when no replica is up.
    pub(crate) leader: Option<NodeId>,
    /// Counts the leaders there have been.
    pub(crate) leader_epoch: i32,
    /// The change of the metadata that says that it is there: before that is durable nothing here is answered for.
    pub(crate) stored: u64,
    /// Its records.
    pub(crate) log: Log,
}

/// One topic.
#[derive(Debug)]
pub(crate) struct Topic {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its id: a topic that is created again under the same name gets another one.
    pub(crate) id: Uuid,
    /// Its partitions.
    pub(crate) partitions: Vec<Partition>,
    /// What was set for it.
    pub(crate) config: TopicConfig,
    /// What is in force.
    pub(crate) settings: TopicSettings,
}

impl Topic {
    /// The partition of this number.
    pub(crate) fn partition(&self, index: i32) -> Option<&Partition> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    /// The partition of this number.
    pub(crate) fn partition_mut(&mut self, index: i32) -> Option<&mut Partition> {
        self.partitions.get_mut(usize::try_from(index).ok()?)
    }

    /// Whether this is one of Kafka's own topics.
    pub(crate) fn is_internal(&self) -> bool {
        is_internal(&self.name)
    }
}

/// All topics, by name and by id.
#[derive(Debug, Default)]
pub(crate) struct TopicTable {
    by_name: BTreeMap<Arc<str>, Topic>,
    names: BTreeMap<Uuid, Arc<str>>,
    summary: topics::Topics,
}

impl TopicTable {
    /// The topic of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Topic> {
        self.by_name.get(name)
    }

    /// The topic of this name.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Topic> {
        self.by_name.get_mut(name)
    }

    /// The name of the topic with this id.
    pub(crate) fn name_of(&self, id: Uuid) -> Option<&Arc<str>> {
        self.names.get(&id)
    }

    /// All topics, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.by_name.values()
    }

    /// All topics, in the order of their names.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Topic> {
        self.by_name.values_mut()
    }

    /// What coordinators need to know of all topics.
    pub(crate) fn summary(&self) -> &topics::Topics {
        &self.summary
    }

    /// Adds a topic.
    pub(crate) fn insert(&mut self, topic: Topic, racks: &BTreeMap<NodeId, Arc<str>>) {
        self.names.insert(topic.id, topic.name.clone());
        self.summarise(&topic, racks);
        self.by_name.insert(topic.name.clone(), topic);
    }

    /// Removes a topic.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Topic> {
        let topic = self.by_name.remove(name)?;
        self.names.remove(&topic.id);
        self.summary.remove(name);
        Some(topic)
    }

    /// Adds partitions to a topic.
    pub(crate) fn grow(&mut self, name: &str, more: Vec<Partition>, racks: &BTreeMap<NodeId, Arc<str>>) {
        let Some(mut topic) = self.by_name.remove(name) else { return };
        topic.partitions.extend(more);
        self.summarise(&topic, racks);
        self.by_name.insert(topic.name.clone(), topic);
    }

    fn summarise(&mut self, topic: &Topic, racks: &BTreeMap<NodeId, Arc<str>>) {
        let of_partition = |partition: &Partition| {
            partition.replicas.iter().filter_map(|node| racks.get(node).cloned()).collect()
        };
        let racks =
            if racks.is_empty() { Vec::new() } else { topic.partitions.iter().map(of_partition).collect() };
        let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        self.summary.insert(topic.name.clone(), topics::Topic { id: topic.id, partitions, racks });
    }
}

/// Why a name is not one for a topic; mirrors `Topic.validate`.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() {
        return Err("Topic name is invalid: the empty string is not allowed".into());
    }
    if matches!(name, "." | "..") {
        return Err(format!("Topic name is invalid: '{name}' is not allowed"));
    }
    if name.len() > 249 {
        return Err(format!(
            "Topic name is invalid: the length of '{}...' is longer than the max allowed length 249",
            name.chars().take(40).collect::<String>()
        ));
    }
    if !name.chars().all(allowed) {
        return Err(format!(
            "Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        ));
    }
    Ok(())
}

/// Dots and underscores are the same in names of metrics, so Kafka refuses names that differ in nothing else.
pub(crate) fn collides(table: &TopicTable, name: &str) -> Option<Arc<str>> {
    let flat = |text: &str| text.replace('.', "_");
    if !name.contains(['.', '_']) {
        return None;
    }
    table
        .iter()
        .map(|topic| &topic.name)
        .find(|known| &***known != name && flat(known) == flat(name))
        .cloned()
}

/// An error with the sentence that goes into the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The code.
    pub(crate) code: ErrorCode,
    /// The sentence.
    pub(crate) message: String,
}

impl Refusal {
    /// An error with its sentence.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
