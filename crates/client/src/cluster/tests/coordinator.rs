//! The lookup of coordinators.

use super::*;

#[test]
fn a_coordinator_is_looked_up_retried_and_then_used() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    let ticket = world.send(Target::Coordinator(group.clone()), heartbeat(), ms(5_000));
    let start = world.now;
    for _ in 0..3 {
        world.reply(ApiKey::FindCoordinator, coordinator(-1, "", ErrorCode::COORDINATOR_NOT_AVAILABLE));
        assert!(world.asked.is_empty(), "there is a pause before the next try");
        world.pass(ms(1_300));
    }
    assert!(world.now - start >= ms(500));
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    assert_eq!(world.told, [ClusterOutput::CoordinatorFound { group: group.clone() }]);
    assert_eq!(world.cluster.coordinator("g"), Some(2));
    world.accept();
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.results()[0].0, ticket);
}

#[test]
fn a_coordinator_that_moved_is_looked_up_again_by_the_next_request() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    world.cluster.find_coordinator(world.now, &group);
    world.drain();
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    world.cluster.coordinator_lost(world.now, "g");
    world.send(Target::Coordinator(group), heartbeat(), ms(5_000));
    world.reply(ApiKey::FindCoordinator, coordinator(1, "one", ErrorCode::NONE));
    assert_eq!(world.opened.last().unwrap().1, "one");
}

#[test]
fn a_coordinator_that_cannot_be_reached_is_given_up_while_the_request_goes_on_waiting() {
    let mut world = World::known();
    let group: Arc<str> = "g".into();
    let ticket = world.send(Target::Coordinator(group.clone()), heartbeat(), ms(50_000));
    world.reply(ApiKey::FindCoordinator, coordinator(2, "two", ErrorCode::NONE));
    world.told.clear();
    let conn = world.opened.last().unwrap().0;
    world.refused(conn);
    assert_eq!(world.told, [ClusterOutput::CoordinatorLost { group }]);
    world.reply(ApiKey::FindCoordinator, coordinator(1, "one", ErrorCode::NONE));
    world.accept();
    world.reply(ApiKey::Heartbeat, heartbeat::HeartbeatResponse::default());
    assert_eq!(world.results()[0].0, ticket);
}

#[test]
fn a_lookup_that_is_refused_for_good_fails_whoever_waits() {
    let mut world = World::known();
    world.send(Target::Coordinator("g".into()), heartbeat(), ms(5_000));
    world.reply(ApiKey::FindCoordinator, coordinator(-1, "", ErrorCode::GROUP_AUTHORIZATION_FAILED));
    assert_eq!(
        world.error(),
        "looking for the coordinator of group `g`: the broker answered GROUP_AUTHORIZATION_FAILED"
    );
}
