//! Numbers that look random, from a seed: the same seed gives the same topic ids, sessions and member ids (SplitMix64).

use tontine_wire::Uuid;

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A random identifier as RFC 9562 has them (version 4). Kafka never starts one with a dash; neither do we.
    pub(crate) fn uuid(&mut self) -> Uuid {
        loop {
            let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
            let id = Uuid::from_u128(bits & !(0xf000 << 64) & !(0xc << 60) | (0x4000 << 64) | (0x8 << 60));
            if !id.to_string().starts_with('-') {
                return id;
            }
        }
    }
}
