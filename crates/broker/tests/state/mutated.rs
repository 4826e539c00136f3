//! Whatever the bytes are, the broker answers or closes the connection; it never panics.

use crate::rig::Rig;
use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use tontine_broker::BrokerOutput;
use tontine_wire::api::ApiKey;

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) % limit as u64) as usize
    }

    /// Bytes that often make sense: zeros, small counts, "null", and names that exist.
    fn piece(&mut self, out: &mut BytesMut) {
        match self.below(16) {
            0..6 => out.put_u8(0),
            6..10 => out.put_u8(1 + self.below(4) as u8),
            10..12 => out.put_u8(0xff),
            12 => out.put_u8(self.below(256) as u8),
            13 => out.put_i32(1),
            14 => out.put_slice(&[0, 1, b't']),
            _ => out.put_slice(&[2, b't']),
        }
    }

    fn frame(&mut self) -> Bytes {
        let mut frame = BytesMut::new();
        let flexible = if self.below(4) == 0 {
            // Whatever Kafka has, old versions included.
            frame.put_i16(self.below(96) as i16);
            frame.put_i16(self.below(4) as i16);
            self.below(2) == 0
        } else {
            let key = ApiKey::ALL[self.below(ApiKey::ALL.len())];
            let version = (self.below(20) as i16).min(*key.versions().end());
            frame.put_i16(key as i16);
            frame.put_i16(version);
            key.is_flexible(version)
        };
        frame.put_i32(1);
        frame.put_i16(-1);
        if flexible {
            frame.put_u8(0);
        }
        for _ in 0..self.below(80) {
            self.piece(&mut frame);
        }
        frame.freeze()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let mut rig = Rig::with_topic("t", 2);
        for _ in 0..20 {
            let conn = rig.connect(1);
            rig.state.handle_frame(rig.now, conn, dice.frame());
            while !matches!(rig.state.poll_output(), BrokerOutput::Wait(_)) {}
        }
        rig.advance(700_000);
    }
}
