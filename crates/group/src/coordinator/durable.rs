//! What a coordinator knows for good: groups and offsets as their records say. Only [`Durable::apply`] changes it, so
//! that reading the log again gives the same.
//!
//! It decides nothing. A classic group between two assignments lives in `classic`, as it does in Kafka: the log holds
//! it as of the last assignment, or as of the moment it became empty.

use super::{
    consumer::{ConsumerRecord, StoredConsumer},
    record::Record,
};
use crate::{TopicPartition, time::Duration};
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::{
    Uuid,
    group_records::{GroupMetadataValue, MemberMetadata, OffsetCommitKey, OffsetCommitValue},
};

/// Groups and offsets as the log has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Durable {
    groups: BTreeMap<Arc<str>, Group>,
    /// How many members all consumer groups have together. Follows from the groups.
    consumers: usize,
    offsets: BTreeMap<Arc<str>, BTreeMap<TopicPartition, CommittedOffset>>,
    /// Offsets of transactions that are not over, by producer, in the order in which they came.
    pending: BTreeMap<i64, Vec<(OffsetCommitKey, OffsetCommitValue)>>,
    /// The consumer group that the last record ended, if it did that.
    ended: Option<Arc<str>>,
}

/// A group of one of the two protocols.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    /// Of the classic protocol, or of no protocol at all: offsets only.
    Classic(StoredClassic),
    /// Of the consumer protocol.
    Consumer(StoredConsumer),
}

/// A classic group as of its last record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredClassic {
    /// `consumer` for groups of consumers; none before anybody joined.
    pub protocol_type: Option<String>,
    /// The generation of the last assignment.
    pub generation: i32,
    /// The assignor that was voted for.
    pub protocol: Option<String>,
    /// The member that assigned.
    pub leader: Option<Arc<str>>,
    /// Since when it is in its state, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Its members, by id.
    pub members: BTreeMap<Arc<str>, StoredMember>,
    /// It was a consumer group until this record, which nobody's assignor made: its members have yet to come together. Whoever
    /// converts a group goes by this as whoever reads it later does.
    pub converted: bool,
}

/// A member of a classic group as of the last record.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMember {
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// How its client calls itself.
    pub client_id: String,
    /// Where it is.
    pub client_host: String,
    /// How long the group waits for it to rejoin.
    pub rebalance_timeout: Duration,
    /// How long it may be silent.
    pub session_timeout: Duration,
    /// Its metadata for the protocol that was voted for.
    pub subscription: Bytes,
    /// What it was assigned.
    pub assignment: Bytes,
}

/// How far a group has read one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedOffset {
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record read, or -1.
    pub leader_epoch: i32,
    /// What the client wanted to remember with it.
    pub metadata: String,
    /// When it was committed, milliseconds since 1970.
    pub commit_timestamp: i64,
    /// When it ends, for commits that said so.
    pub expire_timestamp: Option<i64>,
    /// The id of the topic, so that a later topic of the same name does not inherit.
    pub topic_id: Uuid,
}

impl Group {
    fn consumers(&self) -> usize {
        match self {
            Self::Consumer(group) => group.members.len(),
            Self::Classic(_) => 0,
        }
    }
}

impl Durable {
    /// Applies one record. Tombstones of what is not there are fine: compaction may have removed what they end.
    pub fn apply(&mut self, record: &Record) {
        let ended = self.ended.take();
        match record {
            Record::OffsetCommit(key, value) => self.apply_offset(key, value.as_ref()),
            Record::GroupMetadata(key, None) => {
                if matches!(self.groups.get(key.group.as_str()), Some(Group::Classic(_))) {
                    self.groups.remove(key.group.as_str());
                }
            }
            Record::Consumer(record) => {
                if let ConsumerRecord::Group(key, None) = record {
                    self.ended = Some(key.group_id.as_str().into());
                }
                self.apply_consumer(record);
            }
            Record::GroupMetadata(key, Some(value)) => {
                // What ends the one group and what begins the other are written together, in this order.
                let converted = ended.is_some_and(|ended| *ended == *key.group);
                let group = Group::Classic(StoredClassic { converted, ..StoredClassic::from(value) });
                let before = self.groups.insert(key.group.as_str().into(), group);
                self.consumers -= before.as_ref().map_or(0, Group::consumers);
            }
        }
    }

    /// What ends something of a consumer group that is not there says nothing; anything else makes the group.
    fn apply_consumer(&mut self, record: &ConsumerRecord) {
        let id = record.group();
        if let Some(Group::Consumer(group)) = self.groups.get_mut(id) {
            self.consumers -= group.members.len();
            if matches!(record, ConsumerRecord::Group(_, None)) {
                self.groups.remove(id);
            } else {
                group.apply(record);
                self.consumers += group.members.len();
            }
        } else if !record.is_tombstone() {
            let mut group = StoredConsumer::default();
            group.apply(record);
            self.consumers += group.members.len();
            self.groups.insert(id.into(), Group::Consumer(group));
        }
    }

    fn apply_offset(&mut self, key: &OffsetCommitKey, value: Option<&OffsetCommitValue>) {
        let partition = TopicPartition::new(key.topic.as_str(), key.partition);
        match value {
            Some(value) => {
                let group: Arc<str> = key.group.as_str().into();
                let stored = self.groups.entry(group.clone());
                stored.or_insert_with(|| Group::Classic(StoredClassic::default()));
                self.offsets.entry(group).or_default().insert(partition, CommittedOffset::from(value));
            }
            None => {
                let Some(offsets) = self.offsets.get_mut(key.group.as_str()) else { return };
                offsets.remove(&partition);
                if offsets.is_empty() {
                    self.offsets.remove(key.group.as_str());
                }
            }
        }
    }

