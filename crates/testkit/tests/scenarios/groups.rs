//! Whole groups: who gets what, how much of it moves, and how they change from one way of rebalancing to the other.

use super::rig::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine::{Consumer, Error, TopicPartition};
use tontine_broker::Broker;
use tontine_testkit::proxy::Action;
use tontine_wire::{
    api::{ApiKey, Response},
    consumer_protocol,
};

const ROUND_ROBIN: Setting = ("partition.assignment.strategy", "roundrobin");
const STICKY: Setting = ("partition.assignment.strategy", "sticky");
const BRIDGE: Setting = ("partition.assignment.strategy", "cooperative-sticky,range");

fn all_of(topics: &[(&str, i32)]) -> BTreeSet<TopicPartition> {
    topics.iter().flat_map(|(name, count)| (0..*count).map(|p| tp(name, p))).collect()
}

/// Polls until each of these partitions has exactly one owner, who wants it.
async fn shared(what: &str, seats: &mut [&mut Seat], partitions: &BTreeSet<TopicPartition>) {
    drive(what, seats, |seats| {
        let owned: Vec<TopicPartition> = seats.iter().flat_map(|seat| seat.consumer.assignment()).collect();
        let different: BTreeSet<_> = owned.iter().cloned().collect();
        let wanted = |seat: &&mut Seat| {
            let topics = seat.consumer.subscription();
            seat.consumer.assignment().iter().all(|tp| topics.contains(tp.topic()))
        };
        owned.len() == different.len() && different == *partitions && seats.iter().all(wanted)
    })
    .await;
}

/// Small numbers, always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

#[tokio::test]
async fn members_that_change_their_minds_at_random_end_with_one_owner_for_everything_wanted() {
    const TOPICS: [(&str, i32); 3] = [("t", 4), ("u", 3), ("v", 2)];
    for protocol in ALL {
        let stage = Stage::new(&TOPICS).await;
        let mut dice = Dice(7);
        let mut seats = Vec::new();
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            seats.push(stage.seat(name, &[protocol]).subscribe(&["t"]).await);
        }
        let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
        for _ in 0..8 {
            let who = dice.below(8);
            let mut topics = vec![TOPICS[dice.below(3)].0, TOPICS[dice.below(3)].0];
            if dice.below(4) == 0 {
                topics.clear();
            }
            if topics.is_empty() {
                all[who].consumer.unsubscribe().await.unwrap();
                topics.push("t");
            }
            let told = all[who].told();
            all[who].consumer.subscribe(topics, told).await.unwrap();
            drive("a few polls", &mut all, turns(dice.below(3) + 1)).await;
        }
        let wanted: BTreeSet<Arc<str>> = all.iter().flat_map(|seat| seat.consumer.subscription()).collect();
        let partitions = all_of(&TOPICS).into_iter().filter(|tp| wanted.contains(tp.topic())).collect();
        shared("everything has an owner", &mut all, &partitions).await;
        stage.check();
    }
}

#[tokio::test]
async fn subscribing_twice_in_the_middle_of_a_rebalance_ends_with_the_last_subscription() {
    for protocol in ALL {
        for between in 0..5 {
            let stage = Stage::new(&[("t", 2), ("u", 2), ("v", 2)]).await;
            let mut a = stage.seat("a", &[protocol]).subscribe(&["t"]).await;
            settle(&mut [&mut a], &[2]).await;
            let mut b = stage.seat("b", &[protocol]).subscribe(&["t", "u"]).await;
            drive("b joins", &mut [&mut b, &mut a], turns(1 + between)).await;
            a.consumer.subscribe_topics(["u"]).await.unwrap();
            drive("a few polls", &mut [&mut a, &mut b], turns(1 + between)).await;
            a.consumer.subscribe_topics(["v", "u"]).await.unwrap();
            let everything = all_of(&[("t", 2), ("u", 2), ("v", 2)]);
            shared("everything has an owner", &mut [&mut a, &mut b], &everything).await;
            assert!(a.owns().len() >= 2);
            stage.check();
        }
    }
}

