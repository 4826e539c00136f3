//! Answers that come late, wrongly or never.

use super::*;

#[test]
fn a_request_in_time_trouble_fails_but_its_connection_lives_until_request_timeout() {
    let mut world = World::known();
    let ticket = world.send(Target::Node(1), list_groups::ListGroupsRequest::default(), ms(500));
    let conn = world.accept();
    world.pass(ms(600));
    let results = world.results();
    assert_eq!(results[0].0, ticket);
    assert!(
        matches!(&results[0].1, Err(SendError::TimedOut { why: Some(why), .. }) if why.contains("silent")),
        "{results:?}"
    );
    assert!(!world.closed.contains(&conn));
    world.pass(ms(29_500));
    assert!(world.closed.contains(&conn), "nothing was answered for request.timeout.ms");
    assert!(world.results().is_empty(), "a request has one result");
}

#[test]
fn a_heartbeat_without_an_answer_in_time_ends_its_connection() {
    let mut world = World::known();
    world.send(Target::Node(1), heartbeat(), ms(500));
    let conn = world.accept();
    world.pass(ms(600));
    assert_eq!(world.results().len(), 1);
    assert!(world.closed.contains(&conn), "the next heartbeat would wait behind it");
}

#[test]
fn heartbeats_do_not_wait_one_after_the_other_for_a_connection_that_does_not_open() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    world.send(Target::Coordinator(group), heartbeat(), ms(4_000));
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    let silent = world.opened.last().unwrap().0;
    world.connected(silent);
    world.pass(ms(4_100));
    assert_eq!(world.results().len(), 1);
    assert!(world.closed.contains(&silent), "the broker never said which versions it speaks");
}

#[test]
fn a_late_answer_to_a_request_that_was_given_up_is_dropped() {
    let mut world = World::known();
    let ticket = world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.accept();
    world.cluster.cancel(world.now, ticket);
    let second = world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert!(world.results().is_empty());
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.results()[0].0, second);
}

#[test]
fn rubbish_closes_the_connection_with_a_clear_error_and_never_panics() {
    let pieces: [&[u8]; 5] = [b"", b"\0", b"\0\0\0\x01", b"\0\0\0\x63\0\0\0\0", b"HTTP/1.1 400 Bad Request"];
    for rubbish in pieces {
        let mut world = World::known();
        world.send(Target::Node(1), heartbeat(), ms(5_000));
        let second = world.send(Target::Node(1), heartbeat(), ms(5_000));
        let conn = world.accept();
        world.bytes(conn, rubbish);
        assert!(world.closed.contains(&conn), "{rubbish:?}");
        let results = world.results();
        assert!(
            matches!(&results[0].1, Err(SendError::Malformed { why }) if why.contains("one:1")),
            "{results:?}"
        );
        assert_eq!(results[1].0, second);
        assert!(matches!(results[1].1, Err(SendError::Disconnected { .. })));
    }
}

#[test]
fn an_answer_that_nobody_asked_for_closes_the_connection() {
    let mut world = World::known();
    let conn = world.opened[0].0;
    world.answer(conn, 4, 77, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.closed, [conn]);
}

#[test]
fn each_lane_has_a_connection_of_its_own() {
    let mut world = World::known();
    for lane in [Lane::Fetch, Lane::Group, Lane::Join, Lane::Fetch] {
        world.cluster.send(world.now, Target::Node(2), lane, heartbeat().into(), ms(1000));
        world.drain();
    }
    assert_eq!(world.opened.iter().filter(|(_, host, _)| host == "two").count(), 3);
}

#[test]
fn a_produce_without_acknowledgement_is_done_when_it_is_sent() {
    let mut world = World::known();
    world.send(Target::Node(1), produce::ProduceRequest { acks: 0, ..Default::default() }, ms(5_000));
    world.accept();
    world.take(ApiKey::Produce);
    assert!(matches!(world.results()[0].1, Ok(Response::Produce(_))));
}

#[test]
fn a_broker_that_wants_to_be_left_alone_is() {
    let mut world = World::known();
    world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.accept();
    world.reply(
        ApiKey::Heartbeat,
        heartbeat::HeartbeatResponse { throttle_time_ms: 300, ..Default::default() },
    );
    world.send(Target::Node(1), heartbeat(), ms(5_000));
    world.pass(ms(290));
    assert!(world.asked.is_empty());
    world.pass(ms(20));
    world.take(ApiKey::Heartbeat);
}
