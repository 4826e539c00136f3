//! The embedded protocol "consumer": what members tell the leader, and what the leader tells members, in bytes that the
//! coordinator does not read.
//!
//! Mirrors `org.apache.kafka.clients.consumer.internals.ConsumerProtocol`: an int16 version, then the struct. A version
//! newer than the newest known one is read as the newest known one; what it adds comes last and is left alone.

use crate::codec::{DecodeError, Message, Reader, Wire};
use bytes::Bytes;

/// The protocol type of groups of consumers.
pub const PROTOCOL_TYPE: &str = "consumer";

message! {
    /// What a member tells the leader: its topics, and what it owns.
    Subscription versions 0..=3, flexible i16::MAX, {
        topics: Vec<String> [0..];
        user_data: Option<Bytes> [0..];
        owned_partitions: Vec<TopicPartitions> [1..];
        generation_id: i32 [2..] = -1;
        rack_id: Option<String> [3..];
    }
}

message! {
    /// What the leader tells a member: the partitions that are its own from now on.
    Assignment versions 0..=3, flexible i16::MAX, {
        assigned_partitions: Vec<TopicPartitions> [0..];
        user_data: Option<Bytes> [0..];
    }
}

fields! {
    /// Partitions of one topic.
    TopicPartitions {
        topic: String [0..];
        partitions: Vec<i32> [0..];
    }
}

fn decode<M: Message>(bytes: Bytes) -> Result<M, DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = i16::get(&mut reader, 0, false)?;
    if version < *M::VERSIONS.start() {
        return Err(DecodeError::UnsupportedVersion { key: -1, version });
    }
    M::get(&mut reader, version.min(*M::VERSIONS.end()), false)
}

impl Subscription {
    /// The bytes of a JoinGroup's metadata, the version first.
    pub fn to_metadata(&self, version: i16) -> Bytes {
        self.to_numbered_bytes(version, version)
    }

    /// Reads the metadata of a member.
    pub fn from_metadata(bytes: Bytes) -> Result<Self, DecodeError> {
        decode(bytes)
    }
}

impl Assignment {
    /// The bytes of a SyncGroup's assignment, the version first.
    pub fn to_assignment(&self, version: i16) -> Bytes {
        self.to_numbered_bytes(version, version)
    }

    /// Reads an assignment. No bytes at all mean no partitions: the leader left this member out.
    pub fn from_assignment(bytes: Bytes) -> Result<Self, DecodeError> {
        if bytes.is_empty() { Ok(Self::default()) } else { decode(bytes) }
    }
}
