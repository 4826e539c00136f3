//! Class H: static members.

use crate::stage::*;

/// VH1: a static member restarts while the leader's assignment is on its way.
#[test]
fn a_static_member_that_restarts_while_assignments_are_on_their_way_gets_its_share() {
    on_both(&plan(), 6, |g| {
        let (a, b, c) = (g.instance("a"), g.instance("b"), g.instance("c"));
        g.rests();
        g.next(a, g.sync(), Fate::Held(ms(1_500)));
        let d = g.member();
        g.pass(ms(1_200));
        g.script.kill(c);
        let again = g.instance("c");
        g.rests();
        assert_eq!(g.shares([a, b, again, d]).iter().sum::<usize>(), 6);
        assert!(g.shares([again])[0] > 0);
    });
}

/// VH2: the answer to a static member's first join is lost.
#[test]
fn a_static_member_whose_first_answer_was_lost_gets_in_all_the_same() {
    for fate in [Fate::AnswerLost, Fate::Swallowed, Fate::AnsweredLate(s(3))] {
        on_both(&plan(), 4, |g| {
            let a = g.instance("a");
            g.next(a, g.join(), fate);
            let b = g.member();
            g.rests();
            assert_eq!(g.shares([a, b]), [2, 2], "{fate:?}");
            assert!(g.script.is_alive(a), "{fate:?}: it has not fenced itself");
        });
    }
}

/// VH3: a static member unsubscribes, subscribes, and the answer to its join is lost.
#[test]
fn a_static_member_that_subscribes_again_does_not_fence_itself() {
    for fate in [Fate::AnswerLost, Fate::Swallowed, Fate::Held(s(4))] {
        on_both(&plan(), 4, |g| {
            let (a, b) = (g.instance("a"), g.member());
            g.rests();
            g.script.resubscribe(a);
            g.pass(ms(50));
            g.next(a, g.join(), fate);
            g.rests();
            assert!(g.script.is_alive(a), "{fate:?}");
            assert_eq!(g.shares([a, b]), [2, 2], "{fate:?}");
        });
    }
}

/// VH4: a crash, with and without a return.
#[test]
fn a_static_member_keeps_its_place_when_it_crashes_and_loses_it_with_its_session() {
    on_both(&plan(), 4, |g| {
        let (a, b) = (g.instance("a"), g.member());
        g.rests();
        g.watch();
        g.script.kill(a);
        g.pass(s(3));
        let again = g.instance("a");
        g.rests();
        assert_eq!(g.shares([again, b]), [2, 2]);
        // On the consumer protocol one that crashed is waited for until its session is over, and then its place is given away.
        assert_eq!(g.heard(b).is_empty(), g.protocol == Protocol::Classic, "{:?}", g.heard(b));
        g.script.kill(again);
        g.pass(g.script.session() - s(3));
        assert_eq!(g.shares([b]), [2], "not before its session is over");
        g.pass(s(6));
        assert_eq!(g.shares([b]), [4]);
    });
}

/// VH5: two consumers of one instance id.
#[test]
fn two_consumers_of_one_instance_id_do_not_fence_each_other_for_ever() {
    on(Protocol::Classic, &plan(), 4, |g| {
        let (old, b) = (g.instance("a"), g.member());
        g.rests();
        let new = g.instance("a");
        g.pass(s(6));
        assert!(!g.script.is_alive(old), "the older one ends once and for all");
        g.rests();
        assert_eq!(g.shares([new, b]), [2, 2]);
    });
}
