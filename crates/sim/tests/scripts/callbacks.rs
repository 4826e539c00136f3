//! Class E: what listeners are told.

use crate::stage::*;

/// VE1: every way out in one life.
#[test]
fn whatever_was_assigned_is_given_up_or_lost_exactly_once() {
    on_both(&plan(), 4, |g| {
        let a = g.member();
        g.rests();
        g.script.expel(a);
        g.rests();
        g.script.resubscribe(a);
        g.rests();
        g.script.stall(a, g.script.session() * 2);
        g.pass(g.script.session() * 2);
        g.rests();
        assert_eq!(
            g.heard(a),
            [Assigned, Lost, Assigned, Revoked, Assigned, Lost, Assigned],
            "four ownerships, three ends"
        );
    });
}

/// VE2: unsubscribing.
#[test]
fn unsubscribing_revokes_first_and_commits_before_it_leaves() {
    on_both(&plan(), 2, |g| {
        let a = g.member_that(Commits::Never);
        g.rests();
        g.watch();
        let other = g.member();
        g.rests();
        g.watch();
        g.write(10);
        g.pass(s(1));
        let had = g.has(a)[0].clone();
        g.script.resubscribe(a);
        g.rests();
        assert_eq!(g.heard(a), [Revoked, Assigned]);
        assert_eq!(g.commits(&had).first(), Some(&20), "the commit in the callback counts");
        assert_eq!((g.shares([a, other]), g.doubles(2)), ([1, 1], 0));
    });
}

/// VE3: the application cannot load its state.
#[test]
fn partitions_whose_assigned_callback_failed_deliver_nothing_until_it_succeeds() {
    on_both(&plan(), 2, |g| {
        let a = g.member();
        g.script.next_callback(a, ms(300), true);
        g.pass(ms(900));
        g.rests();
        let calls = g.script.calls(a, Assigned, g.since());
        let first = g.script.first_handed(a, &t(0), g.since());
        assert!(calls.len() >= 2 && first > calls.get(1).copied(), "it is called again before: {calls:?}");
        assert_eq!(g.begins_at(a, &t(0)), Some(0));
    });
}

/// VE4: the commit in revoked is refused, or lost.
#[test]
fn a_commit_in_revoked_that_ends_badly_keeps_neither_the_callback_nor_the_partition() {
    let fates = [
        Fate::Refused(ErrorCode::ILLEGAL_GENERATION),
        Fate::Refused(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
        Fate::Swallowed,
        Fate::AnswerLost,
    ];
    for fate in fates {
        on_both(&Plan { session: 20_000, max_poll: 30_000, ..plan() }, 2, |g| {
            let a = g.member_that(Commits::Never);
            g.rests();
            g.watch();
            g.next(a, ApiKey::OffsetCommit, fate);
            let b = g.member();
            g.rests();
            assert_eq!(g.heard(a).iter().filter(|kind| **kind == Revoked).count(), 1, "{fate:?}");
            assert_eq!(g.shares([a, b]), [1, 1], "{fate:?}");
        });
    }
}

/// VE5: a partition comes and goes while the application does not poll.
#[test]
fn what_comes_and_goes_between_two_polls_is_told_in_order() {
    on_both(&Plan { max_poll: 30_000, ..plan() }, 4, |g| {
        let (a, b) = g.two_at_rest();
        g.tell(b, Order::Work(s(5)));
        g.script.close(a);
        g.pass(s(2));
        let c = g.member();
        g.rests();
        let mut open = 2_i64;
        for (kind, what) in g.script.heard(b, g.since()) {
            let many = i64::try_from(what.len()).unwrap();
            open += if kind == Assigned { many } else { -many };
            assert!((0..=4).contains(&open));
        }
        assert_eq!((open, g.shares([b, c])), (2, [2, 2]));
    });
}

/// VE6: the same listener, whatever is spoken, and a callback that is slower than a heartbeat.
#[test]
fn a_slow_revoked_callback_is_waited_for_before_anybody_else_reads() {
    for assignor in ["range", "cooperative-sticky"] {
        on_both(&Plan { assignor, ..plan() }, 2, |g| {
            let a = g.member();
            g.rests();
            g.watch();
            g.script.next_callback(a, s(4), false);
            let then = g.script.now();
            let b = g.member();
            g.flows(s(8), ms(50));
            g.rests();
            let after = g.heard_after(b, Assigned, then).expect("it gets its share");
            assert!(after >= s(4), "{assignor}: after {after:?}");
            assert!(!g.heard(a).contains(&Lost), "{assignor}: {:?}", g.heard(a));
        });
    }
}
