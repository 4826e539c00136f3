//! Integers, texts, bytes and arrays on the wire.

use super::{DecodeError, Nullable, Reader, Wire, Writer, put_uvarint};
use crate::{ErrorCode, Uuid};
use bytes::Bytes;

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Wire for $t {
            fn put(&self, out: &mut Writer, _: i16, _: bool) {
                out.extend_from_slice(&self.to_be_bytes());
            }
            fn get(reader: &mut Reader, _: i16, _: bool) -> Result<Self, DecodeError> {
                Ok(<$t>::from_be_bytes(reader.array()?))
            }
        }
    )*};
}
numbers!(i8, i16, i32, i64, f64);

impl Wire for bool {
    fn put(&self, out: &mut Writer, _: i16, _: bool) {
        out.extend_from_slice(&[u8::from(*self)]);
    }
    fn get(reader: &mut Reader, _: i16, _: bool) -> Result<Self, DecodeError> {
        let [byte] = reader.array()?;
        Ok(byte != 0)
    }
}

impl Wire for Uuid {
    fn put(&self, out: &mut Writer, _: i16, _: bool) {
        out.extend_from_slice(self.as_bytes());
    }
    fn get(reader: &mut Reader, _: i16, _: bool) -> Result<Self, DecodeError> {
        Ok(Self::from_bytes(reader.array()?))
    }
}

impl Wire for ErrorCode {
    fn put(&self, out: &mut Writer, version: i16, flexible: bool) {
        self.0.put(out, version, flexible);
    }
    fn get(reader: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Ok(Self(i16::get(reader, version, flexible)?))
    }
}

/// The width of a length in the old encoding; the compact one always uses a variable-length integer.
#[derive(Clone, Copy)]
enum Width {
    Two,
    Four,
}

/// Appends a length, or null.
fn put_length(out: &mut Writer, length: Option<usize>, width: Width, flexible: bool) {
    match (length, flexible, width) {
        (None, true, _) => put_uvarint(out, 0),
        (Some(n), true, _) => put_uvarint(out, n as u32 + 1),
        (None, false, Width::Two) => out.extend_from_slice(&(-1i16).to_be_bytes()),
        (None, false, Width::Four) => out.extend_from_slice(&(-1i32).to_be_bytes()),
        (Some(n), false, Width::Two) => out.extend_from_slice(&(n as i16).to_be_bytes()),
        (Some(n), false, Width::Four) => out.extend_from_slice(&(n as i32).to_be_bytes()),
    }
}

/// Reads a length that cannot be larger than what follows it.
fn get_length(reader: &mut Reader, width: Width, flexible: bool) -> Result<Option<usize>, DecodeError> {
    let length = match (flexible, width) {
        (true, _) => i64::from(reader.uvarint()?) - 1,
        (false, Width::Two) => i64::from(i16::get(reader, 0, false)?),
        (false, Width::Four) => i64::from(i32::get(reader, 0, false)?),
    };
    match usize::try_from(length) {
        Ok(n) if n <= reader.remaining() => Ok(Some(n)),
        Ok(_) => Err(DecodeError::Truncated),
        Err(_) if length == -1 => Ok(None),
        Err(_) => Err(DecodeError::BadLength),
    }
}

/// A text longer than Kafka takes is cut at a character's border, so that what goes out is always valid. The compact
/// encoding could say more, but readers refuse it.
fn fitting(text: &str) -> &str {
    const MOST: usize = i16::MAX as usize;
    if text.len() <= MOST {
        return text;
    }
    let mut end = MOST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Wire for Option<String> {
    fn put(&self, out: &mut Writer, _: i16, flexible: bool) {
        let text = self.as_deref().map(fitting);
        put_length(out, text.map(str::len), Width::Two, flexible);
        out.extend_from_slice(text.unwrap_or_default().as_bytes());
    }
    fn get(reader: &mut Reader, _: i16, flexible: bool) -> Result<Self, DecodeError> {
        let Some(n) = get_length(reader, Width::Two, flexible)? else { return Ok(None) };
        reader.read(n, |bytes| match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(DecodeError::BadText),
        })
    }
}

impl Wire for String {
    fn put(&self, out: &mut Writer, _: i16, flexible: bool) {
        let text = fitting(self);
        put_length(out, Some(text.len()), Width::Two, flexible);
        out.extend_from_slice(text.as_bytes());
    }
    fn get(reader: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Option::<Self>::get(reader, version, flexible)?.ok_or(DecodeError::UnexpectedNull)
    }
}

impl Wire for Option<Bytes> {
    fn put(&self, out: &mut Writer, _: i16, flexible: bool) {
        put_length(out, self.as_ref().map(Bytes::len), Width::Four, flexible);
        if let Some(bytes) = self {
            out.put_bytes(bytes);
        }
    }
    fn get(reader: &mut Reader, _: i16, flexible: bool) -> Result<Self, DecodeError> {
        get_length(reader, Width::Four, flexible)?.map(|n| reader.take(n)).transpose()
    }
}

impl Wire for Bytes {
    fn put(&self, out: &mut Writer, _: i16, flexible: bool) {
        put_length(out, Some(self.len()), Width::Four, flexible);
        out.put_bytes(self);
    }
    fn get(reader: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Option::<Self>::get(reader, version, flexible)?.ok_or(DecodeError::UnexpectedNull)
    }
}

impl<T: Wire> Wire for Option<Vec<T>> {
    fn put(&self, out: &mut Writer, version: i16, flexible: bool) {
        put_length(out, self.as_ref().map(Vec::len), Width::Four, flexible);
        for item in self.iter().flatten() {
            item.put(out, version, flexible);
        }
    }
    fn get(reader: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        // Every item takes at least a byte, so the count is bounded by what was received; the vector grows with the
        // items that are really there.
        let Some(n) = get_length(reader, Width::Four, flexible)? else { return Ok(None) };
        reader.pay::<T>(n)?;
        let mut items = Vec::with_capacity(n.min(64));
        for _ in 0..n {
            items.push(T::get(reader, version, flexible)?);
        }
        Ok(Some(items))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Writer, version: i16, flexible: bool) {
        put_length(out, Some(self.len()), Width::Four, flexible);
        for item in self {
            item.put(out, version, flexible);
        }
    }
    fn get(reader: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Option::<Self>::get(reader, version, flexible)?.ok_or(DecodeError::UnexpectedNull)
    }
}

impl Nullable for Option<String> {
    fn put_required(&self, out: &mut Writer, version: i16, flexible: bool) {
        match self {
            Some(text) => text.put(out, version, flexible),
            None => String::new().put(out, version, flexible),
        }
    }
}

impl<T: Wire> Nullable for Option<Vec<T>> {
    fn put_required(&self, out: &mut Writer, version: i16, flexible: bool) {
        match self {
            Some(items) => items.put(out, version, flexible),
            None => Vec::<T>::new().put(out, version, flexible),
        }
    }
}
