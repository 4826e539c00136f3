//! Class C: records of partitions that left, records that are skipped, records that come twice.

use crate::stage::*;

/// VC1: records wait in the client when their partition is revoked in the middle of it all.
#[test]
fn nothing_of_a_revoked_partition_is_handed_out_and_nothing_is_skipped() {
    for assignor in ["range", "cooperative-sticky"] {
        on_both(&Plan { assignor, max_poll_records: 1, ..plan() }, 4, |g| {
            let a = g.member();
            g.write(300);
            g.pass(ms(200));
            let b = g.member();
            g.rests();
            assert_eq!((g.shares([a, b]), g.doubles(4)), ([2, 2], 0), "{assignor}");
        });
    }
}

/// VC2: a queue survives a round in which everything is given back.
#[test]
fn a_partition_that_is_given_back_and_taken_again_goes_on_without_a_double() {
    on_both(&Plan { assignor: "range", max_poll_records: 2, ..plan() }, 3, |g| {
        let a = g.member();
        g.rests();
        g.write(200);
        for _ in 0..5 {
            let b = g.member();
            g.pass(ms(600));
            g.script.close(b);
            g.pass(ms(600));
        }
        g.rests();
        assert_eq!((g.shares([a]), g.doubles(3)), ([3], 0));
    });
}

/// VC3: the answer to a fetch is on its way when the partition leaves, and returns.
#[test]
fn a_record_that_was_on_its_way_when_its_partition_left_is_delivered_to_its_owner() {
    on_both(&plan(), 2, |g| {
        let (a, b) = g.two_at_rest();
        let kept = g.has(a)[0].clone();
        g.next(a, ApiKey::Fetch, Fate::AnsweredLate(ms(700)));
        g.write(20);
        g.pass(ms(20));
        g.script.expel(a);
        g.rests();
        assert_eq!(g.shares([a, b]), [1, 1]);
        let all: Vec<i64> = [g.handed(a, &kept), g.handed(b, &kept)].concat();
        assert!((15..25).all(|offset| all.contains(&offset)), "{all:?}");
    });
}

/// VC4: very many partitions come back to a member.
#[test]
fn each_of_many_partitions_is_read_once_after_another_member_came_and_went() {
    on_both(&plan(), 100, |g| {
        let a = g.member();
        g.rests();
        g.watch();
        let b = g.member();
        g.pass(s(5));
        g.script.close(b);
        g.write(300);
        g.rests();
        assert_eq!((g.shares([a]), g.doubles(100)), ([100], 0));
    });
}

/// VC5: a paused partition has records in the client when two quick rounds come.
#[test]
fn what_was_buffered_of_a_paused_partition_is_delivered_after_two_quick_rounds() {
    on_both(&Plan { max_poll_records: 5, ..plan() }, 4, |g| {
        let a = g.member();
        g.rests();
        g.watch();
        g.write(100);
        g.tell(a, Order::Pause([t(0), t(1), t(2), t(3)].into()));
        let b = g.member();
        g.pass(ms(900));
        g.script.close(b);
        g.pass(s(5));
        g.tell(a, Order::Resume([t(0), t(1), t(2), t(3)].into()));
        g.rests();
        let offsets: usize = (0..4).map(|p| g.handed(a, &t(p)).len() + g.handed(b, &t(p)).len()).sum();
        assert_eq!((offsets, g.doubles(4)), (100, 0));
    });
}

/// VC6: a position is checked while records come.
#[test]
fn a_check_of_the_position_repeats_nothing_that_waits() {
    on_both(&Plan { max_poll_records: 2, ..plan() }, 1, |g| {
        let a = g.member();
        g.rests();
        g.watch();
        g.write(100);
        g.next(a, ApiKey::OffsetForLeaderEpoch, Fate::Held(s(1)));
        g.script.move_leader(&t(0));
        g.flows(s(3), ms(20));
        g.rests();
        assert_eq!(g.doubles(1), 0);
        assert!(g.handed(a, &t(0)).is_sorted());
    });
}

/// VC7: the answer to a fetch of an earlier ownership.
#[test]
fn an_answer_to_a_fetch_of_an_earlier_ownership_sets_no_position() {
    on_both(&plan(), 1, |g| {
        let a = g.member();
        g.rests();
        g.next(a, ApiKey::Fetch, Fate::AnsweredLate(s(4)));
        g.write(10);
        g.pass(ms(20));
        g.script.expel(a);
        let b = g.member();
        g.pass(s(2));
        g.script.close(b);
        g.rests();
        g.watch();
        g.write(10);
        g.rests();
        assert_eq!(g.begins_at(a, &t(0)), Some(40));
    });
}

/// VC8: members come, go and are killed in a stream of records.
#[test]
fn members_that_come_go_and_are_killed_lose_nothing() {
    on_both(&plan(), 6, |g| {
        let mut lives = vec![g.member(), g.member()];
        for turn in 0..8 {
            lives.push(g.member_that([Commits::Auto, Commits::Async][turn % 2]));
            g.flows(s(2), ms(20));
            let oldest = lives.remove(0);
            if turn % 2 == 0 {
                g.script.kill(oldest)
            } else {
                g.script.close(oldest)
            }
            g.flows(s(1), ms(20));
        }
        g.rests();
        assert_eq!(g.shares([lives[0], lives[1]]), [3, 3]);
    });
}
