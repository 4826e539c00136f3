//! The examples and situations that Apache Kafka publishes for its assignors, told again.

use std::{collections::BTreeSet, sync::Arc};
use tontine_group::{
    TopicPartition,
    assignor::{ALL, Assignor, CooperativeSticky, MemberSubscription, Range, RoundRobin, Sticky},
    topics::Topics,
};

/// `id: topic topic`.
fn member(text: &str) -> MemberSubscription {
    let (id, topics) = text.split_once(':').expect("id: topics");
    MemberSubscription {
        member_id: id.into(),
        topics: topics.split_whitespace().map(Arc::from).collect(),
        ..MemberSubscription::default()
    }
}

fn members(texts: &[&str]) -> Vec<MemberSubscription> {
    texts.iter().map(|text| member(text)).collect()
}

/// The member having `topic-partition topic-partition` since a generation.
fn having(
    assignor: &dyn Assignor,
    member: MemberSubscription,
    had: &str,
    generation: i32,
) -> MemberSubscription {
    let owned: Vec<TopicPartition> = partitions(had).into_iter().collect();
    let user_data = assignor.user_data(&owned, generation);
    MemberSubscription { owned, user_data, generation: Some(generation), ..member }
}

fn partitions(text: &str) -> BTreeSet<TopicPartition> {
    let partition = |text: &str| {
        let (topic, partition) = text.rsplit_once('-').expect("topic-partition");
        TopicPartition::new(topic, partition.parse().expect("a number"))
    };
    text.split_whitespace().map(partition).collect()
}

fn assigned(assignor: &dyn Assignor, topics: &Topics, members: &[MemberSubscription]) -> Vec<String> {
    let shares = assignor.assign(topics, members).by_member(members.len());
    let line = |(member, share): (&MemberSubscription, &Vec<TopicPartition>)| {
        let share: Vec<_> = share.iter().map(ToString::to_string).collect();
        format!("{}: {}", member.member_id, share.join(" ")).trim_end().to_owned()
    };
    members.iter().zip(&shares).map(line).collect()
}

fn for_the_sticky_ones(check: impl Fn(&dyn Assignor)) {
    check(&Sticky);
    check(&CooperativeSticky);
}

/// What the members have after joining with `had` and, where the assignor is cooperative, once more.
fn after(assignor: &dyn Assignor, topics: &Topics, members: &[MemberSubscription]) -> Vec<String> {
    let mut members = members.to_vec();
    let first = assignor.assign(topics, &members).by_member(members.len());
    for (member, share) in members.iter_mut().zip(first) {
        member.user_data = assignor.user_data(&share, 100);
        member.owned = share;
        member.generation = Some(100);
    }
    assigned(assignor, topics, &members)
}

#[test]
fn range_gives_the_first_members_one_more_of_each_topic() {
    let topics = Topics::new().with("t0", 3).with("t1", 3);
    let got = assigned(&Range, &topics, &members(&["C0: t0 t1", "C1: t0 t1"]));
    assert_eq!(got, ["C0: t0-0 t0-1 t1-0 t1-1", "C1: t0-2 t1-2"]);
}

#[test]
fn range_and_roundrobin_follow_the_instance_ids_of_static_members_through_a_restart() {
    for assignor in [&Range as &dyn Assignor, &RoundRobin] {
        let topics = Topics::new().with("t0", 3).with("t1", 3);
        let mut group = members(&["C0: t0 t1", "C1: t0 t1", "C2: t0 t1"]);
        for (i, member) in group.iter_mut().enumerate() {
            member.instance_id = Some(format!("I{i}"));
        }
        let before = assignor.assign(&topics, &group);
        for (member, id) in group.iter_mut().zip(["C5", "C3", "C4"]) {
            member.member_id = id.into();
        }
        assert_eq!(assignor.assign(&topics, &group), before, "{}", assignor.name());
    }
}

#[test]
fn range_and_roundrobin_with_mixed_subscriptions() {
    let topics = Topics::new().with("t1", 3).with("t2", 2);
    let group = members(&["C1: t1", "C2: t1 t2", "C3: t1"]);
    for assignor in [&Range as &dyn Assignor, &RoundRobin] {
        let got = assigned(assignor, &topics, &group);
        assert_eq!(got, ["C1: t1-0", "C2: t1-1 t2-0 t2-1", "C3: t1-2"], "{}", assignor.name());
    }
}

#[test]
fn a_topic_that_does_not_exist_gives_nobody_anything() {
    for builtin in ALL {
        let got =
            assigned(&*(builtin.new)(), &Topics::new().with("other", 3), &members(&["C1: gone", "C2:"]));
        assert_eq!(got, ["C1:", "C2:"], "{}", builtin.name);
    }
}