    /// An offset of a transaction that is not over.
    pub(super) fn add_pending(&mut self, producer_id: i64, key: OffsetCommitKey, value: OffsetCommitValue) {
        self.pending.entry(producer_id).or_default().push((key, value));
    }

    /// The transaction of this producer is over.
    pub(super) fn end_pending(&mut self, producer_id: i64, committed: bool) {
        for (key, value) in self.pending.remove(&producer_id).unwrap_or_default() {
            if committed {
                self.apply_offset(&key, Some(&value));
            }
        }
    }

    /// Whether an offset of this partition waits for the end of a transaction.
    pub fn is_pending(&self, group: &str, topic: &str, partition: i32) -> bool {
        let here =
            |key: &OffsetCommitKey| key.group == group && key.topic == topic && key.partition == partition;
        self.pending.values().flatten().any(|(key, _)| here(key))
    }

    /// The group of this id.
    pub fn group(&self, id: &str) -> Option<&Group> {
        self.groups.get(id)
    }

    /// The group of this id, with the shared form of the id.
    pub(super) fn groups_entry(&self, id: &str) -> Option<(&Arc<str>, &Group)> {
        self.groups.get_key_value(id)
    }

    /// How many members all consumer groups have together.
    pub(super) fn consumers(&self) -> usize {
        self.consumers
    }

    /// All groups, by id.
    pub fn groups(&self) -> impl Iterator<Item = (&Arc<str>, &Group)> {
        self.groups.iter()
    }

    /// The offset of one partition.
    pub fn offset(&self, group: &str, partition: &TopicPartition) -> Option<&CommittedOffset> {
        self.offsets.get(group)?.get(partition)
    }

    /// All offsets of a group, by partition.
    pub fn offsets(&self, group: &str) -> impl Iterator<Item = (&TopicPartition, &CommittedOffset)> {
        self.offsets.get(group).into_iter().flatten()
    }

    /// All offsets, group by group.
    pub fn all_offsets(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, &BTreeMap<TopicPartition, CommittedOffset>)> {
        self.offsets.iter()
    }
}

impl From<&GroupMetadataValue> for StoredClassic {
    fn from(value: &GroupMetadataValue) -> Self {
        Self {
            protocol_type: Some(value.protocol_type.clone()).filter(|t| !t.is_empty()),
            generation: value.generation,
            protocol: value.protocol.clone(),
            leader: value.leader.as_deref().map(Arc::from),
            since_ms: Some(value.current_state_timestamp).filter(|t| *t >= 0),
            members: value.members.iter().map(|m| (m.member_id.as_str().into(), m.into())).collect(),
            converted: false,
        }
    }
}

impl From<&MemberMetadata> for StoredMember {
    fn from(member: &MemberMetadata) -> Self {
        let session_timeout = millis(member.session_timeout);
        // Records of the oldest version have no rebalance timeout: the session stood for both then.
        let rebalance_timeout =
            if member.rebalance_timeout < 0 { session_timeout } else { millis(member.rebalance_timeout) };
        Self {
            instance_id: member.group_instance_id.as_deref().map(Arc::from),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout,
            session_timeout,
            subscription: member.subscription.clone(),
            assignment: member.assignment.clone(),
        }
    }
}

impl From<&OffsetCommitValue> for CommittedOffset {
    fn from(value: &OffsetCommitValue) -> Self {
        Self {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.clone(),
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: Some(value.expire_timestamp).filter(|t| *t != -1),
            topic_id: value.topic_id,
        }
    }
}

/// Milliseconds of the wire as a duration; negative ones are none.
pub(super) fn millis(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// A duration as milliseconds of the wire.
pub(super) fn as_millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tontine_wire::group_records::GroupMetadataKey;

    fn offset(partition: i32, value: Option<i64>) -> Record {
        let key = OffsetCommitKey { group: "g".to_owned(), topic: "t".to_owned(), partition };
        Record::OffsetCommit(key, value.map(|offset| OffsetCommitValue { offset, ..Default::default() }))
    }

    fn group(value: Option<GroupMetadataValue>) -> Record {
        Record::GroupMetadata(GroupMetadataKey { group: "g".to_owned() }, value)
    }

    #[test]
    fn an_offset_alone_makes_a_group_of_no_protocol() {
        let mut durable = Durable::default();
        durable.apply(&offset(0, Some(5)));
        assert_eq!(durable.group("g"), Some(&Group::Classic(StoredClassic::default())));
        assert_eq!(durable.offset("g", &TopicPartition::new("t", 0)).unwrap().offset, 5);
    }

    #[test]
    fn tombstones_of_what_compaction_removed_are_fine() {
        let mut durable = Durable::default();
        durable.apply(&offset(0, None));
        durable.apply(&group(None));
        assert_eq!(durable, Durable::default());
    }

    #[test]
    fn offsets_come_and_go_one_by_one() {
        let mut durable = Durable::default();
        for record in [offset(0, Some(5)), offset(1, Some(6)), offset(0, Some(7)), offset(1, None)] {
            durable.apply(&record);
        }
        assert_eq!(durable.offsets("g").map(|(p, o)| (p.partition, o.offset)).collect::<Vec<_>>(), [(0, 7)]);
        durable.apply(&offset(0, None));
        assert_eq!(durable.all_offsets().count(), 0);
        assert!(durable.group("g").is_some(), "the group goes by a record of its own");
    }

    #[test]
    fn a_member_of_the_oldest_record_version_waits_for_rejoins_as_long_as_its_session() {
        let member = MemberMetadata { session_timeout: 9, rebalance_timeout: -1, ..Default::default() };
        assert_eq!(StoredMember::from(&member).rebalance_timeout, Duration::from_millis(9));
    }
}
