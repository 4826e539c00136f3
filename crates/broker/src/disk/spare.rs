//! Memory for what is read from files, used again when the answer that it was for is on its way.
//!
//! New memory is not free: the system clears every page of it, and a broker that reads megabytes for each fetch would spend
//! more on that than on reading.

use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// Less than this is not worth keeping.
const SMALLEST: usize = 32 << 10;
/// More than this, in all, is not kept while nobody needs it.
const KEPT: usize = 16 << 20;

/// Pieces of memory that nobody uses at the moment.
#[derive(Debug, Default, Clone)]
pub(super) struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

/// A piece that is in use. It comes back by itself.
#[derive(Debug)]
struct Lent {
    memory: Vec<u8>,
    len: usize,
    home: Spare,
}

impl Spare {
    /// So many bytes, which `fill` fills as far as it can.
    pub(super) fn filled<E>(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Bytes, E> {
        let memory = if len < SMALLEST { vec![0; len] } else { self.take(len) };
        let mut lent = Lent { memory, len, home: self.clone() };
        lent.len = fill(lent.memory.get_mut(..len).unwrap_or_default())?.min(len);
        Ok(Bytes::from_owner(lent))
    }

    fn take(&self, len: usize) -> Vec<u8> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = (0..).zip(spare.iter()).filter(|(_, memory)| memory.len() >= len);
        match fitting.min_by_key(|(_, memory)| memory.len()).map(|(at, _)| at) {
            Some(at) => spare.swap_remove(at),
            None => vec![0; len],
        }
    }

    fn give_back(&self, memory: Vec<u8>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = spare.iter().map(Vec::len).sum();
        if kept + memory.len() <= KEPT {
            spare.push(memory);
        }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.memory.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if memory.len() >= SMALLEST {
            self.home.give_back(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ones(spare: &Spare, len: usize) -> Bytes {
        let fill = |bytes: &mut [u8]| {
            bytes.fill(1);
            Ok::<usize, ()>(bytes.len())
        };
        spare.filled(len, fill).unwrap()
    }

    fn kept(spare: &Spare) -> Vec<usize> {
        spare.0.lock().unwrap().iter().map(Vec::len).collect()
    }

    #[test]
    fn memory_comes_back_when_the_last_part_is_gone_and_is_used_again() {
        let spare = Spare::default();
        let bytes = ones(&spare, 100_000);
        let (start, part) = (bytes.as_ptr(), bytes.slice(5..6));
        drop(bytes);
        assert!(kept(&spare).is_empty(), "a part of it is in use");
        drop(part);
        assert_eq!(kept(&spare), [100_000]);
        let again = ones(&spare, 50_000);
        assert_eq!((again.as_ptr(), again.len()), (start, 50_000));
    }

    #[test]
    fn what_is_filled_in_part_is_that_part_and_an_error_loses_nothing() {
        let spare = Spare::default();
        let part = spare.filled(100_000, |bytes| {
            bytes[..3].copy_from_slice(b"abc");
            Ok::<usize, ()>(3)
        });
        assert_eq!(part.unwrap(), b"abc"[..]);
        assert_eq!(spare.filled(100_000, |_| Err(())), Err(()));
        assert_eq!(kept(&spare), [100_000]);
    }

    #[test]
    fn neither_small_pieces_are_kept_nor_more_than_is_useful() {
        let spare = Spare::default();
        drop(ones(&spare, 100));
        assert!(kept(&spare).is_empty());
        drop([ones(&spare, KEPT), ones(&spare, KEPT), ones(&spare, KEPT + 1)]);
        assert_eq!(kept(&spare), [KEPT]);
    }
}
