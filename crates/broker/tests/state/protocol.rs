//! Versions, unknown APIs, rubbish, hooks.

use crate::rig::{Rig, fetch_request};
use bytes::Bytes;
use std::time::Duration;
use tontine_broker::{Closing, ConnId, Verdict};
use tontine_wire::ErrorCode;
use tontine_wire::api::api_versions::ApiVersionsRequest;
use tontine_wire::api::end_txn::EndTxnRequest;
use tontine_wire::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use tontine_wire::api::metadata::{MetadataRequest, MetadataRequestTopic};
use tontine_wire::api::push_telemetry::PushTelemetryRequest;
use tontine_wire::api::{ApiKey, Response};

#[test]
fn every_served_api_is_listed_with_its_versions_and_produce_from_0() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    let list = rig.ask(conn, 3, ApiVersionsRequest::default());
    let row = |key: ApiKey| list.api_keys.iter().find(|row| row.api_key == key as i16);
    let range = |key| row(key).map(|row| (row.min_version, row.max_version));
    assert_eq!(range(ApiKey::Produce), Some((0, 13)));
    assert_eq!(range(ApiKey::Fetch), Some((4, 18)));
    assert_eq!(range(ApiKey::InitProducerId), Some((0, 5)));
    assert_eq!(range(ApiKey::JoinGroup), Some((0, 9)));
    assert_eq!(range(ApiKey::EndTxn), Some((0, 4)));
    assert_eq!(range(ApiKey::WriteTxnMarkers), None);
    assert_eq!(range(ApiKey::GetTelemetrySubscriptions), None);
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    // Key 18, version 99, correlation id 5, no client id, and whatever that version may contain.
    let frame = [0, 18, 0, 99, 0, 0, 0, 5, 0xff, 0xff, 1, 2, 3];
    rig.state.handle_frame(rig.now, conn, Bytes::copy_from_slice(&frame));
    rig.drain();
    let Some(Response::ApiVersions(answer)) = rig.answer(conn) else { panic!("no answer") };
    assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert!(!answer.api_keys.is_empty());
}

#[test]
fn a_client_that_means_another_cluster_is_told_so() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    let meant = |cluster_id: &str, node_id| ApiVersionsRequest {
        cluster_id: Some(cluster_id.into()),
        node_id,
        ..Default::default()
    };
    let own = rig.state.cluster_id().to_owned();
    assert_eq!(rig.ask(conn, 5, meant(&own, 1)).error_code, ErrorCode::NONE);
    assert_eq!(rig.ask(conn, 5, meant(&own, 2)).error_code, ErrorCode::REBOOTSTRAP_REQUIRED);
    assert_eq!(rig.ask(conn, 5, meant("other", 1)).error_code, ErrorCode::REBOOTSTRAP_REQUIRED);
}

#[test]
fn an_api_or_a_version_that_is_known_but_not_served_is_refused() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    assert_eq!(rig.ask(conn, 5, EndTxnRequest::default()).error_code, ErrorCode::UNSUPPORTED_VERSION);
    let refused = rig.ask(conn, 0, PushTelemetryRequest::default());
    assert_eq!(refused.error_code, ErrorCode::UNSUPPORTED_VERSION);
}

#[test]
fn rubbish_closes_the_connection() {
    for rubbish in [
        &b"GET / HTTP/1.1\r\n"[..],
        &[],
        &[0, 3],
        &[0, 3, 0, 12, 0, 0, 0, 1],
        &[0x7f, 0xff, 0, 0, 0, 0, 0, 1],
    ] {
        let mut rig = Rig::new(1, &[]);
        let conn = rig.connect(1);
        rig.state.handle_frame(rig.now, conn, Bytes::copy_from_slice(rubbish));
        rig.drain();
        assert!(
            matches!(rig.closed[..], [(ConnId(1), Closing::Malformed(_) | Closing::UnknownApi { .. })]),
            "{rubbish:?}: {:?}",
            rig.closed
        );
    }
}

