//! What the harness does to a group, and that its audit is awake.

#![allow(clippy::panic, clippy::unwrap_used, missing_docs)]

use std::{cell::RefCell, collections::BTreeSet, rc::Rc, time::Duration};
use tontine_test::{Commits, GroupTest, Member};

type Seen = Rc<RefCell<BTreeSet<String>>>;

fn reader(seen: &Seen) -> Member {
    let seen = seen.clone();
    Member::new().handler(move |record| {
        seen.borrow_mut().insert(String::from_utf8_lossy(record.value().unwrap()).into_owned());
    })
}

fn fill(test: &mut GroupTest, what: &str, many: usize) {
    for n in 0..many {
        test.write("orders", format!("{what} {n}"));
    }
}

#[test]
fn every_record_arrives_whatever_is_done_to_the_members() {
    let seen = Seen::default();
    let mut test = GroupTest::new().topic("orders", 6).start();
    let (a, b) = (test.member(reader(&seen)), test.member(reader(&seen)));
    test.until_stable();
    assert_eq!((test.assignment(a).len(), test.assignment(b).len()), (3, 3));
    fill(&mut test, "calm", 50);
    test.expire_session(a);
    fill(&mut test, "expired", 50);
    test.exceed_poll_interval(b);
    fill(&mut test, "slow", 50);
    test.move_coordinator();
    test.add_partitions("orders", 8);
    test.cut_connections(a);
    fill(&mut test, "moved", 50);
    test.stall(b, Duration::from_secs(2));
    test.kill(a);
    test.deliver_all();
    assert_eq!(seen.borrow().len(), 200);
    assert_eq!(test.assignment(b).len(), 8);
}

#[test]
fn what_a_member_committed_is_not_read_again_by_the_next() {
    let count = Rc::new(RefCell::new(0));
    let counting = || {
        let count = count.clone();
        Member::new().handler(move |_| *count.borrow_mut() += 1)
    };
    let mut test = GroupTest::new().topic("orders", 1).assignor("range").start();
    let a = test.member(counting());
    test.until_stable();
    fill(&mut test, "order", 30);
    test.deliver_all();
    test.close(a);
    test.pass(Duration::from_secs(2));
    test.member(counting().commits(Commits::Auto).instance("second"));
    fill(&mut test, "more", 10);
    test.deliver_all();
    assert_eq!(*count.borrow(), 40);
}

#[test]
fn a_listener_hears_what_happens_to_its_partitions() {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let mut test = GroupTest::new().topic("orders", 2).start();
    let writing = heard.clone();
    let a = test.member(
        Member::new()
            .listener(move |kind, what| writing.borrow_mut().push(format!("{kind:?} {}", what.len()))),
    );
    test.until_stable();
    test.expire_session(a);
    test.until_stable();
    assert_eq!(*heard.borrow(), ["Assigned 2", "Lost 2", "Assigned 2"]);
}
