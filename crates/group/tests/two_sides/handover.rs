//! How long a partition that moves stands still, with Kafka's default settings.

use crate::world::{World, config};
use std::time::Duration;
use tontine_group::{Instant, member::MemberConfig};

fn defaults(index: usize) -> MemberConfig {
    let base = MemberConfig::default();
    MemberConfig {
        session_timeout: base.session_timeout,
        heartbeat_interval: base.heartbeat_interval,
        ..config(&["cooperative-sticky"], index)
    }
}

fn when(world: &World, client: usize, what: &str) -> Instant {
    let history = &world.clients[client].history;
    history.iter().rev().find(|(_, callback)| callback.contains(what)).map(|(at, _)| *at).unwrap()
}

#[test]
fn a_partition_that_moves_stands_still_for_less_than_300_ms_with_default_heartbeats() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.calm = true;
        let a = world.start(defaults(0), &["a"]);
        world.run(Duration::from_secs(20));
        world.clients[a].history.clear();
        let b = world.start(defaults(1), &["a"]);
        world.run(Duration::from_secs(10));
        world.assert_settled();
        let (revoked, assigned) = (when(&world, a, "Revoke"), when(&world, b, "a-"));
        let still = assigned - revoked;
        assert!(still < Duration::from_millis(300), "seed {seed}: {still:?}");
    }
}
