//! Class A: commits around a rebalance.

use crate::stage::*;

/// VA1: a commit overtaken by a join.
#[test]
fn a_commit_that_a_join_overtakes_costs_no_partition_that_stays() {
    on_both(&plan(), 4, |g| {
        let a = g.member_that(Commits::Never);
        g.rests();
        g.watch();
        g.next(a, ApiKey::OffsetCommit, Fate::Held(ms(1_500)));
        g.tell(a, Order::CommitAll);
        let b = g.member();
        g.rests();
        assert_eq!((g.heard(a), g.gave_up(a)), (vec![Revoked], 2));
        assert_eq!(g.shares([a, b]), [2, 2]);
        g.tell(a, Order::CommitAll);
        g.pass(s(1));
        let kept = g.has(a)[0].clone();
        assert!(g.script.committed(&kept).is_some(), "the next commit succeeds");
    });
}

/// VA2: a member commits all the time while others join and leave.
#[test]
fn commits_meet_no_error_while_others_come_and_go() {
    on_both(&plan(), 6, |g| {
        let (a, _) = g.two_at_rest();
        for _ in 0..12 {
            let c = g.member();
            g.flows(ms(700), ms(20));
            g.script.close(c);
            g.flows(ms(500), ms(20));
        }
        g.rests();
        assert_eq!(g.errors(a), Vec::<&str>::new());
        assert_eq!(g.doubles(6), 0);
    });
}

/// VA3: a commit that is waited for ends while the group rebalances, well or badly.
#[test]
fn partitions_flow_however_a_commit_under_way_ended() {
    for fate in [Fate::Held(ms(400)), Fate::AnsweredLate(ms(900)), Fate::AnswerLost, Fate::Swallowed] {
        on_both(&plan(), 4, |g| {
            let a = g.member();
            g.rests();
            g.watch();
            g.next(a, ApiKey::OffsetCommit, fate);
            g.write(8);
            let b = g.member();
            g.rests();
            assert_eq!(g.shares([a, b]), [2, 2], "{fate:?}");
            let kept = g.has(a)[0].clone();
            g.watch();
            g.flows(s(3), ms(50));
            assert!(g.silence(&kept) < s(1), "{fate:?}: {:?}", g.silence(&kept));
        });
    }
}

/// VA4: the commit timer runs on while members join and leave.
#[test]
fn commits_on_a_timer_meet_no_refusal_and_double_nothing() {
    on_both(&plan(), 8, |g| {
        let members = [g.member_that(Commits::Auto), g.member_that(Commits::Auto)];
        g.rests();
        g.watch();
        for _ in 0..10 {
            let c = g.member_that(Commits::Auto);
            g.flows(ms(900), ms(10));
            g.script.close(c);
            g.flows(ms(900), ms(10));
        }
        g.rests();
        for member in members {
            assert_eq!(g.errors(member), Vec::<&str>::new());
        }
        assert_eq!(g.doubles(8), 0);
    });
}

/// VA5: records come on while the commit before a revocation is under way.
#[test]
fn nothing_is_handed_out_after_the_commit_that_should_cover_it() {
    for assignor in ["range", "cooperative-sticky"] {
        on_both(&Plan { assignor, ..plan() }, 2, |g| {
            let a = g.member_that(Commits::Auto);
            g.rests();
            g.watch();
            let b = g.member_that(Commits::Auto);
            g.next(a, ApiKey::OffsetCommit, Fate::Held(ms(500)));
            g.flows(s(6), ms(2));
            assert_eq!(g.shares([a, b]), [1, 1], "{assignor}");
            g.rests();
            assert_eq!(g.doubles(2), 0, "{assignor}");
        });
    }
}

/// VA6: what was done but not committed when a rebalance begins.
#[test]
fn a_commit_in_revoked_covers_everything_that_was_handed_out() {
    on_both(&plan(), 2, |g| {
        let a = g.member_that(Commits::Never);
        g.flows(s(3), ms(20));
        let b = g.member_that(Commits::Never);
        g.rests();
        let moved = g.has(b)[0].clone();
        assert_eq!(g.commits(&moved).len(), 1, "one commit, in the callback");
        assert_eq!(
            g.begins_at(b, &moved),
            g.commits(&moved).first().copied().filter(|_| g.begins_at(b, &moved).is_some())
        );
        assert_eq!((g.doubles(2), g.shares([a, b])), (0, [1, 1]));
    });
}

/// VA7: refused commits.
#[test]
fn a_refused_commit_is_reported_and_the_member_lives_on() {
    let codes =
        [ErrorCode::ILLEGAL_GENERATION, ErrorCode::REBALANCE_IN_PROGRESS, ErrorCode::UNKNOWN_MEMBER_ID];
    for code in codes {
        on(Protocol::Classic, &plan(), 4, |g| {
            let (a, b) = g.two_at_rest();
            g.next(a, ApiKey::OffsetCommit, Fate::Refused(code));
            g.write(8);
            g.rests();
            // The one in the middle can pass: it is made again when the member has joined again.
            let told = code != ErrorCode::REBALANCE_IN_PROGRESS;
            assert_eq!(!g.errors(a).is_empty(), told, "{code}: {:?}", g.errors(a));
            assert_eq!(g.shares([a, b]), [2, 2], "{code}");
        });
    }
    for code in [ErrorCode::STALE_MEMBER_EPOCH, ErrorCode::UNKNOWN_MEMBER_ID] {
        on(Protocol::Consumer, &plan(), 4, |g| {
            let (a, b) = g.two_at_rest();
            g.next(a, ApiKey::OffsetCommit, Fate::Refused(code));
            g.write(8);
            g.rests();
            assert_eq!(g.shares([a, b]), [2, 2], "{code}");
        });
    }
}