#[test]
fn more_members_than_partitions_leave_some_idle() {
    for builtin in ALL {
        let got = assigned(&*(builtin.new)(), &Topics::new().with("t", 1), &members(&["C2: t", "C1: t"]));
        assert_eq!(got, ["C2:", "C1: t-0"], "{}", builtin.name);
    }
}

#[test]
fn sticky_starts_like_roundrobin() {
    let topics = ["t0", "t1", "t2", "t3"].iter().fold(Topics::new(), |topics, name| topics.with(*name, 2));
    let all = " t0 t1 t2 t3";
    let group = members(&[&format!("C0:{all}"), &format!("C1:{all}"), &format!("C2:{all}")]);
    for assignor in [&Sticky as &dyn Assignor, &CooperativeSticky, &RoundRobin] {
        let got = assigned(assignor, &topics, &group);
        assert_eq!(got, ["C0: t0-0 t1-1 t3-0", "C1: t0-1 t2-0 t3-1", "C2: t1-0 t2-1"]);
    }
}

#[test]
fn sticky_keeps_everything_when_a_member_leaves() {
    let topics = ["t0", "t1", "t2", "t3"].iter().fold(Topics::new(), |topics, name| topics.with(*name, 2));
    for_the_sticky_ones(|assignor| {
        let group = [
            having(assignor, member("C0: t0 t1 t2 t3"), "t0-0 t1-1 t3-0", 1),
            having(assignor, member("C2: t0 t1 t2 t3"), "t1-0 t2-1", 1),
        ];
        let got = assigned(assignor, &topics, &group);
        assert_eq!(got, ["C0: t0-0 t1-1 t2-0 t3-0", "C2: t0-1 t1-0 t2-1 t3-1"]);
    });
}

#[test]
fn sticky_is_as_even_as_mixed_subscriptions_allow() {
    let topics = Topics::new().with("t0", 1).with("t1", 2).with("t2", 3);
    let group = members(&["C0: t0", "C1: t0 t1", "C2: t0 t1 t2"]);
    for_the_sticky_ones(|assignor| {
        let got = assigned(assignor, &topics, &group);
        assert_eq!(got, ["C0: t0-0", "C1: t1-0 t1-1", "C2: t2-0 t2-1 t2-2"]);
        let group = [
            having(assignor, member("C1: t0 t1"), "t1-0 t1-1", 1),
            having(assignor, member("C2: t0 t1 t2"), "t2-0 t2-1 t2-2", 1),
        ];
        let got = assigned(assignor, &topics, &group);
        assert_eq!(got, ["C1: t0-0 t1-0 t1-1", "C2: t2-0 t2-1 t2-2"], "five of five preserved");
    });
}

#[test]
fn a_newcomer_takes_only_its_share_and_what_it_leaves_behind_goes_back() {
    let topics = Topics::new().with("t", 3);
    for_the_sticky_ones(|assignor| {
        let joined = [having(assignor, member("C1: t"), "t-0 t-1 t-2", 1), member("C2: t")];
        let got = after(assignor, &topics, &joined);
        let (c1, c2) = (partitions(&got[0][3..]), partitions(&got[1][3..]));
        assert_eq!((c1.len(), c2.len()), (2, 1));
        let alone = [having(assignor, member("C2: t"), &got[1][3..], 2)];
        assert_eq!(assigned(assignor, &topics, &alone), ["C2: t-0 t-1 t-2"]);
    });
}

#[test]
fn a_second_topic_is_shared_without_moving_the_first() {
    let topics = Topics::new().with("t1", 3).with("t2", 3);
    for_the_sticky_ones(|assignor| {
        let group = [
            having(assignor, member("C1: t1 t2"), "t1-0 t1-2", 1),
            having(assignor, member("C2: t1 t2"), "t1-1", 1),
        ];
        let got = assigned(assignor, &topics, &group);
        let (c1, c2) = (partitions(&got[0][3..]), partitions(&got[1][3..]));
        assert!(c1.is_superset(&partitions("t1-0 t1-2")) && c2.is_superset(&partitions("t1-1")));
        assert_eq!((c1.len(), c2.len()), (3, 3));
    });
}

#[test]
fn a_deleted_topic_is_forgotten() {
    let topics = Topics::new().with("t1", 1).with("t3", 100);
    for_the_sticky_ones(|assignor| {
        let group = [having(assignor, member("C: t1 t2 t3"), "t1-0 t2-0 t2-1", 1)];
        assert_eq!(assignor.assign(&topics, &group).by_member(1)[0].len(), 101);
        let nothing_left = [having(assignor, member("C: t2"), "t2-0", 1)];
        assert_eq!(assigned(assignor, &Topics::new(), &nothing_left), ["C:"]);
    });
}

