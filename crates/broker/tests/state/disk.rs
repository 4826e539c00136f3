//! A data directory: what is found at the next start, and what is said of one that cannot be used.

use crate::groups::{coordinator, heartbeat, stable_member};
use crate::rig::{Rig, records};
use tontine_broker::disk::{Outage, SimulatedDisk};
use tontine_broker::{NewTopic, StoreError};
use tontine_group::TopicPartition;
use tontine_wire::ErrorCode;
use tontine_wire::api::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use tontine_wire::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use tontine_wire::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use tontine_wire::api::describe_log_dirs::DescribeLogDirsRequest;
use tontine_wire::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use tontine_wire::api::init_producer_id::InitProducerIdRequest;
use tontine_wire::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use tontine_wire::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use tontine_wire::records::{BatchBuilder, Compression};

pub(crate) const EACH: &[(&str, &str)] =
    &[("log.flush.interval.messages", "1"), ("offsets.topic.num.partitions", "2")];

pub(crate) fn commit(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let partitions = vec![OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        ..Default::default()
    }];
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic { name: topic.into(), partitions, ..Default::default() }],
        ..Default::default()
    }
}

fn closed(mut rig: Rig) {
    let now = rig.now;
    rig.state.wind_down(now);
    rig.drain();
    rig.state.shut_down(now).unwrap();
}

#[test]
fn topics_with_ids_settings_and_records_are_found_again_however_the_last_run_ended() {
    for clean in [true, false] {
        let disk = SimulatedDisk::new(1);
        let mut rig = Rig::on(&disk, 1, EACH).unwrap();
        let mut topic = NewTopic::new("orders", 2);
        topic.configs.push(("retention.ms".into(), "-1".into()));
        let id = rig.create(&topic).unwrap();
        rig.topic("gone", 1);
        rig.delete("gone").unwrap();
        let conn = rig.connect(1);
        rig.produce(conn, "orders", 1, &["a", "b"]);
        rig.produce(conn, "orders", 1, &["c"]);
        let more = CreatePartitionsTopic { name: "orders".into(), count: 3, ..Default::default() };
        rig.ask(conn, 3, CreatePartitionsRequest { topics: vec![more], ..Default::default() });
        let cluster = rig.state.cluster_id().to_owned();
        if clean {
            closed(rig);
        }

        let mut rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
        assert_eq!(rig.state.cluster_id(), cluster);
        assert_eq!(rig.state.partitions("orders"), Some(3));
        assert_eq!(rig.state.partitions("gone"), None);
        let said = rig.state.take_notes();
        assert_eq!(said.is_empty(), clean, "{said:?}");
        let conn = rig.connect(1);
        let found = records(&rig.fetch(conn, "orders", 1, 0));
        assert_eq!(found, [(0, "a".to_owned()), (1, "b".to_owned()), (2, "c".to_owned())]);
        let resource = DescribeConfigsResource {
            resource_type: 2,
            resource_name: "orders".into(),
            ..Default::default()
        };
        let described =
            rig.ask(conn, 4, DescribeConfigsRequest { resources: vec![resource], ..Default::default() });
        let retention =
            described.results[0].configs.iter().find(|config| config.name == "retention.ms").unwrap();
        assert_eq!(retention.value.as_deref(), Some("-1"));
        assert_eq!(rig.create(&topic).unwrap_err().0, ErrorCode::TOPIC_ALREADY_EXISTS);
        let again = crate::rig::by_id(crate::rig::fetch_request("orders", &[(1, 2)], 0), id);
        let fetched = rig.ask(conn, 13, again);
        assert_eq!(records(&fetched.responses[0].partitions[0]), [(2, "c".to_owned())]);
    }
}

