//! Class D: owned but silent.

use crate::stage::*;

/// VD1: a second round comes while committed offsets are looked up.
#[test]
fn kept_partitions_get_their_position_although_another_round_came_first() {
    on_both(&plan(), 4, |g| {
        let a = g.member();
        g.next(a, ApiKey::OffsetFetch, Fate::Held(s(2)));
        g.pass(ms(500));
        let b = g.member();
        g.rests();
        assert_eq!(g.shares([a, b]), [2, 2]);
        for kept in g.has(a) {
            assert_eq!(g.begins_at(a, &kept), Some(0), "{kept}");
        }
    });
}

/// VD2: a paused partition leaves, the other one stays.
#[test]
fn a_pause_of_what_left_holds_up_nothing_that_stays() {
    on_both(&plan(), 2, |g| {
        let a = g.member();
        g.rests();
        g.tell(a, Order::Pause([t(0), t(1)].into()));
        g.pass(s(1));
        let b = g.member();
        g.pass(s(6));
        let kept = g.has(a)[0].clone();
        g.tell(a, Order::Resume([kept.clone()].into()));
        g.pass(s(1));
        g.watch();
        g.flows(s(3), ms(100));
        assert!(g.silence(&kept) < s(1), "{:?}", g.silence(&kept));
        assert_eq!(g.shares([a, b]), [1, 1]);
    });
}

/// VD3: partitions that stay are held back for callbacks, round after round.
#[test]
fn every_partition_flows_after_each_of_many_rounds() {
    for assignor in ["range", "cooperative-sticky"] {
        on_both(&Plan { assignor, ..plan() }, 4, |g| {
            g.member();
            for round in 0..10 {
                let b = g.member();
                g.flows(s(3), ms(100));
                g.script.close(b);
                g.pass(s(4));
                g.watch();
                g.flows(s(2), ms(50));
                for partition in 0..4 {
                    let silent = g.silence(&t(partition));
                    assert!(silent < s(1), "{assignor}, round {round}: {silent:?}");
                }
            }
        });
    }
}

/// VD4: callers share the look-up of a coordinator that is nowhere.
#[test]
fn a_look_up_of_the_coordinator_that_is_held_up_costs_no_membership() {
    for fate in [
        Fate::Held(s(3)),
        Fate::Swallowed,
        Fate::AnswerLost,
        Fate::Refused(ErrorCode::COORDINATOR_NOT_AVAILABLE),
    ] {
        on_both(&Plan { session: 20_000, max_poll: 30_000, ..plan() }, 4, |g| {
            let (a, b) = g.two_at_rest();
            g.next(a, ApiKey::FindCoordinator, fate);
            g.script.move_coordinator();
            g.tell(a, Order::CommitAll);
            g.tell(a, Order::CommitAll);
            g.flows(s(6), ms(200));
            g.rests();
            assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]), "{fate:?}");
        });
    }
}

/// VD5: a storm of joins and leaves.
#[test]
fn what_is_read_after_a_storm_is_what_is_owned() {
    on_both(&plan(), 6, |g| {
        let (a, b) = g.two_at_rest();
        for turn in 0..20 {
            let c = g.member();
            g.flows(ms(100 + 70 * turn), ms(50));
            g.script.close(c);
        }
        g.rests();
        g.watch();
        g.write(60);
        g.rests();
        for (member, partition) in [(a, g.has(a)), (b, g.has(b))] {
            assert_eq!(partition.len(), 3);
            assert!(partition.iter().all(|name| g.handed(member, name).len() == 10));
        }
    });
}

/// VD6: a follower sees new partitions before the leader does.
#[test]
fn partitions_that_a_follower_sees_first_are_taken_up_when_the_leader_sees_them() {
    on_both(&plan(), 2, |g| {
        let (a, b) = g.two_at_rest();
        for fate in [Fate::Held(s(4)), Fate::Held(s(4))] {
            g.next(a, ApiKey::Metadata, fate);
        }
        g.script.add_partitions("t", 6);
        g.write(24);
        g.rests();
        assert_eq!(g.shares([a, b]), [3, 3]);
    });
}

/// VD7: partitions of a topic that only the follower reads.
#[test]
fn the_leader_notices_new_partitions_of_topics_that_only_others_read() {
    on_both(&plan(), 2, |g| {
        g.script.create("u", 1);
        let a = g.member();
        g.tell(a, Order::Subscribe(["t".into()].into()));
        g.pass(s(1));
        let b = g.member();
        g.tell(b, Order::Subscribe(["u".into()].into()));
        g.rests();
        assert_eq!(g.shares([a, b]), [2, 1]);
        g.script.add_partitions("u", 3);
        g.rests();
        assert_eq!(g.shares([a, b]), [2, 3]);
    });
}

/// VD8: a heartbeat is never answered.
#[test]
fn a_heartbeat_that_is_never_answered_costs_no_membership() {
    for fate in [Fate::Swallowed, Fate::AnswerLost, Fate::AnsweredLate(s(5))] {
        on_both(&Plan { session: 20_000, max_poll: 30_000, ..plan() }, 4, |g| {
            let (a, b) = g.two_at_rest();
            for _ in 0..3 {
                g.next(a, g.heartbeat(), fate);
                g.flows(s(10), ms(100));
            }
            g.rests();
            assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]), "{fate:?}");
        });
    }
}
