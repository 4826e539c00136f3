//! Class O: pause, resume, seek.

use crate::stage::*;

/// VO1: a pause and a round.
#[test]
fn a_kept_partition_stays_paused_and_one_that_left_and_returned_is_not() {
    for assignor in ["range", "cooperative-sticky"] {
        on_both(&Plan { assignor, ..plan() }, 2, |g| {
            let a = g.member();
            g.rests();
            g.tell(a, Order::Pause([t(0), t(1)].into()));
            g.pass(s(1));
            let b = g.member();
            g.pass(s(6));
            let (kept, moved) = (g.has(a)[0].clone(), g.has(b)[0].clone());
            g.watch();
            g.write(10);
            g.pass(s(2));
            assert_eq!(g.handed(b, &moved).len(), 5, "{assignor}: the other owner knows of no pause");
            // Eager members give everything back and start anew.
            let goes_on = assignor == "cooperative-sticky" || g.protocol == Protocol::Consumer;
            assert_eq!(g.handed(a, &kept).is_empty(), goes_on, "{assignor}");
            g.script.close(b);
            g.pass(s(4));
            g.write_to(moved.partition, 3);
            g.pass(s(2));
            assert_eq!(g.handed(a, &moved).last(), Some(&22), "{assignor}: what returned is not paused");
            g.tell(a, Order::Resume([t(0), t(1)].into()));
        });
    }
}

/// VO2: a paused partition was away.
#[test]
fn a_paused_partition_that_was_away_goes_on_where_its_other_owner_committed() {
    on_both(&plan(), 1, |g| {
        let a = g.member();
        g.rests();
        g.tell(a, Order::Pause([t(0)].into()));
        g.pass(s(1));
        let b = g.member();
        g.pass(s(2));
        g.script.expel(a);
        g.pass(s(3));
        g.write(20);
        g.pass(s(3));
        g.script.close(b);
        g.watch();
        g.pass(s(4));
        g.tell(a, Order::Resume([t(0)].into()));
        g.write(5);
        g.rests();
        assert_eq!(g.begins_at(a, &t(0)), Some(g.script.committed(&t(0)).unwrap() - 5));
    });
}

/// VO3: pause and resume with records in the client.
#[test]
fn pausing_what_is_buffered_and_resuming_what_is_not_paused_move_no_position() {
    on_both(&Plan { max_poll_records: 10, ..plan() }, 1, |g| {
        let a = g.member();
        g.rests();
        g.watch();
        g.write(300);
        for _ in 0..10 {
            g.pass(ms(7));
            g.tell(a, Order::Pause([t(0)].into()));
            g.pass(ms(700));
            g.tell(a, Order::Resume([t(0)].into()));
            g.tell(a, Order::Resume([t(0)].into()));
        }
        g.rests();
        assert_eq!(g.handed(a, &t(0)), (30..330).collect::<Vec<_>>());
    });
}

/// VO4: polls that only keep the membership.
#[test]
fn polls_while_everything_is_paused_lose_no_record() {
    on_both(&plan(), 2, |g| {
        let (a, b) = (g.member(), g.member());
        g.rests();
        for member in [a, b] {
            g.tell(member, Order::Pause(g.has(member).into_iter().collect()));
        }
        g.pass(s(1));
        g.watch();
        g.write(20);
        g.pass(g.script.max_poll_interval() * 2);
        assert_eq!(g.handed(a, &t(0)).len() + g.handed(b, &t(0)).len(), 0);
        assert_eq!((g.heard(a), g.heard(b)), (vec![], vec![]), "polls without records are polls");
        for member in [a, b] {
            g.tell(member, Order::Resume(g.has(member).into_iter().collect()));
        }
        g.rests();
        assert_eq!(g.doubles(2), 0);
    });
}

/// VO5: a seek while a fetch of the old place is under way.
#[test]
fn a_seek_while_a_fetch_is_under_way_goes_where_it_says() {
    on_both(&plan(), 1, |g| {
        let a = g.member();
        g.rests();
        g.next(a, ApiKey::Fetch, Fate::AnsweredLate(ms(800)));
        g.write(10);
        g.pass(ms(50));
        g.watch();
        g.tell(a, Order::Seek(t(0), 12));
        g.rests();
        assert_eq!(g.handed(a, &t(0)), (12..40).collect::<Vec<_>>());
    });
}
