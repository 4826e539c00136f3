//! Memory that is made ready some way ahead of what is written into it.
//!
//! The system hands out new memory page by page, when it is touched, and the interruption for that costs a broker more than to
//! write what belongs there. Asked for many pages at once it takes half as long. (Pages of 2 MB were tried: on a virtual
//! machine they cost several times as much, because the host has to find them as well.)

use bytes::Bytes;

/// How much is made ready at once: so much of a segment may be there for nothing.
const STEP: usize = 256 << 10;

/// A piece of memory that is written to from its start.
#[derive(Debug)]
pub(super) struct Prepared {
    memory: memory::Memory,
    written: usize,
    ready: usize,
}

impl Prepared {
    /// Room for so many bytes; `None` where there is no such memory.
    pub(super) fn new(room: usize) -> Option<Self> {
        Some(Self { memory: memory::allocate(room)?, written: 0, ready: 0 })
    }

    /// Writes behind what is there; nothing happens when there is no room.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let end = self.written + bytes.len();
        while self.ready < end.min(self.memory.len()) {
            let step = STEP.min(self.memory.len() - self.ready);
            memory::make_ready(&self.memory, self.ready, step);
            self.ready += step;
        }
        if let Some(room) = self.memory.get_mut(self.written..end) {
            room.copy_from_slice(bytes);
            self.written = end;
        }
    }

    /// Forgets what is behind the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.written = self.written.min(len);
    }

    /// What was written.
    pub(super) fn bytes(&self) -> &[u8] {
        self.memory.get(..self.written).unwrap_or_default()
    }

    /// What was written, to be shared and read. Of memory that is mostly empty a copy.
    pub(super) fn freeze(self) -> Bytes {
        let is_half_empty = self.written < self.memory.len() / 2;
        if is_half_empty { Bytes::copy_from_slice(self.bytes()) } else { Bytes::from_owner(self) }
    }
}

impl AsRef<[u8]> for Prepared {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

#[cfg(target_os = "linux")]
mod memory {
    use memmap2::{Advice, MmapMut};

    pub(super) type Memory = MmapMut;

    pub(super) fn allocate(room: usize) -> Option<Memory> {
        MmapMut::map_anon(room).ok()
    }

    pub(super) fn make_ready(memory: &Memory, from: usize, bytes: usize) {
        // Linux has this from 5.14 on; without it pages come when they are touched.
        let _ = memory.advise_range(Advice::PopulateWrite, from, bytes);
    }
}

#[cfg(not(target_os = "linux"))]
mod memory {
    pub(super) type Memory = Vec<u8>;

    pub(super) fn allocate(_room: usize) -> Option<Memory> {
        None
    }

    pub(super) fn make_ready(_memory: &Memory, _from: usize, _bytes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_shared() {
        const ROOM: usize = STEP + 100;
        let Some(mut memory) = Prepared::new(ROOM) else { return };
        memory.push(b"one");
        memory.push(b"two");
        memory.push(&[0; ROOM]);
        assert_eq!(memory.bytes(), b"onetwo");
        memory.truncate(4);
        memory.push(&[b'x'; STEP]);
        assert_eq!((memory.written, memory.ready), (STEP + 4, ROOM));
        let shared = memory.freeze();
        assert_eq!(shared.slice(1..6), b"netxx"[..]);
    }

    #[test]
    fn memory_that_is_mostly_empty_is_given_back() {
        let Some(mut memory) = Prepared::new(1 << 20) else { return };
        memory.push(b"one");
        assert_eq!(memory.freeze(), b"one"[..]);
    }
}
