//! `sticky`: balanced, and everything stays where it was as far as balance allows. Eager: members give up everything
//! before they join, so they tell in their user data what they had.
//!
//! Mirrors `StickyAssignor`. The module `balance` is the algorithm, `claims` says whom it believes.

use super::{
    Assignor, MemberSubscription,
    balance::balance,
    claims::{Claims, Testimony},
    layout::Layout,
    user_data::{Told, read_sticky, write_sticky},
};
use crate::{Assignment, TopicPartition, topics::Topics};
use bytes::Bytes;

/// The assignor `sticky`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sticky;

impl Assignor for Sticky {
    fn name(&self) -> &str {
        "sticky"
    }

    /// Nothing before the first assignment.
    fn user_data(&self, owned: &[TopicPartition], generation: i32) -> Option<Bytes> {
        (generation >= 0 || !owned.is_empty()).then(|| write_sticky(owned, generation))
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        let layout = Layout::new(topics, members);
        let told: Vec<_> = layout.members.iter().map(|member| told(member)).collect();
        let claims = Claims::new(&layout, &told);
        layout.assignment(&balance(&layout, &claims.owners))
    }
}

/// What a member tells; nothing when its user data is not that of this assignor.
fn told(member: &MemberSubscription) -> Told<'_> {
    member.user_data.as_deref().and_then(read_sticky).unwrap_or_default()
}

impl Testimony for Told<'_> {
    fn generation(&self) -> i32 {
        self.generation.map_or(-1, |generation| generation.max(-1))
    }

    fn each(&self, mut claim: impl FnMut(&str, &mut dyn Iterator<Item = i32>)) {
        for (topic, partitions) in &self.topics {
            claim(topic, &mut partitions.iter().map(|bytes| i32::from_be_bytes(*bytes)));
        }
    }
}
