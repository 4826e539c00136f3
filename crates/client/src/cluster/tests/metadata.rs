//! When metadata is asked for, and what an answer changes.

use super::*;

#[test]
fn metadata_is_asked_for_the_topics_of_interest_and_then_known() {
    let world = World::known();
    assert_eq!(world.cluster.metadata().leader(&t0()), Some(1));
    assert_eq!(world.cluster.metadata().topic_name(Uuid::from_u128(7)).map(|n| &**n), Some("t"));
    assert_eq!(world.cluster.max_version(None, ApiKey::Metadata), Some(13));
    assert_eq!(world.cluster.max_version(Some(2), ApiKey::Metadata), None, "that broker was never met");
}

#[test]
fn a_request_for_a_broker_that_cannot_be_reached_fails_at_once_and_asks_for_metadata() {
    let mut world = World::known();
    world.pass(ms(10_000));
    world.send(Target::Node(2), heartbeat(), ms(5_000));
    let conn = world.opened.last().unwrap().0;
    world.refused(conn);
    assert_eq!(world.error(), "could not connect to two:2: connection refused");
    assert!(world.cluster.is_backing_off(world.now, 2));
    world.pass(ms(5));
    world.take(ApiKey::Metadata);
    world.send(Target::Node(3), heartbeat(), ms(5_000));
    assert_eq!(world.error(), "broker 3 is not among the brokers of the cluster");
}

#[test]
fn leader_epochs_never_go_backwards_but_a_recreated_topic_starts_afresh() {
    let mut world = World::known();
    let refresh = |world: &mut World, answer: wire::MetadataResponse| {
        world.pass(ms(5_000));
        world.cluster.refresh_metadata(world.now);
        world.drain();
        world.reply(ApiKey::Metadata, answer);
        world.cluster.metadata().partition(&t0()).map(|p| (p.leader, p.leader_epoch)).unwrap()
    };
    assert_eq!(refresh(&mut world, two_brokers(2, 6)), (Some(2), Some(6)));
    assert_eq!(refresh(&mut world, two_brokers(1, 5)), (Some(2), Some(6)));
    let mut recreated = two_brokers(1, 0);
    recreated.topics[0].topic_id = Uuid::from_u128(8);
    assert_eq!(refresh(&mut world, recreated), (Some(1), Some(0)));
    assert!(world.cluster.update_leader(&t0(), 2, 1, None));
    assert!(!world.cluster.update_leader(&t0(), 1, 1, None), "the same epoch is no news");
    assert!(!world.cluster.update_leader(&t0(), 9, 4, None), "nobody knows where broker 9 is");
    assert!(world.cluster.update_leader(&t0(), 9, 4, Some(("nine".to_owned(), 9))));
    let mut same = two_brokers(1, 1);
    same.topics[0].topic_id = Uuid::from_u128(8);
    assert_eq!(refresh(&mut world, same), (Some(1), Some(1)), "the cluster has no broker 9");
}

#[test]
fn many_wishes_for_metadata_become_few_requests() {
    let mut world = World::known();
    world.pass(ms(10_000));
    let mut asked = 0;
    for _ in 0..1_000 {
        world.cluster.refresh_metadata(world.now);
        world.pass(ms(10));
        while world.asked.iter().any(|(_, h, _)| h.key == ApiKey::Metadata) {
            asked += 1;
            world.reply(ApiKey::Metadata, two_brokers(1, 5));
        }
    }
    assert!((10..=20).contains(&asked), "{asked} in ten seconds");
}

#[test]
fn new_topics_are_asked_for_at_once_and_old_metadata_now_and_then() {
    let mut world = World::known();
    world.cluster.set_topics(world.now, names(&["t", "u"]));
    world.drain();
    let (conn, header, request) = world.take(ApiKey::Metadata);
    assert!(matches!(request, Request::Metadata(m) if m.topics.as_ref().map(Vec::len) == Some(2)));
    world.answer(conn, header.version, header.correlation_id, two_brokers(1, 5));
    world.asked.clear();
    world.pass(Duration::from_secs(299));
    assert!(world.asked.is_empty());
    world.pass(Duration::from_secs(2));
    world.take(ApiKey::Metadata);
}

