//! Classes L and N: where reading starts, and how it goes on.

use crate::stage::*;

/// VL1: nothing but the proof that nothing is committed starts a member at the beginning.
#[test]
fn committed_offsets_that_cannot_be_had_yet_are_waited_for() {
    let can_pass = [
        ErrorCode::NOT_COORDINATOR,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::UNSTABLE_OFFSET_COMMIT,
    ];
    on_both(&plan(), 1, |g| {
        let a = g.member();
        g.rests();
        g.script.close(a);
        g.pass(s(6));
        g.write(10);
        g.watch();
        let b = g.member();
        if g.protocol == Protocol::Consumer {
            g.next(b, ApiKey::OffsetFetch, Fate::Refused(ErrorCode::STALE_MEMBER_EPOCH));
        }
        for code in can_pass.into_iter().chain([ErrorCode::UNSTABLE_OFFSET_COMMIT; 6]) {
            g.next(b, ApiKey::OffsetFetch, Fate::Refused(code));
        }
        g.rests();
        assert_eq!(g.begins_at(b, &t(0)), Some(30));
    });
}

/// VL2: the look-up of committed offsets tells that the member is none any more.
#[test]
fn a_look_up_of_offsets_that_ends_the_membership_begins_it_anew() {
    on_both(&plan(), 2, |g| {
        let a = g.member();
        g.next(a, ApiKey::OffsetFetch, Fate::Refused(g.unknown()));
        g.rests();
        assert_eq!(g.shares([a]), [2]);
        assert_eq!(g.begins_at(a, &t(0)), Some(0));
    });
}

/// VL3: leaders change twice while a position is checked.
#[test]
fn leaders_that_change_while_a_position_is_checked_cost_no_record() {
    on_both(&plan(), 1, |g| {
        let (a, _) = g.two_at_rest();
        g.next(a, ApiKey::OffsetForLeaderEpoch, Fate::Held(s(1)));
        g.script.move_leader(&t(0));
        g.flows(ms(400), ms(20));
        g.script.move_leader(&t(0));
        g.flows(s(3), ms(20));
        assert!(g.silence(&t(0)) < s(2), "{:?}", g.silence(&t(0)));
        g.rests();
        assert_eq!(g.doubles(1), 0);
    });
}

/// VL4: metadata are refreshed again and again.
#[test]
fn metadata_that_are_refreshed_move_no_position() {
    on_both(&plan(), 2, |g| {
        let (a, b) = g.two_at_rest();
        let before = g.script.asked(a, ApiKey::Metadata) + g.script.asked(b, ApiKey::Metadata);
        g.flows(s(40), ms(100));
        let after = g.script.asked(a, ApiKey::Metadata) + g.script.asked(b, ApiKey::Metadata);
        assert!(after - before >= 20, "{} refreshes", after - before);
        assert_eq!((g.doubles(2), g.heard(a), g.heard(b)), (0, vec![], vec![]));
        assert!(g.silence(&t(0)) < s(1));
    });
}

/// VN1: a round is held up for three seconds.
#[test]
fn kept_partitions_deliver_while_a_round_is_held_up() {
    on_both(&plan(), 4, |g| {
        let (a, _) = g.two_at_rest();
        let c = g.member();
        g.next(c, g.sync(), Fate::Held(s(3)));
        g.flows(s(3), ms(10));
        let kept = g.has(a)[0].clone();
        assert!(g.silence(&kept) < ms(700), "{:?}", g.silence(&kept));
        g.rests();
        assert!(g.shares([c])[0] > 0);
    });
}

/// VN2: a partition is assigned while a long poll of others waits.
#[test]
fn what_is_assigned_while_a_long_poll_waits_is_read_at_once() {
    on_both(&plan(), 2, |g| {
        let (a, b) = g.two_at_rest();
        let moves = g.has(b)[0].clone();
        g.write_to(moves.partition, 1);
        g.rests();
        g.watch();
        g.script.close(b);
        g.pass(ms(60));
        g.write_to(moves.partition, 5);
        g.pass(s(4));
        let then = g.script.first(a, Assigned, g.since()).expect("it takes over");
        let first = g.script.first_handed(a, &moves, g.since()).expect("it reads on");
        assert!(first.saturating_since(then) < ms(400), "{:?}", first.saturating_since(then));
    });
}

/// VN3: the answer of a fetch is lost, or late, again and again.
#[test]
fn fetches_that_are_lost_cost_no_record_and_repeat_none() {
    on_both(&plan(), 2, |g| {
        let (a, _) = g.two_at_rest();
        for fate in [Fate::AnswerLost, Fate::AnsweredLate(s(1)), Fate::Swallowed, Fate::AnswerLost] {
            g.next(a, ApiKey::Fetch, fate);
            g.flows(s(2), ms(20));
        }
        g.rests();
        assert_eq!(g.doubles(2), 0);
    });
}