/// VA8: an acknowledgement that comes when somebody else has the partition.
#[test]
fn a_late_commit_is_refused_and_rewinds_nobody() {
    on_both(&plan(), 2, |g| {
        let a = g.member_that(Commits::Never);
        g.pass(s(2));
        let b = g.member();
        g.rests();
        let moved = g.has(b)[0].clone();
        g.write_to(moved.partition, 20);
        g.pass(s(2));
        g.watch();
        let before = g.script.committed(&moved);
        g.tell(a, Order::Commit(moved.clone(), 3));
        g.pass(s(2));
        assert_eq!(g.errors(a).len(), 1, "the application is told");
        assert_eq!(g.script.committed(&moved), before);
        assert_eq!(g.commits(&moved), Vec::<i64>::new(), "none is sent");
    });
}

/// VA9: records that wait in the client when their partition moves.
#[test]
fn what_was_fetched_but_not_handed_out_is_neither_committed_nor_skipped() {
    on_both(&Plan { max_poll: 20_000, ..plan() }, 2, |g| {
        let a = g.member_that(Commits::Auto);
        g.rests();
        g.watch();
        g.tell(a, Order::Work(s(4)));
        g.write(100);
        g.pass(s(1));
        let b = g.member_that(Commits::Auto);
        g.rests();
        let moved = g.has(b)[0].clone();
        assert_eq!((g.begins_at(b, &moved), g.doubles(2)), (Some(15), 0));
    });
}

/// VA10: many members whose commits fail.
#[test]
fn a_group_whose_commits_are_refused_settles_all_the_same() {
    on_both(&plan(), 12, |g| {
        let members: Vec<Life> = (0..12).map(|_| g.member_that(Commits::Async)).collect();
        g.rests();
        g.watch();
        for member in &members {
            g.next(*member, ApiKey::OffsetCommit, Fate::Refused(ErrorCode::REBALANCE_IN_PROGRESS));
        }
        let joins: u64 = members.iter().map(|member| g.script.asked(*member, ApiKey::JoinGroup)).sum();
        g.write(24);
        g.member();
        g.rests();
        let after: u64 = members.iter().map(|member| g.script.asked(*member, ApiKey::JoinGroup)).sum();
        assert!(after - joins <= 4 * 12, "{} joins of 12 members", after - joins);
        assert!(g.rounds() <= 4, "{} rounds", g.rounds());
    });
}

/// VA11: a round that is held up.
#[test]
fn commits_of_kept_partitions_go_on_while_another_member_is_held_up() {
    on(Protocol::Consumer, &plan(), 4, |g| {
        let (a, b) = g.two_at_rest();
        let c = g.member();
        g.next(b, ApiKey::ConsumerGroupHeartbeat, Fate::Held(s(3)));
        g.flows(ms(2_500), ms(10));
        let kept = g.has(a)[0].clone();
        assert!(g.commits(&kept).len() > 20, "{} commits in the meantime", g.commits(&kept).len());
        g.rests();
        assert_eq!(g.shares([a, b, c]).iter().sum::<usize>(), 4);
        assert_eq!(g.errors(a), Vec::<&str>::new());
    });
}

/// VA12: a commit is the first to learn that the membership is over.
#[test]
fn a_commit_that_shows_that_the_membership_is_over_ends_it_at_once() {
    on_both(&Plan { heartbeat: 5_000, session: 20_000, max_poll: 30_000, ..plan() }, 4, |g| {
        let (a, b) = g.two_at_rest();
        assert!(g.script.expel(a));
        let then = g.script.now();
        g.write(8);
        g.rests();
        let after = g.heard_after(a, Lost, then).expect("it hears that all is lost");
        assert!(after < s(2), "it took {after:?}");
        assert_eq!(g.shares([a, b]), [2, 2]);
    });
}

/// VA13: the same application whatever is spoken.
#[test]
fn one_script_gives_the_same_shares_whatever_the_protocol_and_the_assignor() {
    for assignor in ["range", "roundrobin", "sticky", "cooperative-sticky"] {
        on_both(&Plan { assignor, ..plan() }, 6, |g| {
            let a = g.member();
            g.flows(s(2), ms(50));
            let b = g.member();
            g.flows(s(6), ms(50));
            let c = g.member();
            g.flows(s(6), ms(50));
            g.rests();
            assert_eq!(g.shares([a, b, c]), [2, 2, 2], "{assignor}");
            g.script.close(b);
            g.rests();
            assert_eq!(g.shares([a, c]), [3, 3], "{assignor}");
            assert_eq!(g.doubles(6), 0, "{assignor}");
        });
    }
}
