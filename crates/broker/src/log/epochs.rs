//! Which leader epoch wrote which offsets. Mirrors `LeaderEpochFileCache`.

/// Where an epoch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochEnd {
    /// The epoch.
    pub(crate) epoch: i32,
    /// The offset behind its last record.
    pub(crate) end_offset: i64,
}

/// The first offset of each epoch, in order.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    starts: Vec<(i32, i64)>,
}

impl Epochs {
    /// `epoch` writes from `offset` on. An epoch that wrote nothing is dropped.
    pub(super) fn begin(&mut self, epoch: i32, offset: i64) {
        while self.starts.last().is_some_and(|(_, start)| *start >= offset) {
            self.starts.pop();
        }
        if self.starts.last().is_none_or(|(last, _)| *last < epoch) {
            self.starts.push((epoch, offset));
        }
    }

    /// The epochs and where they begin.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, i64)> {
        self.starts.iter().copied()
    }

    /// The epoch in which `offset` was written.
    pub(super) fn at(&self, offset: i64) -> Option<i32> {
        let after = self.starts.partition_point(|(_, start)| *start <= offset);
        after.checked_sub(1).and_then(|at| self.starts.get(at)).map(|(epoch, _)| *epoch)
    }

    /// The end of the last epoch up to `epoch`; `None` when `epoch` is newer than every epoch here.
    pub(super) fn end_of(&self, epoch: i32, log_end: i64) -> Option<EpochEnd> {
        let after = self.starts.partition_point(|(known, _)| *known <= epoch);
        let floor = after.checked_sub(1).and_then(|at| self.starts.get(at)).map(|(known, _)| *known);
        match self.starts.get(after) {
            None if floor == Some(epoch) => Some(EpochEnd { epoch, end_offset: log_end }),
            None => None,
            Some((_, next_start)) => {
                Some(EpochEnd { epoch: floor.unwrap_or(epoch), end_offset: *next_start })
            }
        }
    }

    /// The log starts at `offset` now.
    pub(super) fn forget_before(&mut self, offset: i64) {
        let after = self.starts.partition_point(|(_, start)| *start <= offset);
        if let Some(first_kept) = after.checked_sub(1) {
            self.starts.drain(..first_kept);
            if let Some((_, start)) = self.starts.first_mut() {
                *start = offset;
            }
        }
    }

    /// The log ends at `offset` now.
    pub(super) fn forget_from(&mut self, offset: i64) {
        self.starts.retain(|(_, start)| *start < offset || *start == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> Epochs {
        let mut epochs = Epochs::default();
        for (epoch, start) in [(0, 0), (2, 10), (5, 30)] {
            epochs.begin(epoch, start);
        }
        epochs
    }

    #[test]
    fn an_epoch_ends_where_the_next_one_starts() {
        let end = |epoch| epochs().end_of(epoch, 40).map(|end| (end.epoch, end.end_offset));
        assert_eq!(end(0), Some((0, 10)));
        assert_eq!(end(1), Some((0, 10)));
        assert_eq!(end(4), Some((2, 30)));
        assert_eq!(end(5), Some((5, 40)));
        assert_eq!(end(6), None);
    }

    #[test]
    fn an_epoch_without_records_leaves_no_trace() {
        let mut epochs = epochs();
        epochs.begin(6, 40);
        epochs.begin(7, 40);
        assert_eq!(epochs.starts.last(), Some(&(7, 40)));
        assert_eq!(epochs.at(39), Some(5));
    }

    #[test]
    fn a_log_that_starts_later_forgets_older_epochs() {
        let mut epochs = epochs();
        epochs.forget_before(20);
        assert_eq!(epochs.starts, [(2, 20), (5, 30)]);
        epochs.forget_from(25);
        assert_eq!(epochs.starts, [(2, 20)]);
    }
}
