//! Zigzag variable-length integers, as records use them, and bytes behind such a length.
//!
//! The one- and two-byte forms are read without a loop: they are nearly all there is in a batch.

/// Reads an i32 off the front of `input`; `None` when the bytes end or more than five of them go on.
#[inline(always)]
pub(super) fn get_i32(input: &mut &[u8]) -> Option<i32> {
    let raw = match **input {
        [a, ref rest @ ..] if a < 0x80 => {
            *input = rest;
            u32::from(a)
        }
        [a, b, ref rest @ ..] if b < 0x80 => {
            *input = rest;
            u32::from(a & 0x7f) | u32::from(b) << 7
        }
        _ => get_long(input, 5)? as u32,
    };
    Some((raw >> 1) as i32 ^ -((raw & 1) as i32))
}

/// Reads an i64 off the front of `input`; `None` when the bytes end or more than ten of them go on.
#[inline(always)]
pub(super) fn get_i64(input: &mut &[u8]) -> Option<i64> {
    let raw = match **input {
        [a, ref rest @ ..] if a < 0x80 => {
            *input = rest;
            u64::from(a)
        }
        [a, b, ref rest @ ..] if b < 0x80 => {
            *input = rest;
            u64::from(a & 0x7f) | u64::from(b) << 7
        }
        _ => get_long(input, 10)?,
    };
    Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
}

#[inline(never)]
fn get_long(input: &mut &[u8], most: u32) -> Option<u64> {
    let mut raw = 0u64;
    for i in 0..most {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        raw |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some(raw);
        }
    }
    None
}

/// Bytes with their length in front, -1 for null.
#[inline(always)]
pub(super) fn nullable<'a>(input: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = get_i32(input)?;
    if length < 0 {
        return (length == -1).then_some(None);
    }
    let (bytes, rest) = input.split_at_checked(length as usize)?;
    *input = rest;
    Some(Some(bytes))
}

/// Appends an integer.
pub(super) fn put(out: &mut bytes::BytesMut, value: i64) {
    let mut raw = zigzag(value);
    while raw >= 0x80 {
        out.extend_from_slice(&[raw as u8 | 0x80]);
        raw >>= 7;
    }
    out.extend_from_slice(&[raw as u8]);
}

/// How many bytes an integer takes.
pub(super) fn size(value: i64) -> usize {
    (64 - (zigzag(value) | 1).leading_zeros() as usize).div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    #[test]
    fn integers_of_every_size_survive_and_take_the_size_that_was_foretold() {
        for shift in 0..64 {
            for value in [1i64 << shift, (1i64 << shift).wrapping_neg(), (1i64 << shift).wrapping_sub(1)] {
                let mut out = BytesMut::new();
                put(&mut out, value);
                assert_eq!(out.len(), size(value));
                let mut input = &out[..];
                assert_eq!(get_i64(&mut input), Some(value));
                assert!(input.is_empty());
                if let Ok(small) = i32::try_from(value) {
                    assert_eq!(get_i32(&mut &out[..]), Some(small));
                }
                for end in 0..out.len() {
                    assert_eq!(get_i64(&mut &out[..end]), None);
                }
            }
        }
    }

    #[test]
    fn an_integer_that_never_ends_is_refused() {
        assert_eq!(get_i32(&mut &[0x80; 20][..]), None);
        assert_eq!(get_i64(&mut &[0xff; 20][..]), None);
    }
}
