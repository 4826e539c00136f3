//! What of a log is durable, what waits for that, and the sync itself: work that anybody may do, off every lock.
//!
//! Changes of a log are counted. A sync takes down which change it will cover when it begins; what is appended meanwhile
//! waits for the next one, and everything that waits for one is done with it. An error of a sync ends the writing for
//! good: nobody can say any more what is on the disk. Mirrors what `UnifiedLog.flush` and its recovery point are.

use super::layout::Layout;
use super::ondisk::START_FILE;
use crate::disk::{Disk, DiskFile, replace};
use std::io;
use std::sync::Arc;

/// What is durable.
#[derive(Debug, Default)]
pub(super) struct Durability {
    /// How often something changed, and how many of these changes are durable.
    pub(super) changes: u64,
    pub(super) durable: u64,
    /// Every record before this offset is durable.
    pub(super) flushed: i64,
    /// Every record before this offset may be read.
    pub(super) visible: i64,
    pub(super) unflushed_records: u64,
    pub(super) unflushed_since: Option<i64>,
    /// How often the names in the directory changed, and how many of these changes are durable.
    pub(super) names: u64,
    pub(super) durable_names: u64,
    /// Where the log begins, while that is not durable.
    pub(super) start: Option<i64>,
    /// Whether the file that says whose the directory is has still to be synced.
    pub(super) identity: bool,
    /// Whether a sync is wanted, whatever the policy.
    pub(super) wanted: bool,
    /// A sync failed.
    pub(super) broken: bool,
}

impl Durability {
    /// A batch of so many records was written, up to this offset.
    pub(super) fn wrote(&mut self, records: u32, next: i64, now_ms: i64, layout: &Layout) {
        self.changes += 1;
        self.unflushed_since.get_or_insert(now_ms);
        self.unflushed_records += u64::from(records);
        if !layout.flush.is_always() {
            self.visible = next;
        }
    }

    /// The change that has to be durable before what is in the log may be answered for.
    pub(super) fn pending(&self, layout: &Layout) -> Option<u64> {
        let waits = layout.flush.records.is_some_and(|most| self.unflushed_records >= most);
        (waits && self.durable < self.changes).then_some(self.changes)
    }

    /// Whether records have waited for long enough.
    pub(super) fn is_due(&self, now_ms: i64, layout: &Layout) -> bool {
        let due = |since: i64| {
            let waited = now_ms.saturating_sub(since);
            layout.flush.millis.is_some_and(|millis| waited >= i64::try_from(millis).unwrap_or(i64::MAX))
        };
        !self.broken && self.unflushed_since.is_some_and(due)
    }

    /// Whether there are records or names that are not durable.
    pub(super) fn is_dirty(&self) -> bool {
        self.unflushed_since.is_some() || self.names != self.durable_names
    }

    /// A sync that began like this is done.
    pub(super) fn done(&mut self, flushing: &Flushing) {
        self.durable = self.durable.max(flushing.changes);
        if self.start == flushing.start {
            self.start = None;
        }
        if !flushing.whole {
            return;
        }
        self.flushed = self.flushed.max(flushing.next);
        self.visible = self.visible.max(flushing.next);
        self.durable_names = self.durable_names.max(flushing.names.unwrap_or(0));
        self.unflushed_records = self.unflushed_records.saturating_sub(flushing.records);
        if self.changes == flushing.changes {
            self.unflushed_since = None;
        } else if self.unflushed_since.is_some() {
            self.unflushed_since = Some(flushing.began_ms);
        }
    }

    /// Records from this offset on are gone.
    pub(super) fn cut(&mut self, offset: i64) {
        self.flushed = self.flushed.min(offset);
        self.visible = self.visible.min(offset);
    }
}

/// Makes durable what a log has had when this was made.
#[derive(Debug)]
pub(crate) struct Flushing {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: String,
    /// Files, each with the count of changes that it had.
    pub(super) files: Vec<(Arc<dyn DiskFile>, u64)>,
    /// The count of changes of names, where they have to be made durable.
    pub(super) names: Option<u64>,
    pub(super) start: Option<i64>,
    /// Whether records are synced, and not only where the log begins.
    pub(super) whole: bool,
    pub(super) next: i64,
    pub(super) changes: u64,
    pub(super) records: u64,
    pub(super) began_ms: i64,
}

impl Flushing {
    /// Does it. This is what may take long.
    pub(crate) fn run(&self) -> io::Result<()> {
        for (file, _) in &self.files {
            file.sync()?;
        }
        if self.names.is_some() {
            self.disk.sync_dir(&self.dir)?;
            self.disk.sync_dir("")?;
        }
        if let Some(start) = self.start {
            let path = format!("{}/{START_FILE}", self.dir);
            // Deleted records do not come back, whatever the policy for those that are kept.
            replace(&*self.disk, &path, format!("{start}\n").as_bytes(), true)?;
        }
        Ok(())
    }
}
