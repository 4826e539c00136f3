//! Which partition a record goes to: by its key, as Java's producer does it, or sticking to one for a while.
//!
//! Mirrors `BuiltInPartitioner` and `Utils.murmur2`. Producers in other languages must find the same partition for a key.

use crate::cluster::{TopicMetadata, backoff::Jitter};
use std::{collections::BTreeMap, sync::Arc};

/// The partition of a key, of this many.
pub(super) fn for_key(key: &[u8], partitions: usize) -> i32 {
    let positive = murmur2(key) & 0x7fff_ffff;
    i32::try_from(positive as usize % partitions.max(1)).unwrap_or(0)
}

/// The 32-bit hash that Java's producer uses for keys.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    let mut hash = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// Where records without a key go: one partition until a batch's worth of bytes went there, then another one.
#[derive(Debug, Default)]
pub(super) struct Sticky(BTreeMap<Arc<str>, (i32, usize)>);

impl Sticky {
    /// The partition of the next record of `size` bytes.
    pub(super) fn choose(
        &mut self,
        topic: &TopicMetadata,
        size: usize,
        batch: usize,
        jitter: &mut Jitter,
    ) -> i32 {
        let is_led = |p: i32| topic.partitions.get(&p).is_some_and(|p| p.leader.is_some());
        let now = self.0.get(&topic.name).filter(|(p, used)| *used < batch && is_led(*p)).copied();
        let (partition, used) = now.unwrap_or_else(|| (another(topic, jitter), 0));
        self.0.insert(topic.name.clone(), (partition, used + size));
        partition
    }
}

/// Any partition that has a leader; any at all when none has.
fn another(topic: &TopicMetadata, jitter: &mut Jitter) -> i32 {
    let led: Vec<i32> =
        topic.partitions.iter().filter(|(_, p)| p.leader.is_some()).map(|(n, _)| *n).collect();
    let all: Vec<i32> = topic.partitions.keys().copied().collect();
    let among = if led.is_empty() { all } else { led };
    among.get(jitter.below(among.len())).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hashed_as_java_hashes_them() {
        let hashes: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ];
        for (key, hash) in hashes {
            assert_eq!(murmur2(key) as i32, hash, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn every_key_has_a_partition_that_exists() {
        for n in 1..50 {
            for key in 0..200u32 {
                let partition = for_key(&key.to_be_bytes(), n);
                assert!((0..n as i32).contains(&partition));
            }
        }
    }
}
