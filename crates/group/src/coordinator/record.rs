//! Records of `__consumer_offsets`: Kafka's own formats, typed.
//!
//! Mirrors `GroupCoordinatorRecordHelpers` and `GroupCoordinatorRecordSerde`. It does not decide when one is written.

use bytes::{BufMut, Bytes, BytesMut};
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
                key: versioned(OFFSET_COMMIT, key, 0),
                value: value.as_ref().map(|value| {
                    let expires = value.expire_timestamp != -1;
                    let version = if expires { OFFSET_COMMIT_VALUE_WITH_EXPIRY } else { OFFSET_COMMIT_VALUE };
                    versioned(version, value, version)
                }),
            },
            Self::GroupMetadata(key, value) => GroupRecord {
                key: versioned(GROUP_METADATA, key, 0),
                value: value
                    .as_ref()
                    .map(|value| versioned(GROUP_METADATA_VALUE, value, GROUP_METADATA_VALUE)),
            },
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
            _ => Ok(None),
        }
    }

    /// The group that the record is about.
    pub fn group(&self) -> &str {
        match self {
            Self::OffsetCommit(key, _) => &key.group,
            Self::GroupMetadata(key, _) => &key.group,
        }
    }
}

fn versioned<M: Message>(number: i16, message: &M, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i16(number);
    message.encode(version, &mut out);
    out.freeze()
}

fn read_value<M: Message>(bytes: Bytes) -> Result<M, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = i16::get(&mut reader, 0, false)?;
    if !M::VERSIONS.contains(&version) {
        return Err(DecodeError::UnsupportedVersion { key: -1, version });
    }
    M::decode(reader.rest(), version)
}