#[tokio::test]
async fn subscribing_and_unsubscribing_in_quick_turns_ends_well_with_a_cluster_and_without() {
    for protocol in ALL {
        let stage = Stage::new(&[("t", 2)]).await;
        let mut a = stage.seat("a", &[protocol]);
        for polls in 0..12 {
            a = a.subscribe(&["t"]).await;
            for _ in 0..polls % 4 {
                a.poll().await;
            }
            tokio::time::timeout(LONG, a.consumer.unsubscribe()).await.unwrap().unwrap();
        }
        let mut a = a.subscribe(&["t"]).await;
        settle(&mut [&mut a], &[2]).await;
        assert_eq!(stage.broker.group(GROUP).unwrap().members.len(), 1);
    }
    let mut alone =
        Consumer::builder().set("bootstrap.servers", "127.0.0.1:1").group_id(GROUP).build().unwrap();
    for _ in 0..10 {
        alone.subscribe(["t"], ()).await.unwrap();
        let _ = alone.poll(STEP).await;
        tokio::time::timeout(LONG, alone.unsubscribe()).await.unwrap().unwrap();
    }
    tokio::time::timeout(LONG, alone.close()).await.unwrap().unwrap();
}

#[tokio::test]
async fn everybody_gets_of_what_it_asked_for_whoever_leads() {
    for assignor in [EAGER, ROUND_ROBIN, STICKY, COOPERATIVE] {
        let stage = Stage::new(&[("t", 3), ("u", 2), ("v", 1)]).await;
        let mut a = stage.seat("a", &[assignor]).subscribe(&["t"]).await;
        settle(&mut [&mut a], &[3]).await;
        let mut b = stage.seat("b", &[assignor]).subscribe(&["u"]).await;
        settle(&mut [&mut a, &mut b], &[3, 2]).await;
        let mut c = stage.seat("c", &[assignor]).subscribe(&["u", "v"]).await;
        let everything = all_of(&[("t", 3), ("u", 2), ("v", 1)]);
        shared("everything has an owner", &mut [&mut a, &mut b, &mut c], &everything).await;
        // The one who led goes: its topic goes with it, and the others keep theirs.
        a.close().await;
        shared("the rest has one", &mut [&mut b, &mut c], &all_of(&[("u", 2), ("v", 1)])).await;
    }
}

#[tokio::test]
async fn more_topics_than_members_all_have_an_owner() {
    for assignor in [EAGER, ROUND_ROBIN, STICKY, COOPERATIVE] {
        let topics = [("p", 1), ("q", 1), ("r", 1), ("s", 1), ("t", 1)];
        let names = topics.map(|(name, _)| name);
        let stage = Stage::new(&topics).await;
        let mut a = stage.seat("a", &[assignor]).subscribe(&names).await;
        let mut b = stage.seat("b", &[assignor]).subscribe(&names).await;
        shared("each has an owner", &mut [&mut a, &mut b], &all_of(&topics)).await;
    }
}

/// Who owns what, and how much of it changed hands since.
fn moved(before: &BTreeMap<TopicPartition, Arc<str>>, seats: &[&mut Seat]) -> usize {
    let now = owners(seats);
    now.iter().filter(|(name, owner)| before.get(*name).is_some_and(|old| old != *owner)).count()
}

fn owners(seats: &[&mut Seat]) -> BTreeMap<TopicPartition, Arc<str>> {
    let mut owners = BTreeMap::new();
    for seat in seats {
        owners.extend(seat.consumer.assignment().into_iter().map(|tp| (tp, seat.log.name().clone())));
    }
    owners
}

