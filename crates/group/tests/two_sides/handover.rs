//! What a rebalance costs in which only what moves is revoked, with Kafka's default settings: how long a partition that moves stands still, and
//! what those that stay and their commits notice.

use crate::{
    broker::Broker,
    world::{World, config},
};
use std::time::Duration;
use tontine_group::{
    Instant,
    coordinator::{CoordinatorConfig, HeartbeatPace},
    member::{CommitRefusal, GroupProtocol, MemberConfig},
};

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

/// Apache Kafka's defaults: heartbeats every five seconds whatever happens, targets a second apart.
fn apache() -> CoordinatorConfig {
    CoordinatorConfig {
        consumer_heartbeat_interval: Duration::from_secs(5),
        consumer_heartbeat_pace: HeartbeatPace::Fixed,
        consumer_assignment_interval: Duration::from_secs(1),
        consumer_session_timeout: Duration::from_secs(45),
        ..CoordinatorConfig::default()
    }
}

fn consumer(index: usize) -> MemberConfig {
    MemberConfig { protocol: GroupProtocol::Consumer, ..defaults(index) }
}

#[test]
fn with_the_consumer_protocol_a_partition_that_moves_stands_still_for_less_than_500_ms() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.broker = Broker::new(apache());
        world.calm = true;
        let a = world.start(consumer(0), &["a"]);
        let b = world.start(consumer(1), &["a"]);
        world.run(Duration::from_secs(30));
        world.clients[a].history.clear();
        world.clients[b].history.clear();
        let newcomer = world.start(consumer(2), &["a"]);
        world.run(Duration::from_secs(20));
        world.assert_settled();
        let revoked = [a, b].into_iter().flat_map(|c| &world.clients[c].history);
        let revoked = revoked.filter(|(_, what)| what.contains("Revoke")).map(|(at, _)| *at).min().unwrap();
        let still = when(&world, newcomer, "a-") - revoked;
        assert!(still < Duration::from_millis(500), "seed {seed}: {still:?}");
    }
}

#[test]
fn a_coordinator_of_few_members_has_a_second_one_stable_within_100_ms_of_its_first_heartbeat() {
    for seed in 0..50 {
        let mut world = World::new(seed);
        let pace = HeartbeatPace::Quick;
        world.broker = Broker::new(CoordinatorConfig { consumer_heartbeat_pace: pace, ..Default::default() });
        world.calm = true;
        world.delay = (0, 1);
        let a = world.start(consumer(0), &["a"]);
        world.run(Duration::from_secs(20));
        world.clients[a].history.clear();
        let b = world.start(consumer(1), &["a"]);
        world.run(Duration::from_secs(5));
        world.assert_settled();
        let joined = world.clients[b].history.iter().find(|(_, what)| what.contains("-> Joining"));
        let stable = when(&world, a, "-> Stable").max(when(&world, b, "-> Stable"));
        let took = stable - joined.unwrap().0;
        assert!(took < Duration::from_millis(100), "seed {seed}: {took:?}");
    }
}

#[test]
fn members_of_the_consumer_protocol_at_rest_are_as_quiet_as_the_coordinator_wants() {
    let mut world = World::new(1);
    world.broker = Broker::new(apache());
    world.calm = true;
    for index in 0..4 {
        world.start(consumer(index), &["a"]);
    }
    world.run(Duration::from_secs(60));
    let beats = |world: &World| world.clients.iter().map(|c| c.beats).sum::<usize>();
    let before = beats(&world);
    world.run(Duration::from_secs(50));
    assert_eq!(beats(&world) - before, 4 * 10);
}

#[test]
fn with_many_members_at_rest_a_partition_that_moves_stands_still_no_longer() {
    let mut world = World::new(1);
    world.calm = true;
    world.topic("a", 8);
    for index in 0..5 {
        world.start(defaults(index), &["a"]);
        world.run(Duration::from_secs(15));
    }
    for client in &mut world.clients {
        client.history.clear();
    }
    let newcomer = world.start(defaults(5), &["a"]);
    world.run(Duration::from_secs(10));
    world.assert_settled();
    let revoked = world.clients[..newcomer].iter().flat_map(|c| &c.history);
    let revoked = revoked.filter(|(_, what)| what.contains("Revoke")).map(|(at, _)| *at).min().unwrap();
    let still = when(&world, newcomer, "a-") - revoked;
    assert!(still < Duration::from_millis(300), "{still:?}");
}

#[test]
fn commits_of_members_that_stay_never_end_a_membership_while_others_come_and_go() {
    let mut world = World::new(3);
    world.calm = true;
    let stay = [world.start(defaults(0), &["a"]), world.start(defaults(1), &["a"])];
    world.run(Duration::from_secs(10));
    for round in 0..40 {
        let guest = world.start(defaults(2 + round), &["a"]);
        world.run(Duration::from_millis(700));
        world.close(guest);
        world.run(Duration::from_millis(700));
    }
    world.run(Duration::from_secs(10));
    world.assert_settled();
    for client in stay {
        let lost = world.clients[client].history.iter().filter(|(_, what)| what.contains("Lost")).count();
        assert_eq!(lost, 0, "c{client}");
    }
    assert!(
        world.refusals.iter().all(|refusal| *refusal == CommitRefusal::RebalanceInProgress),
        "{:?}",
        world.refusals
    );
}
