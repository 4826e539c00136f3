//! Where reading goes on in a partition.
//!
//! Mirrors `SubscriptionState.FetchPosition`.

/// The offset of the next record, and the leader epoch of the record before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The offset of the next record.
    pub(crate) offset: i64,
    /// The leader epoch of the last record read, when known.
    pub(crate) epoch: Option<i32>,
}

impl Position {
    /// This offset, with no epoch.
    pub(crate) fn at(offset: i64) -> Self {
        Self { offset, epoch: None }
    }
}
