//! How much may wait for the application, and how far a chunk reaches.
//!
//! Each partition has its own share of `fetch.queue.bytes`: a partition that is slow or paused fills its share and is then
//! left out of fetches; it never holds back another one.

use super::position::Position;
use bytes::Bytes;

/// The smallest share, so that many partitions still fetch whole batches.
const SMALLEST_SHARE: usize = 64 << 10;

/// How many bytes of one partition may wait, and how many are asked for at once.
pub(crate) fn share(queue_bytes: usize, partitions: usize, partition_max: usize) -> usize {
    // Half: while one share waits, another one may be on its way.
    let fair = queue_bytes / partitions.max(1) / 2;
    fair.max(SMALLEST_SHARE).min(partition_max.max(1))
}

/// How far the whole batches of an answer reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The place behind the last one, and that batch's leader epoch.
    pub(crate) behind: Position,
    /// The size of the largest one.
    pub(crate) largest_batch: usize,
}

/// How far these bytes reach, read from the headers alone. The application's side checks the batches; this only says
/// where to fetch next. `None` when there is no whole batch.
pub(crate) fn reach(records: &Bytes) -> Option<Reach> {
    let mut rest: &[u8] = records;
    let (mut next, mut largest_batch) = (None, 0);
    while let Some((batch, behind)) = split_batch(rest) {
        (next, largest_batch) = (Some(behind), batch.max(largest_batch));
        rest = rest.get(batch..)?;
    }
    next.map(|behind| Reach { behind, largest_batch })
}

/// The size of the batch at the front, and the offset behind it.
fn split_batch(bytes: &[u8]) -> Option<(usize, Position)> {
    let field =
        |at: usize| bytes.get(at..at + 4).and_then(|b| b.first_chunk::<4>()).map(|b| i32::from_be_bytes(*b));
    let base = i64::from_be_bytes(*bytes.first_chunk::<8>()?);
    let size = usize::try_from(field(8)?).ok()?.checked_add(12)?;
    if size < 61 || bytes.len() < size || bytes.get(16) != Some(&2) {
        return None;
    }
    let behind = base.checked_add(i64::from(field(23)?))?.checked_add(1)?;
    let epoch = field(12).filter(|epoch| *epoch >= 0);
    (base >= 0 && behind > base).then_some((size, Position { offset: behind, epoch }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tontine_wire::records::{BatchBuilder, Compression};

    fn batch(base: i64, count: usize) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Compression::None);
        for _ in 0..count {
            builder.append(0, None, Some(b"value"), []).unwrap();
        }
        builder.build(base).to_vec()
    }

    fn next_offset(records: &Bytes) -> Option<i64> {
        reach(records).map(|reach| reach.behind.offset)
    }

    #[test]
    fn the_next_offset_is_behind_the_last_whole_batch() {
        let mut bytes = batch(10, 3);
        bytes.extend(batch(13, 2));
        assert_eq!(next_offset(&bytes.clone().into()), Some(15));
        assert_eq!(reach(&bytes.clone().into()).unwrap().largest_batch, batch(10, 3).len());
        bytes.extend(&batch(15, 2)[..40]);
        assert_eq!(next_offset(&bytes.into()), Some(15));
    }

    #[test]
    fn rubbish_reaches_nowhere() {
        assert_eq!(next_offset(&Bytes::new()), None);
        assert_eq!(next_offset(&Bytes::from(vec![0xff; 200])), None);
        assert_eq!(next_offset(&Bytes::from(vec![0; 200])), None);
    }

    #[test]
    fn shares_are_fair_and_never_below_the_smallest() {
        assert_eq!(share(64 << 20, 8, 1 << 20), 1 << 20);
        assert_eq!(share(64 << 20, 64, 1 << 20), 512 << 10);
        assert_eq!(share(64 << 20, 100_000, 1 << 20), SMALLEST_SHARE);
        assert_eq!(share(64 << 20, 1, 100), 100);
    }
}
