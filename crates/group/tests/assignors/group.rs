//! A group as the assignors see it: members that join again with what they got last time.

use proptest::{collection::vec, prelude::*};
use std::{collections::BTreeSet, sync::Arc};
use tontine_group::{
    Assignment, TopicPartition,
    assignor::{Assignor, MemberSubscription, RebalanceProtocol},
    topics::Topics,
};

/// Topics and members drawn at random. Member `i` wants topic `t` if `wants[i][t]`.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) partitions: Vec<i32>,
    pub(crate) wants: Vec<Vec<bool>>,
    /// Whether all want what the first one wants.
    pub(crate) alike: bool,
}

/// Groups small enough for the best answer to be worked out.
pub(crate) fn drawn() -> impl Strategy<Value = Drawn> {
    (1usize..6, 1usize..7).prop_flat_map(|(topics, members)| {
        let partitions = vec(0i32..7, topics);
        let wants = vec(vec(prop::bool::weighted(0.6), topics), members);
        (partitions, wants, any::<bool>()).prop_map(|(partitions, wants, alike)| Drawn {
            partitions,
            wants,
            alike,
        })
    })
}

impl Drawn {
    pub(crate) fn topics(&self) -> Topics {
        let named = self.partitions.iter().enumerate();
        named.fold(Topics::new(), |topics, (i, partitions)| topics.with(topic(i), *partitions))
    }

    pub(crate) fn members(&self) -> Vec<MemberSubscription> {
        (0..self.wants.len()).map(|i| self.member(i)).collect()
    }

    /// Member ids do not come in the order of the members; one in three is static.
    fn member(&self, i: usize) -> MemberSubscription {
        let wants = if self.alike { &self.wants[0] } else { &self.wants[i] };
        let mut topics: Vec<Arc<str>> = (0..wants.len()).filter(|t| wants[*t]).map(topic).collect();
        topics.push("nobody-has-heard-of-it".into());
        if i % 2 == 1 {
            topics.reverse();
        }
        MemberSubscription {
            member_id: format!("m{}", i * 7 % 10),
            instance_id: (i % 3 == 2).then(|| format!("i{i}")),
            topics,
            ..MemberSubscription::default()
        }
    }
}

fn topic(i: usize) -> Arc<str> {
    format!("t{i}").into()
}

/// What each member has, by index.
pub(crate) type Shares = Vec<BTreeSet<TopicPartition>>;

pub(crate) fn shares(assignment: &Assignment, members: usize) -> Shares {
    assignment.by_member(members).into_iter().map(|share| share.into_iter().collect()).collect()
}

/// Members join again, saying that they have `shares` since `generation`.
pub(crate) fn rejoin(
    assignor: &dyn Assignor,
    members: &mut [MemberSubscription],
    shares: &Shares,
    generation: i32,
) {
    for (member, share) in members.iter_mut().zip(shares) {
        let owned: Vec<_> = share.iter().cloned().collect();
        member.user_data = assignor.user_data(&owned, generation);
        member.generation = Some(generation);
        member.owned = match assignor.rebalance_protocol() {
            RebalanceProtocol::Eager => Vec::new(),
            RebalanceProtocol::Cooperative => owned,
        };
    }
}

/// Assigns as often as a cooperative group rebalances until nobody gives anything up, at most `rounds` times.
pub(crate) fn settle(
    assignor: &dyn Assignor,
    topics: &Topics,
    members: &mut [MemberSubscription],
    generation: i32,
    rounds: i32,
) -> Shares {
    let mut got = shares(&assignor.assign(topics, members), members.len());
    for round in 1..rounds {
        rejoin(assignor, members, &got, generation + round);
        got = shares(&assignor.assign(topics, members), members.len());
    }
    got
}

/// Partitions that moved from one member that is still there and still wants them to another one.
pub(crate) fn moved(
    topics: &Topics,
    members: &[MemberSubscription],
    before: &Shares,
    after: &Shares,
) -> usize {
    let stays = |member: &MemberSubscription, partition: &TopicPartition| {
        let exists = topics.partitions(&partition.topic).is_some_and(|count| partition.partition < count);
        exists && member.topics.contains(&partition.topic)
    };
    let pairs = members.iter().zip(before.iter().zip(after));
    pairs.map(|(m, (before, after))| before.difference(after).filter(|p| stays(m, p)).count()).sum()
}
