//! One segment: a file of batches and the index that finds them. Mirrors `LogSegment`.

use super::BatchMeta;
use super::index::{Entry, Index};
use crate::disk::{Disk, DiskFile, replace};
use bytes::Bytes;
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use tontine_wire::records::{Checksum, RecordBatch};

/// How much is read at once when a segment is walked.
const CHUNK: usize = 256 << 10;
/// The bytes before the length of a batch, and those of the length: what a batch's length does not count.
const UNCOUNTED: usize = 12;
/// The shortest piece that tells a batch's offsets: offset, length, epoch, magic, checksum, attributes, last offset.
const SHORTEST: usize = 27;

/// The name of a segment's file.
pub(super) fn name(base: i64, suffix: &str) -> String {
    format!("{base:020}.{suffix}")
}

/// The base offset in the name of a file, when it has this suffix.
pub(super) fn base_of(file: &str, suffix: &str) -> Option<i64> {
    let digits = file.strip_suffix(suffix)?.strip_suffix('.')?;
    let right = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if right { digits.parse().ok() } else { None }
}

/// Where a walk over a segment ended.
#[derive(Debug)]
pub(super) struct Walk {
    /// The position behind the last whole batch.
    pub(super) end: u64,
    /// Why it did not get to the end.
    pub(super) damage: Option<String>,
}

/// Calls `each` with every whole batch between two positions, until it says stop.
pub(super) fn walk(
    file: &dyn DiskFile,
    from: u64,
    to: u64,
    checksum: Checksum,
    mut each: impl FnMut(u64, RecordBatch) -> ControlFlow<()>,
) -> io::Result<Walk> {
    let (mut position, mut wanted) = (from, CHUNK);
    while position < to {
        let len = usize::try_from(to - position).unwrap_or(usize::MAX).min(wanted);
        let mut buffer = vec![0; len];
        let count = file.read_at(position, &mut buffer)?;
        buffer.truncate(count);
        let mut buffer = Bytes::from(buffer);
        let before = position;
        loop {
            match RecordBatch::parse_with(&mut buffer, checksum) {
                Ok(Some(batch)) => {
                    let at = position;
                    position += batch.size() as u64;
                    if each(at, batch).is_break() {
                        return Ok(Walk { end: position, damage: None });
                    }
                }
                Ok(None) => break,
                Err(error) => return Ok(Walk { end: position, damage: Some(error.to_string()) }),
            }
        }
        if position == before {
            match longer(&buffer, to - position).filter(|longer| *longer > len) {
                Some(longer) => wanted = longer,
                None => return Ok(Walk { end: position, damage: Some("the batch ends too early".into()) }),
            }
        }
    }
    Ok(Walk { end: position, damage: None })
}

/// How much to read so that the batch at the front is whole; `None` when there is not as much.
fn longer(front: &[u8], available: u64) -> Option<usize> {
    let length = i32::from_be_bytes(*front.get(8..)?.first_chunk()?);
    let size = usize::try_from(length).ok()?.checked_add(UNCOUNTED)?;
    (size as u64 <= available).then_some(size)
}

/// A segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The first offset that can lie in it.
    pub(super) base: i64,
    /// How many bytes it has.
    pub(super) size: u64,
    /// The offset behind it.
    pub(super) next: i64,
    /// The largest timestamp in it; -1 when it is empty.
    pub(super) max_timestamp: i64,
    /// The broker's clock when its first batch came; `None` when it is empty.
    pub(super) began_ms: Option<i64>,
    /// How often it was written to, and how many of these changes are durable.
    changes: u64,
    durable: u64,
    file: Arc<dyn DiskFile>,
    /// `None` until somebody looks for something in a segment that was closed in an earlier run.
    index: RefCell<Option<Index>>,
    unindexed: u64,
}

impl Segment {
    /// A segment without batches.
    pub(super) fn create(disk: &dyn Disk, dir: &str, base: i64) -> io::Result<Self> {
        let file = disk.open(&format!("{dir}/{}", name(base, "log")))?;
        let mut segment = Self::over(file, base, 0);
        segment.index = RefCell::new(Some(Index::default()));
        Ok(segment)
    }

