//! Groups that change again and again, too large for the best answer to be worked out: valid, even, and nothing moves
//! that need not, round after round.

use crate::group::{Shares, moved, rejoin, settle};
use std::{collections::BTreeSet, sync::Arc};
use tontine_group::{
    TopicPartition,
    assignor::{Assignor, CooperativeSticky, MemberSubscription, Sticky},
    topics::Topics,
};

/// Draws numbers, the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn topics(&mut self, known: usize, most: usize) -> Vec<Arc<str>> {
        let wanted: BTreeSet<usize> = (0..=self.below(most)).map(|_| self.below(known)).collect();
        wanted.into_iter().map(|topic| format!("t{topic:02}").into()).collect()
    }

    fn member(&mut self, id: usize, known: usize) -> MemberSubscription {
        let topics = self.topics(known, 20);
        MemberSubscription { member_id: format!("m{id:03}"), topics, ..MemberSubscription::default() }
    }
}

fn topics(draw: &mut Draw, count: usize) -> Topics {
    (0..count).fold(Topics::new(), |topics, i| topics.with(format!("t{i:02}"), 1 + draw.below(10) as i32))
}

/// No member could pass a partition on to one that has two less.
fn check_even(members: &[MemberSubscription], shares: &Shares) {
    for (giver, share) in shares.iter().enumerate() {
        for (taker, member) in members.iter().enumerate().filter(|(i, _)| shares[*i].len() + 2 <= share.len())
        {
            let could = share.iter().find(|partition| member.topics.contains(&partition.topic));
            assert_eq!(could, None, "{giver} has {} and {taker} {}", share.len(), shares[taker].len());
        }
    }
}

fn check_complete(topics: &Topics, members: &[MemberSubscription], shares: &Shares) {
    let wanted: BTreeSet<_> = members.iter().flat_map(|member| member.topics.iter()).collect();
    let partitions =
        topics.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, topic)| topic.partitions);
    let all: BTreeSet<&TopicPartition> = shares.iter().flatten().collect();
    assert_eq!(all.len() as i32, partitions.sum::<i32>());
    assert_eq!(all.len(), shares.iter().map(BTreeSet::len).sum::<usize>());
}

#[test]
fn fifty_of_two_hundred_members_leave_one_another_with_their_random_subscriptions() {
    for assignor in [&Sticky as &dyn Assignor, &CooperativeSticky] {
        let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
        let topics = topics(&mut draw, 40);
        let mut members: Vec<_> = (0..200).map(|id| draw.member(id, 40)).collect();
        let mut had = settle(assignor, &topics, &mut members, 1, 2);
        check_even(&members, &had);
        rejoin(assignor, &mut members, &had, 2);
        for _ in 0..50 {
            let leaves = draw.below(members.len());
            members.remove(leaves);
            had.remove(leaves);
        }
        let got = settle(assignor, &topics, &mut members, 2, 2);
        check_complete(&topics, &members, &got);
        check_even(&members, &got);
    }
}

#[test]
fn a_hundred_rounds_of_changing_subscriptions_stay_even_and_settle() {
    for assignor in [&Sticky as &dyn Assignor, &CooperativeSticky] {
        let mut draw = Draw(0xD1B5_4A32_D192_ED03);
        let topics = topics(&mut draw, 15);
        let mut members: Vec<_> = (0..30).map(|id| draw.member(id, 15)).collect();
        let mut had = settle(assignor, &topics, &mut members, 1, 2);
        for round in 0..100 {
            rejoin(assignor, &mut members, &had, round);
            let changes = draw.below(members.len());
            members[changes].topics = draw.topics(15, 20);
            let got = settle(assignor, &topics, &mut members, round, 2);
            check_complete(&topics, &members, &got);
            check_even(&members, &got);
            rejoin(assignor, &mut members, &got, round);
            let again = settle(assignor, &topics, &mut members, round, 1);
            assert_eq!(moved(&topics, &members, &got, &again), 0, "round {round}");
            had = again;
        }
    }
}

#[test]
fn a_hundred_thousand_partitions_are_shared_to_the_last_one() {
    let names: Vec<Arc<str>> = (0..100).map(|i| format!("topic-{i:03}").into()).collect();
    let topics = names.iter().fold(Topics::new(), |topics, name| topics.with(name.clone(), 1000));
    let member = |id: usize| MemberSubscription {
        member_id: format!("consumer-{id:04}"),
        topics: names.clone(),
        ..MemberSubscription::default()
    };
    let mut members: Vec<_> = (0..500).map(member).collect();
    let first = CooperativeSticky.assign(&topics, &members).by_member(500);
    assert!(first.iter().all(|share| share.len() == 200));
    for (member, share) in members.iter_mut().zip(first) {
        member.owned = share;
        member.generation = Some(1);
    }
    members.remove(250);
    let second = CooperativeSticky.assign(&topics, &members).by_member(499);
    assert_eq!(second.iter().map(Vec::len).sum::<usize>(), 100_000, "nobody has to wait for anything");
    assert!(second.iter().all(|share| [200, 201].contains(&share.len())));
    let kept = members.iter().zip(&second).all(|(member, share)| {
        let share: BTreeSet<_> = share.iter().collect();
        member.owned.iter().all(|partition| share.contains(partition))
    });
    assert!(kept, "what the others had stays with them");
}
