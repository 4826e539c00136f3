//! How values look on the wire, and the macros that turn a table of fields into a message of every version.

#[macro_use]
pub(crate) mod message;
pub(crate) mod primitive;
mod writer;

pub use writer::{Pieces, Writer};

use bytes::{Buf, Bytes};

/// Bytes that are not what they claim to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("the bytes end before the value does")]
    Truncated,
    /// The message would take far more memory than what was received.
    #[error("the message would take far more memory than its bytes: it holds too many empty values")]
    TooManyValues,
    /// A length or count that is negative or larger than what follows.
    #[error("a length is negative or larger than what follows")]
    BadLength,
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    BadText,
    /// Null where the protocol requires a value.
    #[error("null where a value is required")]
    UnexpectedNull,
    /// Bytes are left over behind the message.
    #[error("{0} bytes are left over behind the message")]
    TrailingBytes(usize),
    /// This version of the API is not spoken here.
    #[error("version {version} of API {key} is not supported")]
    UnsupportedVersion {
        /// The API's number.
        key: i16,
        /// The version that was asked for.
        version: i16,
    },
    /// No API has this number, or it is not spoken here.
    #[error("API {0} is not supported")]
    UnsupportedApi(i16),
}

/// Reads values off a shared buffer; byte fields are slices of it, never copies.
///
/// Values in memory are larger than on the wire, an empty text 24 times. A reader therefore has a budget in proportion to
/// the bytes it was given, far above what real messages take, from which the items of arrays are paid for.
#[derive(Debug, Clone)]
pub struct Reader {
    buf: Bytes,
    budget: usize,
}

/// How much memory a byte may become, and what every message may take besides.
const BUDGET_FACTOR: usize = 16;
const BUDGET_FLOOR: usize = 64 << 10;

impl Reader {
    /// Reads from the start of `buf`.
    pub fn new(buf: Bytes) -> Self {
        let budget = buf.len().saturating_mul(BUDGET_FACTOR).saturating_add(BUDGET_FLOOR);
        Self { buf, budget }
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.buf.len()
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<Bytes, DecodeError> {
        if self.buf.len() < n {
            return Err(DecodeError::Truncated);
        }
        Ok(self.buf.split_to(n))
    }

    /// Hands the next `n` bytes to `read` without taking a share of the buffer.
    fn read<T>(
        &mut self,
        n: usize,
        read: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let value = read(self.buf.get(..n).ok_or(DecodeError::Truncated)?)?;
        self.buf.advance(n);
        Ok(value)
    }

    /// A reader for the next `n` bytes, with the same budget; [`Reader::part_done`] takes back what it has not used.
    pub(crate) fn part(&mut self, n: usize) -> Result<Self, DecodeError> {
        Ok(Self { buf: self.take(n)?, budget: std::mem::take(&mut self.budget) })
    }

    pub(crate) fn part_done(&mut self, part: Self) {
        self.budget = part.budget;
    }

    /// Pays for `count` values of type `T`.
    fn pay<T>(&mut self, count: usize) -> Result<(), DecodeError> {
        let price = count.saturating_mul(size_of::<T>());
        self.budget = self.budget.checked_sub(price).ok_or(DecodeError::TooManyValues)?;
        Ok(())
    }

    /// Everything that is left.
    pub fn rest(self) -> Bytes {
        self.buf
    }

    /// An error when bytes are left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.buf.is_empty() { Ok(()) } else { Err(DecodeError::TrailingBytes(self.buf.len())) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut bytes = [0; N];
        if self.buf.len() < N {
            return Err(DecodeError::Truncated);
        }
        self.buf.copy_to_slice(&mut bytes);
        Ok(bytes)
    }

    /// An unsigned variable-length integer of at most five bytes.
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for i in 0..5 {
            let [byte] = self.array()?;
            if i == 4 && byte > 0x0f {
                return Err(DecodeError::BadLength);
            }
            value |= u32::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::BadLength)
    }

    /// Steps over tagged fields whose tags nobody knows.
    pub fn skip_tags(&mut self) -> Result<(), DecodeError> {
        for _ in 0..self.uvarint()? {
            self.uvarint()?;
            let size = self.uvarint()? as usize;
            self.take(size)?;
        }
        Ok(())
    }
}

/// Appends an unsigned variable-length integer.
pub fn put_uvarint(out: &mut Writer, mut value: u32) {
    while value >= 0x80 {
        out.extend_from_slice(&[value as u8 | 0x80]);
        value >>= 7;
    }
    out.extend_from_slice(&[value as u8]);
}

/// How one value looks on the wire. `flexible` is Kafka's compact encoding with tagged fields.
pub trait Wire: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Writer, version: i16, flexible: bool);
    /// Reads a value.
    fn get(reader: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError>;
}

/// A value that may be null, in versions that have no null.
pub(crate) trait Nullable {
    /// Appends the value, an empty one when it is null.
    fn put_required(&self, out: &mut Writer, version: i16, flexible: bool);
}

/// Appends a nullable struct as the content of a tagged field: unlike elsewhere 0 is null, and 1 stands before a value.
pub(crate) fn put_present<T: Wire>(out: &mut Writer, value: &Option<T>, version: i16) {
    put_uvarint(out, u32::from(value.is_some()));
    if let Some(value) = value {
        value.put(out, version, true);
    }
}

/// Reads what [`put_present`] writes.
pub(crate) fn get_present<T: Wire>(reader: &mut Reader, version: i16) -> Result<Option<T>, DecodeError> {
    match reader.uvarint()? {
        0 => Ok(None),
        _ => T::get(reader, version, true).map(Some),
    }
}

/// A request, a response, or another message with versions of its own.
pub trait Message: Wire {
    /// The versions that can be encoded and decoded.
    const VERSIONS: std::ops::RangeInclusive<i16>;
    /// The first version with compact encodings and tagged fields; `i16::MAX` when there is none.
    const FLEXIBLE: i16;

    /// Whether this version uses compact encodings and tagged fields.
    fn is_flexible(version: i16) -> bool {
        version >= Self::FLEXIBLE
    }

    /// Appends the message in this version. Fields that the version does not have are left out.
    fn encode(&self, version: i16, out: &mut Writer) {
        self.put(out, version, Self::is_flexible(version));
    }

    /// The message in this version, as bytes of its own.
    fn to_bytes(&self, version: i16) -> Bytes {
        let mut out = Writer::new();
        self.encode(version, &mut out);
        out.into_bytes()
    }

    /// The message in this version behind a number of two bytes, which tells the reader what follows.
    fn to_numbered_bytes(&self, number: i16, version: i16) -> Bytes {
        let mut out = Writer::new();
        number.put(&mut out, 0, false);
        self.encode(version, &mut out);
        out.into_bytes()
    }

    /// Reads a whole message of this version; bytes left over are an error.
    fn decode(bytes: Bytes, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let message = Self::get(&mut reader, version, Self::is_flexible(version))?;
        reader.finish()?;
        Ok(message)
    }
}

/// Appends the tagged fields of one struct, lowest tag first.
pub(crate) fn put_tagged(out: &mut Writer, mut tagged: Vec<(u32, Writer)>) {
    tagged.sort_by_key(|(tag, _)| *tag);
    put_uvarint(out, tagged.len() as u32);
    for (tag, value) in tagged {
        put_uvarint(out, tag);
        put_uvarint(out, value.len() as u32);
        out.extend_from_slice(&value.into_bytes());
    }
}