    /// The segment of a file that is there; what is in it has still to be told.
    pub(super) fn over(file: Arc<dyn DiskFile>, base: i64, size: u64) -> Self {
        Self {
            base,
            size,
            next: base,
            max_timestamp: -1,
            began_ms: None,
            changes: 0,
            durable: 0,
            file,
            index: RefCell::new(None),
            unindexed: 0,
        }
    }

    pub(super) fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    pub(super) fn handle(&self) -> Arc<dyn DiskFile> {
        self.file.clone()
    }

    /// The same segment under another name.
    pub(super) fn moved(self, file: Arc<dyn DiskFile>) -> Self {
        Self { file, ..self }
    }

    /// How often it was written to.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether everything in it is durable.
    pub(super) fn is_synced(&self) -> bool {
        self.changes == self.durable
    }

    /// It is not known to be durable.
    pub(super) fn doubt(&mut self) {
        self.changes += 1;
    }

    /// A file was synced that had been written to so often.
    pub(super) fn synced(&mut self, file: &Arc<dyn DiskFile>, changes: u64) {
        if Arc::ptr_eq(&self.file, file) {
            self.durable = self.durable.max(changes);
        }
    }

    fn delta(&self, offset: i64) -> u32 {
        u32::try_from(offset - self.base).unwrap_or(if offset < self.base { 0 } else { u32::MAX })
    }

    /// Writes a batch behind the others. After an error nothing has changed as far as readers can see.
    pub(super) fn append(
        &mut self,
        meta: BatchMeta,
        batch: &[u8],
        interval: u64,
        now_ms: i64,
    ) -> io::Result<()> {
        if let Err(error) = self.file.write_at(self.size, batch) {
            // What got through is not part of the log. Should the cut fail as well, the next write covers it. The cut must
            // be durable before a later segment is: what lies behind a torn end does not count.
            let _ = self.file.set_len(self.size);
            self.changes += 1;
            return Err(error);
        }
        self.changes += 1;
        self.began_ms.get_or_insert(now_ms);
        self.note(meta, self.size, batch.len() as u64, interval);
        self.size += batch.len() as u64;
        Ok(())
    }

    /// Takes in that a batch lies at this position.
    pub(super) fn note(&mut self, meta: BatchMeta, position: u64, size: u64, interval: u64) {
        self.max_timestamp = self.max_timestamp.max(meta.max_timestamp);
        self.next = meta.next;
        self.unindexed += size;
        if self.unindexed > interval && position > 0 {
            self.unindexed = 0;
            let (delta, max_timestamp) = (self.delta(meta.next - 1), self.max_timestamp);
            if let (Some(index), Ok(position)) = (self.index.get_mut(), u32::try_from(position)) {
                index.push(Entry { delta, position, max_timestamp });
            }
        }
    }

    /// Begins anew with telling what is in the file.
    pub(super) fn forget(&mut self) {
        (self.next, self.max_timestamp, self.unindexed) = (self.base, -1, 0);
        self.index = RefCell::new(Some(Index::default()));
    }

    /// Walks over the whole file and takes in what is there.
    pub(super) fn scan(&mut self, checksum: Checksum, interval: u64) -> io::Result<Walk> {
        self.forget();
        let file = self.file.clone();
        let mut least = self.base;
        let mut disorder = None;
        let mut walk = walk(&*file, 0, self.size, checksum, |position, batch| {
            if batch.base_offset() < least {
                disorder = Some((position, batch.base_offset()));
                return ControlFlow::Break(());
            }
            least = batch.next_offset();
            self.note(meta_of(&batch), position, batch.size() as u64, interval);
            ControlFlow::Continue(())
        })?;
        if let Some((position, offset)) = disorder {
            walk.end = position;
            walk.damage = Some(format!("offset {offset} comes behind offset {}", least - 1));
        }
        Ok(walk)
    }

    /// Walks on from the last entry of the index that was stored with the segment.
    pub(super) fn trust(&mut self, index: Index, max_timestamp: i64, interval: u64) -> io::Result<Walk> {
        let from = index.last().map_or(0, |entry| u64::from(entry.position));
        self.forget();
        self.index = RefCell::new(Some(index));
        self.max_timestamp = max_timestamp;
        let file = self.file.clone();
        // The entry for the first batch is there already: no second one is wanted.
        let mut first = from > 0;
        walk(&*file, from, self.size, Checksum::Ignore, |position, batch| {
            let size = if std::mem::take(&mut first) { 0 } else { batch.size() as u64 };
            self.note(meta_of(&batch), position, size, interval);
            ControlFlow::Continue(())
        })
    }

