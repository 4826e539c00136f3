//! What the cluster does with its data directory: it is read at the start, kept up to date, and closed.

use super::{Store, StoreError, StoredPartition, StoredTopic};
use crate::cluster::{Node, NodeId, place};
use crate::config::{BrokerConfig, GroupConfig, TopicConfig, TopicSettings};
use crate::disk::Disk;
use crate::log::{Log, Memory};
use crate::settling::Then;
use crate::state::BrokerState;
use crate::topics::{OFFSETS_TOPIC, Partition, Topic};
use crate::work::{LogKey, Task, Work};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tontine_group::Instant;
use tontine_group::time::soonest;
use tontine_wire::{ErrorCode, Uuid};

/// Logs are looked after this often at most.
const SHORTEST_FLUSH: Duration = Duration::from_millis(10);

/// When something is to be done for the directory.
#[derive(Debug)]
pub(crate) struct Chores {
    /// Tells work that takes long to end early.
    pub(crate) stop: Arc<AtomicBool>,
    flush: Option<Instant>,
    flush_every: Option<Duration>,
    checkpoint: Instant,
    /// When leaders are elected that could not be stored.
    elect: Option<Instant>,
}

/// How long it takes until something that could not be stored is tried again.
const AGAIN: Duration = Duration::from_secs(1);

impl Chores {
    /// Some leader could not be stored: it is tried again.
    pub(crate) fn elect_again(&mut self, now: Instant) {
        self.elect = Some(now + AGAIN);
    }
}

impl Default for Chores {
    fn default() -> Self {
        Self { stop: Arc::default(), flush: None, flush_every: None, checkpoint: Instant::ZERO, elect: None }
    }
}

fn stored(topic: &Topic) -> StoredTopic {
    let partition = |partition: &Partition| StoredPartition {
        leader: partition.leader,
        epoch: partition.leader_epoch,
        replicas: partition.replicas.clone(),
    };
    StoredTopic {
        name: topic.name.to_string(),
        id: topic.id,
        starts: 0,
        partitions: topic.partitions.iter().map(partition).collect(),
        configs: topic.config.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
    }
}

impl BrokerState {
    /// A cluster whose topics, records and groups are kept on a disk, and found there again.
    pub fn open(
        config: BrokerConfig,
        nodes: BTreeMap<NodeId, Node>,
        seed: u64,
        unix_ms_at_origin: i64,
        disk: Arc<dyn Disk>,
    ) -> Result<Self, StoreError> {
        let mut state = Self::new(config, nodes, seed, unix_ms_at_origin);
        let (mut store, found) = Store::open(disk, &state.cluster_id, unix_ms_at_origin)?;
        if let Some(cluster_id) = found.cluster_id {
            state.cluster_id = cluster_id;
        }
        let mut config = state.config.clone();
        for (key, value) in &found.settings {
            // A setting that this version does not take is one that has its default.
            let _ = config.set(key, value);
        }
        state.set_config(config);
        state.next_producer_id = found.next_producer_id;
        for (group, configs) in &found.groups {
            state.take_group(&store, group, configs);
        }
        for topic in &found.topics {
            state.take_stored(&mut store, topic)?;
        }
        store.begin()?;
        state.store = Some(store);
        state.plan_flushes(Instant::ZERO);
        state.load_groups(Instant::ZERO);
        state.load_transactions(Instant::ZERO);
        state.doubt_logs();
        Ok(state)
    }

    /// What a killed process left unsynced is synced now, where answers wait for that.
    fn doubt_logs(&mut self) {
        for topic in self.topics.iter() {
            for (index, _) in (0..).zip(&topic.partitions).filter(|(_, found)| found.log.pending().is_some())
            {
                self.settling.want(LogKey::Partition(topic.id, index));
            }
        }
    }

    fn take_group(&mut self, store: &Store, group: &str, configs: &[(String, String)]) {
        let mut config = GroupConfig::default();
        for (key, value) in configs {
            if let Err(error) = config.set(key, value) {
                store.notes().say(format!("group {group}: {error}; the default is in force"));
            }
        }
        if let Err(why) = config.check(&self.config) {
            // The bounds of the broker are others than before: what the group had is kept, and said.
            store.notes().say(format!("group {group}: {why}; its own settings are in force all the same"));
        }
        self.set_group_config(group, config);
    }

