//! The data directory: whose it is, which topics there are, and which logs lie in it.
//!
//! Topics, settings and counters are records of a log of their own (`metadata`), which is durable with each record
//! whatever the flush policy of topics says. The logs of partitions are directories `topic-partition`, as Kafka names
//! them. Mirrors `LogManager`, and for topics what the controller keeps in `__cluster_metadata`.

mod checkpoint;
mod error;
mod identity;
mod journal;
mod keep;
mod topic_record;

pub use error::StoreError;
pub(crate) use keep::Chores;
pub(crate) use topic_record::{StoredPartition, StoredTopic};

use crate::disk::Disk;
use crate::log::{self, Damage, LastEnd, Layout, Log, Notes, OnDisk};
use checkpoint::Checkpoint;
use journal::Journal;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tontine_wire::{ErrorCode, Uuid};

/// How many producer ids are reserved at once: so many are lost by an unclean end.
const PRODUCER_IDS: i64 = 1000;
/// The file in a partition's directory that says which topic it belongs to; Kafka's.
const PARTITION_FILE: &str = "partition.metadata";

/// What the name of a directory ends with that is to be removed; Kafka's.
const CONDEMNED: &str = "-delete";

/// An open data directory.
pub(crate) struct Store {
    disk: Arc<dyn Disk>,
    journal: Journal,
    checkpoint: Checkpoint,
    last_end: LastEnd,
    /// How often the directory was opened after an unclean end: leader epochs count up with it.
    starts: i32,
    /// The first producer id that is not reserved.
    reserved: i64,
    dirs: BTreeSet<String>,
    notes: Notes,
    _lock: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("disk", &self.disk)
            .field("starts", &self.starts)
            .finish_non_exhaustive()
    }
}

/// What was found in a data directory.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The cluster's id.
    pub(crate) cluster_id: Option<String>,
    /// The topics.
    pub(crate) topics: Vec<StoredTopic>,
    /// Settings of the broker that were changed while it ran.
    pub(crate) settings: BTreeMap<String, String>,
    /// Settings of groups.
    pub(crate) groups: BTreeMap<String, Vec<(String, String)>>,
    /// The next producer id.
    pub(crate) next_producer_id: i64,
}

fn partition_dir(topic: &str, index: i32) -> String {
    format!("{topic}-{index}")
}