#[tokio::test]
async fn only_the_surplus_moves_when_a_member_joins_and_nothing_of_those_who_stay_when_one_leaves() {
    let stage = Stage::new(&[("t", 10)]).await;
    let generation = |broker: &Broker| broker.group(GROUP).unwrap().generation;
    let mut a = stage.seat("a", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[10]).await;
    let alone = owners(&[&mut a]);
    let mut b = stage.seat("b", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut a, &mut b], &[5, 5]).await;
    assert_eq!(moved(&alone, &[&mut a, &mut b]), 5);
    let (two, rounds) = (owners(&[&mut a, &mut b]), generation(&stage.broker));
    let mut c = stage.seat("c", &[COOPERATIVE]).subscribe(&["t"]).await;
    drive("c has its share", &mut [&mut a, &mut b, &mut c], |seats| {
        seats[2].owns().len() >= 3 && seats.iter().map(|seat| seat.owns().len()).sum::<usize>() == 10
    })
    .await;
    assert_eq!(moved(&two, &[&mut a, &mut b, &mut c]), c.owns().len());
    assert!(generation(&stage.broker) <= rounds + 2, "two rounds are enough");
    let (three, rounds, gone) = (owners(&[&mut a, &mut b]), generation(&stage.broker), c.owns().len());
    c.close().await;
    settle(&mut [&mut a, &mut b], &[5, 5]).await;
    assert_eq!(moved(&three, &[&mut a, &mut b]), 0, "of {gone} that were c's");
    assert!(generation(&stage.broker) <= rounds + 2, "two rounds are enough");
    stage.check();
}

#[tokio::test]
async fn a_member_that_missed_a_round_moves_no_more_than_planned() {
    let stage = Stage::new(&[("t", 6)]).await;
    let mut a = stage.seat("a", &[COOPERATIVE]).subscribe(&["t"]).await;
    let mut b = stage.behind_proxy("b", &[COOPERATIVE]).subscribe(&["t"]).await;
    settle(&mut [&mut a, &mut b], &[3, 3]).await;
    let before = owners(&[&mut a, &mut b]);
    let held = b.proxy().on(ApiKey::SyncGroup, 1, Action::HoldAnswer);
    let joins = stage.count("a", is_join);
    let mut c = stage.seat("c", &[COOPERATIVE]).subscribe(&["t"]).await;
    drive("b's answer is held", &mut [&mut a, &mut b, &mut c], |_| held.count() == 1).await;
    // The next round begins while b has not seen the plan of this one; it may have begun already.
    drive("another round", &mut [&mut a, &mut b, &mut c], |_| stage.count("a", is_join) > joins + 1).await;
    held.release();
    settle(&mut [&mut a, &mut b, &mut c], &[2, 2, 2]).await;
    assert_eq!(moved(&before, &[&mut a, &mut b, &mut c]), 2);
    stage.check();
}

#[test]
fn an_assignment_that_is_cut_short_anywhere_is_an_error_and_never_a_part_of_it() {
    let partitions = |topic: &str| consumer_protocol::TopicPartitions {
        topic: topic.to_owned(),
        partitions: vec![0, 1, 2],
    };
    let whole = consumer_protocol::Assignment {
        assigned_partitions: vec![partitions("orders"), partitions("payments")],
        user_data: Some("x".into()),
    };
    for version in 0..=3 {
        let bytes = whole.to_assignment(version);
        for length in 1..bytes.len() {
            let cut = consumer_protocol::Assignment::from_assignment(bytes.slice(..length));
            assert!(cut.is_err(), "{length} of {} bytes were read as {cut:?}", bytes.len());
        }
        assert_eq!(consumer_protocol::Assignment::from_assignment(bytes).unwrap(), whole);
    }
}

#[tokio::test]
async fn a_member_whose_assignment_arrives_cut_short_says_so_and_joins_again() {
    for protocol in BOTH {
        let stage = Stage::new(&[("t", 4)]).await;
        let mut a = stage.behind_proxy("a", &[protocol]).subscribe(&["t"]).await;
        let cut = |response: &mut Response| {
            let Response::SyncGroup(response) = response else { return };
            let kept = response.assignment.len() - 9;
            response.assignment = response.assignment.slice(..kept);
        };
        let _rule = a.proxy().on(ApiKey::SyncGroup, 1, Action::Edit(Arc::new(cut)));
        let error = a.poll_until_error().await;
        assert!(matches!(error, Error::Malformed(_)), "{error:?}");
        assert!(a.owns().is_empty());
        settle(&mut [&mut a], &[4]).await;
    }
}

