//! Where a connection reads into: how much room is made, and which memory is used for it.
//!
//! A length on the wire promises bytes that may never come, so room grows with what has arrived. Large frames get a
//! buffer of their own, and once nobody reads its records any more it is filled again: fresh memory costs about as much
//! as everything else that is done with a record, since the system hands it out page by page and clears each.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use tontine_wire::frame::{FrameError, split_frame};

/// How much room is made for reading when nothing is known about what comes.
const ROOM: usize = 16 << 10;
/// The most room that is made for a frame before its bytes have arrived, unless such a frame has arrived before.
const UNTRUSTED_ROOM: usize = 128 << 10;
/// Frames from this size on have a buffer of their own.
const LARGE: usize = 64 << 10;
/// The most bytes of buffers that are kept to be filled again.
const KEPT: usize = 24 << 20;
/// After so many frames that were smaller, a large one is forgotten and its buffer given back.
const MEMORY: u32 = 64;

/// What has arrived on a connection and not been cut into frames yet.
#[derive(Debug, Default)]
pub(super) struct Inlet {
    buffer: BytesMut,
    /// The largest frame of late: a size that was seen before is believed.
    largest: usize,
    /// The largest frame since the last time that old ones were forgotten, and how many there were.
    latest: (usize, u32),
    /// Buffers of large frames, the oldest first. Somebody may still read them.
    lent: VecDeque<Lent>,
    /// The capacity of all that are lent.
    lent_bytes: usize,
}

#[derive(Debug)]
struct Lent {
    frame: Bytes,
    capacity: usize,
}

impl Inlet {
    /// The next whole frame, when it is there.
    pub(super) fn next_frame(&mut self, limit: usize) -> Result<Option<Bytes>, FrameError> {
        let capacity = self.buffer.capacity();
        let Some(frame) = split_frame(&mut self.buffer, limit)? else { return Ok(None) };
        self.remember(frame.len());
        if frame.len() >= LARGE && self.buffer.is_empty() {
            // What is left of the buffer would keep it from being used again.
            self.buffer = BytesMut::new();
            self.lend(&frame, capacity);
        }
        Ok(Some(frame))
    }

