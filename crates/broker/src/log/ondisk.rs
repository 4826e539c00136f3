//! A log on disk: a directory of segments. Appends go to the last one; when it is full another one begins.
//!
//! What is durable when is [`Flush`]'s business: after every so many records, after some time, or whenever the operating
//! system sees fit. An error of a write changes nothing that readers see, and the next append may succeed. An error of a
//! sync ends the writing for good: nobody can say any more what is on the disk. Mirrors `LocalLog` and `LogSegments`.

use super::segment::{self, Segment, name};
use super::{BatchMeta, Storage};
use crate::disk::{Disk, replace};
use bytes::Bytes;
use std::cell::Cell;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tontine_wire::ErrorCode;
use tontine_wire::records::{Checksum, RecordBatch};

/// Sentences for the operator, collected where nothing may be printed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    /// Adds a sentence.
    pub(crate) fn say(&self, note: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note.into());
    }

    /// What was said since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When segments roll and when they are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The size of a segment.
    pub(crate) segment_bytes: u64,
    /// How long a segment is written to.
    pub(crate) segment_ms: i64,
    /// How many bytes lie between two entries of an index.
    pub(crate) index_interval: u64,
    /// What is synced when.
    pub(crate) flush: Flush,
}

/// When what was written is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flush {
    /// After this many records; `None`: never for their number.
    pub(crate) records: Option<u64>,
    /// When something has waited for this long; `None`: never for the time.
    pub(crate) millis: Option<u64>,
}

impl Flush {
    /// Before every answer.
    pub(crate) const ALWAYS: Self = Self { records: Some(1), millis: None };