    fn with_index<R>(&self, disk: &dyn Disk, dir: &str, look: impl FnOnce(&Index) -> R) -> io::Result<R> {
        if let Some(index) = &*self.index.borrow() {
            return Ok(look(index));
        }
        let stored = self.stored_index(disk, dir)?;
        let index = match stored {
            Some((index, _)) => index,
            None => self.rebuilt(Checksum::Ignore)?,
        };
        let found = look(&index);
        *self.index.borrow_mut() = Some(index);
        Ok(found)
    }

    fn rebuilt(&self, checksum: Checksum) -> io::Result<Index> {
        let mut fresh = Self::over(self.file.clone(), self.base, self.size);
        fresh.scan(checksum, 4096)?;
        Ok(fresh.index.into_inner().unwrap_or_default())
    }

    /// Whether the index is in memory.
    pub(super) fn has_index(&self) -> bool {
        self.index.borrow().is_some()
    }

    /// Drops an index that is stored.
    pub(super) fn drop_index(&self) {
        self.index.borrow_mut().take();
    }

    /// The index that was stored with the segment, and the segment's largest timestamp.
    pub(super) fn stored_index(&self, disk: &dyn Disk, dir: &str) -> io::Result<Option<(Index, i64)>> {
        let offsets = disk.read(&format!("{dir}/{}", name(self.base, "index")))?;
        let times = disk.read(&format!("{dir}/{}", name(self.base, "timeindex")))?;
        let (Some(offsets), Some(times)) = (offsets, times) else { return Ok(None) };
        let index = Index::decode(&offsets, &times, self.size);
        Ok(index.zip(Index::largest_time(&times)))
    }

    /// Stores the index beside the segment.
    pub(super) fn store_index(&self, disk: &dyn Disk, dir: &str) -> io::Result<()> {
        let last = self.delta(self.next - 1);
        let (offsets, times) = match &*self.index.borrow() {
            Some(index) => index.encode(self.max_timestamp, last),
            None => return Ok(()),
        };
        replace(disk, &format!("{dir}/{}", name(self.base, "index")), &offsets, false)?;
        replace(disk, &format!("{dir}/{}", name(self.base, "timeindex")), &times, false)
    }

