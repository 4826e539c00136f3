//! A member of the classic protocol, as careful as the protocol wants, and what it does as leader.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use tontine_wire::{
    api::{join_group::*, sync_group::*},
    consumer_protocol::{Assignment, Subscription, TopicPartitions},
};

pub(crate) type Place = (String, i32);

/// What a classic member does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Next {
    #[default]
    Join,
    Sync,
    Beat,
}

pub(crate) fn named(places: &BTreeSet<Place>) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    places.iter().for_each(|(topic, partition)| topics.entry(topic).or_default().push(*partition));
    topics
        .into_iter()
        .map(|(topic, partitions)| TopicPartitions { topic: topic.to_owned(), partitions })
        .collect()
}

fn places(topics: &[TopicPartitions]) -> BTreeSet<Place> {
    topics.iter().flat_map(|t| t.partitions.iter().map(|p| (t.topic.clone(), *p))).collect()
}

pub(crate) fn assigned(bytes: &Bytes) -> BTreeSet<Place> {
    places(&Assignment::from_assignment(bytes.clone()).unwrap().assigned_partitions)
}

pub(crate) fn metadata(topics: &[&str], owned: &BTreeSet<Place>, generation: i32) -> Bytes {
    let subscription = Subscription {
        topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
        owned_partitions: named(owned),
        generation_id: generation,
        ..Subscription::default()
    };
    subscription.to_metadata(3)
}

/// The leader deals the partitions out evenly; what somebody else still has is withheld in this round.
pub(crate) fn assign(members: &[JoinGroupResponseMember], all: &[Place]) -> Vec<SyncGroupRequestAssignment> {
    let owned: Vec<BTreeSet<Place>> = members
        .iter()
        .map(|m| places(&Subscription::from_metadata(m.metadata.clone()).unwrap().owned_partitions))
        .collect();
    let share = all.len().div_ceil(members.len());
    let mut dealt = vec![BTreeSet::new(); members.len()];
    for place in all {
        let owner = owned.iter().position(|has| has.contains(place));
        let keeps = owner.filter(|index| dealt[*index].len() < share);
        let index = keeps.or_else(|| (0..members.len()).min_by_key(|index| dealt[*index].len())).unwrap();
        dealt[index].insert(place.clone());
    }
    for (index, places) in dealt.iter_mut().enumerate() {
        places.retain(|place| {
            owned.iter().enumerate().all(|(other, has)| other == index || !has.contains(place))
        });
    }
    let assignment =
        |(member, places): (&JoinGroupResponseMember, &BTreeSet<Place>)| SyncGroupRequestAssignment {
            member_id: member.member_id.clone(),
            assignment: Assignment { assigned_partitions: named(places), user_data: None }.to_assignment(3),
        };
    members.iter().zip(&dealt).map(assignment).collect()
}
