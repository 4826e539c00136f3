//! Class M: leaders, coordinators and nodes that move.

use crate::stage::*;

fn three_nodes() -> Plan {
    Plan { nodes: 3, session: 20_000, max_poll: 30_000, ..plan() }
}

/// VM1: a rolling restart.
#[test]
fn restarting_every_node_in_turn_costs_no_membership() {
    on_both(&three_nodes(), 6, |g| {
        let (a, b) = g.two_at_rest();
        for node in 1..=3 {
            g.script.stop_node(node, s(3));
            g.flows(s(10), ms(100));
        }
        g.rests();
        assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]));
    });
}

/// VM2: the coordinator answers nothing.
#[test]
fn a_coordinator_that_falls_silent_is_looked_up_again_at_another_node() {
    on_both(&three_nodes(), 6, |g| {
        let (a, b) = g.two_at_rest();
        let silent = g.script.coordinator().expect("there is one");
        g.script.black_hole(silent, s(30));
        g.pass(s(1));
        g.script.move_coordinator();
        g.pass(s(14));
        assert!(g.script.coordinator() != Some(silent));
        g.rests();
        assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]));
    });
}

/// VM3: the leader is gone while the start of a partition is looked up at it.
#[test]
fn a_partition_whose_leader_dies_while_its_start_is_looked_up_starts_at_the_new_one() {
    on_both(&three_nodes(), 1, |g| {
        let a = g.member();
        g.next(a, ApiKey::ListOffsets, Fate::Held(s(8)));
        g.pass(s(1));
        let dead = g.script.leader(&t(0)).expect("there is one");
        g.script.move_leader(&t(0));
        g.script.stop_node(dead, s(5));
        let then = g.script.now();
        g.rests();
        let first = g.script.first_handed(a, &t(0), g.since()).expect("it reads");
        assert!(first.saturating_since(then) < s(4), "{:?}", first.saturating_since(then));
    });
}

/// VM4: a leader moves as planned.
#[test]
fn a_leader_that_moves_as_planned_costs_no_backoff() {
    on_both(&three_nodes(), 1, |g| {
        g.member();
        g.rests();
        for _ in 0..6 {
            g.watch();
            g.flows(s(1), ms(10));
            g.script.move_leader(&t(0));
            g.flows(s(2), ms(10));
            assert!(g.silence(&t(0)) < ms(700), "{:?}", g.silence(&t(0)));
        }
        assert_eq!(g.doubles(1), 0);
    });
}

/// VM5: the old leader's answer comes after the new leader's.
#[test]
fn an_answer_of_the_old_leader_breaks_no_order() {
    on_both(&three_nodes(), 1, |g| {
        let (a, b) = g.two_at_rest();
        let reader = if g.shares([a]) == [1] { a } else { b };
        g.next(reader, ApiKey::Fetch, Fate::AnsweredLate(s(2)));
        g.flows(ms(200), ms(10));
        g.script.move_leader(&t(0));
        g.flows(s(4), ms(10));
        g.rests();
        let offsets = g.handed(reader, &t(0));
        assert!(offsets.is_sorted() && g.doubles(1) == 0);
    });
}

/// VM6: a member stands still while its coordinator and its leaders move.
#[test]
fn a_member_that_wakes_in_another_cluster_finds_its_way() {
    on_both(&three_nodes(), 3, |g| {
        let (a, b) = g.two_at_rest();
        g.script.stall(a, s(8));
        g.script.move_coordinator();
        (0..3).for_each(|partition| g.script.move_leader(&t(partition)));
        g.script.stop_node(1, s(12));
        g.flows(s(10), ms(100));
        g.rests();
        assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]), "within its session");
    });
}
