//! Fetch sessions (KIP-227).

use crate::rig::{Rig, by_id, fetch_request, shape};
use tontine_wire::ErrorCode;
use tontine_wire::api::fetch::{FetchRequest, ForgottenTopic};

fn full() -> FetchRequest {
    FetchRequest { session_id: 0, session_epoch: 0, ..fetch_request("t", &[(0, 0), (1, 0), (2, 0)], 0) }
}

fn next(session_id: i32, session_epoch: i32, changed: &[(i32, i64)]) -> FetchRequest {
    let mut request = FetchRequest { session_id, session_epoch, ..fetch_request("t", changed, 0) };
    request.topics.retain(|topic| !topic.partitions.is_empty());
    request
}

#[test]
fn a_session_answers_only_what_is_new() {
    let mut rig = Rig::with_topic("t", 3);
    let conn = rig.connect(1);
    let first = rig.ask(conn, 11, full());
    let id = first.session_id;
    assert!(id > 0);
    assert_eq!(shape(&first), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(shape(&rig.ask(conn, 11, next(id, 1, &[]))), []);
    rig.produce(conn, "t", 1, &["x"]);
    assert_eq!(shape(&rig.ask(conn, 11, next(id, 2, &[]))), [(1, 1)]);
    assert_eq!(shape(&rig.ask(conn, 11, next(id, 3, &[(1, 1)]))), []);
    rig.produce(conn, "t", 0, &["x"]);
    rig.produce(conn, "t", 1, &["y"]);
    // What had records last is served last.
    assert_eq!(shape(&rig.ask(conn, 11, next(id, 4, &[]))), [(0, 1), (1, 1)]);
    assert_eq!(shape(&rig.ask(conn, 11, next(id, 5, &[]))), [(0, 1), (1, 1)]);
}

#[test]
fn forgotten_partitions_are_not_answered_any_more() {
    let mut rig = Rig::with_topic("t", 3);
    let conn = rig.connect(1);
    let id = rig.ask(conn, 11, full()).session_id;
    for partition in 0..3 {
        rig.produce(conn, "t", partition, &["x"]);
    }
    let mut request = next(id, 1, &[]);
    request.forgotten_topics_data =
        vec![ForgottenTopic { topic: "t".into(), partitions: vec![1], ..Default::default() }];
    assert_eq!(shape(&rig.ask(conn, 11, request)), [(0, 1), (2, 1)]);
}

#[test]
fn wrong_ids_and_epochs_are_refused_as_a_whole() {
    let mut rig = Rig::with_topic("t", 3);
    let topic = rig.topic("u", 1);
    let conn = rig.connect(1);
    let id = rig.ask(conn, 11, full()).session_id;
    assert_eq!(rig.ask(conn, 11, next(id + 1, 1, &[])).error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    assert_eq!(rig.ask(conn, 11, next(id, 2, &[])).error_code, ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    let with_ids = by_id(next(id, 1, &[(0, 0)]), topic);
    assert_eq!(rig.ask(conn, 13, with_ids).error_code, ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
    assert_eq!(rig.ask(conn, 11, next(id, 1, &[])).error_code, ErrorCode::NONE);
}

#[test]
fn the_final_epoch_ends_a_session_and_a_full_fetch_replaces_one() {
    let mut rig = Rig::with_topic("t", 3);
    let conn = rig.connect(1);
    let id = rig.ask(conn, 11, full()).session_id;
    let end = FetchRequest { session_id: id, session_epoch: -1, ..fetch_request("t", &[], 0) };
    assert_eq!(rig.ask(conn, 11, end).session_id, 0);
    assert_eq!(rig.ask(conn, 11, next(id, 1, &[])).error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let id = rig.ask(conn, 11, full()).session_id;
    let again = FetchRequest { session_id: id, ..full() };
    let other = rig.ask(conn, 11, again).session_id;
    assert_ne!(other, id);
    assert_eq!(rig.ask(conn, 11, next(id, 1, &[])).error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn without_room_a_fetch_is_answered_without_a_session_until_an_idle_one_is_dropped() {
    let mut rig = Rig::new(1, &[("max.incremental.fetch.session.cache.slots", "1")]);
    rig.topic("t", 3);
    let conn = rig.connect(1);
    let first = rig.ask(conn, 11, full()).session_id;
    assert!(first > 0);
    assert_eq!(rig.ask(conn, 11, full()).session_id, 0);
    rig.advance(121_000);
    assert!(rig.ask(conn, 11, full()).session_id > 0);
    assert_eq!(rig.ask(conn, 11, next(first, 1, &[])).error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn an_error_is_told_again_until_it_is_gone() {
    let mut rig = Rig::with_topic("t", 3);
    let conn = rig.connect(1);
    let mut request = full();
    request.topics[0].partitions[0].fetch_offset = 5;
    let id = rig.ask(conn, 11, request).session_id;
    for epoch in 1..3 {
        let answer = rig.ask(conn, 11, next(id, epoch, &[]));
        assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let healed = rig.ask(conn, 11, next(id, 3, &[(0, 0)]));
    assert_eq!(healed.responses[0].partitions[0].error_code, ErrorCode::NONE);
    assert_eq!(shape(&rig.ask(conn, 11, next(id, 4, &[]))), []);
}