#[test]
fn an_answer_that_was_under_way_when_a_topic_became_of_interest_says_nothing_of_it() {
    let mut world = World::known();
    world.cluster.set_topics(world.now, names(&["t", "u"]));
    world.drain();
    world.cluster.set_topics(world.now, names(&["t", "u", "v"]));
    world.drain();
    world.reply(ApiKey::Metadata, two_brokers(1, 5));
    assert!(world.cluster.is_partial(), "nobody has asked for v");
    world.reply(ApiKey::Metadata, two_brokers(1, 5));
    assert!(!world.cluster.is_partial(), "v was asked for: it does not exist");
}

/// The answer that a topic does not exist.
fn without(topic: &str) -> wire::MetadataResponse {
    let mut answer = two_brokers(1, 5);
    answer.topics[0].name = Some(topic.to_owned());
    answer.topics[0].partitions.clear();
    answer.topics[0].error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    answer
}

#[test]
fn a_topic_that_does_not_exist_is_asked_for_until_it_does() {
    let mut world = World::known();
    world.cluster.set_topics(world.now, names(&["later"]));
    world.drain();
    for _ in 0..5 {
        world.reply(ApiKey::Metadata, without("later"));
        assert!(world.asked.is_empty());
        world.pass(ms(1_250));
    }
    world.take(ApiKey::Metadata);
}

#[test]
fn what_was_waited_for_long_is_looked_for_at_once_when_somebody_has_heard_of_it() {
    let mut world = World::known();
    world.cluster.set_topics(world.now, names(&["later"]));
    world.drain();
    for _ in 0..5 {
        world.pass(ms(1_250));
        world.reply(ApiKey::Metadata, without("later"));
    }
    world.cluster.refresh_metadata(world.now);
    world.drain();
    assert!(world.asked.is_empty(), "the pause has grown");
    world.cluster.refresh_metadata_at_once(world.now);
    world.drain();
    world.take(ApiKey::Metadata);
}

#[test]
fn when_no_broker_can_be_reached_the_bootstrap_servers_are_tried_again() {
    let mut world = World::known();
    let conn = world.opened[0].0;
    world.opened.clear();
    world.cluster.handle_disconnected(world.now, conn, "closed");
    let mut hosts = BTreeMap::new();
    for _ in 0..300 {
        world.drain();
        while let Some((conn, host, port)) = world.opened.pop() {
            *hosts.entry((host, port)).or_insert(0) += 1;
            world.refused(conn);
        }
        world.pass(ms(10));
    }
    assert!(hosts.contains_key(&("two".to_owned(), 2)), "{hosts:?}");
    assert!(hosts[&("one".to_owned(), 1)] > 3, "{hosts:?}");
}

#[test]
fn a_broker_can_ask_to_start_again_from_the_bootstrap_servers() {
    let mut world = World::known();
    world.cluster.refresh_metadata(world.now);
    world.pass(ms(200));
    let answer = wire::MetadataResponse { error_code: ErrorCode::REBOOTSTRAP_REQUIRED, ..Default::default() };
    world.reply(ApiKey::Metadata, answer);
    assert_eq!(world.closed.len(), 1);
    assert!(world.cluster.metadata().brokers().is_empty());
    world.opened.clear();
    world.pass(ms(1_300));
    assert_eq!(world.opened[0].1, "one");
}

#[test]
fn a_silent_broker_does_not_hold_up_the_lookup_of_others() {
    let mut world = World::known();
    world.pass(ms(10_000));
    world.cluster.refresh_metadata(world.now);
    world.drain();
    world.take(ApiKey::Metadata);
    world.pass(ms(6_500));
    assert_eq!(world.opened.last().unwrap().1, "two", "the answer is sought elsewhere");
    world.accept();
    world.reply(ApiKey::Metadata, two_brokers(2, 9));
    assert_eq!(world.cluster.metadata().leader(&t0()), Some(2));
}
