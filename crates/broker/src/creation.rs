//! Topics come, grow and go. Mirrors `ReplicationControlManager`.

use crate::cluster::NodeId;
use crate::config::{ConfigError, TopicConfig};
use crate::state::BrokerState;
use crate::topics::{self, OFFSETS_TOPIC, Partition, Refusal, Topic};
use std::sync::Arc;
use tontine_group::Instant;
use tontine_wire::{ErrorCode, Uuid};

/// The most partitions that one request may create; Kafka has the same limit for what one request may change.
const MOST_PARTITIONS: usize = 10_000;

/// A topic that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; `None` for `num.partitions`.
    pub partitions: Option<i32>,
    /// How many replicas; `None` for `default.replication.factor`.
    pub replication_factor: Option<i16>,
    /// The replicas of each partition, where they are not to be chosen.
    pub assignments: Vec<Vec<NodeId>>,
    /// Settings.
    pub configs: Vec<(String, String)>,
}

impl NewTopic {
    /// A topic with this many partitions.
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        Self { name: name.into(), partitions: Some(partitions), ..Self::default() }
    }
}

/// A topic that was checked and only has to be made.
#[derive(Debug)]
pub(crate) struct Checked {
    name: Arc<str>,
    pub(crate) replicas: Vec<Vec<NodeId>>,
    pub(crate) config: TopicConfig,
}

impl BrokerState {
    /// Creates a topic; an error says what is wrong with it.
    pub fn create_topic(&mut self, now: Instant, new: &NewTopic) -> Result<Uuid, (ErrorCode, String)> {
        let checked = self.check_topic(new).map_err(|refusal| (refusal.code, refusal.message))?;
        self.add_topic(now, checked).map_err(|refusal| (refusal.code, refusal.message))
    }

