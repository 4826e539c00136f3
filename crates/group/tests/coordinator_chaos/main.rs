//! Random histories of several members against one coordinator: requests in any order, stale ones too, appends that
//! fail, wait or are acknowledged out of order, broken connections, restarts, time.
//!
//! After every step the promises of `check` hold. At the end everybody falls silent: every request has been answered by
//! then, and nobody is left.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use proptest::prelude::*;
use world::World;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Join { client: usize, forget_id: bool, protocols: usize, version: i16 },
    Sync { client: usize },
    Heartbeat { client: usize },
    Leave { client: usize },
    Kick { instance: usize },
    Commit { client: usize, partition: i32, offset: i64 },
    Stale { client: usize, generation: i32 },
    Delete,
    DeleteOffsets,
    Describe,
    Disconnect { client: usize },
    Wait { ms: u64 },
    AppendEnds { newest: bool, fails: bool },
    LogWaits(bool),
    Topic { exists: bool },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..world::CLIENTS;
    let version = prop_oneof![1 => 0..=3i16, 1 => 4..=8i16, 6 => Just(9i16)];
    prop_oneof![
        20 => (client.clone(), prop::bool::weighted(0.1), 0..4usize, version).prop_map(
            |(client, forget_id, protocols, version)| Step::Join { client, forget_id, protocols, version }
        ),
        20 => client.clone().prop_map(|client| Step::Sync { client }),
        10 => client.clone().prop_map(|client| Step::Heartbeat { client }),
        3 => client.clone().prop_map(|client| Step::Leave { client }),
        1 => (0..3usize).prop_map(|instance| Step::Kick { instance }),
        5 => (client.clone(), 0..3i32, 0..100i64)
            .prop_map(|(client, partition, offset)| Step::Commit { client, partition, offset }),
        3 => (client.clone(), -2..5i32).prop_map(|(client, generation)| Step::Stale { client, generation }),
        1 => Just(Step::Delete),
        1 => Just(Step::DeleteOffsets),
        1 => Just(Step::Describe),
        3 => client.prop_map(|client| Step::Disconnect { client }),
        10 => prop_oneof![0..100u64, 0..2_000u64, 0..12_000u64].prop_map(|ms| Step::Wait { ms }),
        10 => (any::<bool>(), prop::bool::weighted(0.3))
            .prop_map(|(newest, fails)| Step::AppendEnds { newest, fails }),
        2 => any::<bool>().prop_map(Step::LogWaits),
        1 => any::<bool>().prop_map(|exists| Step::Topic { exists }),
        1 => Just(Step::Restart),
    ]
}

fn run(world: &mut World, step: &Step) {
    match *step {
        Step::Join { client, forget_id, protocols, version } => {
            world.join(client, forget_id, protocols, version)
        }
        Step::Sync { client } => world.sync(client),
        Step::Heartbeat { client } => world.heartbeat(client),
        Step::Leave { client } => world.leave(client),
        Step::Kick { instance } => world.kick(instance),
        Step::Commit { client, partition, offset } => world.commit(client, partition, offset),
        Step::Stale { client, generation } => world.stale(client, generation),
        Step::Delete => world.delete(),
        Step::DeleteOffsets => world.delete_offsets(),
        Step::Describe => world.describe(),
        Step::Disconnect { client } => world.disconnect(client),
        Step::Wait { ms } => world.wait(ms),
        Step::AppendEnds { newest, fails } => world.append_ends(newest, fails),
        Step::LogWaits(waits) => world.log_waits(waits),
        Step::Topic { exists } => world.topic(exists),
        Step::Restart => world.restart(),
    }
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_in_any_history(
        seed in any::<u64>(),
        delay in prop_oneof![Just(0u64), Just(1_500u64)],
        size in prop_oneof![4 => Just(100usize), 1 => Just(3usize)],
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(seed, delay, size);
        for step in &steps {
            run(&mut world, step);
        }
        world.fall_silent();
    }
}
