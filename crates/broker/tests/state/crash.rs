//! The whole broker on a disk that goes away at each single operation: what a client was told is there afterwards.

use crate::disk::{EACH, commit};
use crate::rig::{Rig, records};
use std::collections::BTreeMap;
use tontine_broker::NewTopic;
use tontine_broker::disk::{Outage, SimulatedDisk};
use tontine_group::TopicPartition;
use tontine_wire::ErrorCode;
use tontine_wire::api::init_producer_id::InitProducerIdRequest;

/// What clients were told.
#[derive(Default)]
struct Told {
    topics: BTreeMap<String, tontine_wire::Uuid>,
    records: BTreeMap<(String, i64), String>,
    committed: BTreeMap<String, i64>,
    producer_id: i64,
}

/// Topics come and go, records are produced, offsets are committed, until the disk is gone.
fn live(rig: &mut Rig, told: &mut Told) {
    let conn = rig.connect(1);
    for round in 0..12i64 {
        let topic = format!("topic{}", round % 3);
        if round < 3
            && let Ok(id) = rig.state.create_topic(rig.now, &NewTopic::new(topic.as_str(), 1))
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
        if round == 5 && rig.state.delete_topic(rig.now, "topic1").is_ok() {
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

fn crash_everywhere(configs: &[(&str, &str)], outage: Outage) -> u64 {
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
    assert!(crash_everywhere(EACH, Outage::Machine) > 80);
}

#[test]
fn what_was_answered_survives_the_end_of_the_process_without_any_sync() {
    let never = [("offsets.topic.num.partitions", "2")];
    assert!(crash_everywhere(&never, Outage::Process) > 50);
}
