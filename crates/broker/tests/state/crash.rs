//! The whole broker on a disk that goes away at each single operation: what a client was told is there afterwards.

use crate::disk::{EACH, commit};
use crate::rig::{Rig, batch, produce_request, records};
use std::collections::BTreeMap;
use tontine_broker::disk::{Outage, SimulatedDisk};
use tontine_broker::{ConnId, NewTopic};
use tontine_group::TopicPartition;
use tontine_wire::ErrorCode;
use tontine_wire::api::Response;
use tontine_wire::api::init_producer_id::InitProducerIdRequest;

/// What clients were told.
#[derive(Default)]
struct Told {
    topics: BTreeMap<String, tontine_wire::Uuid>,
    records: BTreeMap<(String, i64), String>,
    committed: BTreeMap<String, i64>,
    producer_id: i64,
    rounds: i64,
}

/// Topics come and go, records are produced, offsets are committed, until the disk is gone.
fn live(rig: &mut Rig, told: &mut Told) {
    let conn = rig.connect(1);
    for round in 0..12i64 {
        let topic = format!("topic{}", round % 3);
        if round < 3
            && let Ok(id) = rig.create(&NewTopic::new(topic.as_str(), 1))
        {
            told.topics.insert(topic.clone(), id);
        }
        let value = format!("value {round}");
        let produced = rig.produce(conn, &topic, 0, &[&value]);
        if produced.error_code == ErrorCode::NONE {
            told.records.insert((topic.clone(), produced.base_offset), value);
        }
        let group = format!("group{}", round % 2);
        let answer = rig.ask(conn, 8, commit(&group, &topic, 0, round));
        if answer.topics[0].partitions[0].error_code == ErrorCode::NONE {
            told.committed.insert(format!("{group} {topic}"), round);
        }
        if round == 5 && rig.delete("topic1").is_ok() {
            told.topics.remove("topic1");
            told.records.retain(|(topic, _), _| topic != "topic1");
            told.committed.retain(|key, _| !key.ends_with("topic1"));
        }
        let answer = rig.ask(conn, 4, InitProducerIdRequest::default());
        if answer.error_code == ErrorCode::NONE {
            told.producer_id = answer.producer_id;
        }
    }
}

fn dice_of(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

/// What is on its way on a connection.
enum Asked {
    Produce(String, String),
    Commit(String, String, i64),
}

/// Several connections ask at the same time, and work is done sooner or later.
fn live_at_once(rig: &mut Rig, told: &mut Told, seed: u64) {
    let mut dice = dice_of(seed);
    for round in 0..3 {
        let topic = format!("topic{round}");
        if let Ok(id) = rig.create(&NewTopic::new(topic.as_str(), 1)) {
            told.topics.insert(topic, id);
        }
    }
    rig.work = Some(Default::default());
    let mut asked: BTreeMap<ConnId, Option<Asked>> = (0..4).map(|_| (rig.connect(1), None)).collect();
    // Later rounds commit later offsets, after a restart as well.
    let first = told.rounds;
    told.rounds += 60;
    for round in first..told.rounds {
        let free: Vec<ConnId> =
            asked.iter().filter(|(_, asked)| asked.is_none()).map(|(conn, _)| *conn).collect();
        let topic = format!("topic{}", [0, 2][dice(2)]);
        match (dice(3), free.first()) {
            (0, _) | (_, None) => {
                rig.work_once(dice(8));
            }
            (1, Some(conn)) => {
                let value = format!("value {round}");
                rig.send(*conn, 9, produce_request(&topic, 0, -1, batch(&[&value])));
                asked.insert(*conn, Some(Asked::Produce(topic, value)));
            }
            (_, Some(conn)) => {
                let group = format!("group{}", dice(2));
                rig.send(*conn, 8, commit(&group, &topic, 0, round));
                asked.insert(*conn, Some(Asked::Commit(group, topic, round)));
            }
        }
        take_answers(rig, told, &mut asked);
    }
    while rig.work_once(0) {}
    take_answers(rig, told, &mut asked);
    rig.work = None;
}

fn take_answers(rig: &mut Rig, told: &mut Told, asked: &mut BTreeMap<ConnId, Option<Asked>>) {
    for (conn, asked) in asked {
        let Some(answer) = rig.answer(*conn) else { continue };
        match (asked.take(), answer) {
            (Some(Asked::Produce(topic, value)), Response::Produce(answer)) => {
                let partition = &answer.responses[0].partition_responses[0];
                if partition.error_code == ErrorCode::NONE {
                    told.records.insert((topic, partition.base_offset), value);
                }
            }
            (Some(Asked::Commit(group, topic, offset)), Response::OffsetCommit(answer)) => {
                if answer.topics[0].partitions[0].error_code == ErrorCode::NONE {
                    let committed = told.committed.entry(format!("{group} {topic}")).or_insert(offset);
                    *committed = offset.max(*committed);
                }
            }
            (_, other) => panic!("{other:?}"),
        }
    }
}

fn check(rig: &mut Rig, told: &Told, place: &str) {
    let conn = rig.connect(1);
    for topic in told.topics.keys().filter(|topic| *topic != "topic1") {
        assert_eq!(rig.state.partitions(topic), Some(1), "{place}: {topic}");
    }
    for ((topic, offset), value) in told.records.iter().filter(|((topic, _), _)| topic != "topic1") {
        let found = records(&rig.fetch(conn, topic, 0, *offset));
        assert_eq!(found.first(), Some(&(*offset, value.clone())), "{place}: {topic}");
    }
    for (key, offset) in told.committed.iter().filter(|(key, _)| !key.ends_with("topic1")) {
        let (group, topic) = key.split_once(' ').unwrap();
        let found = rig.state.committed_offsets(group).get(&TopicPartition::new(topic, 0)).copied();
        assert!(found >= Some(*offset), "{place}: {key} was {offset} and is {found:?}");
    }
    let next = rig.ask(conn, 4, InitProducerIdRequest::default()).producer_id;
    assert!(next > told.producer_id || told.producer_id == 0, "{place}: producer id {next} comes again");
}

fn crash_everywhere(configs: &[(&str, &str)], outage: Outage, live: impl Fn(&mut Rig, &mut Told)) -> u64 {
    for operation in 1.. {
        let disk = SimulatedDisk::new(operation);
        disk.fail_at(operation);
        let mut told = Told::default();
        if let Ok(mut rig) = Rig::on(&disk, 1, configs) {
            live(&mut rig, &mut told);
        }
        if disk.operations() < operation {
            return operation - 1;
        }
        let place = format!("{outage:?} at operation {operation}");
        let left = disk.after(outage);
        let mut rig = Rig::on(&left, 2, configs).unwrap_or_else(|error| panic!("{place}: {error}"));
        check(&mut rig, &told, &place);
        live(&mut rig, &mut told);
        check(&mut rig, &told, &place);
    }
    0
}

#[test]
fn what_was_synced_before_the_answer_survives_a_machine_without_power() {
    assert!(crash_everywhere(EACH, Outage::Machine, live) > 80);
}

#[test]
fn what_was_answered_survives_the_end_of_the_process_without_any_sync() {
    let never = [("offsets.topic.num.partitions", "2")];
    assert!(crash_everywhere(&never, Outage::Process, live) > 50);
}

#[test]
fn what_was_answered_survives_however_requests_and_syncs_follow_each_other() {
    let points: u64 = (0..8)
        .map(|seed| crash_everywhere(EACH, Outage::Machine, |rig, told| live_at_once(rig, told, seed)))
        .sum();
    assert!(points > 700, "{points}");
}
