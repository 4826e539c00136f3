//! Records of `__consumer_offsets`: Kafka's own formats, typed.
//!
//! Mirrors `GroupCoordinatorRecordHelpers` and `GroupCoordinatorRecordSerde`. It does not decide when one is written.

use super::consumer::ConsumerRecord;
use bytes::Bytes;
use tontine_wire::{
    DecodeError,
    codec::{Message, Reader, Wire},
    group_records::{GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue},
};

const OFFSET_COMMIT: i16 = 1;
const GROUP_METADATA: i16 = 2;
/// The version in which offsets are written: flexible, with the topic's id.
const OFFSET_COMMIT_VALUE: i16 = 4;
/// The only version with an expiry of its own, for commits that bring a retention time.
const OFFSET_COMMIT_VALUE_WITH_EXPIRY: i16 = 1;
/// The version in which classic groups are written. Kafka knows version 4 and does not write it.
const GROUP_METADATA_VALUE: i16 = 3;

/// A key and a value as they stand in the log. No value is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupRecord {
    /// The record's key.
    pub key: Bytes,
    /// The record's value.
    pub value: Option<Bytes>,
}

/// A record that is understood here.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An offset of a group, or that it is gone.
    OffsetCommit(OffsetCommitKey, Option<OffsetCommitValue>),
    /// A classic group as it stands, or that it is gone.
    GroupMetadata(GroupMetadataKey, Option<GroupMetadataValue>),
    /// Something about a consumer group.
    Consumer(ConsumerRecord),
}

/// A record that is not what it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read a record of type {kind}: {source}")]
pub struct RecordError {
    /// The type of the record, when it could be read.
    pub kind: i16,
    /// What is wrong with it.
    pub source: DecodeError,
}

impl Record {
    /// The record as it is appended.
    pub fn encode(&self) -> GroupRecord {
        match self {
            Self::OffsetCommit(key, value) => GroupRecord {
                key: key.to_numbered_bytes(OFFSET_COMMIT, 0),
                value: value.as_ref().map(|value| {
                    let expires = value.expire_timestamp != -1;
                    let version = if expires { OFFSET_COMMIT_VALUE_WITH_EXPIRY } else { OFFSET_COMMIT_VALUE };
                    value.to_numbered_bytes(version, version)
                }),
            },
            Self::GroupMetadata(key, value) => GroupRecord {
                key: key.to_numbered_bytes(GROUP_METADATA, 0),
                value: value
                    .as_ref()
                    .map(|value| value.to_numbered_bytes(GROUP_METADATA_VALUE, GROUP_METADATA_VALUE)),
            },
            Self::Consumer(record) => {
                let (key, value) = record.encode();
                GroupRecord { key, value }
            }
        }
    }

    /// Reads a record; `None` for a type that is not understood here, which replay steps over.
    pub fn decode(key: Bytes, value: Option<Bytes>) -> Result<Option<Self>, RecordError> {
        let mut reader = Reader::new(key);
        let kind = i16::get(&mut reader, 0, false).map_err(|source| RecordError { kind: -1, source })?;
        let wrong = |source| RecordError { kind, source };
        match kind {
            0 | OFFSET_COMMIT => {
                let key = Message::decode(reader.rest(), 0).map_err(wrong)?;
                Ok(Some(Self::OffsetCommit(key, value.map(read_value).transpose().map_err(wrong)?)))
            }
            GROUP_METADATA => {
                let key = Message::decode(reader.rest(), 0).map_err(wrong)?;
                Ok(Some(Self::GroupMetadata(key, value.map(read_value).transpose().map_err(wrong)?)))
            }
            _ => Ok(ConsumerRecord::decode(kind, reader, value).map_err(wrong)?.map(Self::Consumer)),
        }
    }

    /// The group that the record is about.
    pub fn group(&self) -> &str {
        match self {
            Self::OffsetCommit(key, _) => &key.group,
            Self::GroupMetadata(key, _) => &key.group,
            Self::Consumer(record) => record.group(),
        }
    }
}

pub(super) fn read_value<M: Message>(bytes: Bytes) -> Result<M, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = i16::get(&mut reader, 0, false)?;
    if !M::VERSIONS.contains(&version) {
        return Err(DecodeError::UnsupportedVersion { key: -1, version });
    }
    M::decode(reader.rest(), version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tontine_wire::{Uuid, group_records::MemberMetadata};

    fn survives(record: Record) -> GroupRecord {
        let encoded = record.encode();
        assert_eq!(Record::decode(encoded.key.clone(), encoded.value.clone()).unwrap(), Some(record));
        encoded
    }

    fn offset_key() -> OffsetCommitKey {
        OffsetCommitKey { group: "g".to_owned(), topic: "t".to_owned(), partition: 3 }
    }

    #[test]
    fn an_offset_is_written_in_version_4_with_the_id_of_its_topic() {
        let value = OffsetCommitValue { offset: 5, topic_id: Uuid::from_u128(7), ..Default::default() };
        let encoded = survives(Record::OffsetCommit(offset_key(), Some(value)));
        assert_eq!(encoded.key, &b"\0\x01\0\x01g\0\x01t\0\0\0\x03"[..]);
        let value = encoded.value.unwrap();
        assert_eq!(value[..2], [0, 4]);
        // One tagged field, number 0, of 16 bytes: the id.
        assert_eq!(value[value.len() - 19..value.len() - 16], [1, 0, 16]);
    }

    #[test]
    fn an_offset_with_an_expiry_is_written_in_the_version_that_has_one() {
        let value = OffsetCommitValue { offset: 5, expire_timestamp: 9, ..Default::default() };
        assert_eq!(survives(Record::OffsetCommit(offset_key(), Some(value))).value.unwrap()[..2], [0, 1]);
    }

    #[test]
    fn a_group_is_written_in_version_3() {
        let member = MemberMetadata {
            member_id: "m".to_owned(),
            group_instance_id: Some("i".to_owned()),
            rebalance_timeout: 5,
            assignment: Bytes::from_static(b"a"),
            ..Default::default()
        };
        let value = GroupMetadataValue { generation: 2, members: vec![member], ..Default::default() };
        let key = GroupMetadataKey { group: "g".to_owned() };
        let encoded = survives(Record::GroupMetadata(key.clone(), Some(value)));
        assert_eq!(encoded.key, &b"\0\x02\0\x01g"[..]);
        assert_eq!(encoded.value.unwrap()[..2], [0, 3]);
        assert_eq!(survives(Record::GroupMetadata(key, None)).value, None);
    }

    #[test]
    fn records_of_unknown_types_are_stepped_over_and_broken_ones_are_errors() {
        let unknown = Bytes::from_static(b"\0\x63whatever");
        assert_eq!(Record::decode(unknown, None), Ok(None));
        assert!(Record::decode(Bytes::from_static(b"\0"), None).is_err());
        assert!(Record::decode(Bytes::from_static(b"\0\x02\0\x09g"), None).is_err());
        let (key, value) = (Bytes::from_static(b"\0\x02\0\x01g"), Bytes::from_static(b"\0\x63"));
        assert_eq!(Record::decode(key, Some(value)).unwrap_err().kind, 2);
    }
}
