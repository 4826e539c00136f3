//! Who may say what about a partition: the ownership that a batch, a position or an answer belongs to.
//!
//! The actor and the application's side run apart. What one sends about a partition carries an [`Incarnation`]; the other
//! drops what belongs to an earlier one. No offset is ever compared to find out whether something is out of date.

use crate::fetch::position::Position;
use bytes::Bytes;
use tontine_wire::api::fetch::AbortedTransaction;

/// One ownership of one partition, between two seeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Incarnation {
    /// Counts ownerships; those that the application assigned by hand have the highest bit set.
    pub(crate) ownership: u64,
    /// Counts the application's seeks within the ownership.
    pub(crate) seek: u32,
}

impl Incarnation {
    const BY_HAND: u64 = 1 << 63;

    /// The ownership with this number, given by the group.
    pub(crate) fn granted(number: u64) -> Self {
        Self { ownership: number & !Self::BY_HAND, seek: 0 }
    }

    /// The ownership with this number, taken by `assign`.
    pub(crate) fn by_hand(number: u64) -> Self {
        Self { ownership: number | Self::BY_HAND, seek: 0 }
    }

    /// The same ownership after one more seek.
    pub(crate) fn after_seek(self) -> Self {
        Self { ownership: self.ownership, seek: self.seek.wrapping_add(1) }
    }
}

/// What one fetch brought for one partition: whole batches as they came, and where the log stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    /// The offset that was asked for; batches may start before it.
    pub(crate) start: i64,
    /// Batches, perhaps with a partial one at the end.
    pub(crate) records: Bytes,
    /// Transactions that were aborted, when only committed records are read.
    pub(crate) aborted: Vec<AbortedTransaction>,
}

/// Where the log of a partition ends, as the last fetch saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// Behind the last record that consumers may see.
    pub(crate) high_watermark: i64,
    /// Behind the last record of which no transaction is open.
    pub(crate) last_stable: i64,
}

/// What waits for the application in a partition's queue, in order.
#[derive(Clone, Debug)]
pub(crate) enum Delivery {
    /// Records.
    Chunk(Chunk),
    /// Reading goes on here: the committed offset, or where the reset policy says.
    Jump(Position),
    /// Reading cannot go on; the application has to seek.
    Failed(crate::Error),
}