#[test]
fn metadata_creates_topics_as_configured_and_names_what_is_wrong() {
    let mut rig = Rig::new(1, &[("num.partitions", "3")]);
    let conn = rig.connect(1);
    let wanted = |name: &str, create| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { name: Some(name.into()), ..Default::default() }]),
        allow_auto_topic_creation: create,
        ..Default::default()
    };
    let code =
        |rig: &mut Rig, request: MetadataRequest| rig.ask(conn, 12, request).topics.remove(0).error_code;
    assert_eq!(code(&mut rig, wanted("new", false)), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code(&mut rig, wanted("not a name", true)), ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(code(&mut rig, wanted("__consumer_offsets", true)), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let created = rig.ask(conn, 12, wanted("new", true)).topics.remove(0);
    assert_eq!((created.error_code, created.partitions.len()), (ErrorCode::NONE, 3));
    let by_id = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { topic_id: created.topic_id, name: None }]),
        ..Default::default()
    };
    assert_eq!(rig.ask(conn, 12, by_id).topics[0].name.as_deref(), Some("new"));
    let mut rig = Rig::new(1, &[("auto.create.topics.enable", "false")]);
    let conn = rig.connect(1);
    let refused = rig.ask(conn, 12, wanted("new", true)).topics.remove(0);
    assert_eq!(refused.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn a_hook_can_refuse_answer_hold_swallow_and_cut() {
    let mut rig = Rig::with_topic("t", 1);
    let mut verdicts = vec![
        Verdict::Disconnect,
        Verdict::Swallow,
        Verdict::Hold,
        Verdict::Answer(Box::new(HeartbeatResponse { throttle_time_ms: 7, ..Default::default() }.into())),
        Verdict::Refuse(ErrorCode::NOT_COORDINATOR),
    ];
    rig.state.set_intercept(Some(Box::new(move |node, header, request| {
        assert_eq!((node, header.client_id.as_deref()), (1, Some("test")));
        match request.key() {
            ApiKey::Heartbeat => verdicts.pop().unwrap_or(Verdict::Pass),
            _ => Verdict::Pass,
        }
    })));
    let conn = rig.connect(1);
    assert_eq!(rig.ask(conn, 4, HeartbeatRequest::default()).error_code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(rig.ask(conn, 4, HeartbeatRequest::default()).throttle_time_ms, 7);
    rig.send(conn, 4, HeartbeatRequest { group_id: "g".into(), ..Default::default() });
    assert_eq!((rig.answer(conn), rig.state.held()), (None, 1));
    rig.state.release_held(rig.now);
    rig.drain();
    let held: HeartbeatResponse = rig.answer_as(conn).unwrap();
    assert_eq!(held.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    let (swallowed, cut) = (rig.connect(1), rig.connect(1));
    rig.send(swallowed, 4, HeartbeatRequest::default());
    rig.send(cut, 4, HeartbeatRequest::default());
    rig.advance(60_000);
    assert_eq!(rig.answer(swallowed), None);
    assert_eq!(rig.closed, [(cut, Closing::Intercepted)]);
}

#[test]
fn a_black_hole_answers_nothing_and_a_connection_that_went_away_leaves_nothing_behind() {
    let mut rig = Rig::with_topic("t", 1);
    let conn = rig.connect(1);
    rig.send(conn, 11, fetch_request("t", &[(0, 0)], 10_000));
    assert_eq!(rig.state.parked_fetches(), 1);
    rig.state.handle_disconnected(rig.now, conn);
    assert_eq!(rig.state.parked_fetches(), 0);
    rig.state.set_black_hole(1, true).unwrap();
    let conn = rig.connect(1);
    rig.send(conn, 3, ApiVersionsRequest::default());
    rig.now += Duration::from_secs(60);
    rig.state.handle_timeout(rig.now);
    rig.drain();
    assert_eq!(rig.answer(conn), None);
}

#[test]
fn an_api_that_is_not_spoken_is_answered_and_the_connection_goes_on() {
    let mut rig = Rig::new(1, &[]);
    let conn = rig.connect(1);
    // DescribeClientQuotas, version 0, of no client id.
    let frame = [0, 48, 0, 0, 0, 0, 0, 9, 0xff, 0xff, 0, 0, 0, 0, 1];
    rig.state.handle_frame(rig.now, conn, Bytes::copy_from_slice(&frame));
    rig.drain();
    let answer = [0, 0, 0, 16, 0, 0, 0, 9, 0, 0, 0, 0, 0, 35, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(rig.frames, [(conn, Bytes::copy_from_slice(&answer))]);
    assert!(rig.closed.is_empty());
    assert!(!rig.ask(conn, 3, ApiVersionsRequest::default()).api_keys.is_empty());
}

#[test]
fn an_api_or_a_version_that_kafka_does_not_have_closes_the_connection_and_is_named() {
    for (key, version) in [(999, 0), (3, 99)] {
        let mut rig = Rig::new(1, &[]);
        let conn = rig.connect(1);
        let frame = [0_u8, 0, 0, 9, 0xff, 0xff, 0];
        let start = [i16::to_be_bytes(key), i16::to_be_bytes(version)].concat();
        rig.state.handle_frame(rig.now, conn, Bytes::from([&start[..], &frame].concat()));
        rig.drain();
        assert_eq!(rig.closed, [(conn, Closing::UnknownApi { key, version })]);
    }
}
