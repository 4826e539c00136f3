//! When a log on disk rolls and when it is synced, and what is said about it.

use std::sync::{Arc, Mutex, PoisonError};

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

    pub(super) fn is_never(self) -> bool {
        self.records.is_none() && self.millis.is_none()
    }

    /// Whether nothing may be read that is not durable.
    pub(super) fn is_always(self) -> bool {
        self.records == Some(1)
    }
}