    fn is_never(self) -> bool {
        self.records.is_none() && self.millis.is_none()
    }
}

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
    /// Whether the names in the directory are durable.
    names_synced: bool,
    /// Everything before is durable.
    flushed: i64,
    unflushed_records: u64,
    unflushed_since: Option<i64>,
    broken: bool,
    full: bool,
    /// Where the last reader stopped: offset, segment, position. The next one mostly goes on there.
    reading: Cell<Option<(i64, i64, u64)>>,
    state: Option<i64>,
    rolled: bool,
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
            names_synced: true,
            flushed: 0,
            unflushed_records: 0,
            unflushed_since: None,
            broken: false,
            full: false,
            reading: Cell::new(None),
            state: None,
            rolled: false,
            touched: false,
        }
    }

    /// Writes this file into the directory when it is made.
    pub(crate) fn with_identity(mut self, file: &str, text: String) -> Self {
        self.identity = Some((file.to_owned(), text));
        self
    }

    pub(super) fn opened(&mut self, segments: Vec<Segment>, flushed: i64, state: Option<i64>, clean: bool) {
        (self.segments, self.flushed, self.state) = (segments, flushed, state);
        if self.segments.iter().any(|segment| !segment.synced) {
            self.unflushed_since = Some(0);
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
            replace(&*self.disk, &self.path(file), text.as_bytes(), !self.layout.flush.is_never())?;
        }
        (self.made, self.names_synced) = (true, false);
        Ok(())
    }

    fn begin_segment(&mut self, base: i64) -> io::Result<()> {
        if !self.made {
            self.make()?;
        }
        let segment = Segment::create(&*self.disk, &self.dir, base)?;
        self.names_synced = false;
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

    /// The last segment is not written to any more: its index is stored, and with a policy it is made durable.
    fn close_segment(&mut self) -> io::Result<()> {
        let Some(last) = self.segments.last() else { return Ok(()) };
        last.store_index(&*self.disk, &self.dir)?;
        if !self.layout.flush.is_never() {
            self.sync()?;
        }
        Ok(())
    }

    /// Readers do not see the last batch: it was not acknowledged. Nothing is written behind it any more.
    fn retract(&mut self, before: u64, batch: u64) {
        if let Some(last) = self.segments.last_mut() {
            last.hide_from(if last.size == batch { 0 } else { before });
        }
    }

    /// Makes everything durable.
    fn sync(&mut self) -> io::Result<()> {
        let synced = self.try_sync();
        if synced.is_err() {
            self.broken = true;
        }
        synced
    }

    fn try_sync(&mut self) -> io::Result<()> {
        for segment in self.segments.iter_mut().filter(|segment| !segment.synced) {
            segment.sync()?;
        }
        if !self.names_synced {
            self.disk.sync_dir(&self.dir)?;
            self.disk.sync_dir("")?;
            self.names_synced = true;
        }
        (self.unflushed_records, self.unflushed_since) = (0, None);
        self.flushed = self.next();
        Ok(())
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
        for suffix in ["index", "timeindex", "log"] {
            self.disk.remove_file(&self.path(&name(base, suffix)))?;
        }
        Ok(())
    }

    fn drop_segments(&mut self, count: usize) {
        let gone: Vec<Segment> = self.segments.drain(..count).collect();
        for segment in gone {
            if let Err(error) = self.remove(segment.base) {
                self.failed("remove old records from", &error);
            }
        }
        self.names_synced = false;
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

    /// Rewrites neighbouring closed segments into one, with what `keep` leaves of their batches.
    fn rewrite_group(
        &mut self,
        group: std::ops::Range<usize>,
        keep: &mut dyn FnMut(RecordBatch) -> Option<(BatchMeta, Bytes)>,
    ) -> io::Result<()> {
        let (Some(first), Some(last)) = (self.segments.get(group.start), self.segments.get(group.end - 1))
        else {
            return Ok(());
        };
        let (base, next) = (first.base, last.next);
        let end = self.segments.get(group.end).map_or(next, |behind| behind.base);
        let path = self.path(&name(base, "cleaned"));
        self.disk.remove_file(&path)?;
        let mut fresh = Segment::over(self.disk.open(&path)?, base, 0);
        fresh.forget();
        for old in self.segments.get(group.clone()).unwrap_or_default() {
            let mut written = Ok(());
            let walk = segment::walk(old.file(), 0, old.size, Checksum::Verify, |_, batch| {
                if let Some((meta, bytes)) = keep(batch) {
                    written = fresh.append(meta, &bytes, self.layout.index_interval, 0);
                }
                match written {
                    Ok(()) => std::ops::ControlFlow::Continue(()),
                    Err(_) => std::ops::ControlFlow::Break(()),
                }
            })?;
            written?;
            if let Some(why) = walk.damage {
                return Err(segment::damaged(walk.end, &why));
            }
        }
        fresh.sync()?;
        let size = fresh.size;
        let swap = swap_name(base, end);
        self.disk.rename(&path, &self.path(&swap))?;
        self.disk.sync_dir(&self.dir)?;
        finish_swap(&*self.disk, &self.dir, base, end, &swap)?;
        let mut replaced = Segment::over(self.disk.open(&self.path(&name(base, "log")))?, base, size);
        replaced.scan(Checksum::Ignore, self.layout.index_interval)?;
        replaced.next = replaced.next.max(next);
        replaced.store_index(&*self.disk, &self.dir)?;
        self.segments.splice(group, [replaced]);
        self.reading.set(None);
        Ok(())
    }

    fn rewrite_closed(
        &mut self,
        keep: &mut dyn FnMut(RecordBatch) -> Option<(BatchMeta, Bytes)>,
    ) -> io::Result<()> {
        let mut start = 0;
        while start + 1 < self.segments.len() {
            let mut end = start + 1;
            let size = |at: usize| self.segments.get(at).map_or(0, |segment| segment.size);
            let mut total = size(start);
            while end + 1 < self.segments.len() && total + size(end) <= self.layout.segment_bytes {
                total += size(end);
                end += 1;
            }
            self.rewrite_group(start..end, keep)?;
            start += 1;
        }
        self.drop_other_indexes(usize::MAX);
        Ok(())
    }
}

/// The name of a compacted segment that takes the place of all segments between two offsets.
pub(super) fn swap_name(base: i64, end: i64) -> String {
    format!("{base:020}-{end:020}.swap")
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

impl Storage for OnDisk {
    fn append(&mut self, meta: BatchMeta, batch: Bytes, records: u32, now_ms: i64) -> Result<(), ErrorCode> {
        if self.broken {
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        let before = self.segments.last().map_or(0, |last| last.size);
        if let Err(error) = self.write(meta, &batch, now_ms) {
            // A full disk is said once, not with every record that does not fit.
            if !std::mem::replace(&mut self.full, true) {
                self.failed("write to", &error);
            }
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        (self.full, self.touched) = (false, true);
        self.unflushed_since.get_or_insert(now_ms);
        self.unflushed_records += u64::from(records);
        if self.layout.flush.records.is_some_and(|most| self.unflushed_records >= most)
            && let Err(code) = self.flush()
        {
            self.retract(before, batch.len() as u64);
            return Err(code);
        }
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
            self.broken = true;
            self.failed("cut", &error);
        }
        self.flushed = self.flushed.min(offset);
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
        if self.broken {
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

    fn rewrite(
        &mut self,
        keep: &mut dyn FnMut(RecordBatch) -> Option<(BatchMeta, Bytes)>,
    ) -> Result<(), ErrorCode> {
        self.touched = true;
        // What is rewritten must not be less durable than what it stands for.
        let done = self.sync().and_then(|()| self.rewrite_closed(keep));
        done.map_err(|error| self.failed("compact", &error))
    }

    fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    fn configure(&mut self, layout: Layout) {
        self.layout = layout;
    }

    fn flush(&mut self) -> Result<(), ErrorCode> {
        if self.unflushed_since.is_none() && self.names_synced {
            return Ok(());
        }
        if self.broken {
            return Err(ErrorCode::KAFKA_STORAGE_ERROR);
        }
        self.sync().map_err(|error| {
            self.notes.say(format!(
                "cannot make what was written to {} durable: {error}; nothing is written there until the next start",
                self.disk.shown(&self.dir)
            ));
            ErrorCode::KAFKA_STORAGE_ERROR
        })
    }

    fn flush_if_due(&mut self, now_ms: i64) {
        let due = |since: i64| {
            let waited = now_ms.saturating_sub(since);
            self.layout.flush.millis.is_some_and(|millis| waited >= i64::try_from(millis).unwrap_or(i64::MAX))
        };
        if !self.broken && self.unflushed_since.is_some_and(due) {
            // It says itself what went wrong; appends are refused from then on.
            let _ = self.flush();
        }
    }

    fn flushed(&self) -> Option<i64> {
        Some(self.flushed)
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

    fn keep_start(&mut self, start: i64) -> Result<(), ErrorCode> {
        if !self.made {
            return Ok(());
        }
        let path = self.path(START_FILE);
        let text = format!("{start}\n");
        // Deleted records do not come back, whatever the policy for those that are kept.
        replace(&*self.disk, &path, text.as_bytes(), true).map_err(|error| self.failed("write to", &error))
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
