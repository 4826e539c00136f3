//! Where batches lie in a segment: one entry for every few kilobytes, by offset and by time.
//!
//! On disk these are Kafka's two files: `.index` (offset after the base, position) and `.timeindex` (largest timestamp
//! so far, offset after the base). They are written when a segment is closed and can always be made again from the
//! segment. Mirrors `OffsetIndex` and `TimeIndex`.

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The last offset of the batch, counted from the segment's base.
    pub(super) delta: u32,
    /// Where the batch begins.
    pub(super) position: u32,
    /// The largest timestamp up to and with this batch.
    pub(super) max_timestamp: i64,
}

/// The entries of a segment, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Index {
    entries: Vec<Entry>,
}

const OFFSET_ENTRY: usize = 8;
const TIME_ENTRY: usize = 12;

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

impl Index {
    /// Adds an entry; they come in order.
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// The last entry.
    pub(super) fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// Where to begin to look for the batch that holds this offset.
    pub(super) fn position_of(&self, delta: u32) -> u64 {
        let after = self.entries.partition_point(|entry| entry.delta <= delta);
        self.position_before(after)
    }

    /// Where to begin to look for the first batch with this timestamp or a later one.
    pub(super) fn position_of_time(&self, timestamp: i64) -> u64 {
        let after = self.entries.partition_point(|entry| entry.max_timestamp < timestamp);
        self.position_before(after)
    }

    fn position_before(&self, entry: usize) -> u64 {
        entry.checked_sub(1).and_then(|at| self.entries.get(at)).map_or(0, |entry| u64::from(entry.position))
    }

    /// Forgets entries at and behind a position.
    pub(super) fn cut(&mut self, position: u64) {
        self.entries.retain(|entry| u64::from(entry.position) < position);
    }

    /// The two files, for a segment that ends with this time and offset.
    pub(super) fn encode(&self, max_timestamp: i64, last_delta: u32) -> (Vec<u8>, Vec<u8>) {
        let mut offsets = Vec::with_capacity(self.entries.len() * OFFSET_ENTRY);
        let mut times = Vec::new();
        let mut latest = i64::MIN;
        let mut time = |timestamp: i64, delta: u32| {
            if timestamp > latest {
                latest = timestamp;
                times.extend_from_slice(&timestamp.to_be_bytes());
                times.extend_from_slice(&delta.to_be_bytes());
            }
        };
        for entry in &self.entries {
            offsets.extend_from_slice(&entry.delta.to_be_bytes());
            offsets.extend_from_slice(&entry.position.to_be_bytes());
            time(entry.max_timestamp, entry.delta);
        }
        time(max_timestamp, last_delta);
        (offsets, times)
    }

    /// Reads the two files; `None` when they cannot belong to a segment of this size.
    pub(super) fn decode(offsets: &[u8], times: &[u8], size: u64) -> Option<Self> {
        if !offsets.len().is_multiple_of(OFFSET_ENTRY) || !times.len().is_multiple_of(TIME_ENTRY) {
            return None;
        }
        let mut times = times.chunks_exact(TIME_ENTRY).peekable();
        let mut index = Self::default();
        let mut max_timestamp = -1;
        for chunk in offsets.chunks_exact(OFFSET_ENTRY) {
            let delta = u32::from_be_bytes(number(chunk, 0));
            let position = u32::from_be_bytes(number(chunk, 4));
            while let Some(time) = times.next_if(|time| u32::from_be_bytes(number(time, 8)) <= delta) {
                max_timestamp = i64::from_be_bytes(number(time, 0));
            }
            let grows = index.last().is_none_or(|last| last.delta < delta && last.position < position);
            if !grows || u64::from(position) >= size {
                return None;
            }
            index.push(Entry { delta, position, max_timestamp });
        }
        Some(index)
    }

    /// The largest timestamp that a time index tells; `None` when it tells none.
    pub(super) fn largest_time(times: &[u8]) -> Option<i64> {
        let last = times.len().checked_sub(TIME_ENTRY)?;
        times.len().is_multiple_of(TIME_ENTRY).then(|| i64::from_be_bytes(number(times, last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        let mut index = Index::default();
        for (delta, position, max_timestamp) in [(9, 4000, 50), (19, 9000, 50), (29, 15_000, 80)] {
            index.push(Entry { delta, position, max_timestamp });
        }
        index
    }

    #[test]
    fn a_lookup_begins_at_the_last_batch_that_is_certainly_not_behind() {
        assert_eq!(index().position_of(8), 0);
        assert_eq!(index().position_of(9), 4000);
        assert_eq!(index().position_of(1000), 15_000);
        assert_eq!(index().position_of_time(50), 0);
        assert_eq!(index().position_of_time(51), 9000);
        assert_eq!(index().position_of_time(81), 15_000);
    }

    #[test]
    fn the_files_say_what_the_index_said() {
        let (offsets, times) = index().encode(90, 35);
        assert_eq!(Index::decode(&offsets, &times, 20_000), Some(index()));
        assert_eq!(Index::largest_time(&times), Some(90));
    }

    #[test]
    fn files_of_another_segment_are_not_believed() {
        let (offsets, times) = index().encode(90, 35);
        assert_eq!(Index::decode(&offsets, &times, 10_000), None);
        assert_eq!(Index::decode(&offsets[..7], &times, 20_000), None);
        assert_eq!(Index::decode(&[&offsets[..], &offsets[..]].concat(), &times, 20_000), None);
    }
}
