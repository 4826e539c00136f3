//! Class F: closing and leaving, at any moment.

use crate::stage::*;

/// VF1: close at each step of joining.
#[test]
fn close_ends_at_every_step_of_joining_and_leaves_nobody_behind() {
    for protocol in [Protocol::Classic, Protocol::Consumer] {
        let steps = match protocol {
            Protocol::Classic => vec![
                ApiKey::Metadata,
                ApiKey::FindCoordinator,
                ApiKey::JoinGroup,
                ApiKey::SyncGroup,
                ApiKey::OffsetFetch,
            ],
            _ => vec![
                ApiKey::Metadata,
                ApiKey::FindCoordinator,
                ApiKey::ConsumerGroupHeartbeat,
                ApiKey::OffsetFetch,
            ],
        };
        for step in steps {
            for fate in [Fate::Held(s(2)), Fate::AnsweredLate(s(2)), Fate::AnswerLost] {
                on(protocol, &plan(), 4, |g| {
                    let a = g.member();
                    g.rests();
                    let b = g.member();
                    g.next(b, step, fate);
                    // Committed offsets are asked for when the other one has let go.
                    g.pass(if step == ApiKey::OffsetFetch { ms(1_500) } else { ms(400) });
                    g.script.close(b);
                    g.flows(s(7), ms(100));
                    assert!(!g.script.is_alive(b), "{step:?} {fate:?}: it has not ended");
                    g.rests();
                    assert_eq!(g.shares([a]), [4], "{step:?} {fate:?}");
                });
            }
        }
    }
}

/// VF2: a member closes whose join waits for somebody who works.
#[test]
fn a_member_whose_join_waits_for_others_leaves_at_once() {
    on(Protocol::Classic, &Plan { max_poll: 30_000, ..plan() }, 4, |g| {
        let a = g.member();
        g.rests();
        g.tell(a, Order::Work(s(6)));
        g.pass(ms(100));
        let b = g.member();
        g.pass(s(2));
        g.script.close(b);
        g.pass(ms(1_000));
        assert!(!g.script.is_alive(b), "leaving waits for nobody");
        g.rests();
        assert_eq!(g.shares([a]), [4]);
    });
}

/// VF3: close while a revocation is due, with a callback that fails.
#[test]
fn a_failing_callback_at_close_does_not_keep_the_member_in_the_group() {
    on_both(&Plan { session: 20_000, max_poll: 30_000, ..plan() }, 4, |g| {
        let (a, b) = g.two_at_rest();
        g.script.next_callback(a, ms(100), true);
        g.script.close(a);
        g.pass(s(5));
        assert_eq!(g.shares([b]), [4], "long before the session is over");
        assert_eq!(g.heard(a), [Revoked]);
    });
}

/// VF4: a member is put out while its callback runs.
#[test]
fn a_member_that_is_put_out_while_its_callback_runs_commits_nothing_more() {
    on_both(&plan(), 2, |g| {
        let a = g.member_that(Commits::Never);
        g.rests();
        g.watch();
        let b = g.member();
        g.script.next_callback(a, s(4), false);
        g.pass(ms(1_500));
        g.script.expel(a);
        g.flows(s(1), ms(50));
        g.tell(a, Order::Commit(t(0), 1));
        g.tell(a, Order::Commit(t(1), 1));
        g.rests();
        let all = [g.commits(&t(0)), g.commits(&t(1))];
        assert!(all.iter().all(|commits| commits.is_sorted()), "{all:?}");
        assert_eq!(g.shares([a, b]), [1, 1]);
    });
}

/// VF5: the coordinator has moved when a member leaves.
#[test]
fn leaving_finds_the_coordinator_that_moved_meanwhile() {
    on_both(&Plan { session: 20_000, max_poll: 30_000, ..plan() }, 4, |g| {
        let (a, b) = g.two_at_rest();
        g.script.move_coordinator();
        g.script.close(a);
        g.flows(s(5), ms(100));
        assert_eq!(g.shares([b]), [4], "long before the session is over");
    });
}

/// VF6: closing without an answer from anybody.
#[test]
fn close_ends_in_time_when_nobody_answers() {
    on_both(&plan(), 4, |g| {
        let (a, b) = g.two_at_rest();
        g.script.cut_off(a, s(60));
        g.script.close(a);
        g.pass(s(11));
        assert!(!g.script.is_alive(a), "close has a time of its own");
        g.rests();
        assert_eq!(g.shares([b]), [4]);
    });
}
