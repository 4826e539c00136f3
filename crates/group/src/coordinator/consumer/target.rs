//! Who is to have what: the target assignment, computed by one of the broker's assignors for a whole epoch.
//!
//! Mirrors `TargetAssignmentBuilder`. Getting there is `reconcile`'s business.

use super::{
    draft::Draft,
    server_assignor::{ServerAssignor, ServerAssignors},
    stored::{ConsumerMember, Partitions},
};
use crate::{
    Assignment,
    assignor::{MemberSubscription, range, uniform},
    topics::{Topic, Topics},
};
use std::{collections::BTreeMap, sync::Arc};
use tontine_wire::Uuid;

/// How a target is computed, and when that is.
#[derive(Clone, Copy, Debug)]
pub(in crate::coordinator) struct Compute {
    pub(in crate::coordinator) assignors: ServerAssignors,
    pub(in crate::coordinator) wall_ms: i64,
}

/// A number that changes when something about these topics does that an assignment depends on.
pub(super) fn metadata_hash(topics: &[(Arc<str>, Topic)]) -> i64 {
    if topics.is_empty() {
        return 0;
    }
    // FNV-1a: the same on every machine and in every version.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (name, topic) in topics {
        eat(name.as_bytes());
        eat(topic.id.as_bytes());
        eat(&topic.partitions.to_be_bytes());
        for racks in &topic.racks {
            racks.iter().for_each(|rack| eat(rack.as_bytes()));
            eat(&[]);
        }
    }
    hash as i64
}

impl Draft<'_> {
    /// Computes the target for the epoch that the group is in, and writes what changes.
    pub(super) fn compute_target(&mut self, compute: Compute) {
        let wanted = self.wanted();
        let names: BTreeMap<Uuid, Arc<str>> = wanted.iter().map(|(name, t)| (t.id, name.clone())).collect();
        let mut topics = Topics::new();
        wanted.into_iter().for_each(|(name, topic)| topics.insert(name, topic));
        let members = self.members();
        let ids: Vec<Arc<str>> = members.keys().map(|id| Arc::from(*id)).collect();
        let subscriptions: Vec<_> = members.iter().map(|(id, m)| self.subscription(id, m, &topics)).collect();
        let assignment = match compute.assignors.preferred(&self.tally().assignors) {
            ServerAssignor::Range => range::assign_without_racks(&topics, &subscriptions),
            ServerAssignor::Uniform => uniform::assign(&topics, &subscriptions, &self.so_far(&ids, &names)),
        };
        for (id, dealt) in ids.iter().zip(assignment.by_member(ids.len())) {
            let mut target = Partitions::new();
            for place in dealt {
                if let Some(topic) = topics.get(&place.topic) {
                    target.entry(topic.id).or_default().insert(place.partition);
                }
            }
            let known = self.targets.contains_key(id) || self.group.targets.contains_key(id);
            if !known || self.target(id) != target {
                self.write_target(id, target);
            }
        }
        self.write_target_epoch(self.epoch, compute.wall_ms);
    }

    fn subscription(&self, id: &str, member: &ConsumerMember, topics: &Topics) -> MemberSubscription {
        let wanted = self.topics_of(member);
        let known = wanted.iter().filter_map(|name| topics.get_key_value(name));
        MemberSubscription {
            member_id: id.to_owned(),
            instance_id: member.instance_id.as_deref().map(str::to_owned),
            topics: known.map(|(name, _)| name.clone()).collect(),
            rack: member.rack_id.as_deref().map(Arc::from),
            ..MemberSubscription::default()
        }
    }

    /// The targets so far, in the words of assignors.
    fn so_far(&self, ids: &[Arc<str>], names: &BTreeMap<Uuid, Arc<str>>) -> Assignment {
        let mut assignment = Assignment::new();
        for (index, id) in ids.iter().enumerate() {
            for (topic, partitions) in &self.target(id) {
                let Some(name) = names.get(topic) else { continue };
                partitions.iter().for_each(|partition| assignment.assign(name, *partition, index));
            }
        }
        assignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_changes_with_partitions_and_ids_and_nothing_else() {
        let topic = |partitions, id| Topic { id: Uuid::from_u128(id), partitions, racks: Vec::new() };
        let hash = |partitions, id| metadata_hash(&[("t".into(), topic(partitions, id))]);
        assert_eq!(hash(1, 1), hash(1, 1));
        assert_ne!(hash(1, 1), hash(2, 1));
        assert_ne!(hash(1, 1), hash(1, 2));
        assert_eq!(metadata_hash(&[]), 0);
    }
}