    fn take_stored(&mut self, store: &mut Store, stored: &StoredTopic) -> Result<(), StoreError> {
        let mut config = TopicConfig::default();
        for (key, value) in &stored.configs {
            if let Err(error) = config.set(key, value) {
                store.notes().say(format!("topic {}: {error}; the default is in force", stored.name));
            }
        }
        let settings = config.settings(&self.config);
        let mut partitions = Vec::with_capacity(stored.partitions.len());
        for (index, partition) in (0..).zip(&stored.partitions) {
            partitions.push(self.take_partition(store, stored, index, partition, &settings)?);
        }
        let topic = Topic { name: stored.name.as_str().into(), id: stored.id, partitions, config, settings };
        let racks = self.racks();
        self.topics.insert(topic, &racks);
        Ok(())
    }

    fn take_partition(
        &self,
        store: &mut Store,
        topic: &StoredTopic,
        index: i32,
        stored: &StoredPartition,
        settings: &TopicSettings,
    ) -> Result<Partition, StoreError> {
        let known = |node: &NodeId| self.nodes.contains_key(node);
        let mut replicas: Vec<NodeId> = stored.replicas.iter().copied().filter(known).collect();
        if replicas.is_empty() {
            // The nodes had other ids in an earlier run.
            let at = usize::try_from(index).unwrap_or(0);
            replicas = place(&self.nodes_up(), at, 1, stored.replicas.len().max(1)).concat();
        }
        let leader = stored.leader.filter(|leader| replicas.contains(leader));
        let leader = leader.or_else(|| replicas.first().copied());
        let leader_epoch = stored.epoch.saturating_add(store.epochs_since(topic.starts));
        let log = store.open_log(topic, index, leader_epoch, settings.layout())?;
        Ok(Partition { replicas, leader, leader_epoch, stored: 0, log })
    }

    /// Coordinators of groups that are stored begin to work, so that their members and offsets expire.
    fn load_groups(&mut self, now: Instant) {
        let Some(topic) = self.topics.get(OFFSETS_TOPIC) else { return };
        let used = (0..).zip(&topic.partitions).filter(|(_, partition)| partition.log.end() > 0);
        let used: Vec<_> = used.map(|(index, partition)| (index, partition.leader)).collect();
        for (index, leader) in used {
            self.coordinator_moved(now, index, leader);
        }
    }

