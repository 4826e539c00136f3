//! Class K: the consumer protocol.

use crate::stage::*;

const ON: Protocol = Protocol::Consumer;

/// VK1: a commit between the new epoch and the heartbeat that brings it.
#[test]
fn commits_between_a_new_epoch_and_the_heartbeat_that_brings_it_are_accepted() {
    on(ON, &plan(), 2, |g| {
        let a = g.member_that(Commits::Async);
        g.rests();
        g.watch();
        g.next(a, ApiKey::ConsumerGroupHeartbeat, Fate::Held(s(3)));
        let b = g.member();
        g.flows(s(3), ms(20));
        assert_eq!(g.errors(a), Vec::<&str>::new());
        assert!(g.commits(&t(0)).len() > 20 && g.commits(&t(1)).len() > 20);
        g.rests();
        assert_eq!((g.shares([a, b]), g.doubles(2)), ([1, 1], 0));
    });
}

/// VK2: the answer to a leave is late, and the member is back.
#[test]
fn the_late_answer_to_a_leave_spoils_no_join() {
    for fate in [Fate::AnsweredLate(s(3)), Fate::AnswerLost, Fate::Swallowed] {
        on(ON, &plan(), 2, |g| {
            let a = g.member();
            g.rests();
            g.script.resubscribe(a);
            g.next(a, ApiKey::ConsumerGroupHeartbeat, fate);
            g.pass(s(4));
            g.rests();
            assert_eq!(g.shares([a]), [2], "{fate:?}");
        });
    }
}

/// VK3: a member drops a topic from its subscription.
#[test]
fn what_a_member_does_not_want_any_more_goes_to_others() {
    on_both(&plan(), 2, |g| {
        g.script.create("u", 2);
        let (a, b) = (g.member(), g.member());
        for member in [a, b] {
            g.tell(member, Order::Subscribe(["t".into(), "u".into()].into()));
        }
        g.rests();
        assert_eq!(g.shares([a, b]), [2, 2]);
        g.tell(a, Order::Subscribe(["t".into()].into()));
        g.rests();
        assert!(g.has(a).iter().all(|name| &*name.topic == "t"));
        assert_eq!(g.has(b).iter().filter(|name| &*name.topic == "u").count(), 2);
    });
}

/// VK4: one member after the other joins, in a stream of records.
#[test]
fn kept_partitions_flow_while_one_member_after_the_other_joins() {
    for protocol in [Protocol::Classic, Protocol::Consumer] {
        on(protocol, &plan(), 12, |g| {
            let a = g.member();
            g.rests();
            g.watch();
            for _ in 0..5 {
                g.member();
                g.flows(s(2), ms(8));
            }
            let kept = g.has(a)[0].clone();
            assert!(g.silence(&kept) < s(1), "{:?}", g.silence(&kept));
            g.rests();
            assert_eq!(g.shares([a]), [2]);
        });
    }
}

/// VK5: an answer to a heartbeat that gave a partition is lost.
#[test]
fn a_lost_answer_that_gave_or_took_a_partition_is_said_again() {
    on(ON, &plan(), 6, |g| {
        let (a, b) = g.two_at_rest();
        let c = g.member();
        for member in [a, b, c] {
            g.next(member, ApiKey::ConsumerGroupHeartbeat, Fate::AnswerLost);
            g.next(member, ApiKey::ConsumerGroupHeartbeat, Fate::AnsweredLate(s(1)));
        }
        g.rests();
        assert_eq!(g.shares([a, b, c]), [2, 2, 2]);
        assert_eq!(g.doubles(6), 0);
    });
}
