//! The codecs, each within a limit: what comes off the wire says nothing about how much memory is taken.
//!
//! Snappy comes in two framings: Java writes blocks behind a header ("xerial"), librdkafka and others one raw block.
//! Kafka's lz4 is the official frame format.

use super::{BatchError, lz4, scratch};
use bytes::{Bytes, BytesMut};
use std::io::{self, Read, Write};

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Compression {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this number in a batch's attributes.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The number in a batch's attributes.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The name in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec with this name in `compression.type`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// The most bytes that the records of one batch may have when nothing else is said. A broker takes batches of 1 MiB by
/// default, and data that compresses by a factor of 256 is rare.
pub const DEFAULT_DECOMPRESSED_LIMIT: usize = 256 << 20;

/// Why bytes could not be decompressed.
#[derive(Debug)]
pub(super) enum Fault {
    TooLarge(usize),
    Malformed(String),
}

impl Fault {
    pub(super) fn at(self, offset: i64, compression: Compression) -> BatchError {
        match self {
            Self::TooLarge(limit) => BatchError::TooLarge { offset, limit },
            Self::Malformed(reason) => BatchError::BadCompression { offset, compression, reason },
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<snap::Error> for Fault {
    fn from(error: snap::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// The records as they were before compression, at most `limit` bytes of them. Bytes that are not compressed are passed
/// on as they are, whatever the limit.
pub(super) fn decompress(compression: Compression, bytes: Bytes, limit: usize) -> Result<Bytes, Fault> {
    // Places in a buffer are kept in 32 bits.
    let limit = limit.min(i32::MAX as usize);
    match compression {
        Compression::None => Ok(bytes),
        Compression::Gzip => read_all(flate2::read::MultiGzDecoder::new(&bytes[..]), bytes.len(), limit),
        Compression::Snappy => snappy(&bytes, limit),
        Compression::Lz4 => Ok(lz4::decompress(&bytes, limit)?.into()),
        Compression::Zstd => match scratch::zstd(&bytes, limit) {
            Ok(out) => Ok(out.into()),
            // Larger than most, or damaged: the long way tells.
            Err(_) => read_all(zstd::Decoder::with_buffer(&bytes[..])?, bytes.len(), limit),
        },
    }
}

/// Reads to the end. The buffer starts in proportion to what was received and grows with what really comes out.
fn read_all(reader: impl Read, compressed: usize, limit: usize) -> Result<Bytes, Fault> {
    let mut out = Vec::with_capacity(compressed.saturating_mul(4).min(limit));
    reader.take(limit as u64 + 1).read_to_end(&mut out)?;
    if out.len() > limit { Err(Fault::TooLarge(limit)) } else { Ok(out.into()) }
}

const XERIAL_MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// The magic, a version and the oldest version that can read it.
const XERIAL_HEADER: usize = 16;

fn snappy(bytes: &[u8], limit: usize) -> Result<Bytes, Fault> {
    let mut out = Vec::new();
    if !bytes.starts_with(XERIAL_MAGIC) {
        snappy_block(bytes, &mut out, limit)?;
        return Ok(out.into());
    }
    let mut rest = bytes.get(XERIAL_HEADER..).ok_or_else(cut_off)?;
    while let Some((size, tail)) = rest.split_first_chunk::<4>() {
        let block = tail.get(..u32::from_be_bytes(*size) as usize).ok_or_else(cut_off)?;
        snappy_block(block, &mut out, limit)?;
        rest = &tail[block.len()..];
    }
    if rest.is_empty() { Ok(out.into()) } else { Err(cut_off()) }
}

fn cut_off() -> Fault {
    Fault::Malformed("the bytes end before the last block does".to_owned())
}

/// The longest copy of snappy is 64 bytes and takes three; a block that says more than that about its size is lying.
const SNAPPY_MOST_FACTOR: usize = 22;

fn snappy_block(block: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), Fault> {
    let size = snap::raw::decompress_len(block)?;
    if size > limit - out.len() {
        return Err(Fault::TooLarge(limit));
    }
    if size > block.len().saturating_mul(SNAPPY_MOST_FACTOR) {
        return Err(Fault::Malformed("a block says it is larger than it can be".to_owned()));
    }
    let start = out.len();
    out.resize(start + size, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..])?;
    Ok(())
}

/// What stands behind the first `head` bytes of `bytes`, compressed, behind as many zeros. `None` when there is nothing to
/// compress, or when the codec fails.
pub(super) fn compress(compression: Compression, bytes: &[u8], head: usize) -> Option<BytesMut> {
    let payload = bytes.get(head..)?;
    let out = vec![0; head];
    let out = match compression {
        Compression::None => return None,
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            encoder.write_all(payload).ok()?;
            encoder.finish().ok()?
        }
        Compression::Snappy => snappy_blocks(payload, out)?,
        Compression::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(out);
            encoder.write_all(payload).ok()?;
            encoder.finish().ok()?
        }
        Compression::Zstd => {
            let mut encoder = zstd::Encoder::new(out, 0).ok()?;
            encoder.set_pledged_src_size(Some(payload.len() as u64)).ok()?;
            encoder.write_all(payload).ok()?;
            encoder.finish().ok()?
        }
    };
    Some(BytesMut::from(Bytes::from(out)))
}

/// Java's reader wants the framing; its writer takes blocks of 32 KiB.
fn snappy_blocks(payload: &[u8], mut out: Vec<u8>) -> Option<Vec<u8>> {
    out.extend_from_slice(XERIAL_MAGIC);
    out.extend_from_slice(&1i32.to_be_bytes());
    out.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in payload.chunks(32 << 10) {
        let compressed = encoder.compress_vec(block).ok()?;
        out.extend_from_slice(&(compressed.len() as u32).to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    Some(out)
}
