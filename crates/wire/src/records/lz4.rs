//! Kafka's lz4: the official frame format around blocks, unpacked straight into one buffer.
//!
//! The checksums of the frame are stepped over: the batch's own covers the same bytes. Dictionaries do not exist in
//! Kafka. Mirrors `org.apache.kafka.common.compress.Lz4BlockInputStream`.

use super::{compress::Fault, scratch};
use lz4_flex::block::{DecompressError, decompress_into, decompress_into_with_dict};

const MAGIC: [u8; 4] = 0x184D_2204u32.to_le_bytes();
/// How far back a block may refer when blocks are linked.
const WINDOW: usize = 64 << 10;
const NOT_COMPRESSED: u32 = 1 << 31;

/// What the frame's header says.
struct Frame {
    linked: bool,
    block_checksum: bool,
    largest_block: usize,
}

fn bad(reason: &str) -> Fault {
    Fault::Malformed(reason.to_owned())
}

fn take<'a>(input: &mut &'a [u8], n: usize) -> Result<&'a [u8], Fault> {
    let (taken, rest) = input.split_at_checked(n).ok_or_else(|| bad("the frame ends too early"))?;
    *input = rest;
    Ok(taken)
}

fn take_u32(input: &mut &[u8]) -> Result<u32, Fault> {
    let bytes = take(input, 4)?;
    Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

impl Frame {
    fn read(input: &mut &[u8]) -> Result<Self, Fault> {
        if take(input, 4)? != MAGIC {
            return Err(bad("the frame does not start with lz4's magic number"));
        }
        let &[flags, sizes] = take(input, 2)? else { return Err(bad("the frame ends too early")) };
        if flags >> 6 != 1 {
            return Err(bad("the frame has another version than 1"));
        }
        if flags & 0x01 != 0 {
            return Err(bad("the frame needs a dictionary"));
        }
        let content_size = if flags & 0x08 != 0 { 8 } else { 0 };
        take(input, content_size + 1)?;
        let largest_block = match sizes >> 4 & 7 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return Err(bad("the frame has blocks of a size that lz4 does not know")),
        };
        Ok(Self { linked: flags & 0x20 == 0, block_checksum: flags & 0x10 != 0, largest_block })
    }
}

/// Unpacks a frame to at most `limit` bytes.
pub(super) fn decompress(mut input: &[u8], limit: usize) -> Result<Vec<u8>, Fault> {
    let frame = Frame::read(&mut input)?;
    let mut out = Vec::new();
    loop {
        let size = take_u32(&mut input)?;
        if size == 0 {
            return Ok(out);
        }
        let block = take(&mut input, (size & !NOT_COMPRESSED) as usize)?;
        if frame.block_checksum {
            take(&mut input, 4)?;
        }
        if size & NOT_COMPRESSED == 0 {
            unpack(block, &mut out, &frame, limit)?;
        } else if block.len() > limit - out.len() {
            return Err(Fault::TooLarge(limit));
        } else {
            out.extend_from_slice(block);
        }
    }
}

/// A byte of a block stands for at most 255: what a block can become is bounded by its own size too.
const MOST_FACTOR: usize = 255;

fn unpack(block: &[u8], out: &mut Vec<u8>, frame: &Frame, limit: usize) -> Result<(), Fault> {
    let most = frame.largest_block.min(block.len().saturating_mul(MOST_FACTOR));
    let room = most.min(limit - out.len());
    let result = match scratch::with_bytes(room, |into| {
        let size = unpack_into(block, into, out, frame)?;
        out.extend_from_slice(into.get(..size).unwrap_or_default());
        Ok(())
    }) {
        Some(result) => result,
        None => unpack_in_place(block, out, room, frame),
    };
    match result {
        Ok(()) => Ok(()),
        Err(DecompressError::OutputTooSmall { .. }) if room < most => Err(Fault::TooLarge(limit)),
        Err(error) => Err(Fault::Malformed(error.to_string())),
    }
}

/// Unpacks a block behind what was unpacked before it, which it may refer to; answers its size.
fn unpack_into(
    block: &[u8],
    into: &mut [u8],
    before: &[u8],
    frame: &Frame,
) -> Result<usize, DecompressError> {
    if frame.linked && !before.is_empty() {
        decompress_into_with_dict(block, into, &before[before.len().saturating_sub(WINDOW)..])
    } else {
        decompress_into(block, into)
    }
}

fn unpack_in_place(
    block: &[u8],
    out: &mut Vec<u8>,
    room: usize,
    frame: &Frame,
) -> Result<(), DecompressError> {
    let start = out.len();
    out.resize(start + room, 0);
    let (before, after) = out.split_at_mut(start);
    let size = unpack_into(block, after, before, frame)?;
    out.truncate(start + size);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use proptest::prelude::*;
    use std::io::Write;

    fn frame(info: FrameInfo, data: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Data with repetitions near and far, and some that cannot be compressed.
    fn data(size: usize) -> Vec<u8> {
        (0..size).map(|i| if i / 5_000 % 3 == 0 { (i * i % 251) as u8 } else { (i / 97) as u8 }).collect()
    }

    #[test]
    fn every_kind_of_frame_is_unpacked() {
        let data = data(300_000);
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
                for sums in [false, true] {
                    let info = FrameInfo::new().block_mode(mode).block_size(size);
                    let info = info.block_checksums(sums).content_checksum(sums);
                    let info = info.content_size(sums.then_some(data.len() as u64));
                    assert_eq!(decompress(&frame(info, &data), data.len()).unwrap(), data);
                }
            }
        }
    }

    #[test]
    fn a_frame_cut_off_anywhere_is_an_error() {
        let frame = frame(FrameInfo::new(), &data(10_000));
        for end in 0..frame.len() {
            assert!(decompress(&frame[..end], 1 << 20).is_err(), "at {end}");
        }
    }

    #[test]
    fn a_byte_more_than_allowed_is_too_large() {
        let data = data(100_000);
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            let frame = frame(FrameInfo::new().block_mode(mode), &data);
            assert!(decompress(&frame, data.len()).is_ok());
            assert!(matches!(decompress(&frame, data.len() - 1), Err(Fault::TooLarge(99_999))));
        }
    }

    proptest! {
        #[test]
        fn damaged_frames_never_panic(places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), linked: bool) {
            let mode = if linked { BlockMode::Linked } else { BlockMode::Independent };
            let mut frame = frame(FrameInfo::new().block_mode(mode).block_size(BlockSize::Max64KB), &data(70_000));
            for (place, byte) in places {
                let place = place.index(frame.len());
                frame[place] = byte;
            }
            if let Ok(out) = decompress(&frame, 1 << 20) {
                prop_assert!(out.len() <= 1 << 20);
            }
        }
    }
}
