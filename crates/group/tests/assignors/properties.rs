//! The promises.

use crate::{
    best::{best, score},
    group::{Drawn, Shares, drawn, moved, rejoin, settle, shares},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, sync::Arc};
use tontine_group::{
    Assignment, TopicPartition,
    assignor::{ALL, Assignor, MemberSubscription, RebalanceProtocol, by_name, negotiate, uniform},
    topics::Topics,
};

/// The broker's `uniform` under test like the members' assignors. It takes what the members own for the target so far.
#[derive(Debug)]
struct Uniform;

impl Assignor for Uniform {
    fn name(&self) -> &str {
        uniform::NAME
    }

    fn rebalance_protocol(&self) -> RebalanceProtocol {
        RebalanceProtocol::Cooperative
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        uniform::assign_to_owners(topics, members)
    }
}

fn all() -> Vec<Arc<dyn Assignor>> {
    let builtin = ALL.iter().map(|builtin| (builtin.new)());
    builtin.chain([Arc::new(Uniform) as Arc<dyn Assignor>]).collect()
}

fn sticky() -> Vec<Arc<dyn Assignor>> {
    all().into_iter().filter(|assignor| !["range", "roundrobin"].contains(&assignor.name())).collect()
}

/// How a group changes between two rebalances.
#[derive(Clone, Debug)]
enum Change {
    Leaves(prop::sample::Index),
    Joins(Vec<bool>),
    Resubscribes(prop::sample::Index, Vec<bool>),
    Resizes(prop::sample::Index, i32),
    Deletes(prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let wants = || prop::collection::vec(any::<bool>(), 6);
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Change::Leaves),
        wants().prop_map(Change::Joins),
        (any::<prop::sample::Index>(), wants()).prop_map(|(who, wants)| Change::Resubscribes(who, wants)),
        (any::<prop::sample::Index>(), 0..9).prop_map(|(which, to)| Change::Resizes(which, to)),
        any::<prop::sample::Index>().prop_map(Change::Deletes),
    ]
}

fn names(wants: &[bool]) -> Vec<Arc<str>> {
    (0..wants.len()).filter(|t| wants[*t]).map(|t| format!("t{t}").into()).collect()
}

fn apply(change: &Change, topics: &mut Topics, members: &mut Vec<MemberSubscription>, had: &mut Shares) {
    let known: Vec<Arc<str>> = topics.iter().map(|(name, _)| name.clone()).collect();
    match change {
        Change::Leaves(who) if members.len() > 1 => {
            let who = who.index(members.len());
            members.remove(who);
            had.remove(who);
        }
        Change::Leaves(_) => {}
        Change::Joins(wants) => {
            let taken = |id: &String| members.iter().any(|member| member.member_id == *id);
            let member_id = (0..).map(|i| format!("joined-{i}")).find(|id| !taken(id)).expect("a free id");
            members.push(MemberSubscription {
                member_id,
                topics: names(wants),
                ..MemberSubscription::default()
            });
            had.push(BTreeSet::new());
        }
        Change::Resubscribes(who, wants) => {
            let who = who.index(members.len());
            members[who].topics = names(wants);
        }
        Change::Resizes(which, to) if !known.is_empty() => {
            *topics = topics.clone().with(known[which.index(known.len())].clone(), *to);
        }
        Change::Deletes(which) if !known.is_empty() => {
            topics.remove(&known[which.index(known.len())]);
        }
        Change::Resizes(..) | Change::Deletes(_) => {}
    }
}

/// Only wanted partitions that exist; each that somebody wants has exactly one owner.
fn check_valid(topics: &Topics, members: &[MemberSubscription], shares: &Shares) {
    let mut given = BTreeSet::new();
    for (member, share) in members.iter().zip(shares) {
        for partition in share {
            assert!(
                member.topics.contains(&partition.topic),
                "{} does not want {partition}",
                member.member_id
            );
            assert!(partition.partition < topics.partitions(&partition.topic).expect("a known topic"));
            assert!(given.insert(partition.clone()), "{partition} has two owners");
        }
    }
    for (name, topic) in topics.iter().filter(|(name, _)| members.iter().any(|m| m.topics.contains(name))) {
        for partition in 0..topic.partitions {
            assert!(
                given.contains(&TopicPartition::new(name.clone(), partition)),
                "{name}-{partition} has no owner"
            );
        }
    }
}

