//! What is known of the cluster: brokers, topics by name and id, leaders and their epochs.
//!
//! Decides how an answer changes the picture: leader epochs never go backwards for the same topic id, and a topic that
//! was recreated starts afresh. When to ask is decided in `refresh`. Mirrors Kafka's `Metadata` and `MetadataSnapshot`.

use std::{collections::BTreeMap, sync::Arc};
use tontine_group::{
    TopicPartition,
    topics::{Topic, Topics},
};
use tontine_wire::{ErrorCode, Uuid, api::metadata as wire};

/// A snapshot of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    cluster_id: Option<Arc<str>>,
    controller: Option<i32>,
    brokers: BTreeMap<i32, BrokerInfo>,
    topics: BTreeMap<Arc<str>, TopicMetadata>,
    names: BTreeMap<Uuid, Arc<str>>,
}

/// One broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerInfo {
    /// Its number.
    pub id: i32,
    /// Where it listens.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// `broker.rack`.
    pub rack: Option<Arc<str>>,
}

/// One topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its name.
    pub name: Arc<str>,
    /// Its id; [`Uuid::ZERO`] where brokers do not tell.
    pub id: Uuid,
    /// Whether Kafka itself keeps it.
    pub is_internal: bool,
    /// Why nothing more is known, or [`ErrorCode::NONE`].
    pub error: ErrorCode,
    /// Its partitions by number.
    pub partitions: BTreeMap<i32, PartitionMetadata>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Why it cannot be used now, or [`ErrorCode::NONE`].
    pub error: ErrorCode,
    /// The broker that leads it, when one does.
    pub leader: Option<i32>,
    /// The epoch of the leader, where brokers tell.
    pub leader_epoch: Option<i32>,
    /// Who keeps copies.
    pub replicas: Vec<i32>,
    /// Whose copies are up to date.
    pub isr: Vec<i32>,
}

impl Metadata {
    /// The cluster's id.
    pub fn cluster_id(&self) -> Option<&Arc<str>> {
        self.cluster_id.as_ref()
    }

    /// The broker that takes administrative requests.
    pub fn controller(&self) -> Option<i32> {
        self.controller
    }

    /// Every broker by its number.
    pub fn brokers(&self) -> &BTreeMap<i32, BrokerInfo> {
        &self.brokers
    }

    /// Every topic by its name; topics with an error are among them.
    pub fn topics(&self) -> &BTreeMap<Arc<str>, TopicMetadata> {
        &self.topics
    }

    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&TopicMetadata> {
        self.topics.get(name)
    }

    /// The name of the topic with this id.
    pub fn topic_name(&self, id: Uuid) -> Option<&Arc<str>> {
        self.names.get(&id)
    }

    /// What is known of a partition.
    pub fn partition(&self, partition: &TopicPartition) -> Option<&PartitionMetadata> {
        self.topics.get(&partition.topic)?.partitions.get(&partition.partition)
    }

    /// The broker that leads a partition.
    pub fn leader(&self, partition: &TopicPartition) -> Option<i32> {
        self.partition(partition)?.leader
    }

    /// The topics as assignors see them, with the racks of the replicas; topics with an error are left out.
    pub fn to_topics(&self) -> Topics {
        let mut topics = Topics::new();
        for topic in self.topics.values().filter(|t| t.error.is_ok() && !t.partitions.is_empty()) {
            let racks = topic.partitions.values().map(|p| self.racks_of(p)).collect();
            let partitions = topic.partitions.len() as i32;
            topics.insert(topic.name.clone(), Topic { id: topic.id, partitions, racks });
        }
        topics
    }

    fn racks_of(&self, partition: &PartitionMetadata) -> Vec<Arc<str>> {
        let mut racks: Vec<_> =
            partition.replicas.iter().filter_map(|r| self.brokers.get(r)?.rack.clone()).collect();
        racks.sort();
        racks.dedup();
        racks
    }

