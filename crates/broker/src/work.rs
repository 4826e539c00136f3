//! Work that may take long and needs nobody's lock: syncs, compaction, removal of large files.
//!
//! The state hands it out ([`crate::BrokerOutput::Work`]), the driver runs it wherever it likes, and hands in what came of it
//! ([`crate::BrokerState::handle_done`]). Work that never comes back is like work that takes for ever: whoever waits for
//! it is not answered.

use crate::disk::{Disk, replace};
use crate::log::{Compaction, Flushing};
use std::io;
use std::sync::Arc;
use tontine_wire::Uuid;

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogKey {
    /// That of the metadata.
    Journal,
    /// That of a partition, by the id of its topic.
    Partition(Uuid, i32),
}

#[derive(Debug)]
pub(crate) enum Task {
    /// Make a log durable.
    Flush(LogKey, Flushing),
    /// Write the next part of a compacted log.
    Compact(LogKey, Box<Compaction>),
    /// Remove what has another name already, once that is durable.
    Remove { disk: Arc<dyn Disk>, dir: String, files: Vec<String>, dirs: Vec<String> },
    /// Nothing: whoever waits for this log is told how it stands.
    Settle(LogKey),
    /// Replace a small file.
    Replace { disk: Arc<dyn Disk>, path: &'static str, text: String },
}

/// Something to be done outside of the state.
#[derive(Debug)]
#[must_use]
pub struct Work(pub(crate) Task);

/// What came of it.
#[derive(Debug)]
#[must_use]
pub struct Done {
    pub(crate) task: Task,
    pub(crate) result: io::Result<()>,
}

impl Work {
    /// Does it; this may take long.
    pub fn run(self) -> Done {
        let mut task = self.0;
        let result = match &mut task {
            Task::Settle(_) => Ok(()),
            Task::Flush(_, flushing) => flushing.run(),
            Task::Compact(_, compaction) => compaction.run(),
            Task::Remove { disk, dir, files, dirs } => remove(&**disk, dir, files, dirs),
            Task::Replace { disk, path, text } => replace(&**disk, path, text.as_bytes(), true),
        };
        Done { task, result }
    }
}

fn remove(disk: &dyn Disk, dir: &str, files: &[String], dirs: &[String]) -> io::Result<()> {
    disk.sync_dir(dir)?;
    files.iter().try_for_each(|file| disk.remove_file(file))?;
    dirs.iter().try_for_each(|dir| disk.remove_dir(dir))
}
