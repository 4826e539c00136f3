//! What decompressing needs again and again, kept for each thread: a buffer to unpack into, and zstd's own state.
//!
//! Batches are unpacked here and then copied into memory of just their size. That is cheaper than it sounds: the buffer
//! stays in the processor's caches, while fresh memory of the largest possible size has to be cleared first, and zstd's
//! state is a hundred KiB that would be made anew for each batch of a few.

use std::{cell::RefCell, io};
use zstd::bulk::Decompressor;

/// What is larger is unpacked elsewhere; so much stays with each thread that reads compressed batches.
pub(super) const MOST: usize = 1 << 20;

#[derive(Default)]
struct Scratch {
    bytes: Vec<u8>,
    zstd: Option<Decompressor<'static>>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Lends `size` bytes, at most [`MOST`]; what is in them is left over from somebody else. `None` when there are not so many.
pub(super) fn with_bytes<T>(size: usize, work: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
    if size > MOST {
        return None;
    }
    SCRATCH.with(|scratch| {
        let bytes = &mut scratch.try_borrow_mut().ok()?.bytes;
        if bytes.len() < size {
            bytes.resize(size, 0);
        }
        bytes.get_mut(..size).map(work)
    })
}

/// Unpacks zstd to at most `limit` bytes, and to [`MOST`]; fails also when that is not enough.
pub(super) fn zstd(input: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    SCRATCH.with(|scratch| {
        let mut scratch = scratch.try_borrow_mut().map_err(io::Error::other)?;
        let Scratch { bytes, zstd } = &mut *scratch;
        if bytes.len() < MOST {
            bytes.resize(MOST, 0);
        }
        let decompressor = match zstd {
            Some(decompressor) => decompressor,
            None => zstd.insert(Decompressor::new()?),
        };
        let out = bytes.get_mut(..limit.min(MOST)).unwrap_or_default();
        let size = decompressor.decompress_to_buffer(input, out)?;
        Ok(out.get(..size).unwrap_or_default().to_vec())
    })
}
