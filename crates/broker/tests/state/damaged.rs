//! Every request in every version, as it should be and damaged in many ways: the same in every run.

use crate::dispatch::{dispatch, piece};
use crate::rig::{batch, fetch_request, produce_request};
use std::collections::BTreeMap;
use std::path::Path;
use tontine_wire::api::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use tontine_wire::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use tontine_wire::api::end_txn::EndTxnRequest;
use tontine_wire::api::init_producer_id::InitProducerIdRequest;
use tontine_wire::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use tontine_wire::api::{ApiKey, Request};
use tontine_wire::frame;
use tontine_wire::header::RequestHeader;

/// Requests of every API and version, of which only the form is right: as Kafka's schemas have it.
fn vectors() -> Vec<(ApiKey, Vec<u8>)> {
    let lines = include_str!("../../../wire/tests/wire/data/messages.tsv").lines();
    let requests = lines.filter_map(|line| {
        let mut parts = line.split('\t');
        let name = parts.next()?;
        let key = ApiKey::ALL.iter().copied().find(|key| key.name() == name)?;
        let version: i16 = parts.next()?.parse().ok()?;
        parts.next().filter(|side| *side == "request")?;
        let body = unhex(parts.next()?);
        let mut bytes = [(key as i16).to_be_bytes(), version.to_be_bytes()].concat();
        bytes.extend([0, 0, 0, 1, 0xff, 0xff]);
        bytes.extend(key.is_flexible(version).then_some(0));
        bytes.extend(body);
        Some((key, bytes))
    });
    requests.collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn encoded(version: i16, request: impl Into<Request>) -> Vec<u8> {
    let request = request.into();
    let header = RequestHeader { key: request.key(), version, correlation_id: 1, client_id: None };
    frame::encode_request(&header, &request).slice(4..).to_vec()
}

/// A conversation that makes sense: records, a group, a transaction, a topic.
fn sensible() -> Vec<Vec<u8>> {
    let topics = vec![AddPartitionsToTxnTopic { name: "t".into(), partitions: vec![0] }];
    let protocols =
        vec![JoinGroupRequestProtocol { name: "range".into(), metadata: vec![0, 1, 0, 0].into() }];
    let init = InitProducerIdRequest {
        transactional_id: Some("x".into()),
        transaction_timeout_ms: 1000,
        ..Default::default()
    };
    vec![
        encoded(9, produce_request("t", 0, -1, batch(&["a"]))),
        encoded(11, fetch_request("t", &[(0, 0)], 0)),
        encoded(8, crate::disk::commit("g", "t", 0, 1)),
        encoded(
            4,
            JoinGroupRequest {
                group_id: "g".into(),
                session_timeout_ms: 10_000,
                rebalance_timeout_ms: 10_000,
                protocol_type: "consumer".into(),
                protocols,
                ..Default::default()
            },
        ),
        encoded(4, init),
        encoded(
            3,
            AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: "x".into(),
                v3_and_below_topics: topics,
                ..Default::default()
            },
        ),
        encoded(3, EndTxnRequest { transactional_id: "x".into(), committed: true, ..Default::default() }),
        encoded(
            5,
            CreateTopicsRequest {
                topics: vec![CreatableTopic {
                    name: "n".into(),
                    num_partitions: 1,
                    replication_factor: 1,
                    ..Default::default()
                }],
                timeout_ms: 1000,
                ..Default::default()
            },
        ),
    ]
}

/// One conversation for each API, and one that makes sense; what the fuzzer starts from as well.
fn conversations() -> BTreeMap<String, Vec<u8>> {
    let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (key, request) in vectors() {
        all.entry(key.name().to_owned()).or_insert_with(|| vec![1]).extend(piece(0, &request));
    }
    let sensible = sensible().iter().flat_map(|request| piece(1, request)).collect::<Vec<u8>>();
    all.insert("sensible".into(), [vec![1], sensible].concat());
    all
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    /// Changes a byte, takes some away, or puts some in.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        match self.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            2 => drop(bytes.remove(at)),
            3 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            4 => bytes[at] ^= 1 << self.below(8),
            _ => {
                let bytes = bytes.iter_mut().skip(at).take(4);
                bytes.for_each(|byte| *byte = 0xff);
            }
        }
    }
}

#[test]
fn every_request_in_every_version_is_answered_or_its_connection_is_closed() {
    for (name, conversation) in conversations() {
        assert!(dispatch(&conversation) > 0, "{name}");
    }
}

#[test]
fn damaged_requests_do_no_harm() {
    let mut dice = Dice(1);
    for (key, request) in vectors() {
        for round in 0..6 {
            let mut damaged = request.clone();
            // What says the API and the version stays: others have their turn.
            let mut body = damaged.split_off(4);
            for _ in 0..=dice.below(3) {
                if !body.is_empty() {
                    dice.damage(&mut body);
                }
            }
            damaged.extend(body);
            let conversation = [vec![round % 2], piece(0, &damaged)].concat();
            let done = std::panic::catch_unwind(|| dispatch(&conversation));
            assert!(done.is_ok(), "{}: {conversation:02x?}", key.name());
        }
    }
    let sensible = sensible();
    for round in 0..250 {
        let mut conversation = vec![round % 2];
        for request in &sensible {
            let mut request = request.clone();
            if dice.below(3) == 0 {
                dice.damage(&mut request);
            }
            conversation.extend(piece(dice.below(3) as u8, &request));
        }
        dispatch(&conversation);
    }
}

#[test]
fn the_fuzzer_starts_from_these_conversations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/dispatch");
    for (name, conversation) in conversations() {
        let path = folder.join(&name);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &conversation).unwrap();
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == conversation, "{name}: UPDATE=1 writes it anew");
    }
}
