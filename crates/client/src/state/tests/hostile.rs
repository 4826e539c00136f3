//! Answers to fetches with one field that cannot be right: each is an error or tried again, and reading goes on to the end.

use super::*;
use bytes::Bytes;
use rig::{Edit, batch};
use tontine_wire::api::fetch::{AbortedTransaction, FetchResponse, FetchableTopicResponse};

/// An edit and what it does, in words.
type Hostile = (String, Edit);

fn hostile(what: impl Into<String>, edit: impl Fn(&mut FetchResponse) + 'static) -> Hostile {
    (what.into(), Box::new(edit))
}

const NUMBERS: [i64; 8] = [i64::MIN, i32::MIN as i64, -2, -1, 0, 1, i32::MAX as i64, i64::MAX];

/// A field, as an edit with each of the numbers that tend to go wrong.
fn numbers(what: &'static str, set: impl Fn(&mut PartitionData, i64) + Copy + 'static) -> Vec<Hostile> {
    let one = |n: i64| {
        hostile(format!("{what} is {n}"), move |answer| {
            answer.responses.iter_mut().flat_map(|t| &mut t.partitions).for_each(|p| set(p, n));
        })
    };
    NUMBERS.map(one).into()
}

fn topics(what: &'static str, change: impl Fn(&mut Vec<FetchableTopicResponse>) + 'static) -> Hostile {
    hostile(what, move |answer| change(&mut answer.responses))
}

fn first(what: impl Into<String>, change: impl Fn(&mut PartitionData) + 'static) -> Hostile {
    hostile(what, move |answer| change(&mut answer.responses[0].partitions[0]))
}

fn fields_of_partitions() -> Vec<Hostile> {
    [
        numbers("the partition", |p, n| p.partition_index = n as i32),
        numbers("the error", |p, n| p.error_code = ErrorCode(n as i16)),
        numbers("the high watermark", |p, n| p.high_watermark = n),
        numbers("the last stable offset", |p, n| p.last_stable_offset = n),
        numbers("the start of the log", |p, n| p.log_start_offset = n),
        numbers("the diverging epoch", |p, n| {
            (p.diverging_epoch.epoch, p.diverging_epoch.end_offset) = (n as i32, n);
        }),
        numbers("the leader", |p, n| {
            p.error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
            (p.current_leader.leader_id, p.current_leader.leader_epoch) = (n as i32, n as i32);
        }),
        numbers("the snapshot", |p, n| (p.snapshot_id.end_offset, p.snapshot_id.epoch) = (n, n as i32)),
        numbers("the preferred replica", |p, n| {
            p.preferred_read_replica = n as i32;
            p.records = None;
        }),
        numbers("the aborted transaction", |p, n| {
            p.aborted_transactions = Some(vec![AbortedTransaction { producer_id: n, first_offset: n }; 3]);
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn errors() -> impl Iterator<Item = Hostile> {
    (-1..=135).map(|code| first(format!("the error is {code}"), move |p| p.error_code = ErrorCode(code)))
}

fn whole_answers() -> Vec<Hostile> {
    let throttled =
        NUMBERS.map(|n| hostile(format!("throttled for {n}"), move |a| a.throttle_time_ms = n as i32));
    let failed =
        NUMBERS.map(|n| hostile(format!("top level {n}"), move |a| a.error_code = ErrorCode(n as i16)));
    let sessions = NUMBERS.map(|n| hostile(format!("the session is {n}"), move |a| a.session_id = n as i32));
    let endpoints = NUMBERS.map(|n| {
        hostile(format!("the endpoint is {n}"), move |answer| {
            let node = NodeEndpoint { node_id: n as i32, port: n as i32, ..NodeEndpoint::default() };
            answer.node_endpoints = vec![node.clone(), node];
            for partition in &mut answer.responses[0].partitions {
                partition.error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
                partition.current_leader = LeaderIdAndEpoch { leader_id: n as i32, leader_epoch: 7 };
            }
        })
    });
    let shapes = [
        topics("no topic", Vec::clear),
        topics("an unknown topic", |topics| topics[0].topic_id = Uuid::from_u128(99)),
        topics("a topic without an id", |topics| topics[0].topic_id = Uuid::ZERO),
        topics("a topic twice", |topics| topics.push(topics[0].clone())),
        topics("a topic without partitions", |topics| topics[0].partitions.clear()),
        topics("a partition twice", |topics| {
            let twice = topics[0].partitions[0].clone();
            topics[0].partitions.push(twice);
        }),
        topics("ten thousand partitions that nobody asked for", |topics| {
            let like = topics[0].partitions[0].clone();
            let other = |n| PartitionData { partition_index: n, ..like.clone() };
            topics[0].partitions.extend((2..10_000).map(other));
        }),
    ];
    [throttled, failed, sessions, endpoints].into_iter().flatten().chain(shapes).collect()
}

fn records() -> Vec<Hostile> {
    let with = |what: &str, records: Option<Bytes>| first(what, move |p| p.records = records.clone());
    let mut edits = vec![
        with("no records", None),
        with("empty records", Some(Bytes::new())),
        with("a lot of zeros", Some(vec![0; 10_000].into())),
        with("a lot of ones", Some(vec![0xff; 10_000].into())),
        with("records of before", Some(batch(0, 0))),
        with("records of far behind", Some(batch(1 << 40, 2))),
        with("records twice", Some([batch(0, 3), batch(0, 3)].concat().into())),
        with("records in the wrong order", Some([batch(2, 1), batch(0, 2)].concat().into())),
    ];
    let whole = batch(0, 3);
    for end in 0..whole.len() {
        edits.push(with(&format!("records that end at {end}"), Some(whole.slice(..end))));
    }
    for place in 0..whole.len() {
        for byte in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[place] = byte;
            edits.push(with(&format!("byte {place} of the records is {byte:#x}"), Some(bytes.into())));
        }
    }
    edits
}

fn ends(rig: &Rig) -> [Option<i64>; 2] {
    [0, 1].map(|partition| rig.desk.position(&name(partition)).ok().flatten().map(|at| at.offset))
}

/// Whether checksums are looked at makes the difference between one error for all damage and every kind of it.
fn read_all(settings: &[(&str, &str)], edits: Vec<Hostile>) {
    for (what, edit) in edits {
        let mut rig = Rig::assigned(&[1, 1], settings);
        rig.world.ends = vec![3, 3];
        rig.world.edit = Some(edit);
        let is_done = |rig: &Rig| rig.world.edit.is_none() && ends(rig) == [Some(3); 2];
        // A broker may ask for a pause of any length, of which as much is kept as a request may take.
        while !is_done(&rig) && rig.now < Instant::ZERO + Duration::from_secs(120) {
            if rig.poll(500).1.is_some() {
                // As the message says: seek to go on.
                for partition in 0..2 {
                    rig.desk.seek(&name(partition), &OffsetAndMetadata::new(0)).unwrap();
                }
            }
        }
        assert!(is_done(&rig), "{what}: {:?} {:?}", ends(&rig), rig.state.fetches);
    }
}

#[test]
fn no_field_of_an_answer_stops_a_consumer_whatever_it_holds() {
    read_all(&[], whole_answers());
    read_all(&[], fields_of_partitions());
    read_all(&[("isolation.level", "read_committed")], fields_of_partitions());
}

#[test]
fn no_error_of_a_partition_stops_a_consumer_for_good() {
    read_all(&[], errors().collect());
}

#[test]
fn no_byte_of_the_records_stops_a_consumer_with_checksums_and_without() {
    read_all(&[], records());
    read_all(&[("check.crcs", "false")], records());
}
