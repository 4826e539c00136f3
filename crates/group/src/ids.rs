//! Names of things that groups are about.

use std::{fmt, sync::Arc};

/// One partition of one topic. Sorted by topic, then by partition, as Kafka hands them to listeners. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Partition `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.partition
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T: Into<Arc<str>>> From<(T, i32)> for TopicPartition {
    fn from((topic, partition): (T, i32)) -> Self {
        Self::new(topic, partition)
    }
}

/// What a member is known by once it has joined: the proof that a commit or a heartbeat comes from this membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The id the coordinator knows the member by.
    pub member_id: String,
    /// The generation (classic) or the member epoch (consumer protocol).
    pub generation: i32,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
}
