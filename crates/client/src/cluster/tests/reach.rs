//! How brokers are reached: bootstrap, dead and silent addresses, backoff, idle connections.

use super::*;

#[test]
fn nothing_is_opened_until_something_is_asked() {
    let mut world = World::new(&[("one", 1)]);
    world.pass(Duration::from_secs(3600));
    assert!(world.opened.is_empty());
}

#[test]
fn the_connection_to_a_bootstrap_server_becomes_that_of_the_broker_it_was() {
    let mut world = World::known();
    world.send(Target::Any, list_groups::ListGroupsRequest::default(), ms(1000));
    world.cluster.send(
        world.now,
        Target::Node(1),
        Lane::Other,
        list_groups::ListGroupsRequest::default().into(),
        ms(1),
    );
    world.drain();
    let opened: Vec<_> = world.opened.iter().map(|(_, host, _)| host.as_str()).collect();
    assert!(opened.len() <= 2, "only the group's lane is new: {opened:?}");
    assert_eq!(world.take(ApiKey::ListGroups).0, world.opened[0].0);
}

#[test]
fn one_living_bootstrap_server_among_dead_and_black_holed_ones_is_found_quickly() {
    for seed in 0..40 {
        let bootstrap = (1..=6u16).map(|i| (format!("b{i}"), i)).collect();
        let mut world = World::with(ClusterSettings { bootstrap, ..ClusterSettings::default() }, seed);
        let start = world.now;
        world.cluster.refresh_metadata(world.now);
        world.drain();
        let mut seen = 0;
        while world.asked.is_empty() {
            while let Some((conn, host, _)) = world.opened.get(seen).cloned() {
                seen += 1;
                match host.as_str() {
                    "b1" => world.connected(conn),
                    "b2" | "b3" => world.refused(conn),
                    _ => {} // b4, b5 and b6 swallow everything
                }
            }
            world.pass(ms(10));
        }
        assert!(world.now - start <= ms(600), "seed {seed}: {:?}", world.now - start);
        world.reply(ApiKey::ApiVersions, everything());
        world.take(ApiKey::Metadata);
        let spare = world.opened.len() - 1;
        assert!(world.closed.len() <= spare, "attempts that are not needed any more are given up");
    }
}

#[test]
fn a_request_that_fails_says_what_went_wrong_meanwhile() {
    let mut world = World::new(&[("127.0.0.1", 9)]);
    world.cluster.send(world.now, Target::Any, Lane::Other, heartbeat().into(), ms(1000));
    world.drain();
    let conn = world.opened[0].0;
    world.refused(conn);
    for _ in 0..100 {
        world.pass(ms(10));
        while let Some((conn, ..)) = world.opened.get(1).cloned() {
            world.opened.remove(1);
            world.refused(conn);
        }
    }
    assert_eq!(
        world.error(),
        "Heartbeat had no answer within 1s: could not connect to 127.0.0.1:9: connection refused"
    );
}

#[test]
fn attempts_to_reach_a_dead_broker_become_rarer_but_never_stop() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.refresh_metadata(world.now);
    let mut times = Vec::new();
    for _ in 0..6_000 {
        world.drain();
        while let Some((conn, ..)) = world.opened.pop() {
            times.push(world.now);
            world.refused(conn);
        }
        world.pass(ms(10));
    }
    let gaps: Vec<Duration> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[0] >= ms(40) && gaps[0] <= ms(80), "{gaps:?}");
    assert!(gaps.iter().all(|g| *g <= ms(1_220)), "{gaps:?}");
    assert!(gaps[8..].iter().all(|g| *g >= ms(790)), "{gaps:?}");
    assert!(gaps.len() > 45);
}

#[test]
fn an_address_that_swallows_everything_is_given_up_after_the_setup_timeout() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.send(world.now, Target::Any, Lane::Other, heartbeat().into(), ms(12_000));
    world.pass(ms(9_900));
    assert!(world.closed.is_empty());
    world.pass(ms(200));
    assert_eq!(world.closed.len(), 1);
    world.pass(ms(2_000));
    assert_eq!(
        world.error(),
        "Heartbeat had no answer within 12s: could not connect to one:1 within 10s: no answer"
    );
}

#[test]
fn connections_that_nobody_uses_are_closed() {
    let mut world = World::known();
    let conn = world.opened[0].0;
    world.pass(ms(100_000));
    assert!(world.closed.is_empty());
    world.cluster.set_topics(world.now, names(&[]));
    world.cluster.settings.metadata_max_age = Duration::from_secs(10_000);
    world.pass(ms(541_000));
    assert_eq!(world.closed, [conn]);
}

#[test]
fn a_broker_that_moved_to_another_address_is_reached_there() {
    let mut world = World::known();
    world.pass(ms(5_000));
    world.cluster.refresh_metadata(world.now);
    world.drain();
    let mut answer = two_brokers(1, 5);
    answer.brokers[0].port = 11;
    world.reply(ApiKey::Metadata, answer);
    world.send(Target::Node(1), heartbeat(), ms(5_000));
    assert_eq!(world.opened.last().map(|(_, _, port)| *port), Some(11));
    assert_eq!(world.closed, [world.opened[0].0]);
}

#[test]
fn a_connection_that_was_prepared_is_the_one_that_is_used() {
    let mut world = World::known();
    let before = world.opened.len();
    for _ in 0..2 {
        world.cluster.prepare(world.now, 2, Lane::Group);
        world.drain();
    }
    assert_eq!(world.opened.len(), before + 1, "one is enough");
    let conn = world.accept();
    world.send(Target::Node(2), heartbeat(), ms(5_000));
    assert_eq!(world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default()), conn);
    assert_eq!(world.opened.len(), before + 1);
}

#[test]
fn nothing_is_prepared_for_a_broker_that_is_unknown_or_has_just_failed() {
    let mut world = World::known();
    let before = world.opened.len();
    world.cluster.prepare(world.now, 77, Lane::Group);
    world.cluster.prepare(world.now, 2, Lane::Group);
    world.drain();
    world.refused(world.opened.last().unwrap().0);
    world.cluster.prepare(world.now, 2, Lane::Group);
    world.drain();
    assert_eq!(world.opened.len(), before + 1);
}
