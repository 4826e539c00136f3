//! Class G: who counts as alive.

use crate::stage::*;

/// VG1: one member holds a round up for longer than a session.
#[test]
fn members_that_wait_for_a_slow_one_live_on() {
    on(Protocol::Classic, &Plan { session: 6_000, heartbeat: 1_000, max_poll: 30_000, ..plan() }, 6, |g| {
        let (a, b) = g.two_at_rest();
        g.tell(b, Order::Work(s(10)));
        g.pass(ms(100));
        let c = g.member();
        g.pass(s(9));
        assert_eq!(g.heard(a).into_iter().filter(|kind| *kind == Lost).count(), 0);
        g.rests();
        assert_eq!(g.shares([a, b, c]), [2, 2, 2]);
        assert!(!g.heard(b).contains(&Lost), "it sent heartbeats while it worked");
    });
}

/// VG2: a member cannot get back into its group.
#[test]
fn a_member_that_cannot_get_back_hands_nothing_out() {
    on(Protocol::Classic, &plan(), 2, |g| {
        let a = g.member();
        g.rests();
        for _ in 0..40 {
            g.next(a, g.join(), Fate::Refused(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
        }
        g.script.expel(a);
        g.pass(s(2));
        assert_eq!(g.shares([a]), [0], "it knows that it is out");
        g.watch();
        g.write(20);
        g.pass(ms(500));
        assert_eq!(g.handed(a, &t(0)).len() + g.handed(a, &t(1)).len(), 0);
        g.rests();
        assert_eq!(g.shares([a]), [2]);
    });
}

/// VG3: heartbeats at rest.
#[test]
fn a_member_at_rest_says_that_it_lives_every_interval_and_no_more() {
    on_both(&plan(), 2, |g| {
        let (a, _) = g.two_at_rest();
        g.pass(s(5));
        let before = g.script.asked(a, g.heartbeat());
        g.pass(s(20));
        let beats = g.script.asked(a, g.heartbeat()) - before;
        assert!((18..=22).contains(&beats), "{beats} in 20 intervals");
    });
}

/// VG4: a callback takes longer than a session.
#[test]
fn a_callback_that_takes_longer_than_a_session_costs_no_membership() {
    on_both(&Plan { session: 6_000, heartbeat: 1_000, max_poll: 30_000, ..plan() }, 2, |g| {
        let a = g.member();
        g.script.next_callback(a, s(9), false);
        g.pass(s(10));
        let b = g.member();
        g.script.next_callback(a, s(9), false);
        g.flows(s(15), ms(100));
        g.rests();
        assert!(!g.heard(a).contains(&Lost), "{:?}", g.heard(a));
        assert_eq!(g.shares([a, b]), [1, 1]);
    });
}

/// VG5: the application idles before its first poll for longer than it may be without one.
#[test]
fn idling_before_the_first_poll_is_no_missed_deadline() {
    on_both(&plan(), 2, |g| {
        let a = g.member();
        g.tell(a, Order::Work(g.script.max_poll_interval() * 2));
        g.pass(g.script.max_poll_interval() * 3);
        g.rests();
        assert_eq!(g.heard(a), [Assigned]);
    });
}

/// VG6: a member works up to just before its deadline, again and again.
#[test]
fn work_that_ends_before_the_poll_deadline_costs_nothing() {
    on_both(&plan(), 2, |g| {
        let (a, b) = g.two_at_rest();
        for _ in 0..5 {
            g.tell(a, Order::Work(g.script.max_poll_interval() - ms(600)));
            g.flows(g.script.max_poll_interval(), ms(200));
        }
        g.rests();
        assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]));
    });
}
