//! Which versions are spoken, also with brokers that are older or refuse to say.

use super::*;
use tontine_wire::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;

#[test]
fn a_broker_that_does_not_know_the_first_version_is_asked_again_in_one_it_names() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.refresh_metadata(world.now);
    world.drain();
    let conn = world.opened[0].0;
    world.connected(conn);
    let (_, header, _) = world.take(ApiKey::ApiVersions);
    assert_eq!(header.version, 4);
    let own = api_versions::ApiVersion { api_key: 18, min_version: 0, max_version: 2 };
    let refusal = api_versions::ApiVersionsResponse {
        error_code: ErrorCode::UNSUPPORTED_VERSION,
        api_keys: vec![own],
        ..Default::default()
    };
    world.answer(conn, 0, header.correlation_id, refusal);
    let (_, header, _) = world.take(ApiKey::ApiVersions);
    assert_eq!(header.version, 2);
    world.answer(conn, 2, header.correlation_id, everything());
    world.take(ApiKey::Metadata);
}

#[test]
fn an_old_broker_is_asked_in_the_versions_it_speaks_and_refused_clearly_when_there_are_none() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.send(world.now, Target::Any, Lane::Other, heartbeat().into(), ms(1000));
    world.drain();
    world.connected(world.opened[0].0);
    let old = api_versions::ApiVersion { api_key: 3, min_version: 0, max_version: 5 };
    let answer = api_versions::ApiVersionsResponse { api_keys: vec![old], ..Default::default() };
    world.reply(ApiKey::ApiVersions, answer);
    assert_eq!(world.take(ApiKey::Metadata).1.version, 5);
    assert_eq!(world.error(), "the broker at one:1 does not know Heartbeat");
}

#[test]
fn an_expression_is_not_sent_to_a_broker_that_would_not_read_it() {
    let regex = |text: &str| ConsumerGroupHeartbeatRequest {
        subscribed_topic_regex: Some(text.to_owned()),
        ..Default::default()
    };
    for (newest, said, error) in [
        (
            0,
            "a.*",
            Some(
                "the broker at one:1 speaks ConsumerGroupHeartbeat up to version 0, and this request needs 1",
            ),
        ),
        (0, "", None),
        (1, "a.*", None),
    ] {
        let mut world = World::new(&[("one", 1)]);
        world.cluster.send(world.now, Target::Any, Lane::Group, regex(said).into(), ms(1000));
        world.drain();
        world.connected(world.opened[0].0);
        let row = |key: ApiKey, max_version| api_versions::ApiVersion {
            api_key: key as i16,
            min_version: 0,
            max_version,
        };
        let api_keys = vec![row(ApiKey::Metadata, 12), row(ApiKey::ConsumerGroupHeartbeat, newest)];
        let answer = api_versions::ApiVersionsResponse { api_keys, ..Default::default() };
        world.reply(ApiKey::ApiVersions, answer);
        match error {
            Some(error) => assert_eq!(world.error(), error),
            None => assert_eq!(world.take(ApiKey::ConsumerGroupHeartbeat).1.version, newest),
        }
    }
}

#[test]
fn rubbish_instead_of_versions_is_no_endless_loop() {
    let mut world = World::new(&[("one", 1)]);
    world.cluster.refresh_metadata(world.now);
    world.drain();
    world.connected(world.opened[0].0);
    for _ in 0..2 {
        let (conn, header, _) = world.take(ApiKey::ApiVersions);
        let refusal = api_versions::ApiVersionsResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION,
            ..Default::default()
        };
        world.answer(conn, 0, header.correlation_id, refusal);
    }
    assert_eq!(world.closed.len(), 1);
    assert!(world.asked.is_empty());
}
