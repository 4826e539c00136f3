//! Ids of members: how the client calls itself, or its instance id, and a random UUID. Random from a seed.

/// Makes member ids.
#[derive(Debug)]
pub(super) struct MemberIds {
    state: u64,
}

impl MemberIds {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A new id, `<prefix>-<UUID version 4>`.
    pub(super) fn next(&mut self, prefix: &str) -> String {
        let (high, low) = (self.random(), self.random());
        let high = high & !0xf000 | 0x4000;
        let low = low & !(0b11 << 62) | 0b10 << 62;
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        let (d, e) = (low >> 48, low & 0xffff_ffff_ffff);
        format!("{prefix}-{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }

    /// 128 random bits, for ids that are nothing else.
    pub(super) fn bits(&mut self) -> u128 {
        u128::from(self.random()) << 64 | u128::from(self.random())
    }

    /// SplitMix64: passes statistical tests, and is six lines.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_prefix_and_a_version_4_uuid() {
        let id = MemberIds::new(7).next("orders");
        let uuid = id.strip_prefix("orders-").unwrap();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
    }

    #[test]
    fn the_seed_alone_decides_the_ids_and_no_two_are_alike() {
        let ids = |seed| {
            let mut ids = MemberIds::new(seed);
            (0..100).map(|_| ids.next("c")).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(ids(1), ids(1));
        assert_eq!(ids(1).len(), 100);
        assert!(ids(1).is_disjoint(&ids(2)));
    }
}
