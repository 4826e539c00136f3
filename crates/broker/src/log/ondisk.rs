//! A log on disk: a directory of segments. Appends go to the last one; when it is full another one begins.
//!
//! Nothing is synced here: what is durable when is [`super::flushing`]'s business, and what is rewritten is
//! [`super::compaction`]'s. An error of a write changes nothing that readers see, and the next append may succeed.
//! Mirrors `LocalLog` and `LogSegments`.

use super::compaction::{Group, Part, Sources, condemned, swap_name};
use super::flushing::{Durability, Flushing};
use super::layout::{Layout, Notes};
use super::segment::{self, Segment, name};
use super::{BatchMeta, Storage};
use crate::disk::{Disk, replace};
use bytes::Bytes;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tontine_wire::ErrorCode;
use tontine_wire::records::Checksum;

/// The log of a partition on disk.
#[derive(Debug)]
pub(crate) struct OnDisk {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: String,
    pub(super) layout: Layout,
    pub(super) segments: Vec<Segment>,
    pub(super) notes: Notes,
    /// What is written when the directory is made, to say whose it is: a file and its text.
    identity: Option<(String, String)>,
    made: bool,
    durability: Durability,
    full: bool,
    /// Files that have to be removed when their new names are durable.
    rubbish: Vec<String>,
    /// Where the last reader stopped: offset, segment, position. The next one mostly goes on there.
    reading: Cell<Option<(i64, i64, u64)>>,
    state: Option<i64>,
    rolled: bool,
    /// How large the last segment was when it was last to be synced beforehand.
    synced_beforehand: u64,
    /// Whether anything happened that a clean end has to store.
    touched: bool,
}

