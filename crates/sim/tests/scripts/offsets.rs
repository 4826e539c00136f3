//! Class B: offsets across ownerships.

use crate::stage::*;

/// One partition that went from `a` to `b`, who is 20 records further, and back to `a`, whose `OffsetFetch` has this fate.
fn there_and_back(g: &mut Stage, commits: Commits, fate: Option<Fate>) -> (Life, i64) {
    let a = g.member_that(commits);
    g.rests();
    let b = g.member();
    g.pass(s(3));
    g.script.stall(a, g.script.session() * 2);
    g.pass(g.script.session() + s(3));
    g.write(20);
    g.rests();
    let end = 50;
    assert_eq!(g.script.committed(&t(0)), Some(end), "the other one went on");
    g.watch();
    if let Some(fate) = fate {
        g.next(a, ApiKey::OffsetFetch, fate);
    }
    if g.shares([b]) == [1] {
        g.script.close(b);
    }
    (a, end)
}

/// VB1: a commit before the committed offset is known.
#[test]
fn a_commit_before_the_committed_offset_is_known_sends_nothing_of_an_earlier_ownership() {
    on_both(&plan(), 1, |g| {
        let (a, end) = there_and_back(g, Commits::Never, Some(Fate::Held(s(2))));
        g.pass(s(1));
        g.tell(a, Order::CommitAll);
        g.pass(ms(500));
        assert_eq!(g.script.committed(&t(0)), Some(end));
        g.write(5);
        g.rests();
        assert_eq!(g.begins_at(a, &t(0)), Some(end));
    });
}

/// VB2: a timer commits what was read in an earlier ownership.
#[test]
fn the_commit_timer_forgets_what_was_read_in_an_earlier_ownership() {
    on_both(&plan(), 1, |g| {
        let (a, end) = there_and_back(g, Commits::Auto, None);
        g.pass(s(5));
        assert_eq!(g.script.committed(&t(0)), Some(end));
        g.write(5);
        g.rests();
        assert_eq!(g.begins_at(a, &t(0)), Some(end));
    });
}

/// VB3: commits in the background are about what is owned now.
#[test]
fn nothing_is_committed_in_the_background_for_a_partition_that_moved() {
    on_both(&plan(), 2, |g| {
        let a = g.member_that(Commits::Auto);
        g.rests();
        let b = g.member_that(Commits::Never);
        g.rests();
        let moved = g.has(b)[0].clone();
        g.watch();
        g.write(40);
        g.pass(s(5));
        assert_eq!(
            g.commits(&moved),
            Vec::<i64>::new(),
            "its new owner has not committed, and nobody else may"
        );
        assert!(!g.commits(&g.has(a)[0]).is_empty());
    });
}

/// VB4: commits after each record, and a rejoin in between.
#[test]
fn no_commit_is_sent_again_when_the_member_joins_again() {
    on_both(&Plan { max_poll_records: 1, ..plan() }, 1, |g| {
        let a = g.member_that(Commits::Async);
        g.rests();
        g.watch();
        for _ in 0..4 {
            g.write(20);
            g.pass(ms(150));
            g.script.expel(a);
            g.pass(s(2));
        }
        g.rests();
        let commits = g.commits(&t(0));
        assert!(commits.is_sorted() && commits.len() > 20, "{commits:?}");
    });
}

/// VB5: a member that comes back does not go on where it stopped.
#[test]
fn a_new_ownership_begins_at_what_the_other_owner_committed() {
    for fate in [None, Some(Fate::Swallowed), Some(Fate::AnswerLost), Some(Fate::AnsweredLate(s(2)))] {
        on_both(&plan(), 1, |g| {
            let (a, end) = there_and_back(g, Commits::Sync, fate);
            g.write(5);
            g.rests();
            assert_eq!(g.begins_at(a, &t(0)), Some(end), "{fate:?}");
        });
    }
}