#[test]
fn groups_go_on_where_they_were_members_included() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, EACH).unwrap();
    rig.topic("orders", 1);
    let conn = coordinator(&mut rig, "billing");
    let member = stable_member(&mut rig, conn, "billing");
    let mut request = commit("billing", "orders", 0, 7);
    request.generation_id_or_member_epoch = 1;
    request.member_id = member.clone();
    let answer = rig.ask(conn, 8, request);
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);

    let mut rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
    let committed = rig.state.committed_offsets("billing");
    assert_eq!(committed.get(&TopicPartition::new("orders", 0)), Some(&7));
    let conn = coordinator(&mut rig, "billing");
    let beat = rig.ask(conn, 4, heartbeat("billing", &member));
    assert_eq!(beat.error_code, ErrorCode::NONE, "the member never notices");
    assert_eq!(rig.state.groups().len(), 1);
}

#[test]
fn a_producer_that_sends_a_batch_again_after_a_restart_is_recognised() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, EACH).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    let id = rig.ask(conn, 4, InitProducerIdRequest::default()).producer_id;
    let batch = |sequence| {
        let mut builder = BatchBuilder::new(Compression::None);
        builder.producer(id, 0, sequence);
        builder.append(crate::rig::START_MS, None, Some(b"v"), []).unwrap();
        builder.build(0)
    };
    assert_eq!(rig.produce_bytes(conn, "orders", 0, -1, batch(0)).base_offset, 0);
    assert_eq!(rig.produce_bytes(conn, "orders", 0, -1, batch(1)).base_offset, 1);

    let mut rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
    let conn = rig.connect(1);
    assert_eq!(rig.produce_bytes(conn, "orders", 0, -1, batch(1)).base_offset, 1, "it was there");
    let gap = rig.produce_bytes(conn, "orders", 0, -1, batch(3));
    assert_eq!(gap.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    let next = rig.ask(conn, 4, InitProducerIdRequest::default()).producer_id;
    assert!(next > id, "no producer id comes twice");
}

#[test]
fn deleted_records_stay_deleted() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[]).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["a", "b", "c"]);
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 2 }];
    let topics = vec![DeleteRecordsTopic { name: "orders".into(), partitions }];
    rig.ask(conn, 2, DeleteRecordsRequest { topics, ..Default::default() });
    let rig = Rig::on(&disk.after(Outage::Process), 2, &[]).unwrap();
    assert_eq!(rig.state.log_offsets("orders", 0), Some((2, 3)));
}

#[test]
fn a_start_after_a_crash_begins_a_leader_epoch_and_a_clean_one_does_not() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, EACH).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["a"]);
    let mut rig = Rig::on(&disk.after(Outage::Process), 2, EACH).unwrap();
    assert_eq!(rig.state.leader("orders", 0), Some((1, 1)));
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["b", "c"]);
    let end = |rig: &mut Rig, epoch| {
        let conn = rig.connect(1);
        let partition =
            OffsetForLeaderPartition { partition: 0, leader_epoch: epoch, current_leader_epoch: -1 };
        let topic = OffsetForLeaderTopic { topic: "orders".into(), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() };
        rig.ask(conn, 4, request).topics.remove(0).partitions.remove(0).end_offset
    };
    assert_eq!([end(&mut rig, 0), end(&mut rig, 1)], [1, 3]);
    let disk = disk_of(rig, disk);
    let mut rig = Rig::on(&disk, 3, EACH).unwrap();
    assert_eq!(rig.state.leader("orders", 0), Some((1, 1)));
    assert_eq!([end(&mut rig, 0), end(&mut rig, 1)], [1, 3]);
}

/// Ends a run on this disk cleanly. The first argument was started on a copy: it is started once more on that copy.
fn disk_of(rig: Rig, first: SimulatedDisk) -> SimulatedDisk {
    drop(rig);
    let copy = first.after(Outage::Process);
    let mut rig = Rig::on(&copy, 2, EACH).unwrap();
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["b", "c"]);
    closed(rig);
    copy
}

