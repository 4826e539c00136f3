//! Class I: what moves when members come and go.

use crate::stage::*;

/// VI1: a moving partition is granted when its owner has let go, and not before.
#[test]
fn a_moving_partition_goes_on_from_what_its_owner_committed_when_it_let_go() {
    on_both(&plan(), 2, |g| {
        let a = g.member_that(Commits::Never);
        g.flows(s(2), ms(20));
        g.script.next_callback(a, s(2), false);
        let b = g.member();
        g.flows(s(5), ms(20));
        g.rests();
        let moved = g.has(b)[0].clone();
        let last = g.handed(a, &moved).last().copied().expect("it was read");
        assert_eq!(g.begins_at(b, &moved), Some(last + 1));
        assert_eq!(g.shares([a, b]), [1, 1]);
    });
}

/// VI2: a member that missed a round comes back with what it had.
#[test]
fn a_claim_of_a_member_that_missed_a_round_counts_for_nothing() {
    on_both(&plan(), 6, |g| {
        let (a, b, c) = (g.member(), g.member(), g.member());
        g.rests();
        g.watch();
        g.script.cut_off(c, g.script.session() * 2);
        g.pass(g.script.session() + s(4));
        assert_eq!(g.shares([a, b]), [3, 3]);
        let d = g.member();
        g.rests();
        assert_eq!(g.shares([a, b, c, d]).iter().sum::<usize>(), 6);
        assert!(g.heard(c).contains(&Lost));
    });
}

/// VI3: scale up, scale down.
#[test]
fn only_the_surplus_moves_when_members_join_and_nothing_when_one_leaves() {
    on_both(&plan(), 10, |g| {
        let a = g.member();
        g.rests();
        g.watch();
        let b = g.member();
        g.rests();
        assert_eq!((g.gave_up(a), g.shares([a, b])), (5, [5, 5]));
        g.watch();
        let c = g.member();
        g.rests();
        assert_eq!(g.gave_up(a) + g.gave_up(b), g.shares([c])[0]);
        assert!((3..=4).contains(&g.shares([c])[0]));
        g.watch();
        g.script.close(c);
        g.rests();
        assert_eq!((g.gave_up(a), g.gave_up(b)), (0, 0));
    });
}

/// VI4: a member misses the end of a round because the next one has begun.
#[test]
fn a_member_that_missed_the_end_of_a_round_moves_no_more_than_planned() {
    on_both(&plan(), 8, |g| {
        let (a, b) = g.two_at_rest();
        g.next(b, g.sync(), Fate::Held(ms(1_500)));
        let c = g.member();
        g.pass(ms(1_300));
        let d = g.member();
        g.rests();
        assert_eq!(g.shares([a, b, c, d]), [2, 2, 2, 2]);
        assert!(g.gave_up(a) + g.gave_up(b) <= 5, "{} and {}", g.gave_up(a), g.gave_up(b));
    });
}

/// VI5: the answer that brings an assignment is lost.
#[test]
fn an_assignment_that_was_lost_on_its_way_is_asked_for_again() {
    for fate in [Fate::AnswerLost, Fate::Swallowed, Fate::AnsweredLate(s(3))] {
        on_both(&plan(), 4, |g| {
            let (a, b) = g.two_at_rest();
            let c = g.member();
            g.next(c, g.sync(), fate);
            g.next(a, g.sync(), fate);
            g.rests();
            assert_eq!(g.shares([a, b, c]).iter().sum::<usize>(), 4, "{fate:?}");
            assert!(g.shares([c])[0] > 0, "{fate:?}");
        });
    }
}