#[test]
fn a_claim_of_an_older_generation_loses() {
    let topics = Topics::new().with("t1", 3).with("t2", 3);
    for_the_sticky_ones(|assignor| {
        let group = [
            having(assignor, member("C1: t1 t2"), "t1-0 t1-2 t2-1", 9),
            having(assignor, member("C2: t1 t2"), "t1-1 t2-0 t2-2", 10),
            having(assignor, member("C3: t1 t2"), "t1-0 t1-2 t2-1", 10),
        ];
        let got = after(assignor, &topics, &group);
        let (c2, c3) = (partitions(&got[1][3..]), partitions(&got[2][3..]));
        assert_eq!((c2.len(), c3.len()), (2, 2));
        assert!(c2.is_subset(&partitions("t1-1 t2-0 t2-2")), "C2 keeps two of its own: {c2:?}");
        assert!(c3.is_subset(&partitions("t1-0 t1-2 t2-1")), "C3 is believed, C1 is not: {c3:?}");
    });
}

#[test]
fn a_claim_without_a_generation_loses_against_one_that_has_it() {
    let topics = Topics::new().with("t1", 3).with("t2", 3);
    for_the_sticky_ones(|assignor| {
        let group = [
            having(assignor, member("C1: t1 t2"), "t1-0 t1-2 t2-1", -1),
            having(assignor, member("C2: t1 t2"), "t1-0 t1-2 t2-1", 0),
        ];
        let c2 = partitions(&after(assignor, &topics, &group)[1][3..]);
        assert_eq!(c2, partitions("t1-0 t1-2 t2-1"));
    });
}

#[test]
fn what_two_members_of_one_generation_claim_is_given_to_nobody_before_both_let_go() {
    let topics = Topics::new().with("t", 3);
    let group = [
        having(&CooperativeSticky, member("C1: t"), "t-0 t-1", 7),
        having(&CooperativeSticky, member("C2: t"), "t-0 t-2", 7),
        having(&CooperativeSticky, member("C3: t"), "", 7),
    ];
    assert_eq!(assigned(&CooperativeSticky, &topics, &group), ["C1: t-1", "C2: t-2", "C3:"]);
    assert_eq!(after(&CooperativeSticky, &topics, &group), ["C1: t-1", "C2: t-2", "C3: t-0"]);
}

#[test]
fn cooperative_sticky_withholds_what_moves_for_one_round() {
    let topics = Topics::new().with("t", 4);
    let group = [having(&CooperativeSticky, member("C1: t"), "t-0 t-1 t-2 t-3", 1), member("C2: t")];
    let first = assigned(&CooperativeSticky, &topics, &group);
    assert_eq!((partitions(&first[0][3..]).len(), first[1].as_str()), (2, "C2:"));
    let second = after(&CooperativeSticky, &topics, &group);
    assert_eq!(second[0], first[0], "what was kept stays");
    assert_eq!(partitions(&second[1][3..]).len(), 2);
}

#[test]
fn a_partition_of_a_topic_that_its_owner_gave_up_waits_for_the_owner_too() {
    let topics = Topics::new().with("t1", 1).with("t2", 1);
    let group = [having(&CooperativeSticky, member("C1: t2"), "t1-0 t2-0", 3), member("C2: t1")];
    assert_eq!(assigned(&CooperativeSticky, &topics, &group), ["C1: t2-0", "C2:"]);
    assert_eq!(after(&CooperativeSticky, &topics, &group), ["C1: t2-0", "C2: t1-0"]);
}

#[test]
fn the_generation_may_come_in_the_user_data_of_older_members() {
    let topics = Topics::new().with("t", 2);
    let old = |text, had, generation| MemberSubscription {
        generation: None,
        ..having(&CooperativeSticky, member(text), had, generation)
    };
    let group = [old("C1: t", "t-0 t-1", 4), old("C2: t", "t-0 t-1", 5)];
    assert_eq!(after(&CooperativeSticky, &topics, &group)[1].len(), "C2: t-0".len());
    let first = assigned(&CooperativeSticky, &topics, &group);
    assert!(first[0] == "C1:" && first[1].starts_with("C2: t-"), "C2 keeps one, C1 waits for it: {first:?}");
}

#[test]
fn sticky_reads_user_data_of_the_first_edition() {
    let topics = Topics::new().with("t", 4);
    let old = |id, had| {
        let member = having(&Sticky, member(id), had, 0);
        let bytes = member.user_data.expect("some");
        MemberSubscription { user_data: Some(bytes.slice(..bytes.len() - 4)), ..member }
    };
    let group = [old("C1: t", "t-1 t-3"), old("C2: t", "t-0 t-2")];
    assert_eq!(assigned(&Sticky, &topics, &group), ["C1: t-1 t-3", "C2: t-0 t-2"]);
}

#[test]
fn sticky_says_nothing_before_its_first_assignment() {
    assert_eq!(Sticky.user_data(&[], -1), None);
    assert_eq!(CooperativeSticky.user_data(&[], -1).as_deref(), Some(&[0xff; 4][..]));
}
