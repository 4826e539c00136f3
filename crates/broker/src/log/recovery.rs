//! Opening a log that is on the disk: what was left half done is finished or undone, and after an unclean end the log is
//! cut back to its last whole batch.
//!
//! Nothing goes silently: every cut is said with file and position, and what is set aside keeps its bytes under another
//! name. After a clean end nothing has to be read but the end of the last segment. Mirrors `LogLoader`.

use super::compaction::finish_swap;
use super::index::Index;
use super::layout::{Layout, Notes};
use super::ondisk::{OnDisk, START_FILE};
use super::segment::{Segment, base_of, name};
use crate::disk::{Disk, Entry};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use tontine_wire::records::{Checksum, RecordBatch};

/// How the last run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastEnd {
    /// Everything was closed.
    Clean,
    /// It was killed, or the machine was: everything from this offset on is looked at.
    Unclean {
        /// The offset below which everything was durable.
        flushed: i64,
    },
}

/// What to do with a damaged batch that is not the last thing in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Cut the log there, and set aside what is behind.
    CutBack,
    /// Refuse, unless it was never durable: batches behind it tell up to where the log was ([`DURABLE`]) when they were
    /// written.
    Refuse,
}

/// The header of a record that says up to which offset the log was durable when it was written.
pub(crate) const DURABLE: &str = "durable";

/// Whether a batch that lies behind this offset says that what is there was durable. One that says nothing was written
/// when everything before it was.
fn tells_durable(batch: &RecordBatch, offset: i64) -> bool {
    let Ok(records) = batch.records() else { return true };
    let Some(Ok(first)) = records.iter().next() else { return true };
    let told = first
        .headers()
        .find(|header| header.key() == DURABLE)
        .and_then(|header| std::str::from_utf8(header.value()?).ok()?.parse::<i64>().ok());
    told.is_none_or(|told| told > offset)
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The disk does not do what it is asked.
    #[error("cannot read {path}: {source}")]
    Io {
        /// What was read.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// What is there cannot be what was written.
    #[error("{path} is damaged at byte {position}: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// Where.
        position: u64,
        /// What is wrong.
        why: String,
    },
}

/// A log as it was found.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The log.
    pub(crate) storage: OnDisk,
    /// The first offset.
    pub(crate) start: i64,
    /// The offset behind the last record.
    pub(crate) end: i64,
    /// What was noted of producers and epochs, and up to which offset; none when there is nothing to go by.
    pub(crate) state: Option<(i64, String)>,
}

struct Opening<'a> {
    disk: &'a Arc<dyn Disk>,
    dir: &'a str,
    layout: Layout,
    notes: &'a Notes,
    damage: Damage,
}

/// Opens the log in a directory.
pub(crate) fn open(
    disk: &Arc<dyn Disk>,
    dir: &str,
    layout: Layout,
    notes: &Notes,
    last_end: LastEnd,
    damage: Damage,
) -> Result<Opened, OpenError> {
    let opening = Opening { disk, dir, layout, notes, damage };
    opening.open(last_end)
}