    /// Whether metadata waits to be made durable, or never will be.
    pub fn metadata_is_pending(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.pending().is_some())
    }

    /// Makes metadata durable here and now. Whether it is.
    pub fn flush_metadata(&mut self, now: Instant) -> bool {
        let Some(store) = &mut self.store else { return true };
        let flushed = store.journal_mut().flush().is_ok();
        self.handle_done(now, Work(Task::Settle(LogKey::Journal)).run());
        flushed
    }

    /// The change of the metadata on which a partition hangs, while it is not durable; an error when it never will be.
    pub(crate) fn unstored(&self, stored: u64) -> Result<Option<u64>, ErrorCode> {
        match self.store.as_ref().map(Store::journal).filter(|journal| journal.durable() < stored) {
            Some(journal) if journal.is_broken() => Err(ErrorCode::KAFKA_STORAGE_ERROR),
            Some(_) => Ok(Some(stored)),
            None => Ok(None),
        }
    }

    /// The newest change of the metadata, while it is not durable.
    pub(crate) fn metadata_change(&self) -> u64 {
        self.store.as_ref().and_then(Store::pending).unwrap_or(0)
    }

    /// The log of a new partition.
    pub(crate) fn new_log(&mut self, topic: &str, id: Uuid, index: i32, settings: &TopicSettings) -> Log {
        match &mut self.store {
            Some(store) => store.new_log(topic, id, index, 0, settings.layout()),
            None => Log::new(Box::new(Memory::default()), 0),
        }
    }

    /// Stores a topic that is about to be, or that changed.
    pub(crate) fn keep_topic(&mut self, now: Instant, topic: &Topic) -> Result<(), ErrorCode> {
        self.in_journal(now, |store, now_ms| store.put_topic(&stored(topic), now_ms))
    }

    /// Stores a topic that changed. An error means that the next start finds it as it was before: so must everybody now.
    pub(crate) fn keep_changed(&mut self, now: Instant, name: &str) -> Result<(), ErrorCode> {
        let Some(stored) = self.topics.get(name).map(stored) else { return Ok(()) };
        self.in_journal(now, |store, now_ms| store.put_topic(&stored, now_ms))
    }

    /// Stores a topic whose leaders changed and waits for the disk: an epoch is known to everybody at once. Leaders change
    /// seldom, and never where there is one node.
    pub(crate) fn keep_at_once(&mut self, now: Instant, name: &str) -> Result<(), ErrorCode> {
        self.keep_changed(now, name)?;
        self.settling.want(LogKey::Journal);
        self.store.as_mut().map_or(Ok(()), |store| store.journal_mut().flush())
    }

    /// Forgets a topic; its logs are removed when that is durable.
    pub(crate) fn forget_topic(&mut self, now: Instant, name: &str) -> Result<(), ErrorCode> {
        let Some((id, partitions)) = self.topics.get(name).map(|topic| (topic.id, topic.partitions.len()))
        else {
            return Ok(());
        };
        let mut dirs = Vec::new();
        self.in_journal(now, |store, now_ms| {
            dirs = store.delete_topic(name, id, partitions, now_ms)?;
            Ok(())
        })?;
        if let Some((disk, change)) = self.store.as_ref().map(|store| (store.disk(), store.pending())) {
            let task = Task::Remove { disk, dir: String::new(), files: Vec::new(), dirs };
            let needs = change.map(|change| (LogKey::Journal, change)).into_iter().collect();
            self.when_durable(now, needs, Then::HandOut(task));
        }
        Ok(())
    }

    /// Writes to the log of the metadata; whoever caused it is answered when that is durable.
    fn in_journal(
        &mut self,
        now: Instant,
        write: impl FnOnce(&mut Store, i64) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let now_ms = self.unix_ms(now);
        let Some(store) = &mut self.store else { return Ok(()) };
        write(store, now_ms)?;
        if let Some(change) = store.pending() {
            self.changed(LogKey::Journal, change);
        }
        // Deletions are kept: they tell what to remove should it still be there.
        self.compact_if_grown(LogKey::Journal, i64::MIN);
        Ok(())
    }

    /// Stores a setting of the broker that was changed while it runs.
    pub(crate) fn keep_setting(
        &mut self,
        now: Instant,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), ErrorCode> {
        self.in_journal(now, |store, now_ms| store.put_setting(key, value, now_ms))
    }

    /// Stores the settings of a group.
    pub(crate) fn keep_group(
        &mut self,
        now: Instant,
        group: &str,
        config: &GroupConfig,
    ) -> Result<(), ErrorCode> {
        self.in_journal(now, |store, now_ms| store.put_group(group, config.iter(), now_ms))
    }

    /// A producer id that nobody has had.
    pub(crate) fn new_producer_id(&mut self, now: Instant) -> Result<i64, ErrorCode> {
        let id = self.next_producer_id;
        // One that somebody else has reserved a moment ago has to wait for that to be durable as well.
        self.in_journal(now, |store, now_ms| store.reserve_producer_id(id, now_ms))?;
        self.next_producer_id += 1;
        Ok(id)
    }

    /// Settings of topics changed: their logs learn of it.
    pub(crate) fn settle_logs(&mut self, now: Instant) {
        for topic in self.topics.iter_mut() {
            let layout = topic.settings.layout();
            for partition in &mut topic.partitions {
                partition.log.configure(layout);
            }
        }
        self.plan_flushes(now);
    }

    /// Some topic may have to be flushed more often, or none any more.
    pub(crate) fn plan_flushes(&mut self, now: Instant) {
        if self.store.is_none() {
            return;
        }
        let shortest = self.topics.iter().filter_map(|topic| topic.settings.flush_ms).min();
        let every = shortest.map(|millis| (Duration::from_millis(millis) / 2).max(SHORTEST_FLUSH));
        if every != self.chores.flush_every {
            self.chores.flush_every = every;
            self.chores.flush = every.map(|every| now + every);
        }
    }

    /// Does what is due for the directory.
    pub(crate) fn do_chores(&mut self, now: Instant) {
        if self.store.is_none() {
            return;
        }
        if self.chores.flush.is_some_and(|at| at <= now) {
            self.chores.flush = self.chores.flush_every.map(|every| now + every);
            let now_ms = self.unix_ms(now);
            for topic in self.topics.iter() {
                let due = |(_, partition): &(i32, &Partition)| partition.log.flush_is_due(now_ms);
                for (index, _) in (0..).zip(&topic.partitions).filter(due) {
                    self.settling.want(LogKey::Partition(topic.id, index));
                }
            }
        }
        if self.chores.elect.is_some_and(|at| at <= now) {
            self.chores.elect = None;
            self.elect_leaders_that_are_up(now);
        }
        if self.chores.checkpoint <= now {
            self.chores.checkpoint = now + self.settings.flush_checkpoint_interval;
            if let Some(task) = self.checkpoint() {
                self.hand_out(task);
            }
        }
    }

    /// When [`BrokerState::do_chores`] wants to be called.
    pub(crate) fn next_chore(&self) -> Option<Instant> {
        let flush_or_elect = soonest(self.chores.flush, self.chores.elect);
        self.store.as_ref().and_then(|_| soonest(flush_or_elect, Some(self.chores.checkpoint)))
    }

    /// The work of noting how far each log is durable; `None` when that is noted already.
    fn checkpoint(&mut self) -> Option<Task> {
        let store = self.store.as_mut()?;
        let logs = self.topics.iter().flat_map(|topic| {
            let partitions = (0..).zip(&topic.partitions);
            partitions.map(|(index, partition)| (&*topic.name, topic.id, index, &partition.log))
        });
        let (path, text) = store.checkpoint(logs)?;
        Some(Task::Replace { disk: store.disk(), path, text })
    }

    /// Notes how far each log is durable, here and now.
    pub(crate) fn note_flushed(&mut self, now: Instant) {
        if let Some(task) = self.checkpoint() {
            self.handle_done(now, Work(task).run());
        }
    }

    /// Tells work that takes long to end early: what is half done is not worth waiting for.
    pub fn hurry(&self) {
        self.chores.stop.store(true, Ordering::Relaxed);
    }

    /// Where records are kept; `None` when they are in memory.
    pub fn data_dir(&self) -> Option<String> {
        self.store.as_ref().map(Store::shown)
    }

    /// Sentences about the data directory, for the operator's log.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.store.as_ref().map(|store| store.notes().take()).unwrap_or_default()
    }

    /// Answers every request that waits: fetches with what there is, members with the advice to look for another
    /// coordinator. For a broker that is about to stop.
    pub fn wind_down(&mut self, now: Instant) {
        let shards: Vec<i32> = self.groups.shards.keys().copied().collect();
        for index in shards {
            if let Some(shard) = self.groups.shards.get_mut(&index) {
                shard.coordinator.resign(now);
            }
            self.pump(now, index);
        }
        self.finish_fetches(now);
        self.winding_down = true;
    }

    /// Makes everything durable and gives the data directory back; the next start finds it without looking at every
    /// record. Nothing can be written afterwards. An error means that the next start looks at everything.
    pub fn shut_down(&mut self, now: Instant) -> Result<(), ErrorCode> {
        if self.store.is_none() {
            return Ok(());
        }
        let mut closed = Ok(());
        for topic in self.topics.iter_mut() {
            for partition in &mut topic.partitions {
                closed = partition.log.close().and(closed);
            }
        }
        self.note_flushed(now);
        let (now_ms, next) = (self.unix_ms(now), self.next_producer_id);
        if let (Some(store), Ok(())) = (&mut self.store, closed) {
            closed = store.end(next, now_ms);
        }
        self.store = None;
        self.closed = true;
        closed
    }
}