/// One rebalance of a cooperative group: nobody gets what somebody else says it has.
fn check_hand_over(members: &[MemberSubscription], shares: &Shares) {
    for (i, share) in shares.iter().enumerate() {
        for (other, member) in members.iter().enumerate().filter(|(other, _)| *other != i) {
            let both = member.owned.iter().find(|owned| share.contains(owned));
            assert_eq!(both, None, "member {i} got it while member {other} has it");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_wanted_partition_has_exactly_one_owner_that_wants_it(drawn in drawn()) {
        for assignor in all() {
            let (topics, members) = (drawn.topics(), drawn.members());
            check_valid(&topics, &members, &shares(&assignor.assign(&topics, &members), members.len()));
        }
    }

    #[test]
    fn the_order_of_the_members_does_not_matter(
        drawn in drawn(),
        order in Just((0..8).collect::<Vec<usize>>()).prop_shuffle(),
        change in change(),
    ) {
        for assignor in all() {
            let (mut topics, mut members) = (drawn.topics(), drawn.members());
            let mut had = settle(&*assignor, &topics, &mut members, 1, 1);
            rejoin(&*assignor, &mut members, &had, 1);
            apply(&change, &mut topics, &mut members, &mut had);
            let order: Vec<_> = order.iter().copied().filter(|i| *i < members.len()).collect();
            let shuffled: Vec<_> = order.iter().map(|i| members[*i].clone()).collect();
            let straight = shares(&assignor.assign(&topics, &members), members.len());
            let crooked = shares(&assignor.assign(&topics, &shuffled), members.len());
            for (nth, i) in order.iter().enumerate() {
                prop_assert_eq!(&straight[*i], &crooked[nth], "{}", assignor.name());
            }
        }
    }

    #[test]
    fn the_sticky_ones_are_as_even_as_can_be_and_move_as_little_as_can_be(
        drawn in drawn(),
        changes in prop::collection::vec(change(), 1..4),
    ) {
        for assignor in sticky() {
            let (mut topics, mut members) = (drawn.topics(), drawn.members());
            let mut had = settle(&*assignor, &topics, &mut members, 1, 1);
            for change in &changes {
                rejoin(&*assignor, &mut members, &had, 1);
                apply(change, &mut topics, &mut members, &mut had);
                let best = best(&topics, &members, &had);
                let got = settle(&*assignor, &topics, &mut members, 1, 2);
                check_valid(&topics, &members, &got);
                let score = score(&topics, &members, &had, &got);
                prop_assert_eq!(score.squares, best.squares, "{}", assignor.name());
                prop_assert!(score.moves <= best.moves, "{} {:?} {:?}", assignor.name(), had, got);
                had = got;
            }
        }
    }

    #[test]
    fn what_is_balanced_stays_as_it_is(drawn in drawn()) {
        for assignor in sticky() {
            let (topics, mut members) = (drawn.topics(), drawn.members());
            let had = settle(&*assignor, &topics, &mut members, 1, 1);
            prop_assert_eq!(&settle(&*assignor, &topics, &mut members, 1, 3), &had);
        }
    }

    #[test]
    fn two_cooperative_rounds_reach_the_target_and_nobody_gets_what_another_has(
        drawn in drawn(),
        changes in prop::collection::vec(change(), 1..3),
    ) {
        let cooperative = by_name("cooperative-sticky").expect("it is built in");
        let (mut topics, mut members) = (drawn.topics(), drawn.members());
        let mut had = settle(&*cooperative, &topics, &mut members, 1, 1);
        rejoin(&*cooperative, &mut members, &had, 1);
        for change in &changes {
            apply(change, &mut topics, &mut members, &mut had);
        }
        let target = shares(&uniform::assign_to_owners(&topics, &members), members.len());
        let first = shares(&cooperative.assign(&topics, &members), members.len());
        check_hand_over(&members, &first);
        rejoin(&*cooperative, &mut members, &first, 2);
        let second = shares(&cooperative.assign(&topics, &members), members.len());
        check_valid(&topics, &members, &second);
        prop_assert_eq!(moved(&topics, &members, &first, &second), 0);
        let (score, target) = (score(&topics, &members, &had, &second), score(&topics, &members, &had, &target));
        prop_assert_eq!(score.squares, target.squares);
        prop_assert!(score.moves <= target.moves);
    }

    #[test]
    fn no_word_of_a_member_breaks_an_assignment(
        drawn in drawn(),
        lies in prop::collection::vec((0usize..9, -3i32..12), 0..40),
        data in prop::collection::vec(any::<u8>(), 0..60),
        generations in prop::collection::vec(-2i32..3, 8),
        told in any::<bool>(),
    ) {
        for assignor in all() {
            let (topics, mut members) = (drawn.topics(), drawn.members());
            for (i, member) in members.iter_mut().enumerate() {
                let mine = lies.iter().skip(i % 3);
                let owned: Vec<_> = mine.map(|(t, p)| TopicPartition::new(format!("t{t}"), *p)).collect();
                let telling = assignor.user_data(&owned, generations[i]);
                member.user_data = if told { telling } else { Some(data.clone().into()) };
                member.generation = Some(generations[i]);
                member.owned = owned;
            }
            let got = shares(&assignor.assign(&topics, &members), members.len());
            if assignor.name() == "cooperative-sticky" {
                continue;
            }
            check_valid(&topics, &members, &got);
        }
    }
}

#[test]
fn an_empty_group_gets_an_empty_assignment() {
    for assignor in all() {
        let assignment = assignor.assign(&Topics::new().with("t", 3), &[]);
        assert_eq!(assignment.by_member(0), Vec::<Vec<TopicPartition>>::new());
    }
}

#[test]
fn names_and_java_classes_both_find_an_assignor() {
    for builtin in ALL {
        for name in [builtin.name, builtin.java_class] {
            assert_eq!(by_name(name).expect("found").name(), builtin.name);
        }
    }
    assert!(by_name("uniform").is_none() && by_name("Range").is_none() && by_name("").is_none());
}

#[test]
fn a_member_is_as_gentle_as_the_roughest_assignor_that_it_offers() {
    let offered = |names: &[&str]| names.iter().filter_map(|name| by_name(name)).collect::<Vec<_>>();
    assert_eq!(negotiate(&offered(&["cooperative-sticky"])), RebalanceProtocol::Cooperative);
    assert_eq!(negotiate(&offered(&["range", "cooperative-sticky"])), RebalanceProtocol::Eager);
    assert_eq!(negotiate(&[]), RebalanceProtocol::Eager);
}

#[test]
fn members_that_want_nothing_get_nothing() {
    let drawn = Drawn { partitions: vec![3], wants: vec![vec![false]; 3], alike: true };
    for assignor in all() {
        check_valid(
            &drawn.topics(),
            &drawn.members(),
            &settle(&*assignor, &drawn.topics(), &mut drawn.members(), 1, 2),
        );
    }
}