    /// The position of the batch that holds `offset`, or of the first one behind it.
    pub(super) fn position_of(&self, disk: &dyn Disk, dir: &str, offset: i64) -> io::Result<Option<u64>> {
        let from = self.with_index(disk, dir, |index| index.position_of(self.delta(offset)))?;
        let mut found = None;
        let walk = heads(&*self.file, from, self.size, |position, head| {
            if head.next > offset {
                found = Some(position);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        if let (None, Some(why)) = (found, walk.damage) {
            return Err(damaged(walk.end, &why));
        }
        Ok(found)
    }

    /// Whole batches from a position on, and the offset behind them.
    pub(super) fn read(&self, position: u64, max_bytes: usize, at_least_one: bool) -> io::Result<Bytes> {
        let available = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let mut bytes = self.bytes(position, max_bytes.min(available))?;
        let mut end = whole(&bytes);
        if end == 0 && at_least_one && available > 0 {
            let mut head = [0; SHORTEST];
            self.file.read_at(position, &mut head)?;
            let size =
                longer(&head, available as u64).ok_or_else(|| damaged(position, "its length is wrong"))?;
            bytes = self.bytes(position, size)?;
            end = size;
        }
        bytes.truncate(end);
        Ok(bytes)
    }

    fn bytes(&self, position: u64, len: usize) -> io::Result<Bytes> {
        let bytes = self.file.read_bytes(position, len)?;
        if bytes.len() < len {
            return Err(damaged(position, "the file is shorter than it was"));
        }
        Ok(bytes)
    }

    /// The first batch that ends behind `from` and has this timestamp or a later one.
    pub(super) fn batch_at_time(
        &self,
        disk: &dyn Disk,
        dir: &str,
        from: i64,
        timestamp: i64,
    ) -> io::Result<Option<Bytes>> {
        let start = self.with_index(disk, dir, |index| {
            index.position_of_time(timestamp).max(index.position_of(self.delta(from)))
        })?;
        let mut found = None;
        walk(&*self.file, start, self.size, Checksum::Ignore, |_, batch| {
            if batch.next_offset() > from && batch.max_timestamp() >= timestamp {
                found = Some(batch.into_bytes());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The largest timestamp of the batches that end behind `from`.
    pub(super) fn largest_time_from(&self, disk: &dyn Disk, dir: &str, from: i64) -> io::Result<i64> {
        if from <= self.base {
            return Ok(self.max_timestamp);
        }
        let start = self.with_index(disk, dir, |index| index.position_of(self.delta(from)))?;
        let mut largest = -1;
        walk(&*self.file, start, self.size, Checksum::Ignore, |_, batch| {
            if batch.next_offset() > from {
                largest = largest.max(batch.max_timestamp());
            }
            ControlFlow::Continue(())
        })?;
        Ok(largest)
    }

    /// Cuts the file off at a position; what is before was told again by a scan.
    pub(super) fn cut(&mut self, position: u64) -> io::Result<()> {
        self.file.set_len(position)?;
        self.size = position;
        self.changes += 1;
        if let Some(index) = self.index.get_mut() {
            index.cut(position);
        }
        Ok(())
    }

    /// Makes everything in it durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced() {
            self.file.sync()?;
            self.durable = self.changes;
        }
        Ok(())
    }
}

pub(super) fn meta_of(batch: &RecordBatch) -> BatchMeta {
    BatchMeta { base: batch.base_offset(), next: batch.next_offset(), max_timestamp: batch.max_timestamp() }
}

/// A file that does not hold what it should.
pub(super) fn damaged(position: u64, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("damaged at byte {position}: {why}"))
}

/// What a walk over the headers alone tells of a batch.
struct Head {
    next: i64,
    size: usize,
}

fn head(bytes: &[u8]) -> Option<Head> {
    let base = i64::from_be_bytes(*bytes.first_chunk()?);
    let length = i32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let last = i32::from_be_bytes(*bytes.get(23..)?.first_chunk()?);
    let size = usize::try_from(length).ok()?.checked_add(UNCOUNTED).filter(|size| *size >= SHORTEST)?;
    Some(Head { next: base.checked_add(i64::from(last))?.checked_add(1)?, size })
}

/// How many of these bytes are whole batches.
fn whole(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(head) = bytes.get(end..).and_then(head) {
        match end.checked_add(head.size).filter(|next| *next <= bytes.len()) {
            Some(next) => end = next,
            None => break,
        }
    }
    end
}

/// Walks over headers without looking at records: an index entry is never further away than a few kilobytes.
fn heads(
    file: &dyn DiskFile,
    from: u64,
    to: u64,
    mut each: impl FnMut(u64, &Head) -> ControlFlow<()>,
) -> io::Result<Walk> {
    let mut position = from;
    while position < to {
        let len = usize::try_from(to - position).unwrap_or(usize::MAX).min(8 << 10);
        let mut buffer = vec![0; len];
        let count = file.read_at(position, &mut buffer)?;
        let mut at = 0;
        loop {
            let rest = buffer.get(at..count).unwrap_or_default();
            let Some(head) = head(rest) else {
                if at == 0 {
                    return Ok(Walk { end: position, damage: Some("there is no batch".into()) });
                }
                break;
            };
            if each(position + at as u64, &head).is_break() {
                return Ok(Walk { end: position, damage: None });
            }
            at += head.size;
            if at >= count {
                break;
            }
        }
        position += at as u64;
    }
    Ok(Walk { end: position, damage: None })
}

/// The offset behind the last of these whole batches.
pub(super) fn last_next(bytes: &[u8]) -> Option<i64> {
    let (mut at, mut next) = (0, None);
    while let Some(head) = bytes.get(at..).and_then(head) {
        next = Some(head.next);
        at = at.checked_add(head.size)?;
    }
    next
}
