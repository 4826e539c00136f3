//! Where values are written: one buffer, and between its parts large pieces that are handed on instead of copied.
//!
//! A broker answers a fetch with megabytes that it has in memory already; only what stands around them is written here.

use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Values in the order in which they are put.
#[derive(Debug, Default)]
pub struct Writer {
    written: BytesMut,
    /// Pieces that are not copied, each with the length of `written` when it was put.
    shared: Vec<(usize, Bytes)>,
    shared_bytes: usize,
    /// From this size on bytes are shared; `None` copies everything.
    share_from: Option<usize>,
}

impl Writer {
    /// A writer that copies everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// A writer that copies nothing of at least this many bytes.
    pub fn sharing(from: usize) -> Self {
        Self { share_from: Some(from), ..Self::default() }
    }

    /// Appends a copy.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
    }

    /// Appends these bytes, without a copy when they are large enough.
    pub fn put_bytes(&mut self, bytes: &Bytes) {
        if self.share_from.is_none_or(|from| bytes.len() < from) {
            return self.written.extend_from_slice(bytes);
        }
        self.shared_bytes += bytes.len();
        self.shared.push((self.written.len(), bytes.clone()));
    }

    /// How many bytes were put.
    pub fn len(&self) -> usize {
        self.written.len() + self.shared_bytes
    }

    /// Whether nothing was put.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for this many bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.written.reserve(bytes);
    }

    /// Overwrites what was put first. It must have been a copy of at least as many bytes.
    pub(crate) fn overwrite_start<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(start) = self.written.first_chunk_mut() {
            *start = bytes;
        }
    }

    /// Everything in one piece.
    pub fn into_bytes(self) -> Bytes {
        if self.shared.is_empty() {
            return self.written.freeze();
        }
        let mut pieces = self.into_pieces();
        pieces.copy_to_bytes(pieces.remaining())
    }

    /// Everything, the shared pieces as they are.
    pub fn into_pieces(self) -> Pieces {
        let mut rest = self.written.freeze();
        let mut pieces = VecDeque::with_capacity(2 * self.shared.len() + 1);
        let (mut taken, left) = (0, self.shared_bytes + rest.len());
        for (at, shared) in self.shared {
            pieces.push_back(rest.split_to(at - taken));
            pieces.push_back(shared);
            taken = at;
        }
        pieces.push_back(rest);
        pieces.retain(|piece| !piece.is_empty());
        Pieces { pieces, left }
    }
}

/// Bytes in several pieces, to be written to a socket at once.
#[derive(Debug, Default)]
pub struct Pieces {
    pieces: VecDeque<Bytes>,
    left: usize,
}

impl Buf for Pieces {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut bytes: usize) {
        self.left -= bytes;
        while let Some(front) = self.pieces.front_mut() {
            if bytes < front.len() {
                return front.advance(bytes);
            }
            bytes -= front.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> (Writer, Vec<u8>) {
        let mut writer = Writer::sharing(4);
        writer.extend_from_slice(b"ab");
        writer.put_bytes(&Bytes::from_static(b"cde"));
        writer.put_bytes(&Bytes::from_static(b"fghi"));
        writer.put_bytes(&Bytes::from_static(b"jklmn"));
        writer.extend_from_slice(b"o");
        (writer, b"abcdefghijklmno".to_vec())
    }

    #[test]
    fn pieces_are_what_was_put_however_they_are_taken() {
        let (writer, expected) = written();
        assert_eq!(writer.len(), expected.len());
        assert_eq!(writer.into_bytes(), expected);
        for step in 1..=expected.len() {
            let (mut pieces, mut seen) = (written().0.into_pieces(), Vec::new());
            while pieces.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 8];
                let filled = pieces.chunks_vectored(&mut slices);
                let all: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(all.len(), pieces.remaining());
                let n = step.min(all.len());
                seen.extend_from_slice(&all[..n]);
                pieces.advance(n);
            }
            assert_eq!(seen, expected, "in steps of {step}");
        }
    }

    #[test]
    fn only_large_pieces_are_shared() {
        let shared = Bytes::from(vec![7; 100]);
        let mut writer = Writer::sharing(4);
        writer.put_bytes(&shared);
        assert_eq!(writer.into_pieces().chunk().as_ptr(), shared.as_ptr());
        let mut writer = Writer::new();
        writer.put_bytes(&shared);
        assert_ne!(writer.into_bytes().as_ptr(), shared.as_ptr());
    }
}
