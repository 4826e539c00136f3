//! Bytes written after Kafka's message schemas mean here what they mean there, and are written here just so.

use crate::vectors::{Line, assert_none_wrong, fields_of, messages, unhex};
use bytes::Bytes;
use std::collections::BTreeSet;
use tontine_wire::api::ApiKey;
use tontine_wire::codec::Message;
use tontine_wire::consumer_protocol::{Assignment, Subscription};
use tontine_wire::group_records::*;

fn differs(fields: &str, want_fields: &str, bytes: &Bytes, want_bytes: &Bytes) -> Result<(), String> {
    if fields != want_fields {
        return Err(format!("fields\n  got  {fields}\n  want {want_fields}"));
    }
    if bytes != want_bytes {
        return Err(format!("bytes\n  got  {bytes:02x?}\n  want {want_bytes:02x?}"));
    }
    Ok(())
}

fn check(line: &Line) -> Result<(), String> {
    let message = line.decode(line.bytes.clone()).map_err(|e| e.to_string())?;
    differs(&fields_of(&message), line.fields, &message.encode(line.version), &line.bytes)
}

#[test]
fn every_message_means_what_its_schema_says() {
    let lines = messages();
    let wrong = lines.iter().filter_map(|line| Some(format!("{}: {}", line.title(), check(line).err()?)));
    assert_none_wrong(&wrong.collect::<Vec<_>>(), lines.len());
}

#[test]
fn no_api_and_no_version_is_left_out() {
    let lines = messages();
    let seen: BTreeSet<_> = lines.iter().map(|line| (line.key, line.version, line.is_request)).collect();
    for key in ApiKey::ALL {
        for version in key.versions() {
            let both = [true, false].iter().all(|is_request| seen.contains(&(*key, version, *is_request)));
            assert!(both, "{} v{version} has no line in messages.tsv", key.name());
        }
    }
}

fn check_record<M: Message + std::fmt::Debug>(
    version: i16,
    bytes: &Bytes,
    fields: &str,
) -> Result<(), String> {
    let message = M::decode(bytes.clone(), version).map_err(|e| e.to_string())?;
    for end in 0..bytes.len() {
        if M::decode(bytes.slice(..end), version).is_ok() {
            return Err(format!("is accepted when cut off at {end}"));
        }
    }
    differs(&fields_of(&message), fields, &message.to_bytes(version), bytes)
}

macro_rules! check_one_of {
    ($name:expr, $version:expr, $bytes:expr, $fields:expr, [$($message:ident),* $(,)?]) => {
        match $name {
            $(stringify!($message) => check_record::<$message>($version, $bytes, $fields),)*
            other => Err(format!("{other} is not in the test's list")),
        }
    };
}

#[test]
fn records_of_the_offsets_topic_and_the_embedded_protocol_mean_what_their_schemas_say() {
    let lines: Vec<_> = include_str!("data/group_records.tsv").lines().collect();
    let mut wrong = Vec::new();
    for line in &lines {
        let parts: Vec<_> = line.split('\t').collect();
        let [name, version, bytes, fields] = parts[..] else { panic!("not a line: {line}") };
        let version: i16 = version.parse().unwrap();
        let result = check_one_of!(
            name,
            version,
            &unhex(bytes),
            fields,
            [
                Assignment,
                ConsumerGroupCurrentMemberAssignmentKey,
                ConsumerGroupCurrentMemberAssignmentValue,
                ConsumerGroupMemberMetadataKey,
                ConsumerGroupMemberMetadataValue,
                ConsumerGroupMetadataKey,
                ConsumerGroupMetadataValue,
                ConsumerGroupPartitionMetadataKey,
                ConsumerGroupRegularExpressionKey,
                ConsumerGroupRegularExpressionValue,
                ConsumerGroupTargetAssignmentMemberKey,
                ConsumerGroupTargetAssignmentMemberValue,
                ConsumerGroupTargetAssignmentMetadataKey,
                ConsumerGroupTargetAssignmentMetadataValue,
                GroupMetadataKey,
                GroupMetadataValue,
                OffsetCommitKey,
                OffsetCommitValue,
                Subscription,
            ]
        );
        wrong.extend(result.err().map(|why| format!("{name} v{version}: {why}")));
    }
    assert_none_wrong(&wrong, lines.len());
}

#[test]
fn a_member_without_classic_metadata_ends_with_a_tag_that_says_so() {
    let bytes = ConsumerGroupMemberMetadataValue::default().to_bytes(0);
    assert!(bytes.ends_with(&[1, 0, 1, 0]), "{bytes:02x?}");
}

#[test]
fn null_goes_out_as_empty_where_a_version_has_no_null() {
    use tontine_wire::api::join_group::JoinGroupResponse;
    let failed = JoinGroupResponse::default();
    assert_eq!(failed.protocol_name, None);
    for version in [3, 7] {
        let read = JoinGroupResponse::decode(failed.to_bytes(version), version).unwrap();
        assert_eq!(read.protocol_name, if version == 3 { Some(String::new()) } else { None });
    }
}