#[tokio::test]
async fn a_member_without_an_assignor_in_common_is_refused_and_gets_in_when_the_others_are_gone() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut a = stage.seat("a", &[EAGER]).subscribe(&["t"]).await;
    settle(&mut [&mut a], &[2]).await;
    let mut b = stage.seat("b", &[COOPERATIVE]).subscribe(&["t"]).await;
    let refused = b.poll_until_error().await;
    assert!(refused.to_string().contains("INCONSISTENT_GROUP_PROTOCOL"), "{refused}");
    a.poll().await;
    assert_eq!(stage.calls("a"), ["A(t0 t1)"]);
    a.close().await;
    let joined = async {
        while b.owns().len() < 2 {
            let _ = b.try_poll().await;
        }
    };
    tokio::time::timeout(LONG, joined).await.expect("b is in");
}

/// Replaces one member after the other by one with other settings, while records flow.
async fn roll(stage: &Stage, seats: &mut [Seat], generation: &str, setting: Setting) {
    for at in 0..seats.len() {
        let name = format!("{at}-{generation}");
        let newcomer = stage.seat(&name, &[setting]);
        let told = Committing(newcomer.told());
        let newcomer = newcomer.subscribe_with(&["t"], told).await;
        let old = std::mem::replace(&mut seats[at], newcomer);
        old.close().await;
        stage.plain().fill("t", 4, 2).await.unwrap();
        let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
        shared("everything has an owner", &mut all, &all_of(&[("t", 4)])).await;
    }
}

#[tokio::test]
async fn a_group_goes_from_eager_to_cooperative_and_back_one_member_at_a_time_and_reads_everything_once() {
    let stage = Stage::new(&[("t", 4)]).await;
    let mut seats = Vec::new();
    for name in ["0", "1"] {
        let seat = stage.seat(name, &[EAGER]);
        let told = Committing(seat.told());
        seats.push(seat.subscribe_with(&["t"], told).await);
    }
    for (generation, setting) in [("up", BRIDGE), ("there", COOPERATIVE), ("down", BRIDGE), ("back", EAGER)] {
        roll(&stage, &mut seats, generation, setting).await;
    }
    let ends = 4 * 2 * 8;
    let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
    drive("everything is read", &mut all, |_| {
        tontine_testkit::history::delivered(&stage.history.events(), "t").len() == ends
    })
    .await;
    stage.check();
}

#[tokio::test]
async fn range_gives_partitions_to_members_in_the_rack_of_their_replica() {
    let builder = Broker::builder().nodes(2).racks(["east", "west"]);
    let stage = Stage::built(builder, &[]).await;
    stage.plain().create_topic("t", 4, 1, &[]).await.unwrap();
    let mut west = stage.seat("a", &[EAGER, ("client.rack", "west")]).subscribe(&["t"]).await;
    let mut east = stage.seat("b", &[EAGER, ("client.rack", "east")]).subscribe(&["t"]).await;
    settle(&mut [&mut west, &mut east], &[2, 2]).await;
    let racks = |seat: &Seat| -> BTreeSet<i32> {
        seat.owns().iter().map(|p| stage.broker.leader("t", *p).unwrap().0).collect()
    };
    assert_eq!((racks(&east).len(), racks(&west).len()), (1, 1), "one rack each");
    assert!(racks(&east) < racks(&west), "the first node is in the east");
}

#[tokio::test]
async fn many_consumers_that_start_at_once_have_ids_of_their_own() {
    let stage = Stage::new(&[("t", 2)]).await;
    let mut seats = Vec::new();
    for at in 0..20 {
        seats.push(stage.seat(&format!("m{at}"), &[COOPERATIVE]).subscribe(&["t"]).await);
    }
    let mut all: Vec<&mut Seat> = seats.iter_mut().collect();
    let members = |broker: &Broker| -> BTreeSet<Arc<str>> {
        broker.group(GROUP).map_or_else(BTreeSet::new, |g| g.members.iter().map(|m| m.id.clone()).collect())
    };
    drive("all are in", &mut all, |_| members(&stage.broker).len() == 20).await;
    shared("two have a partition", &mut all, &all_of(&[("t", 2)])).await;
    assert_eq!(members(&stage.broker).len(), 20);
}
