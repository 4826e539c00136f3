//! Compaction of a log on disk: read and written off every lock, then swapped in under it.
//!
//! Neighbouring closed segments become one. A group of them is written to a file of its own (`.cleaned`) and synced; the
//! swap renames, first the new file to `.swap`, which decides, then the old ones away, then the new one to its place.
//! File systems keep the order of renames, so after an outage there is one or the other. Mirrors `Cleaner.cleanSegments`
//! and `LocalLog.replaceSegments`.

use super::compact::Newest;
use super::segment::{self, Segment, name};
use crate::disk::{Disk, DiskFile};
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tontine_wire::records::{Checksum, RecordBatch};

/// A closed segment.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) size: u64,
}

/// Neighbouring closed segments that become one.
#[derive(Debug)]
pub(crate) struct Group {
    /// The first offset that can lie in it.
    pub(super) base: i64,
    /// The offset behind its last record.
    pub(super) next: i64,
    /// The first offset of the segment behind it.
    pub(super) end: i64,
    pub(super) parts: Vec<Part>,
}

/// What is compacted, and where to.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: String,
    pub(super) interval: u64,
    pub(super) groups: VecDeque<Group>,
}

/// A compaction on its way: [`Compaction::run`] does the next part of the work, then the log swaps it in.
#[derive(Debug)]
pub(crate) struct Compaction {
    sources: Sources,
    newest: Newest,
    oldest_tombstone: i64,
    stop: Arc<AtomicBool>,
    begun: bool,
    /// The part that is written and has to be swapped in.
    pub(super) written: Option<(Group, Segment)>,
}

impl Compaction {
    pub(super) fn new(
        sources: Sources,
        newest: Newest,
        oldest_tombstone: i64,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { sources, newest, oldest_tombstone, stop, begun: false, written: None }
    }

    /// Whether everything was written.
    pub(super) fn is_done(&self) -> bool {
        self.begun && self.sources.groups.is_empty()
    }

    /// Writes the next group.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin()?;
        }
        let Some(group) = self.sources.groups.pop_front() else { return Ok(()) };
        let written = self.write(&group)?;
        self.written = Some((group, written));
        Ok(())
    }

    /// What is rewritten must not be less durable than what it stands for, or what it was superseded by.
    fn begin(&mut self) -> io::Result<()> {
        for part in self.sources.groups.iter().flat_map(|group| &group.parts) {
            part.file.sync()?;
        }
        self.sources.disk.sync_dir(&self.sources.dir)?;
        let (newest, stop) = (&mut self.newest, &*self.stop);
        for part in self.sources.groups.iter().flat_map(|group| &group.parts) {
            each_batch(part, stop, |batch| {
                newest.see(&batch);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn write(&mut self, group: &Group) -> io::Result<Segment> {
        let path = format!("{}/{}", self.sources.dir, name(group.base, "cleaned"));
        self.sources.disk.remove_file(&path)?;
        let mut fresh = Segment::over(self.sources.disk.open(&path)?, group.base, 0);
        fresh.forget();
        let (newest, oldest, interval) = (&mut self.newest, self.oldest_tombstone, self.sources.interval);
        for part in &group.parts {
            each_batch(part, &self.stop, |batch| match newest.rest_of(&batch, oldest) {
                Some((meta, bytes)) => fresh.append(meta, &bytes, interval, 0),
                None => Ok(()),
            })?;
        }
        fresh.sync()?;
        fresh.next = fresh.next.max(group.next);
        Ok(fresh)
    }
}

fn each_batch(
    part: &Part,
    stop: &AtomicBool,
    mut each: impl FnMut(RecordBatch) -> io::Result<()>,
) -> io::Result<()> {
    let mut outcome = Ok(());
    let walk = segment::walk(&*part.file, 0, part.size, Checksum::Verify, |_, batch| {
        outcome = match stop.load(Ordering::Relaxed) {
            true => Err(io::Error::new(io::ErrorKind::Interrupted, "the broker stops")),
            false => each(batch),
        };
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    outcome?;
    match walk.damage {
        Some(why) => Err(segment::damaged(walk.end, &why)),
        None => Ok(()),
    }
}

/// The name of a compacted segment that takes the place of all segments between two offsets.
pub(super) fn swap_name(base: i64, end: i64) -> String {
    format!("{base:020}-{end:020}.swap")
}

/// What a file that is to be removed is called until it is.
pub(super) fn condemned(file: &str) -> String {
    format!("{file}.deleted")
}

/// Puts a compacted segment in the place of those it stands for. Whatever was done of it already is done again.
pub(super) fn finish_swap(disk: &dyn Disk, dir: &str, base: i64, end: i64, swap: &str) -> io::Result<()> {
    for entry in disk.list(dir)? {
        let of = |suffix| segment::base_of(&entry.name, suffix);
        let old = of("log").or_else(|| of("index")).or_else(|| of("timeindex"));
        if old.is_some_and(|old| (base..end).contains(&old)) {
            disk.remove_file(&format!("{dir}/{}", entry.name))?;
        }
    }
    disk.rename(&format!("{dir}/{swap}"), &format!("{dir}/{}", name(base, "log")))?;
    disk.sync_dir(dir)
}
