//! What the sticky assignors put into the user data of a subscription, byte for byte as the Java assignors do.
//!
//! `sticky` tells the partitions of the last assignment, topic by topic, and since its second edition their generation
//! behind that. There is no version field: what ends before the generation is of the first edition.
//! `cooperative-sticky` tells the generation alone, as the partitions are in the subscription itself.

use crate::TopicPartition;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;

/// The partitions that a member told, still in their bytes.
#[derive(Debug, Default)]
pub(crate) struct Told<'a> {
    pub(crate) topics: Vec<(&'a str, &'a [[u8; 4]])>,
    pub(crate) generation: Option<i32>,
}

/// Writes the user data of `sticky`.
pub(crate) fn write_sticky(owned: &[TopicPartition], generation: i32) -> Bytes {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for partition in owned {
        topics.entry(&partition.topic).or_default().push(partition.partition);
    }
    let mut out = BytesMut::new();
    out.put_i32(topics.len() as i32);
    for (topic, partitions) in topics {
        out.put_i16(topic.len() as i16);
        out.put_slice(topic.as_bytes());
        out.put_i32(partitions.len() as i32);
        partitions.iter().for_each(|partition| out.put_i32(*partition));
    }
    out.put_i32(generation);
    out.freeze()
}

/// Reads the user data of `sticky`; `None` when it is something else.
pub(crate) fn read_sticky(bytes: &[u8]) -> Option<Told<'_>> {
    let mut rest = bytes;
    let count = i32::from_be_bytes(take(&mut rest)?);
    let mut topics = Vec::new();
    for _ in 0..u32::try_from(count).ok()? {
        let length = usize::try_from(i16::from_be_bytes(take(&mut rest)?)).ok()?;
        let (topic, after) = rest.split_at_checked(length)?;
        rest = after;
        let partitions = usize::try_from(i32::from_be_bytes(take(&mut rest)?)).ok()?;
        let (partitions, after) = rest.split_at_checked(partitions.checked_mul(4)?)?;
        rest = after;
        topics.push((std::str::from_utf8(topic).ok()?, partitions.as_chunks().0));
    }
    Some(Told { topics, generation: take(&mut rest).map(i32::from_be_bytes) })
}

/// Writes the user data of `cooperative-sticky`.
pub(crate) fn write_generation(generation: i32) -> Bytes {
    Bytes::copy_from_slice(&generation.to_be_bytes())
}

/// Reads the user data of `cooperative-sticky`.
pub(crate) fn read_generation(mut bytes: &[u8]) -> Option<i32> {
    take(&mut bytes).map(i32::from_be_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_EDITION: &[u8] =
        b"\0\0\0\x02\0\x02t1\0\0\0\x02\0\0\0\0\0\0\0\x03\0\x02t2\0\0\0\x01\0\0\0\x01\0\0\0\x07";

    fn owned() -> Vec<TopicPartition> {
        [("t1", 0), ("t2", 1), ("t1", 3)].map(TopicPartition::from).to_vec()
    }

    #[test]
    fn the_bytes_of_sticky_are_those_of_java() {
        assert_eq!(write_sticky(&owned(), 7), SECOND_EDITION);
    }

    #[test]
    fn both_editions_of_sticky_are_read() {
        let told = read_sticky(SECOND_EDITION).expect("readable");
        assert_eq!(told.generation, Some(7));
        assert_eq!(told.topics, [("t1", &[[0, 0, 0, 0], [0, 0, 0, 3]][..]), ("t2", &[[0, 0, 0, 1]][..])]);
        let first = &SECOND_EDITION[..SECOND_EDITION.len() - 4];
        assert_eq!(read_sticky(first).expect("readable").generation, None);
    }

    #[test]
    fn what_ends_early_or_lies_about_its_length_is_not_read() {
        for end in 0..SECOND_EDITION.len() - 4 {
            assert!(read_sticky(&SECOND_EDITION[..end]).is_none(), "cut at {end}");
        }
        assert!(read_sticky(b"\x7f\xff\xff\xff").is_none());
        assert!(read_sticky(b"\xff\xff\xff\xff").is_none());
        assert!(read_sticky(b"\0\0\0\x01\0\x01t\x7f\xff\xff\xff\0\0\0\x01").is_none());
        assert!(read_sticky(b"\0\0\0\x01\0\x01\xff\0\0\0\0\0\0\0\x01").is_none());
    }

    #[test]
    fn the_generation_of_cooperative_sticky_goes_there_and_back() {
        assert_eq!(write_generation(258), &b"\0\0\x01\x02"[..]);
        assert_eq!(read_generation(b"\0\0\x01\x02"), Some(258));
        assert_eq!(read_generation(b"\0\0\x01"), None);
    }
}
