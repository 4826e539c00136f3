//! Memory for what clients send, used again by whichever connection has something to read next.
//!
//! A connection that is idle holds none. New memory is not free: the system clears every page of it, which for a producer
//! that sends megabytes costs more than looking at its records.

use bytes::{Bytes, BytesMut};
use std::sync::{Mutex, PoisonError};

/// How many buffers are kept while nobody needs them.
const KEPT: usize = 8;
/// The largest that is kept.
const LARGEST: usize = 4 << 20;
/// A smaller one is not worth keeping.
const SMALLEST: usize = 64 << 10;

/// Buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<BytesMut>>);

impl Buffers {
    /// An empty buffer; one that was used before, when there is one.
    pub(super) fn take(&self) -> BytesMut {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives back a buffer that holds nothing that is still needed.
    pub(super) fn give_back(&self, mut buffer: BytesMut) {
        buffer.clear();
        if !buffer.try_reclaim(SMALLEST) || buffer.capacity() > LARGEST {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }

    /// Gives back the memory of a frame, unless somebody still has a part of it.
    pub(super) fn give_back_frame(&self, frame: Bytes) {
        if let Ok(buffer) = frame.try_into_mut() {
            self.give_back(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_frame_is_used_again_when_nobody_has_a_part_of_it() {
        let buffers = Buffers::default();
        let mut buffer = BytesMut::with_capacity(100_000);
        buffer.extend_from_slice(&[1; 100_000]);
        let (start, frame) = (buffer.as_ptr(), buffer.split_to(90_000).freeze());
        drop(buffer);
        let part = frame.slice(5..6);
        buffers.give_back_frame(frame.clone());
        assert_eq!(buffers.take().capacity(), 0, "a part of it is in use");
        drop(part);
        buffers.give_back_frame(frame);
        let again = buffers.take();
        assert_eq!((again.as_ptr(), again.capacity(), again.len()), (start, 100_000, 0));
    }

    #[test]
    fn no_more_is_kept_than_a_few_buffers_and_none_that_is_huge() {
        let buffers = Buffers::default();
        buffers.give_back(BytesMut::with_capacity(LARGEST + 1));
        buffers.give_back(BytesMut::with_capacity(100));
        assert_eq!(buffers.0.lock().unwrap().len(), 0);
        for _ in 0..2 * KEPT {
            buffers.give_back(BytesMut::with_capacity(SMALLEST));
        }
        assert_eq!(buffers.0.lock().unwrap().len(), KEPT);
    }
}