    /// Room to read into. A large frame ends where its room does; what comes behind it is read the next time.
    pub(super) fn room(&mut self) -> impl BufMut + '_ {
        let (size, read) = (self.size(), self.buffer.len());
        match size {
            None => self.buffer.reserve(ROOM),
            Some(size) if size < LARGE => self.buffer.reserve(size - read),
            Some(size) if self.buffer.capacity() < size => self.make_room(size),
            Some(_) => {}
        }
        let most = size.filter(|size| *size >= LARGE).map_or(usize::MAX, |size| size - read);
        (&mut self.buffer).limit(most)
    }

    /// How much of the large frame that has begun the next read can bring; `None` when no such frame has begun.
    pub(super) fn missing(&mut self) -> Option<usize> {
        let size = self.size().filter(|size| *size >= LARGE)?;
        // The room is made now, since it is what can be read.
        drop(self.room());
        Some(size.min(self.buffer.capacity()) - self.buffer.len())
    }

    /// Nothing has come for a while: what is kept for more goes back to the system.
    pub(super) fn rest(&mut self) {
        self.lent.clear();
        self.lent_bytes = 0;
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// Whether there is anything that [`Inlet::rest`] would give back.
    pub(super) fn keeps_any(&self) -> bool {
        !self.lent.is_empty()
    }

    /// The size of the frame that has begun, its length included.
    fn size(&self) -> Option<usize> {
        let head = self.buffer.first_chunk::<4>()?;
        usize::try_from(i32::from_be_bytes(*head)).ok().map(|size| size + 4)
    }

    fn make_room(&mut self, size: usize) {
        if let Some(mut used) = self.take_back(size) {
            used.clear();
            used.reserve(size);
            used.extend_from_slice(&self.buffer);
            self.buffer = used;
            return;
        }
        let trusted = self.buffer.len().max(self.largest).max(UNTRUSTED_ROOM);
        // All buffers get the size of the largest frame, so that any of them can take the next one.
        let whole = if self.largest <= KEPT / 2 { size.max(self.largest + 4) } else { size };
        self.buffer.reserve((whole - self.buffer.len()).min(trusted));
    }

    fn remember(&mut self, size: usize) {
        self.largest = self.largest.max(size);
        self.latest = (self.latest.0.max(size), self.latest.1 + 1);
        if self.latest.1 < MEMORY {
            return;
        }
        (self.largest, self.latest) = (self.latest.0, (0, 0));
        let most = self.most_of_one();
        self.lent.retain(|lent| lent.capacity <= most);
        self.lent_bytes = self.lent.iter().map(|lent| lent.capacity).sum();
    }

    /// The size up to which a buffer is kept: one is worth having when frames of late were about as large.
    fn most_of_one(&self) -> usize {
        2 * self.largest.max(LARGE)
    }

    fn lend(&mut self, frame: &Bytes, capacity: usize) {
        if capacity > self.most_of_one() {
            return;
        }
        self.lent_bytes += capacity;
        self.lent.push_back(Lent { frame: frame.clone(), capacity });
        while self.lent_bytes > KEPT {
            match self.lent.pop_front() {
                Some(oldest) => self.lent_bytes -= oldest.capacity,
                None => break,
            }
        }
    }

    /// A buffer that nobody reads any more and that is large enough.
    fn take_back(&mut self, size: usize) -> Option<BytesMut> {
        let free = self.lent.iter().position(|lent| lent.capacity >= size && lent.frame.is_unique())?;
        let Lent { frame, capacity } = self.lent.remove(free)?;
        self.lent_bytes -= capacity;
        frame.try_into_mut().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts in what a socket would: as much as there is room for.
    fn feed(inlet: &mut Inlet, mut bytes: &[u8]) -> Vec<Bytes> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let mut room = inlet.room();
            let n = room.chunk_mut().len().min(room.remaining_mut()).min(bytes.len()).min(50_000);
            assert!(n > 0, "there is always room");
            room.put_slice(&bytes[..n]);
            drop(room);
            bytes = &bytes[n..];
            while let Some(frame) = inlet.next_frame(1 << 30).unwrap() {
                frames.push(frame);
            }
        }
        frames
    }

    fn frame(size: usize, fill: u8) -> Vec<u8> {
        let mut frame = i32::try_from(size).unwrap().to_be_bytes().to_vec();
        frame.resize(size + 4, fill);
        frame
    }

    #[test]
    fn frames_of_all_sizes_come_out_as_they_went_in() {
        let sizes =
            [0, 1, 100, LARGE - 5, LARGE - 4, LARGE, 3 * LARGE, 7, 2 * LARGE, 2 * LARGE, 1 << 20, 5, 1 << 20];
        let bytes: Vec<u8> = sizes.iter().enumerate().flat_map(|(n, size)| frame(*size, n as u8)).collect();
        let mut inlet = Inlet::default();
        // Some are read for long, others not at all.
        let frames = feed(&mut inlet, &bytes);
        assert_eq!(frames.iter().map(Bytes::len).collect::<Vec<_>>(), sizes);
        for (n, frame) in frames.iter().enumerate() {
            assert!(frame.iter().all(|byte| *byte == n as u8), "frame {n}");
        }
    }

    #[test]
    fn memory_that_nobody_reads_any_more_is_filled_again_and_what_is_read_is_not() {
        let mut inlet = Inlet::default();
        feed(&mut inlet, &frame(1 << 20, 1));
        let second = feed(&mut inlet, &frame(1 << 20, 2)).remove(0);
        let place = second.as_ptr();
        drop(second);
        let third = feed(&mut inlet, &frame(1 << 20, 3)).remove(0);
        assert!((third.as_ptr() as usize).abs_diff(place as usize) < 64, "the same memory");
        let fourth = feed(&mut inlet, &frame(1 << 20, 4)).remove(0);
        assert!(third.iter().all(|byte| *byte == 3) && fourth.iter().all(|byte| *byte == 4));
    }

    #[test]
    fn what_is_kept_is_bounded_and_given_back_at_rest() {
        let mut inlet = Inlet::default();
        for n in 0..40 {
            feed(&mut inlet, &frame(3 << 20, n));
            assert!(inlet.lent_bytes <= KEPT);
        }
        assert!(inlet.keeps_any());
        inlet.rest();
        assert!(!inlet.keeps_any());
        assert_eq!((inlet.lent_bytes, inlet.buffer.capacity()), (0, 0));
        let huge = feed(&mut inlet, &frame(KEPT + 1, 9));
        assert_eq!((huge.len(), inlet.keeps_any()), (1, false), "nothing larger than what may be kept is");
    }

    #[test]
    fn one_large_frame_does_not_keep_its_memory_while_others_come() {
        let mut inlet = Inlet::default();
        feed(&mut inlet, &frame(8 << 20, 1));
        assert!(inlet.lent_bytes >= 8 << 20);
        for size in [100, 2 * LARGE] {
            for _ in 0..2 * MEMORY {
                feed(&mut inlet, &frame(size, 2));
            }
            assert!(inlet.lent_bytes <= 8 * LARGE, "{} bytes", inlet.lent_bytes);
            assert!(inlet.buffer.capacity() <= 4 * LARGE, "{} bytes", inlet.buffer.capacity());
        }
    }

    #[test]
    fn what_is_missing_of_a_large_frame_is_what_can_be_read() {
        let mut inlet = Inlet::default();
        assert_eq!(inlet.missing(), None);
        let bytes = frame(3 * LARGE, 1);
        inlet.room().put_slice(&bytes[..10]);
        while inlet.buffer.len() < bytes.len() {
            let missing = inlet.missing().unwrap();
            let (at, mut room) = (inlet.buffer.len(), inlet.room());
            let n = room.chunk_mut().len().min(room.remaining_mut());
            assert!(missing > 0 && missing <= n && at + missing <= bytes.len(), "{missing} of {n}");
            room.put_slice(&bytes[at..at + missing]);
        }
        assert!(inlet.next_frame(1 << 30).unwrap().is_some());
        assert_eq!(inlet.missing(), None);
        inlet.room().put_slice(&frame(LARGE / 2, 1)[..10]);
        assert_eq!(inlet.missing(), None, "small ones come in one piece anyway");
    }

    #[test]
    fn a_length_alone_makes_no_large_room() {
        let mut inlet = Inlet::default();
        inlet.room().put_slice(&[0x1f, 0, 0, 0]);
        drop(inlet.room());
        assert!(inlet.buffer.capacity() <= 2 * UNTRUSTED_ROOM, "{}", inlet.buffer.capacity());
        let mut arrived = 4;
        while arrived < 1 << 20 {
            let mut room = inlet.room();
            let n = room.chunk_mut().len();
            room.put_bytes(0, n);
            drop(room);
            arrived += n;
            assert!(inlet.buffer.capacity() <= 4 * arrived, "room grows with what has arrived");
        }
    }
}
