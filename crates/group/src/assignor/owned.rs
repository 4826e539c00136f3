//! What a member's subscription says it owns, as a claim. Decides nothing.

use super::{MemberSubscription, claims::Testimony};
use crate::TopicPartition;
use std::sync::Arc;

/// The partitions in a member's subscription.
#[derive(Debug)]
pub(crate) struct Owned<'a> {
    partitions: &'a [TopicPartition],
    generation: i32,
}

impl<'a> Owned<'a> {
    pub(crate) fn new(member: &'a MemberSubscription, generation: i32) -> Self {
        Self { partitions: &member.owned, generation }
    }
}

impl Testimony for Owned<'_> {
    fn generation(&self) -> i32 {
        self.generation
    }

    /// Topic by topic: partitions of one topic mostly share its name's memory.
    fn each(&self, mut claim: impl FnMut(&str, &mut dyn Iterator<Item = i32>)) {
        for same in self.partitions.chunk_by(|a, b| Arc::ptr_eq(&a.topic, &b.topic)) {
            claim(&same[0].topic, &mut same.iter().map(|partition| partition.partition));
        }
    }
}