impl Store {
    /// Opens the directory. `cluster_id` is for one that is new.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        cluster_id: &str,
        now_ms: i64,
    ) -> Result<(Self, Found), StoreError> {
        let lock = identity::lock(&*disk)?;
        let notes = Notes::default();
        let known = identity::read(&*disk)?;
        let last_end = match (&known, identity::ended_cleanly(&*disk)?) {
            (None, _) | (_, true) => LastEnd::Clean,
            (Some(_), false) => LastEnd::Unclean { flushed: 0 },
        };
        let (journal, mut content) = Journal::open(&disk, last_end, &notes)?;
        let checkpoint = Checkpoint::read(&*disk)?;
        let mut store = Self {
            starts: content.starts,
            reserved: content.producer_ids,
            dirs: directories(&*disk)?,
            disk,
            journal,
            checkpoint,
            last_end,
            notes,
            _lock: lock,
        };
        if known.is_none() {
            identity::write(&*store.disk, cluster_id)?;
        } else if last_end != LastEnd::Clean {
            store.notes.say(format!("{} was not closed cleanly: its logs are checked", store.disk.shown("")));
            store.starts += 1;
            store
                .journal
                .put(journal::STARTS, &store.starts.to_string(), now_ms)
                .and_then(|()| store.journal.log_mut().flush())
                .map_err(StoreError::refused)?;
        }
        store.sort_out_strangers(&content)?;
        let topics = std::mem::take(&mut content.topics).into_values().collect();
        let found = Found {
            cluster_id: known,
            topics,
            settings: content.settings,
            groups: content.groups,
            next_producer_id: content.producer_ids,
        };
        Ok((store, found))
    }

    /// Directories of partitions that no topic has: those of deleted topics go, others are left alone.
    fn sort_out_strangers(&mut self, content: &journal::Content) -> Result<(), StoreError> {
        for dir in self.dirs.clone() {
            if let Some(id) = dir.strip_suffix(CONDEMNED) {
                self.condemned(content, &dir, id)?;
                continue;
            }
            let Some((topic, index)) = dir.rsplit_once('-') else { continue };
            let Ok(index) = index.parse::<usize>() else { continue };
            let known = content.topics.get(topic).is_some_and(|topic| index < topic.partitions.len());
            if known {
                continue;
            }
            let path = self.disk.shown(&dir);
            if content.deleted.contains(topic) {
                self.disk.remove_dir(&dir).map_err(|error| StoreError::io(&*self.disk, &dir, error))?;
                self.dirs.remove(&dir);
                self.notes.say(format!("{path}: removed, its topic was deleted"));
            } else {
                self.notes.say(format!("{path}: belongs to no topic and is left alone"));
            }
        }
        Ok(())
    }

    /// A directory that was to be removed. Where the topic is still there, its deletion was never answered for.
    fn condemned(&mut self, content: &journal::Content, dir: &str, id: &str) -> Result<(), StoreError> {
        let owner = id.rsplit_once('-').and_then(|(id, index)| {
            let owner = content.topics.values().find(|topic| topic.id.to_string() == id)?;
            Some(format!("{}-{index}", owner.name))
        });
        let done = match &owner {
            Some(owner) if !self.dirs.contains(owner) => self.disk.rename(dir, owner),
            _ => self.disk.remove_dir(dir),
        };
        done.map_err(|error| StoreError::io(&*self.disk, dir, error))?;
        self.dirs.remove(dir);
        self.dirs.extend(owner);
        Ok(())
    }

    /// The disk on which it lies.
    pub(crate) fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }

    /// The log of the metadata.
    pub(crate) fn journal(&self) -> &Log {
        self.journal.log()
    }

    /// The log of the metadata.
    pub(crate) fn journal_mut(&mut self) -> &mut Log {
        self.journal.log_mut()
    }

    /// The change of the metadata that is not durable yet.
    pub(crate) fn pending(&self) -> Option<u64> {
        self.journal.log().pending()
    }

    /// Sentences for the operator.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The name of the directory, for people.
    pub(crate) fn shown(&self) -> String {
        self.disk.shown("")
    }

    /// How much a leader epoch has grown since it was stored.
    pub(crate) fn epochs_since(&self, starts: i32) -> i32 {
        self.starts.saturating_sub(starts)
    }

    /// The log of a partition that was just created.
    pub(crate) fn new_log(&mut self, topic: &str, id: Uuid, index: i32, epoch: i32, layout: Layout) -> Log {
        let dir = partition_dir(topic, index);
        if self.dirs.contains(&dir) {
            self.set_aside(&dir);
        }
        Log::new(Box::new(self.empty_log(dir, id, layout)), epoch)
    }

    fn empty_log(&self, dir: String, id: Uuid, layout: Layout) -> OnDisk {
        let identity = format!("version: 0\ntopic_id: {id}");
        OnDisk::new(self.disk.clone(), dir, layout, self.notes.clone())
            .with_identity(PARTITION_FILE, identity)
    }

    /// What lies where a new partition is to lie is somebody else's: it gets another name.
    fn set_aside(&mut self, dir: &str) {
        let aside = (1..).map(|count| format!("{dir}.stray{count}")).find(|name| !self.dirs.contains(name));
        let Some(aside) = aside else { return };
        match self.disk.rename(dir, &aside) {
            Ok(()) => {
                self.dirs.remove(dir);
                self.notes
                    .say(format!("{}: set aside, another topic has the name now", self.disk.shown(&aside)));
                self.dirs.insert(aside);
            }
            Err(error) => self.notes.say(format!("cannot rename {}: {error}", self.disk.shown(dir))),
        }
    }

    /// The log of a partition that was there before.
    pub(crate) fn open_log(
        &mut self,
        topic: &StoredTopic,
        index: i32,
        epoch: i32,
        layout: Layout,
    ) -> Result<Log, StoreError> {
        let dir = partition_dir(&topic.name, index);
        if !self.dirs.contains(&dir) {
            return Ok(Log::new(Box::new(self.empty_log(dir, topic.id, layout)), epoch));
        }
        if !self.belongs_to(&dir, topic.id)? {
            self.set_aside(&dir);
            return Ok(Log::new(Box::new(self.empty_log(dir, topic.id, layout)), epoch));
        }
        let last_end = match self.last_end {
            LastEnd::Clean => LastEnd::Clean,
            LastEnd::Unclean { .. } => {
                LastEnd::Unclean { flushed: self.checkpoint.flushed(&topic.name, topic.id, index) }
            }
        };
        let opened = log::open(&self.disk, &dir, layout, &self.notes, last_end, Damage::CutBack)?;
        Ok(Log::reopened(opened, epoch))
    }

    /// A directory that does not say whose it is belongs to the topic of its name.
    fn belongs_to(&self, dir: &str, id: Uuid) -> Result<bool, StoreError> {
        let path = format!("{dir}/{PARTITION_FILE}");
        let bytes = self.disk.read(&path).map_err(|error| StoreError::io(&*self.disk, &path, error))?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let said = text.lines().find_map(|line| line.strip_prefix("topic_id:")).map(str::trim);
        Ok(said.and_then(|said| said.parse::<Uuid>().ok()).is_none_or(|said| said == id))
    }

    /// Everything was opened: from now on the directory is in use.
    pub(crate) fn begin(&mut self) -> Result<(), StoreError> {
        identity::begin(&*self.disk)
    }

    /// Stores a topic.
    pub(crate) fn put_topic(&mut self, topic: &StoredTopic, now_ms: i64) -> Result<(), ErrorCode> {
        let stored = topic_record::encode(topic, self.starts);
        self.journal.put(&journal::topic_key(&topic.name), &stored, now_ms)
    }

    /// Forgets a topic. Its logs get other names; what comes back are the directories that have to be removed.
    pub(crate) fn delete_topic(
        &mut self,
        name: &str,
        id: Uuid,
        partitions: usize,
        now_ms: i64,
    ) -> Result<Vec<String>, ErrorCode> {
        self.journal.delete(&journal::topic_key(name), now_ms)?;
        let mut condemned = Vec::new();
        for index in 0..i32::try_from(partitions).unwrap_or(i32::MAX) {
            let dir = partition_dir(name, index);
            self.dirs.remove(&dir);
            // Short enough for a name whatever the topic is called.
            let aside = format!("{id}-{index}{CONDEMNED}");
            match self.disk.rename(&dir, &aside) {
                Ok(()) => condemned.push(aside),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.notes.say(format!("cannot remove {}: {error}", self.disk.shown(&dir)));
                }
            }
        }
        Ok(condemned)
    }

    /// Stores a setting of the broker, or that it has its default again.
    pub(crate) fn put_setting(
        &mut self,
        key: &str,
        value: Option<&str>,
        now_ms: i64,
    ) -> Result<(), ErrorCode> {
        let key = journal::setting_key(key);
        match value {
            Some(value) => self.journal.put(&key, value, now_ms),
            None => self.journal.delete(&key, now_ms),
        }
    }

    /// Stores the settings of a group; none means that it has the broker's again.
    pub(crate) fn put_group<'a>(
        &mut self,
        group: &str,
        configs: impl Iterator<Item = (&'static str, &'a str)>,
        now_ms: i64,
    ) -> Result<(), ErrorCode> {
        let key = journal::group_key(group);
        match journal::lines(configs) {
            none if none.is_empty() => self.journal.delete(&key, now_ms),
            lines => self.journal.put(&key, &lines, now_ms),
        }
    }

    /// Makes sure that this producer id will not be given out again.
    pub(crate) fn reserve_producer_id(&mut self, id: i64, now_ms: i64) -> Result<(), ErrorCode> {
        if id < self.reserved {
            return Ok(());
        }
        let reserved = id + PRODUCER_IDS;
        self.journal.put(journal::PRODUCER_IDS, &reserved.to_string(), now_ms)?;
        self.reserved = reserved;
        Ok(())
    }

    /// What the file says that tells how far each log is durable; `None` when it says so already.
    pub(crate) fn checkpoint<'l>(
        &mut self,
        logs: impl Iterator<Item = (&'l str, Uuid, i32, &'l Log)>,
    ) -> Option<(&'static str, String)> {
        let flushed = logs.filter_map(|(topic, id, index, log)| Some((topic, id, index, log.flushed()?)));
        self.checkpoint.update(flushed)
    }

    /// Says that everything was closed.
    pub(crate) fn end(&mut self, next_producer_id: i64, now_ms: i64) -> Result<(), ErrorCode> {
        self.journal.put(journal::PRODUCER_IDS, &next_producer_id.to_string(), now_ms)?;
        self.journal.close()?;
        identity::end(&*self.disk).map_err(|error| {
            self.notes.say(error.to_string());
            ErrorCode::KAFKA_STORAGE_ERROR
        })
    }
}

fn directories(disk: &dyn Disk) -> Result<BTreeSet<String>, StoreError> {
    let entries = disk.list("").map_err(|error| StoreError::io(disk, "", error))?;
    Ok(entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name).collect())
}