#[test]
fn settings_that_were_changed_while_it_ran_stay_changed() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[]).unwrap();
    let conn = rig.connect(1);
    let config =
        AlterableConfig { name: "log.retention.ms".into(), value: Some("5000".into()), ..Default::default() };
    let resource =
        AlterConfigsResource { resource_type: 4, resource_name: "1".into(), configs: vec![config] };
    let answer =
        rig.ask(conn, 1, IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() });
    assert_eq!(answer.responses[0].error_code, ErrorCode::NONE);
    let mut rig = Rig::on(&disk.after(Outage::Machine), 2, &[]).unwrap();
    let conn = rig.connect(1);
    let resource =
        DescribeConfigsResource { resource_type: 4, resource_name: "1".into(), ..Default::default() };
    let described =
        rig.ask(conn, 4, DescribeConfigsRequest { resources: vec![resource], ..Default::default() });
    let value = described.results[0].configs.iter().find(|config| config.name == "log.retention.ms").unwrap();
    assert_eq!(value.value.as_deref(), Some("5000"));
}

#[test]
fn a_full_disk_is_a_storage_error_and_what_was_acknowledged_is_still_there() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, EACH).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["a"]);
    disk.set_capacity(Some(disk.used() + 10));
    assert_eq!(rig.produce(conn, "orders", 0, &["b"]).error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(rig.produce(conn, "orders", 0, &["b"]).error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    let said: Vec<_> =
        rig.state.take_notes().into_iter().filter(|note| note.contains("cannot write")).collect();
    assert_eq!(said.len(), 1, "said once: {said:?}");
    let refused = rig.create(&NewTopic::new("more", 1)).unwrap_err();
    assert_eq!(refused.0, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(records(&rig.fetch(conn, "orders", 0, 0)).len(), 1);
    disk.set_capacity(None);
    assert_eq!(rig.produce(conn, "orders", 0, &["b"]).base_offset, 1);
}

#[test]
fn partitions_and_leaders_that_cannot_be_stored_are_not_used() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on_nodes(&disk, 1, 2, EACH).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    disk.set_capacity(Some(disk.used() + 10));
    let more = CreatePartitionsTopic { name: "orders".into(), count: 3, ..Default::default() };
    let request = CreatePartitionsRequest { topics: vec![more], ..Default::default() };
    let answer = rig.ask(conn, 3, request.clone());
    assert_eq!(answer.results[0].error_code, ErrorCode::KAFKA_STORAGE_ERROR);
    assert_eq!(rig.state.partitions("orders"), Some(1), "the next start would not find them");
    let before = rig.state.leader("orders", 0);
    let refused = rig.state.move_leader(rig.now, "orders", 0, 2).unwrap_err();
    assert!(refused.to_string().contains("cannot be stored"), "{refused}");
    assert_eq!(rig.state.leader("orders", 0), before);
    rig.state.stop_node(rig.now, 1).unwrap();
    assert_eq!(rig.state.leader("orders", 0), before, "nobody else, until it is stored");
    disk.set_capacity(None);
    rig.advance(2_000);
    assert_eq!(rig.state.leader("orders", 0), Some((2, 1)));
    let conn = rig.connect(2);
    assert_eq!(rig.ask(conn, 3, request).results[0].error_code, ErrorCode::NONE);
    let rig = Rig::on_nodes(&disk.after(Outage::Machine), 2, 2, EACH).unwrap();
    assert_eq!(rig.state.partitions("orders"), Some(3));
    assert_eq!(rig.state.leader("orders", 0), Some((2, 2)));
}

#[test]
fn a_torn_write_that_was_cut_off_does_not_come_back_and_hide_what_was_written_behind_it() {
    for seed in 0..20 {
        let disk = SimulatedDisk::new(seed);
        let mut rig = Rig::on(&disk, 1, &[EACH, &[("log.roll.ms", "1000")]].concat()).unwrap();
        rig.topic("orders", 1);
        let conn = rig.connect(1);
        rig.produce(conn, "orders", 0, &["a"]);
        disk.set_capacity(Some(disk.used() + 10));
        assert_eq!(rig.produce(conn, "orders", 0, &["b"]).error_code, ErrorCode::KAFKA_STORAGE_ERROR);
        disk.set_capacity(None);
        // The next one goes to another segment.
        rig.advance(5_000);
        assert_eq!(rig.produce(conn, "orders", 0, &["b"]).error_code, ErrorCode::NONE);
        let rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
        assert_eq!(rig.state.log_offsets("orders", 0), Some((0, 2)), "seed {seed}");
    }
}

#[test]
fn records_wait_no_longer_than_the_flush_interval_before_they_are_durable() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[("log.flush.interval.ms", "1000")]).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["a"]);
    rig.advance(1600);
    let rig = Rig::on(&disk.after(Outage::Machine), 2, &[]).unwrap();
    assert_eq!(rig.state.log_offsets("orders", 0), Some((0, 1)));
}