impl Opening<'_> {
    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.dir)
    }

    fn io<T>(&self, file: &str, result: io::Result<T>) -> Result<T, OpenError> {
        result.map_err(|source| OpenError::Io { path: self.disk.shown(&self.path(file)), source })
    }

    fn list(&self) -> Result<Vec<Entry>, OpenError> {
        self.io("", self.disk.list(self.dir))
    }

    fn open(&self, last_end: LastEnd) -> Result<Opened, OpenError> {
        let entries = self.finish_what_was_begun(self.list()?)?;
        let found: Vec<(i64, u64)> =
            entries.iter().filter_map(|entry| Some((base_of(&entry.name, "log")?, entry.len))).collect();
        let mut segments = Vec::with_capacity(found.len());
        for (at, (base, size)) in found.iter().enumerate() {
            let file = self.io(&name(*base, "log"), self.disk.open(&self.path(&name(*base, "log"))))?;
            let mut segment = Segment::over(file, *base, *size);
            let behind = found.get(at + 1).map(|(base, _)| *base);
            let sound = match (last_end, behind) {
                (LastEnd::Unclean { flushed }, None) => self.check(&mut segment, flushed)?,
                (LastEnd::Unclean { flushed }, Some(next)) if next > flushed => {
                    let sound = self.check(&mut segment, flushed)?;
                    self.io(&name(*base, "log"), segment.store_index(&**self.disk, self.dir))?;
                    segment.drop_index();
                    sound
                }
                (_, Some(next)) => self.take_closed(&mut segment, next)?,
                (LastEnd::Clean, None) => self.take_last(&mut segment)?,
            };
            // Nothing is missing when the next segment begins where this one was cut.
            let goes_on = sound || behind == Some(segment.next);
            segments.push(segment);
            if !goes_on {
                self.set_aside(found.get(at + 1..).unwrap_or_default())?;
                break;
            }
        }
        let start = self.start(&segments)?;
        let end = segments.last().map_or(0, |last| last.next).max(start);
        self.opened(&entries, segments, start, end, last_end)
    }

    fn opened(
        &self,
        entries: &[Entry],
        segments: Vec<Segment>,
        start: i64,
        end: i64,
        last_end: LastEnd,
    ) -> Result<Opened, OpenError> {
        let flushed = match last_end {
            LastEnd::Clean => end,
            LastEnd::Unclean { flushed } => flushed.min(end),
        };
        // What is noted may be ahead of records that were lost: it counts as far as those were durable.
        let state = self.state(entries, flushed)?;
        let mut storage =
            OnDisk::new(self.disk.clone(), self.dir.to_owned(), self.layout, self.notes.clone());
        let clean = last_end == LastEnd::Clean && state.as_ref().is_some_and(|(offset, _)| *offset == end);
        storage.opened(segments, flushed, state.as_ref().map(|(offset, _)| *offset), clean);
        storage.is_made(!entries.is_empty());
        Ok(Opened { storage, start, end, state })
    }

    /// A compaction that was not done is undone, one that was decided is finished; half-written small files go.
    fn finish_what_was_begun(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, OpenError> {
        let mut changed = false;
        for entry in &entries {
            let half_done = [".tmp", ".deleted"].iter().any(|suffix| entry.name.ends_with(suffix));
            if base_of(&entry.name, "cleaned").is_some() || half_done {
                self.io(&entry.name, self.disk.remove_file(&self.path(&entry.name)))?;
                changed = true;
            }
            if let Some((base, end)) = swap_of(&entry.name) {
                self.io(&entry.name, finish_swap(&**self.disk, self.dir, base, end, &entry.name))?;
                changed = true;
            }
        }
        if changed { self.list() } else { Ok(entries) }
    }

    /// A segment that was closed long ago: its index tells what there is to know.
    fn take_closed(&self, segment: &mut Segment, next: i64) -> Result<bool, OpenError> {
        let file = name(segment.base, "log");
        let times = self.io(&file, self.disk.read(&self.path(&name(segment.base, "timeindex"))))?;
        match times.as_deref().and_then(Index::largest_time) {
            Some(largest) => segment.max_timestamp = largest,
            None if segment.size == 0 => {}
            None => {
                self.io(&file, segment.scan(Checksum::Ignore, self.layout.index_interval))?;
                self.io(&file, segment.store_index(&**self.disk, self.dir))?;
                segment.drop_index();
            }
        }
        segment.next = next;
        Ok(true)
    }

    /// The segment that was written to last, after a clean end.
    fn take_last(&self, segment: &mut Segment) -> Result<bool, OpenError> {
        let file = name(segment.base, "log");
        let interval = self.layout.index_interval;
        let stored = self.io(&file, segment.stored_index(&**self.disk, self.dir))?;
        let walk = match stored {
            Some((index, largest)) => segment.trust(index, largest, interval),
            None => segment.scan(Checksum::Verify, interval),
        };
        let walk = self.io(&file, walk)?;
        match walk.damage {
            None => Ok(true),
            Some(why) => Err(self.damaged(&file, walk.end, why)),
        }
    }

    fn damaged(&self, file: &str, position: u64, why: String) -> OpenError {
        OpenError::Damaged { path: self.disk.shown(&self.path(file)), position, why }
    }

    /// A segment after an unclean end: read as a whole, and cut at the first thing that is no batch. Whether it was sound.
    fn check(&self, segment: &mut Segment, flushed: i64) -> Result<bool, OpenError> {
        let file = name(segment.base, "log");
        let walk = self.io(&file, segment.scan(Checksum::Verify, self.layout.index_interval))?;
        if segment.next > flushed {
            segment.doubt();
        }
        let Some(why) = walk.damage else { return Ok(true) };
        // What was durable once does not go away by itself.
        let was_durable = segment.next < flushed;
        let lost = segment.size - walk.end;
        let more = self.io(&file, self.batch_behind(segment, walk.end))?;
        if was_durable || (more && self.damage == Damage::Refuse) {
            return Err(self.damaged(&file, walk.end, why));
        }
        if more {
            self.keep_tail(segment, walk.end)?;
        }
        self.io(&file, segment.cut(walk.end))?;
        self.notes.say(format!(
            "{}: cut back to byte {}, offset {}: {lost} bytes behind are no whole batch ({why})",
            self.disk.shown(&self.path(&file)),
            walk.end,
            segment.next
        ));
        Ok(false)
    }

    /// Whether a whole batch lies behind a damaged one: then this is no torn end.
    fn batch_behind(&self, segment: &Segment, position: u64) -> io::Result<bool> {
        let mut head = [0; 12];
        if segment.file().read_at(position, &mut head)? < head.len() {
            return Ok(false);
        }
        let length = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
        let Ok(length) = u64::try_from(length) else { return Ok(false) };
        let behind = position + 12 + length;
        if length == 0 || behind >= segment.size {
            return Ok(false);
        }
        let mut found = false;
        super::segment::walk(segment.file(), behind, segment.size, Checksum::Verify, |_, batch| {
            found = self.damage == Damage::CutBack || tells_durable(&batch, segment.next);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    fn keep_tail(&self, segment: &Segment, position: u64) -> Result<(), OpenError> {
        let file = name(segment.base, "log");
        let kept = format!("{file}.cut-{position}");
        let copy = || {
            let mut bytes = vec![0; usize::try_from(segment.size - position).unwrap_or(0)];
            let count = segment.file().read_at(position, &mut bytes)?;
            bytes.truncate(count);
            let target = self.disk.open(&self.path(&kept))?;
            target.write_at(0, &bytes)?;
            target.sync()
        };
        self.io(&kept, copy())?;
        self.notes.say(format!("{}: what is cut off is kept here", self.disk.shown(&self.path(&kept))));
        Ok(())
    }

    /// Segments behind a cut: there must be no gap in a log.
    fn set_aside(&self, segments: &[(i64, u64)]) -> Result<(), OpenError> {
        for (base, size) in segments {
            let file = name(*base, "log");
            for index in ["index", "timeindex"] {
                let index = name(*base, index);
                self.io(&index, self.disk.remove_file(&self.path(&index)))?;
            }
            if *size == 0 {
                self.io(&file, self.disk.remove_file(&self.path(&file)))?;
                continue;
            }
            let aside = format!("{file}.cut");
            self.io(&file, self.disk.rename(&self.path(&file), &self.path(&aside)))?;
            self.notes.say(format!(
                "{}: set aside, because the log was cut before it",
                self.disk.shown(&self.path(&aside))
            ));
        }
        Ok(())
    }

    fn start(&self, segments: &[Segment]) -> Result<i64, OpenError> {
        let first = segments.first().map_or(0, |first| first.base);
        let last = segments.last().map_or(0, |last| last.next);
        let stored = self.io(START_FILE, self.disk.read(&self.path(START_FILE)))?;
        let stored =
            stored.and_then(|text| String::from_utf8(text).ok()).and_then(|text| text.trim().parse().ok());
        Ok(stored.unwrap_or(first).clamp(first, last.max(first)))
    }

    /// The newest state that is not ahead of this offset. Others go.
    fn state(&self, entries: &[Entry], end: i64) -> Result<Option<(i64, String)>, OpenError> {
        let mut offsets: Vec<i64> =
            entries.iter().filter_map(|entry| base_of(&entry.name, "state")).collect();
        offsets.sort_unstable_by(|a, b| b.cmp(a));
        let mut newest = None;
        for offset in offsets {
            let file = name(offset, "state");
            let bytes = self.io(&file, self.disk.read(&self.path(&file)))?;
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            match text.filter(|text| newest.is_none() && offset <= end && super::snapshot::is_whole(text)) {
                Some(text) => newest = Some((offset, text)),
                None => self.io(&file, self.disk.remove_file(&self.path(&file)))?,
            }
        }
        Ok(newest)
    }
}

fn swap_of(file: &str) -> Option<(i64, i64)> {
    let (base, end) = file.strip_suffix(".swap")?.split_once('-')?;
    Some((base.parse().ok()?, end.parse().ok()?))
}