    /// Takes over an answer. Topics that it does not name are kept when `stays` says so; topics that are of no interest
    /// any more are not taken over. Tells whether anything is different.
    pub(super) fn update(
        &mut self,
        answer: wire::MetadataResponse,
        interest: impl Fn(&str) -> bool,
        stays: impl Fn(&str) -> bool,
    ) -> bool {
        let before = std::mem::take(self);
        self.cluster_id = answer.cluster_id.map(Into::into).or_else(|| before.cluster_id.clone());
        self.controller = (answer.controller_id >= 0).then_some(answer.controller_id);
        self.brokers = answer.brokers.into_iter().filter_map(BrokerInfo::new).map(|b| (b.id, b)).collect();
        for topic in answer.topics.into_iter().filter_map(TopicMetadata::new) {
            if interest(&topic.name) {
                let old = before.topics.get(&topic.name);
                self.topics.insert(topic.name.clone(), topic.not_older_than(old, &self.brokers));
            }
        }
        for (name, topic) in &before.topics {
            if stays(name) && !self.topics.contains_key(name) {
                self.topics.insert(name.clone(), topic.clone());
            }
        }
        self.index();
        before != *self
    }

    /// Whether a topic or a partition is in a state that should pass: no leader yet, or not known yet.
    pub(super) fn is_unsettled(&self) -> bool {
        let passing = |code: ErrorCode| code.needs_metadata();
        self.topics.values().any(|t| {
            passing(t.error) || t.partitions.values().any(|p| passing(p.error) && p.leader.is_none())
        })
    }

    /// Forgets the brokers, not the topics.
    pub(super) fn forget_brokers(&mut self) {
        self.brokers.clear();
        self.controller = None;
    }

    fn index(&mut self) {
        let with_id = self.topics.values().filter(|t| !t.id.is_zero());
        self.names = with_id.map(|t| (t.id, t.name.clone())).collect();
    }

    /// Takes over where a broker says it can be reached, outside a metadata answer.
    pub(super) fn learn_broker(&mut self, id: i32, host: String, port: u16) {
        let rack = self.brokers.get(&id).and_then(|b| b.rack.clone());
        self.brokers.insert(id, BrokerInfo { id, host, port, rack });
    }

    /// Takes over a leader named in an answer to a fetch or a produce; `false` when it is not news.
    pub(super) fn learn_leader(&mut self, partition: &TopicPartition, leader: i32, epoch: i32) -> bool {
        let topic = self.topics.get_mut(&partition.topic);
        let Some(known) = topic.and_then(|t| t.partitions.get_mut(&partition.partition)) else {
            return false;
        };
        if leader < 0 || known.leader_epoch.is_some_and(|e| e >= epoch) {
            return false;
        }
        known.leader = Some(leader);
        known.leader_epoch = Some(epoch);
        known.error = ErrorCode::NONE;
        true
    }
}

impl BrokerInfo {
    fn new(broker: wire::MetadataResponseBroker) -> Option<Self> {
        let port = u16::try_from(broker.port).ok()?;
        Some(Self { id: broker.node_id, host: broker.host, port, rack: broker.rack.map(Into::into) })
    }
}

impl TopicMetadata {
    pub(crate) fn new(topic: wire::MetadataResponseTopic) -> Option<Self> {
        let partitions = topic.partitions.into_iter().map(|p| (p.partition_index, PartitionMetadata::new(p)));
        Some(Self {
            name: topic.name?.into(),
            id: topic.topic_id,
            is_internal: topic.is_internal,
            error: topic.error_code,
            partitions: partitions.collect(),
        })
    }

    /// A broker that lags behind may name a leader of the past: what is known with a later epoch stays, unless its leader
    /// is a broker that the cluster does not have. Nobody could ask that one, so a wrong word of it would stay for good.
    fn not_older_than(mut self, old: Option<&Self>, brokers: &BTreeMap<i32, BrokerInfo>) -> Self {
        let Some(old) = old.filter(|o| o.id == self.id) else { return self };
        let exists = |leader: i32| brokers.contains_key(&leader);
        for (number, partition) in &mut self.partitions {
            let later = |known: &&PartitionMetadata| known.leader_epoch > partition.leader_epoch;
            let known =
                old.partitions.get(number).filter(later).filter(|known| known.leader.is_none_or(exists));
            if let Some(known) = known.filter(|_| partition.leader_epoch.is_some()) {
                *partition = known.clone();
            }
        }
        self
    }
}

impl PartitionMetadata {
    fn new(partition: wire::MetadataResponsePartition) -> Self {
        Self {
            error: partition.error_code,
            leader: (partition.leader_id >= 0).then_some(partition.leader_id),
            leader_epoch: (partition.leader_epoch >= 0).then_some(partition.leader_epoch),
            replicas: partition.replica_nodes,
            isr: partition.isr_nodes,
        }
    }
}