#[test]
fn a_topic_that_comes_again_under_its_name_does_not_find_the_old_records() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, EACH).unwrap();
    for (round, value) in ["old", "new"].into_iter().enumerate() {
        rig.topic("orders", 1);
        let conn = rig.connect(1);
        rig.produce(conn, "orders", 0, &[value]);
        assert_eq!(records(&rig.fetch(conn, "orders", 0, 0)), [(0, value.to_owned())], "round {round}");
        rig.advance(120_000);
        rig.delete("orders").unwrap();
    }
    rig.topic("orders", 1);
    let rig = Rig::on(&disk.after(Outage::Machine), 2, EACH).unwrap();
    assert_eq!(rig.state.log_offsets("orders", 0), Some((0, 0)));
}

#[test]
fn one_broker_at_a_time_uses_a_directory() {
    let disk = SimulatedDisk::new(1);
    let first = Rig::on(&disk, 1, &[]).unwrap();
    let refused = Rig::on(&disk, 2, &[]).err().unwrap();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    closed(first);
    Rig::on(&disk, 3, &[]).unwrap();
}

#[test]
fn a_directory_of_a_newer_version_or_of_somebody_else_is_refused_and_left_as_it_is() {
    let disk = SimulatedDisk::new(1);
    closed(Rig::on(&disk, 1, &[]).unwrap());
    let files = disk.files();
    let refused = |change: fn(&mut Vec<u8>)| {
        disk.damage("meta.properties", change);
        Rig::on(&disk, 2, &[]).err().unwrap().to_string()
    };
    let newer = refused(|bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap().replace("tontine.format=1", "tontine.format=9");
        *bytes = text.into_bytes();
    });
    assert!(newer.contains("newer version") && newer.contains("format is 9"), "{newer}");
    let foreign = refused(|bytes| *bytes = b"version=1\ncluster.id=x\nnode.id=1\n".to_vec());
    assert!(foreign.contains("is not one of ours"), "{foreign}");
    assert_eq!(disk.files(), files);
}

#[test]
fn damaged_metadata_is_refused_with_file_and_place() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[]).unwrap();
    rig.topic("orders", 1);
    rig.topic("bills", 1);
    drop(rig);
    let file = disk
        .files()
        .into_iter()
        .find(|file| file.starts_with("metadata/") && file.ends_with(".log"))
        .unwrap();
    disk.damage(&file, |bytes| bytes[70] ^= 1);
    let text = Rig::on(&disk.after(Outage::Process), 2, &[]).err().unwrap().to_string();
    assert!(text.contains(&file) && text.contains("at byte 0") && text.contains("Restore"), "{text}");
}

#[test]
fn the_directory_and_the_size_of_its_logs_are_described() {
    let disk = SimulatedDisk::new(1);
    let mut rig = Rig::on(&disk, 1, &[]).unwrap();
    rig.topic("orders", 1);
    let conn = rig.connect(1);
    rig.produce(conn, "orders", 0, &["a"]);
    let described = rig.ask(conn, 4, DescribeLogDirsRequest { topics: None });
    assert_eq!(described.results[0].log_dir, rig.state.data_dir().unwrap());
    assert!(described.results[0].topics[0].partitions[0].partition_size > 60);
}