    /// Whether a topic can be created.
    pub(crate) fn check_topic(&self, new: &NewTopic) -> Result<Checked, Refusal> {
        topics::check_name(&new.name).map_err(|why| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))?;
        if self.topics.get(&new.name).is_some() {
            return Err(Refusal::new(
                ErrorCode::TOPIC_ALREADY_EXISTS,
                format!("Topic '{}' already exists.", new.name),
            ));
        }
        if let Some(other) = topics::collides(&self.topics, &new.name) {
            let message = format!("Topic '{}' collides with existing topic: {other}", new.name);
            return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
        }
        let mut config = TopicConfig::default();
        for (key, value) in &new.configs {
            config.set(key, value).map_err(config_refusal)?;
        }
        Ok(Checked { name: new.name.as_str().into(), replicas: self.replicas_of(new)?, config })
    }

    fn replicas_of(&self, new: &NewTopic) -> Result<Vec<Vec<NodeId>>, Refusal> {
        if !new.assignments.is_empty() {
            return self.check_assignments(&new.assignments, None);
        }
        let count = new.partitions.unwrap_or(self.settings.num_partitions);
        let factor = new.replication_factor.unwrap_or_else(|| self.default_factor());
        let up = self.nodes_up().len();
        let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
            return Err(Refusal::new(
                ErrorCode::INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            ));
        };
        if count > MOST_PARTITIONS {
            return Err(Refusal::new(
                ErrorCode::POLICY_VIOLATION,
                format!(
                    "Excessively large number of partitions per request: {count}, at most {MOST_PARTITIONS}."
                ),
            ));
        }
        match usize::try_from(factor).ok().filter(|factor| *factor > 0) {
            None => Err(Refusal::new(
                ErrorCode::INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )),
            Some(factor) if factor > up => Err(Refusal::new(
                ErrorCode::INVALID_REPLICATION_FACTOR,
                format!(
                    "Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be reached because only {up} broker(s) are registered."
                ),
            )),
            Some(factor) => Ok(self.place(0, count, factor)),
        }
    }

    /// A test cluster that is told nothing else replicates, so that a node can be stopped.
    fn default_factor(&self) -> i16 {
        if self.config.given("default.replication.factor").is_some() {
            return self.settings.default_replication_factor;
        }
        i16::try_from(self.nodes_up().len().clamp(1, 3)).unwrap_or(1)
    }

    /// Checks replicas that a client chose; `size` is how many each partition must have.
    pub(crate) fn check_assignments(
        &self,
        wanted: &[Vec<NodeId>],
        size: Option<usize>,
    ) -> Result<Vec<Vec<NodeId>>, Refusal> {
        let wrong = |why: String| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
        let size = size.or_else(|| wanted.first().map(Vec::len)).unwrap_or_default();
        for replicas in wanted {
            let distinct: std::collections::BTreeSet<_> = replicas.iter().collect();
            if replicas.is_empty() || distinct.len() != replicas.len() || replicas.len() != size {
                return wrong("The manual partition assignment has no or duplicate replicas, or an inconsistent replication factor.".into());
            }
            if let Some(unknown) = replicas.iter().find(|node| !self.nodes.contains_key(node)) {
                return wrong(format!(
                    "The manual partition assignment includes broker {unknown}, but no such broker is registered."
                ));
            }
        }
        Ok(wanted.to_vec())
    }

    /// Creates a topic that was checked.
    pub(crate) fn add_topic(&mut self, now: Instant, checked: Checked) -> Result<Uuid, Refusal> {
        let (name, config, id) = (checked.name, checked.config, self.random.uuid());
        let settings = config.settings(&self.config);
        let mut topic = Topic { name, id, partitions: Vec::new(), config, settings };
        topic.partitions = self.new_partitions(&topic, checked.replicas);
        self.keep_topic(now, &topic).map_err(|code| not_stored(&topic.name, code))?;
        self.hang_on_metadata(&mut topic.partitions);
        let racks = self.racks();
        self.topics.insert(topic, &racks);
        self.tell_coordinators_of_topics(now);
        self.plan_flushes(now);
        Ok(id)
    }

    /// Nothing that these partitions take is answered for before it is durable that they are there.
    fn hang_on_metadata(&self, partitions: &mut [Partition]) {
        let change = self.metadata_change();
        partitions.iter_mut().for_each(|partition| partition.stored = change);
    }

    /// Partitions that come behind those that the topic has.
    fn new_partitions(&mut self, topic: &Topic, replicas: Vec<Vec<NodeId>>) -> Vec<Partition> {
        let first = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let mut partitions = Vec::with_capacity(replicas.len());
        for (index, replicas) in (first..).zip(replicas) {
            let leader = replicas.iter().find(|node| self.is_up(**node)).copied();
            let log = self.new_log(&topic.name, topic.id, index, &topic.settings);
            partitions.push(Partition { replicas, leader, leader_epoch: 0, stored: 0, log });
        }
        partitions
    }

    /// Creates `__consumer_offsets` when somebody needs it for the first time.
    pub(crate) fn create_offsets_topic(&mut self, now: Instant) {
        if self.topics.get(OFFSETS_TOPIC).is_some() {
            return;
        }
        let (count, factor) =
            (self.settings.offsets_topic_partitions, self.settings.offsets_topic_replication_factor);
        let mut config = TopicConfig::default();
        for (key, value) in [("cleanup.policy", "compact"), ("compression.type", "producer")] {
            // Both are in the table with these values allowed.
            let _ = config.set(key, value);
        }
        self.create_internal_topic(now, OFFSETS_TOPIC, count, factor, config);
    }

    /// Creates one of Kafka's own topics, unless it is there.
    pub(crate) fn create_internal_topic(
        &mut self,
        now: Instant,
        name: &str,
        count: i32,
        factor: i16,
        config: TopicConfig,
    ) {
        if self.topics.get(name).is_some() {
            return;
        }
        let (count, factor) = (usize::try_from(count).unwrap_or(1), usize::try_from(factor).unwrap_or(1));
        let replicas = self.place(0, count, factor);
        // Should it not be possible to store it, whoever needs it is told that it is not there.
        let _ = self.add_topic(now, Checked { name: name.into(), replicas, config });
    }

    /// Adds partitions until the topic has `count`.
    pub(crate) fn add_partitions(
        &mut self,
        now: Instant,
        name: &str,
        replicas: Vec<Vec<NodeId>>,
    ) -> Result<(), Refusal> {
        let Some(mut topic) = self.topics.remove(name) else { return Ok(()) };
        let had = topic.partitions.len();
        let more = self.new_partitions(&topic, replicas);
        topic.partitions.extend(more);
        let kept = self.keep_topic(now, &topic);
        let mut more = topic.partitions.split_off(had);
        self.hang_on_metadata(&mut more);
        let racks = self.racks();
        self.topics.insert(topic, &racks);
        // A partition that the next start would not find must not take records.
        kept.map_err(|code| not_stored(name, code))?;
        self.topics.grow(name, more, &racks);
        self.tell_coordinators_of_topics(now);
        Ok(())
    }

    /// The metadata cannot be made durable any more: partitions that are not in it for good are not there. Whoever asked
    /// for them has been refused.
    pub(crate) fn forget_unstored(&mut self, now: Instant) {
        let racks = self.racks();
        let is_stored = |partition: &&Partition| self.unstored(partition.stored) == Ok(None);
        let kept = |topic: &Topic| topic.partitions.iter().take_while(is_stored).count();
        let all = self.topics.iter().map(|topic| (topic.name.clone(), kept(topic), topic.partitions.len()));
        let cut: Vec<(Arc<str>, usize, usize)> = all.filter(|(_, kept, had)| kept < had).collect();
        for (name, kept, had) in cut {
            let gone = (0..).take(had).skip(kept);
            if *name == *topics::OFFSETS_TOPIC {
                gone.clone().for_each(|index| self.coordinator_moved(now, index, None));
            }
            let Some(mut topic) = self.topics.remove(&name) else { continue };
            let id = topic.id;
            topic.partitions.truncate(kept);
            if kept > 0 {
                self.topics.insert(topic, &racks);
            }
            gone.for_each(|index| self.partition_changed(now, id, index));
            self.settle_gone(now, id);
        }
        self.tell_coordinators_of_topics(now);
    }

    /// Deletes a topic with its records and the offsets that groups committed for it.
    pub fn delete_topic(&mut self, now: Instant, name: &str) -> Result<(), ErrorCode> {
        self.topics.get(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        self.forget_topic(now, name)?;
        let topic = self.topics.remove(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        for index in (0..).take(topic.partitions.len()) {
            self.partition_changed(now, topic.id, index);
        }
        self.settle_gone(now, topic.id);
        self.tell_coordinators_of_topics(now);
        Ok(())
    }
}

fn not_stored(topic: &str, code: ErrorCode) -> Refusal {
    Refusal::new(
        code,
        format!("Topic '{topic}' cannot be stored in the data directory: see the broker's log."),
    )
}

/// A setting that is not accepted, as an answer.
pub(crate) fn config_refusal(error: ConfigError) -> Refusal {
    Refusal::new(ErrorCode::INVALID_CONFIG, error.to_string())
}
