//! Class J: the coordinator's side.

use crate::stage::*;

/// VJ1: first joins whose answers are lost.
#[test]
fn first_joins_that_are_never_followed_up_leave_no_ghosts() {
    on_both(&plan(), 4, |g| {
        let a = g.member();
        g.rests();
        let b = g.member();
        for _ in 0..4 {
            g.next(b, g.join(), Fate::AnswerLost);
        }
        g.rests();
        // At rest the coordinator knows nobody but these two.
        assert_eq!(g.shares([a, b]), [2, 2]);
    });
}

/// VJ2: the coordinator moves at every step of a round.
#[test]
fn a_coordinator_that_moves_in_the_middle_of_a_round_costs_no_partition() {
    for wait in [5, 50, 150, 300, 600, 1_000, 1_600] {
        on_both(&plan(), 4, |g| {
            let (a, b) = g.two_at_rest();
            let c = g.member();
            g.pass(ms(wait));
            g.script.move_coordinator();
            g.rests();
            assert_eq!(g.shares([a, b, c]).iter().sum::<usize>(), 4, "after {wait} ms");
            let lost = [a, b].into_iter().filter(|member| g.heard(*member).contains(&Lost)).count();
            assert_eq!(lost, 0, "after {wait} ms");
        });
    }
}

/// VJ3: very many members at once.
#[test]
fn many_members_that_join_at_once_are_stable_after_few_rounds() {
    on_both(&plan(), 40, |g| {
        let members: Vec<Life> = (0..40).map(|_| g.member()).collect();
        g.rests();
        assert!(members.iter().all(|member| g.shares([*member]) == [1]));
        let joins = members.iter().map(|member| g.script.asked(*member, ApiKey::JoinGroup)).max();
        assert!(joins <= Some(6), "{joins:?} joins of one member");
    });
}

/// VJ4: an answer of the coordinator to a join is on its way when the coordinator moves.
#[test]
fn an_answer_of_the_coordinator_before_is_no_reason_to_begin_anew() {
    on_both(&plan(), 4, |g| {
        let (a, b) = g.two_at_rest();
        g.next(a, g.heartbeat(), Fate::AnsweredLate(s(2)));
        g.pass(ms(1_100));
        g.script.move_coordinator();
        g.flows(s(4), ms(100));
        g.rests();
        assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]));
    });
}