impl OnDisk {
    /// A log that has nothing on the disk yet. The directory is made with the first batch.
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: String, layout: Layout, notes: Notes) -> Self {
        Self {
            disk,
            dir,
            layout,
            segments: Vec::new(),
            notes,
            identity: None,
            made: false,
            durability: Durability::default(),
            full: false,
            rubbish: Vec::new(),
            reading: Cell::new(None),
            state: None,
            rolled: false,
            synced_beforehand: 0,
            touched: false,
        }
    }

    /// Writes this file into the directory when it is made.
    pub(crate) fn with_identity(mut self, file: &str, text: String) -> Self {
        self.identity = Some((file.to_owned(), text));
        self
    }

    pub(super) fn opened(&mut self, segments: Vec<Segment>, flushed: i64, state: Option<i64>, clean: bool) {
        (self.segments, self.state) = (segments, state);
        self.durability = Durability { flushed, visible: self.next(), ..Durability::default() };
        if self.segments.iter().any(|segment| !segment.is_synced()) {
            // As if it had just been written, so that it becomes durable as soon as the policy says.
            self.durability.wrote(1, self.next(), 0, &self.layout);
        }
        self.touched = !clean;
    }

    /// Whether the directory is there already.
    pub(super) fn is_made(&mut self, made: bool) {
        self.made = made;
    }

    pub(super) fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.dir)
    }

    pub(super) fn next(&self) -> i64 {
        self.segments.last().map_or(0, |segment| segment.next)
    }

    /// Says what went wrong, and what a client is told.
    fn failed(&self, what: &str, error: &io::Error) -> ErrorCode {
        self.notes.say(format!("cannot {what} {}: {error}", self.disk.shown(&self.dir)));
        ErrorCode::KAFKA_STORAGE_ERROR
    }

    fn make(&mut self) -> io::Result<()> {
        self.disk.create_dir(&self.dir)?;
        if let Some((file, text)) = &self.identity {
            replace(&*self.disk, &self.path(file), text.as_bytes(), false)?;
            self.durability.identity = true;
        }
        self.made = true;
        self.durability.names += 1;
        Ok(())
    }

    fn begin_segment(&mut self, base: i64) -> io::Result<()> {
        if !self.made {
            self.make()?;
        }
        let segment = Segment::create(&*self.disk, &self.dir, base)?;
        self.synced_beforehand = 0;
        self.durability.names += 1;
        self.rolled = !self.segments.is_empty();
        self.segments.push(segment);
        Ok(())
    }

    fn wants_segment(&self, batch: BatchMeta, size: usize, now_ms: i64) -> bool {
        let Some(last) = self.segments.last() else { return true };
        let full = last.size.saturating_add(size as u64) > self.layout.segment_bytes;
        let old = last.began_ms.is_some_and(|began| now_ms.saturating_sub(began) >= self.layout.segment_ms);
        let wide = batch.next - last.base > i64::from(i32::MAX);
        last.size > 0 && (full || old || wide)
    }

    fn write(&mut self, meta: BatchMeta, batch: &[u8], now_ms: i64) -> io::Result<()> {
        if self.wants_segment(meta, batch.len(), now_ms) {
            self.close_segment()?;
            self.begin_segment(meta.base)?;
        }
        let interval = self.layout.index_interval;
        match self.segments.last_mut() {
            Some(segment) => segment.append(meta, batch, interval, now_ms),
            None => Ok(()),
        }
    }

    /// The last segment is not written to any more: its index is stored, and it is made durable before the next one has a
    /// name, whatever the policy: after an outage there is never a later segment behind one that lost its end.
    fn close_segment(&mut self) -> io::Result<()> {
        let Some(last) = self.segments.last_mut() else { return Ok(()) };
        last.store_index(&*self.disk, &self.dir)?;
        last.sync().inspect_err(|_| self.durability.broken = true)
    }

    /// A segment that is nearly full is synced beforehand, beside the lock, so that little is left to do when it is closed.
    fn sync_beforehand(&mut self) {
        let Some(last) = self.segments.last() else { return };
        let (nearly, step) = (self.layout.segment_bytes / 8 * 7, self.layout.segment_bytes / 64);
        if last.size >= nearly && last.size >= self.synced_beforehand.saturating_add(step) {
            self.synced_beforehand = last.size;
            self.durability.wanted = true;
        }
    }

    /// The work of making durable what there is: all of it, or only where the log begins.
    fn flushing(&self, whole: bool) -> io::Result<Flushing> {
        let mut files = Vec::new();
        if whole {
            let unsynced = self.segments.iter().filter(|segment| !segment.is_synced());
            files.extend(unsynced.map(|segment| (segment.handle(), segment.changes())));
            if let Some((file, _)) = self.identity.as_ref().filter(|_| self.durability.identity) {
                files.push((self.disk.open(&self.path(file))?, 0));
            }
        }
        let names = whole && self.durability.names != self.durability.durable_names;
        Ok(Flushing {
            disk: self.disk.clone(),
            dir: self.dir.clone(),
            files,
            names: names.then_some(self.durability.names),
            start: self.durability.start,
            whole,
            next: self.next(),
            changes: self.durability.changes,
            records: self.durability.unflushed_records,
            began_ms: self.durability.unflushed_since.unwrap_or(0),
        })
    }

    fn broke(&mut self, error: &io::Error) -> ErrorCode {
        if !std::mem::replace(&mut self.durability.broken, true) {
            self.notes.say(format!(
                "cannot make what was written to {} durable: {error}; nothing is written there until the next start",
                self.disk.shown(&self.dir)
            ));
        }
        ErrorCode::KAFKA_STORAGE_ERROR
    }

    fn segment_at(&self, offset: i64) -> usize {
        self.segments.partition_point(|segment| segment.base <= offset).saturating_sub(1)
    }

    fn find(&self, offset: i64) -> io::Result<Option<(usize, u64)>> {
        let first = self.segment_at(offset);
        if let (Some((next, base, position)), Some(segment)) = (self.reading.get(), self.segments.get(first))
            && next == offset
            && base == segment.base
            && position < segment.size
        {
            return Ok(Some((first, position)));
        }
        for (at, segment) in self.segments.iter().enumerate().skip(first) {
            let had_index = segment.has_index();
            let position = segment.position_of(&*self.disk, &self.dir, offset)?;
            if !had_index {
                self.drop_other_indexes(at);
            }
            if let Some(position) = position {
                return Ok(Some((at, position)));
            }
        }
        Ok(None)
    }

    /// One index of a closed segment is kept in memory, besides that of the segment that is written to.
    fn drop_other_indexes(&self, kept: usize) {
        let closed = self.segments.len().saturating_sub(1);
        for (at, segment) in self.segments.iter().enumerate().take(closed) {
            if at != kept {
                segment.drop_index();
            }
        }
    }

    fn read_from(&self, offset: i64, max_bytes: usize, at_least_one: bool) -> io::Result<Bytes> {
        let Some((at, position)) = self.find(offset)? else { return Ok(Bytes::new()) };
        let Some(segment) = self.segments.get(at) else { return Ok(Bytes::new()) };
        let bytes = segment.read(position, max_bytes, at_least_one)?;
        if let Some(next) = segment::last_next(&bytes) {
            self.reading.set(Some((next, segment.base, position + bytes.len() as u64)));
        }
        Ok(bytes)
    }

    fn time_from(&self, from: i64, timestamp: i64) -> io::Result<Option<Bytes>> {
        let first = self.segment_at(from);
        for segment in self.segments.iter().skip(first).filter(|segment| segment.max_timestamp >= timestamp) {
            if let Some(batch) = segment.batch_at_time(&*self.disk, &self.dir, from, timestamp)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn largest_from(&self, from: i64) -> io::Result<Option<Bytes>> {
        let mut largest = -1;
        for segment in self.segments.iter().skip(self.segment_at(from)) {
            largest = largest.max(segment.largest_time_from(&*self.disk, &self.dir, from)?);
        }
        self.time_from(from, largest)
    }

    /// Removes a segment with what belongs to it. The file itself goes last: without it nothing would look for the rest.
    fn remove(&self, base: i64) -> io::Result<()> {
        self.remove_indexes(base)?;
        self.disk.remove_file(&self.path(&name(base, "log")))
    }

    fn remove_indexes(&self, base: i64) -> io::Result<()> {
        self.disk.remove_file(&self.path(&name(base, "index")))?;
        self.disk.remove_file(&self.path(&name(base, "timeindex")))
    }

    /// A segment is no part of the log any more. Removing a large file takes its time: that is left to others.
    fn condemn(&mut self, base: i64) -> io::Result<()> {
        self.remove_indexes(base)?;
        let path = self.path(&name(base, "log"));
        let aside = condemned(&path);
        self.disk.rename(&path, &aside)?;
        self.rubbish.push(aside);
        self.durability.names += 1;
        Ok(())
    }

    fn drop_segments(&mut self, count: usize) {
        let gone: Vec<Segment> = self.segments.drain(..count).collect();
        for segment in gone {
            if let Err(error) = self.condemn(segment.base) {
                self.failed("remove old records from", &error);
            }
        }
    }

    fn cut(&mut self, offset: i64) -> io::Result<()> {
        self.touched = true;
        while self.segments.len() > 1 && self.segments.last().is_some_and(|last| last.base >= offset) {
            if let Some(gone) = self.segments.pop() {
                self.remove(gone.base)?;
            }
        }
        self.reading.set(None);
        let (disk, interval) = (self.disk.clone(), self.layout.index_interval);
        let Some(last) = self.segments.last_mut() else { return Ok(()) };
        if let Some(position) = last.position_of(&*disk, &self.dir, offset)? {
            last.cut(position)?;
        }
        last.scan(Checksum::Ignore, interval)?;
        Ok(())
    }

    /// Closed segments in groups that fit into one segment each.
    fn groups(&self) -> VecDeque<Group> {
        let mut groups: VecDeque<Group> = VecDeque::new();
        let mut total = 0;
        for (segment, behind) in self.segments.iter().zip(self.segments.iter().skip(1)) {
            let part = Part { file: segment.handle(), size: segment.size };
            match groups.back_mut().filter(|_| total + segment.size <= self.layout.segment_bytes) {
                Some(group) => {
                    group.parts.push(part);
                    (group.next, group.end, total) = (segment.next, behind.base, total + segment.size);
                }
                None => {
                    total = segment.size;
                    let (base, next, end) = (segment.base, segment.next, behind.base);
                    groups.push_back(Group { base, next, end, parts: vec![part] });
                }
            }
        }
        groups
    }

    /// Where the segments of a group are, if they are what they were.
    fn place_of(&self, group: &Group) -> Option<std::ops::Range<usize>> {
        let first = self.segments.iter().position(|segment| segment.base == group.base)?;
        let range = first..first + group.parts.len();
        let same = |(segment, part): (&Segment, &Part)| {
            Arc::ptr_eq(&segment.handle(), &part.file) && segment.size == part.size
        };
        let here = self.segments.get(range.clone())?;
        let whole = range.end < self.segments.len() && here.iter().zip(&group.parts).all(same);
        whole.then_some(range)
    }

    fn try_swap(&mut self, place: std::ops::Range<usize>, group: &Group, fresh: Segment) -> io::Result<()> {
        let (base, swap) = (group.base, self.path(&swap_name(group.base, group.end)));
        self.disk.rename(&self.path(&name(base, "cleaned")), &swap)?;
        let old: Vec<i64> =
            self.segments.get(place.clone()).unwrap_or_default().iter().map(|old| old.base).collect();
        old.into_iter().try_for_each(|base| self.condemn(base))?;
        let path = self.path(&name(base, "log"));
        self.disk.rename(&swap, &path)?;
        let fresh = fresh.moved(self.disk.open(&path)?);
        fresh.store_index(&*self.disk, &self.dir)?;
        self.segments.splice(place, [fresh]);
        self.durability.names += 1;
        self.reading.set(None);
        self.drop_other_indexes(usize::MAX);
        Ok(())
    }
}

impl Storage for OnDisk {
    fn append(&mut self, meta: BatchMeta, batch: Bytes, records: u32, now_ms: i64) -> Result<(), ErrorCode> {
        if let Err(error) = self.write(meta, &batch, now_ms) {
            // A full disk is said once, not with every record that does not fit.
            if !std::mem::replace(&mut self.full, true) {
                self.failed("write to", &error);
            }
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        (self.full, self.touched) = (false, true);
        self.durability.wrote(records, meta.next, now_ms, &self.layout);
        self.sync_beforehand();
        Ok(())
    }

    fn read(&self, offset: i64, max_bytes: usize, at_least_one: bool) -> Result<Bytes, ErrorCode> {
        self.read_from(offset, max_bytes, at_least_one).map_err(|error| self.failed("read", &error))
    }

    fn batch_at_time(&self, from: i64, timestamp: i64) -> Result<Option<Bytes>, ErrorCode> {
        self.time_from(from, timestamp).map_err(|error| self.failed("read", &error))
    }

    fn batch_of_largest_time(&self, from: i64) -> Result<Option<Bytes>, ErrorCode> {
        self.largest_from(from).map_err(|error| self.failed("read", &error))
    }

    fn forget_before(&mut self, offset: i64) {
        let behind = |at: usize| self.segments.get(at + 1).is_some_and(|next| next.base <= offset);
        let count = (0..self.segments.len()).take_while(|at| behind(*at)).count();
        self.drop_segments(count);
    }

    fn cut_from(&mut self, offset: i64) -> Option<i64> {
        if let Err(error) = self.cut(offset) {
            self.durability.broken = true;
            self.failed("cut", &error);
        }
        self.durability.cut(offset);
        self.segments.last().map(|segment| segment.next)
    }

    fn start_within(&self, bytes: Option<u64>, oldest: Option<i64>) -> Option<i64> {
        let mut size = self.size();
        let mut start = None;
        for segment in self.segments.iter().filter(|segment| segment.size > 0) {
            let too_large = bytes.is_some_and(|most| size.saturating_sub(segment.size) >= most);
            let too_old =
                oldest.is_some_and(|time| segment.max_timestamp >= 0 && segment.max_timestamp < time);
            if !too_large && !too_old {
                break;
            }
            size -= segment.size;
            start = Some(segment.next);
        }
        start
    }

    fn roll(&mut self) -> Result<(), ErrorCode> {
        if self.durability.broken {
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        let Some(next) = self.segments.last().filter(|last| last.size > 0).map(|last| last.next) else {
            return Ok(());
        };
        self.touched = true;
        let rolled = self.close_segment().and_then(|()| self.begin_segment(next));
        rolled.map_err(|error| self.failed("begin a segment in", &error))
    }

    fn take_rolled(&mut self) -> bool {
        std::mem::take(&mut self.rolled)
    }

    fn sources(&mut self) -> Option<Sources> {
        let groups = self.groups();
        self.touched |= !groups.is_empty();
        let (disk, dir) = (self.disk.clone(), self.dir.clone());
        Some(Sources { disk, dir, interval: self.layout.index_interval, groups })
    }

    fn swap(&mut self, group: &Group, fresh: Segment) -> Result<(), ErrorCode> {
        let Some(place) = self.place_of(group) else {
            // What it was made from went away meanwhile. A file that stays is removed at the next start.
            let _ = self.disk.remove_file(&self.path(&name(group.base, "cleaned")));
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        };
        self.try_swap(place, group, fresh).map_err(|error| {
            // Half of it may be done: the next start does the rest.
            self.durability.broken = true;
            self.failed("compact", &error)
        })
    }

    fn say_not_compacted(&self, error: &io::Error) {
        self.failed("compact", error);
    }

    fn take_rubbish(&mut self) -> Vec<String> {
        std::mem::take(&mut self.rubbish)
    }

    fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    fn configure(&mut self, layout: Layout) {
        self.layout = layout;
    }

    fn begin_flush(&mut self) -> Option<Flushing> {
        if self.durability.broken {
            return None;
        }
        let wanted = std::mem::take(&mut self.durability.wanted) || !self.layout.flush.is_never();
        let whole = self.durability.is_dirty() && wanted;
        if !whole && self.durability.start.is_none() {
            return None;
        }
        match self.flushing(whole) {
            Ok(flushing) => Some(flushing),
            Err(error) => {
                self.broke(&error);
                None
            }
        }
    }

    fn end_flush(&mut self, flushing: &Flushing, result: io::Result<()>) -> Result<(), ErrorCode> {
        result.map_err(|error| self.broke(&error))?;
        self.durability.done(flushing);
        for (file, changes) in &flushing.files {
            self.segments.iter_mut().for_each(|segment| segment.synced(file, *changes));
        }
        self.durability.identity &= !flushing.whole;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ErrorCode> {
        if !self.durability.is_dirty() && self.durability.start.is_none() {
            return Ok(());
        }
        if self.durability.broken {
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        let flushing = self.flushing(true).map_err(|error| self.broke(&error))?;
        let result = flushing.run();
        self.end_flush(&flushing, result)
    }

    fn wants_sync(&self) -> bool {
        self.durability.wanted
    }

    fn flush_is_due(&self, now_ms: i64) -> bool {
        self.durability.is_due(now_ms, &self.layout)
    }

    fn pending(&self) -> Option<u64> {
        self.durability.pending(&self.layout)
    }

    fn durable(&self) -> u64 {
        self.durability.durable
    }

    fn is_broken(&self) -> bool {
        self.durability.broken
    }

    fn visible(&self) -> Option<i64> {
        Some(self.durability.visible)
    }

    fn flushed(&self) -> Option<i64> {
        Some(self.durability.flushed)
    }

    fn keep_state(&mut self, offset: i64, state: &str) -> Result<(), ErrorCode> {
        if !self.made || self.state == Some(offset) {
            return Ok(());
        }
        let path = self.path(&name(offset, "state"));
        replace(&*self.disk, &path, state.as_bytes(), false)
            .map_err(|error| self.failed("write to", &error))?;
        let older = self.state.replace(offset);
        if let Some(older) = older.filter(|older| *older != offset) {
            // Should it stay, nobody minds: the newest one counts.
            let _ = self.disk.remove_file(&self.path(&name(older, "state")));
        }
        Ok(())
    }

    fn keep_start(&mut self, start: i64) -> Option<u64> {
        if !self.made || self.durability.broken {
            return None;
        }
        self.durability.start = Some(start);
        self.durability.changes += 1;
        Some(self.durability.changes)
    }

    fn close(&mut self, offset: i64, state: &str) -> Result<(), ErrorCode> {
        if !self.touched {
            return Ok(());
        }
        self.flush()?;
        let path = self.path(&name(offset, "state"));
        let stored = match self.segments.last() {
            Some(last) => last.store_index(&*self.disk, &self.dir),
            None => Ok(()),
        };
        let stored = stored.and_then(|()| replace(&*self.disk, &path, state.as_bytes(), true));
        stored.map_err(|error| self.failed("write to", &error))?;
        self.touched = false;
        Ok(())
    }
}

/// The file that says where the log begins, where that is within a segment.
pub(super) const START_FILE: &str = "log-start-offset";
