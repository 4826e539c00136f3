//! Where the parts of one record are: its numbers read, its key, value and headers cut off, nothing judged.
//!
//! Nearly every record has numbers of few bytes, and 32 bytes or more behind its beginning. There the numbers are read
//! from an array of known size, without asking before each byte whether there is one; all other records are read number
//! by number. Both ways give the same answer.

use super::varint;

/// The beginning of a record, longer than the numbers in front of the key can be in the quick way.
type Head = [u8; 32];

/// The parts of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts<'a> {
    pub(super) timestamp_delta: i64,
    pub(super) offset_delta: i32,
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    /// The headers, their count in front.
    pub(super) tail: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Cuts the first record off `rest`; `None` when the bytes are no record.
    #[inline(always)]
    pub(super) fn cut(rest: &mut &'a [u8]) -> Option<Self> {
        match Self::quick(rest) {
            Some((parts, behind)) => {
                *rest = behind;
                Some(parts)
            }
            None => Self::slow(rest),
        }
    }

    #[inline(always)]
    fn quick(rest: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let head: &Head = rest.first_chunk()?;
        let mut at = 0;
        let length = usize::try_from(small(head, &mut at)?).ok()?;
        let (record, behind) = rest.split_at_checked(at + length)?;
        // Behind the attributes, which mean nothing.
        at += 1;
        let timestamp_delta = i64::from(medium(head, &mut at)?);
        let offset_delta = small(head, &mut at)?;
        let key_length = small(head, &mut at)?;
        let (key, record) = field(record.get(at..)?, key_length)?;
        // Behind the value there is at least the number of headers.
        let mut at = 0;
        let value_length = small(record.first_chunk::<2>()?, &mut at)?;
        let (value, tail) = field(record.get(at..)?, value_length)?;
        Some((Self { timestamp_delta, offset_delta, key, value, tail }, behind))
    }

    #[inline(never)]
    fn slow(rest: &mut &'a [u8]) -> Option<Self> {
        let length = usize::try_from(varint::get_i32(rest)?).ok()?;
        let (record, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        let (_attributes, mut tail) = record.split_first()?;
        let timestamp_delta = varint::get_i64(&mut tail)?;
        let offset_delta = varint::get_i32(&mut tail)?;
        let key = varint::nullable(&mut tail)?;
        let value = varint::nullable(&mut tail)?;
        Some(Self { timestamp_delta, offset_delta, key, value, tail })
    }
}

/// A field of this length off the front, -1 for null.
#[inline(always)]
fn field(record: &[u8], length: i32) -> Option<(Option<&[u8]>, &[u8])> {
    if length < 0 {
        return (length == -1).then_some((None, record));
    }
    let (field, rest) = record.split_at_checked(length as usize)?;
    Some((Some(field), rest))
}

/// A number of one or two bytes; `None` when it is longer.
#[inline(always)]
fn small<const N: usize>(head: &[u8; N], at: &mut usize) -> Option<i32> {
    let first = byte(head, *at);
    if first < 0x80 {
        *at += 1;
        return Some(unzigzag(first));
    }
    let second = byte(head, *at + 1);
    *at += 2;
    (second < 0x80).then(|| unzigzag(first & 0x7f | second << 7))
}

/// A number of up to three bytes; `None` when it is longer.
#[inline(always)]
fn medium(head: &Head, at: &mut usize) -> Option<i32> {
    let first = byte(head, *at);
    let second = byte(head, *at + 1);
    if first < 0x80 || second < 0x80 {
        return small(head, at);
    }
    let third = byte(head, *at + 2);
    *at += 3;
    (third < 0x80).then(|| unzigzag(first & 0x7f | (second & 0x7f) << 7 | third << 14))
}

/// `at` is within `head`: the numbers are not long enough to leave it. The remainder spares the question.
#[inline(always)]
fn byte<const N: usize>(head: &[u8; N], at: usize) -> u32 {
    u32::from(head[at % N])
}

#[inline(always)]
fn unzigzag(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proptest::prelude::*;

    /// A record as it is written, with these parts; lengths that are no lengths are written as they are.
    fn written(numbers: (i64, i64), key: (i64, Vec<u8>), value: (i64, Vec<u8>), tail: Vec<u8>) -> BytesMut {
        let mut body = BytesMut::from(&[0u8][..]);
        varint::put(&mut body, numbers.0);
        varint::put(&mut body, numbers.1);
        for (length, bytes) in [key, value] {
            varint::put(&mut body, length);
            body.extend_from_slice(&bytes);
        }
        body.extend_from_slice(&tail);
        let mut record = BytesMut::new();
        varint::put(&mut record, body.len() as i64);
        record.extend_from_slice(&body);
        record
    }

    fn length_and_bytes() -> impl Strategy<Value = (i64, Vec<u8>)> {
        let bytes = prop_oneof![3 => 0..40usize, 1 => 60..70usize, 1 => 8_180..8_200usize];
        (bytes.prop_flat_map(|size| prop::collection::vec(any::<u8>(), size)), any::<u8>()).prop_map(
            |(bytes, odd)| match odd {
                0..10 => (-1, Vec::new()),
                10..20 => (i64::from(odd) - 25, bytes),
                20..30 => (bytes.len() as i64 + i64::from(odd) - 25, bytes),
                _ => (bytes.len() as i64, bytes),
            },
        )
    }

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![-70..70i64, -9_000..9_000i64, -1_100_000..1_100_000i64, any::<i64>()]
    }

    fn same_both_ways(bytes: &[u8]) {
        let mut behind = bytes;
        let slow = Parts::slow(&mut behind).map(|parts| (parts, behind));
        if let Some(quick) = Parts::quick(bytes) {
            assert_eq!(Some(quick), slow);
        }
        let mut rest = bytes;
        let cut = Parts::cut(&mut rest).map(|parts| (parts, rest));
        assert_eq!(cut, slow);
    }

    proptest! {
        #[test]
        fn both_ways_give_the_same_answer_whatever_the_bytes(
            numbers in (number(), number()),
            key in length_and_bytes(),
            value in length_and_bytes(),
            tail in prop::collection::vec(any::<u8>(), 0..8),
            behind in prop::collection::vec(any::<u8>(), 0..40),
            end in any::<prop::sample::Index>(),
        ) {
            let mut bytes = written(numbers, key, value, tail);
            bytes.extend_from_slice(&behind);
            same_both_ways(&bytes);
            same_both_ways(&bytes[..end.index(bytes.len())]);
        }

        #[test]
        fn both_ways_give_the_same_answer_for_noise(mut bytes in prop::collection::vec(any::<u8>(), 32..80), length in 0..64u8) {
            bytes[0] = length;
            same_both_ways(&bytes);
        }
    }

    #[test]
    fn the_usual_record_takes_the_quick_way() {
        for (key, value) in [((-1, vec![]), (100, vec![1; 100])), ((8, vec![1; 8]), (1_000, vec![1; 1_000]))]
        {
            let bytes = written((900_000, 114), key, value, vec![0]);
            let (parts, behind) = Parts::quick(&bytes).unwrap();
            assert_eq!((parts.timestamp_delta, parts.offset_delta), (900_000, 114));
            assert_eq!((parts.tail, behind.len()), (&[0u8][..], 0));
        }
    }
}
