//! Whole courses: what happens to a group from its beginning to its end.

use std::{cell::RefCell, rc::Rc, time::Duration};
use tontine::{TopicPartition, state::StepKind};
use tontine_sim::{
    Life,
    script::{MemberSetup, Script, plan},
    workload::{Commits, Plan, Protocol},
};

const BOTH: [Protocol; 2] = [Protocol::Classic, Protocol::Consumer];

/// What a listener heard.
type Heard = Rc<RefCell<Vec<StepKind>>>;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn setup(protocol: Protocol) -> MemberSetup {
    MemberSetup { commits: Commits::Sync, protocol, instance: None, handler: None, listener: None }
}

fn listening(protocol: Protocol) -> (MemberSetup, Heard) {
    let heard = Heard::default();
    let ear = heard.clone();
    let listener = Box::new(move |kind, partitions: &[TopicPartition]| {
        if !partitions.is_empty() {
            ear.borrow_mut().push(kind);
        }
    });
    (MemberSetup { listener: Some(listener), ..setup(protocol) }, heard)
}

/// A group of the topic `t` with records in every partition.
fn group(plan: Plan, partitions: i32) -> Script {
    let mut script = Script::new(1, plan, &[("t".to_owned(), partitions)]);
    write(&mut script, 30);
    script
}

/// Two members that share four partitions; what the first one hears from now on.
fn two_at_rest(protocol: Protocol) -> (Script, Life, Life, Heard) {
    let mut script = group(plan(), 4);
    let (setup_a, heard) = listening(protocol);
    let a = script.member(setup_a);
    let b = script.member(setup(protocol));
    script.settle();
    heard.borrow_mut().clear();
    (script, a, b, heard)
}

fn write(script: &mut Script, many: usize) {
    for number in 0..many {
        script.write("t", None, None, format!("record {number}").as_bytes()).expect("the topic is there");
    }
}

fn holds(script: &Script) {
    if let Some(failure) = script.failure() {
        panic!("{}", failure.in_a_test());
    }
}

/// The end of every script: the group rests, everything was handed out, and what members wrote down fits together.
fn ends_well(mut script: Script) {
    write(&mut script, 12);
    script.settle();
    script.nothing_is_lost();
    script.audit();
    holds(&script);
}

fn owned(script: &Script, member: Life) -> usize {
    script.assignment(member).len()
}

#[test]
fn a_coordinator_that_moves_is_not_heard_of_by_any_listener() {
    for protocol in BOTH {
        let mut script = group(plan(), 4);
        let ((a, heard_a), (b, heard_b)) = (listening(protocol), listening(protocol));
        script.member(a);
        script.member(b);
        script.settle();
        heard_a.borrow_mut().clear();
        heard_b.borrow_mut().clear();
        for _ in 0..4 {
            script.move_coordinator();
            script.pass(seconds(3));
        }
        assert_eq!((heard_a.borrow().len(), heard_b.borrow().len()), (0, 0), "{protocol:?}");
        ends_well(script);
    }
}

#[test]
fn a_member_whose_process_stood_still_hears_that_all_is_lost_before_it_gets_another_record() {
    for protocol in BOTH {
        let (mut script, a, b, heard) = two_at_rest(protocol);
        script.stall(a, script.session() * 2);
        script.pass(script.session() + seconds(5));
        assert_eq!(owned(&script, b), 4, "{protocol:?}: the other one has everything");
        write(&mut script, 12);
        script.settle();
        assert_eq!(heard.borrow().first(), Some(&StepKind::Lost), "{protocol:?}");
        assert_eq!((owned(&script, a), owned(&script, b)), (2, 2), "{protocol:?}: they share again");
        ends_well(script);
    }
}

#[test]
fn a_member_that_works_too_long_loses_its_partitions_and_comes_back_by_itself() {
    for protocol in BOTH {
        let (mut script, a, b, heard) = two_at_rest(protocol);
        script.work_too_long(a);
        write(&mut script, 4);
        script.pass(script.max_poll_interval() + seconds(12));
        script.settle();
        assert!(heard.borrow().contains(&StepKind::Lost), "{protocol:?}: {:?}", heard.borrow());
        assert_eq!((owned(&script, a), owned(&script, b)), (2, 2), "{protocol:?}");
        ends_well(script);
    }
}

#[test]
fn a_static_member_that_is_back_within_its_session_moves_nothing_at_the_others() {
    for protocol in BOTH {
        let mut script = group(plan(), 4);
        let instance = || MemberSetup { instance: Some("one".into()), ..setup(protocol) };
        let first = script.member(instance());
        let (other, heard) = listening(protocol);
        let other = script.member(other);
        script.settle();
        heard.borrow_mut().clear();
        script.close(first);
        script.pass(seconds(2));
        assert!(!script.is_alive(first));
        let again = script.member(instance());
        script.settle();
        assert_eq!(heard.borrow().len(), 0, "{protocol:?}: {:?}", heard.borrow());
        assert_eq!((owned(&script, again), owned(&script, other)), (2, 2), "{protocol:?}");
        ends_well(script);
    }
}

#[test]
fn a_group_goes_over_to_the_consumer_protocol_and_back_without_losing_or_doubling_anything() {
    let mut script = group(plan(), 6);
    let old = [script.member(setup(Protocol::Classic)), script.member(setup(Protocol::Classic))];
    script.settle();
    let new = [script.member(setup(Protocol::Consumer)), script.member(setup(Protocol::Consumer))];
    write(&mut script, 12);
    script.settle();
    for member in old {
        script.close(member);
        write(&mut script, 6);
        script.pass(seconds(3));
    }
    script.settle();
    assert_eq!(new.map(|member| owned(&script, member)), [3, 3]);
    let back = script.member(setup(Protocol::Classic));
    write(&mut script, 6);
    script.settle();
    for member in new {
        script.close(member);
        write(&mut script, 6);
        script.pass(seconds(3));
    }
    script.settle();
    assert_eq!(owned(&script, back), 6);
    ends_well(script);
}

#[test]
fn a_partition_moves_at_once_however_seldom_members_speak_at_rest() {
    for protocol in BOTH {
        let mut script = group(Plan { heartbeat: 3_000, ..plan() }, 2);
        let a = script.member(setup(protocol));
        script.settle();
        let b = script.member(setup(protocol));
        // The first one hears of it when it speaks next; after that nothing waits for anybody's interval.
        script.pass(seconds(3) + Duration::from_millis(700));
        assert_eq!((owned(&script, a), owned(&script, b)), (1, 1), "{protocol:?}");
        ends_well(script);
    }
}

#[test]
fn a_topic_that_grows_is_shared_out_although_nobody_joined_or_left() {
    for protocol in BOTH {
        let mut script = group(plan(), 2);
        let (a, b) = (script.member(setup(protocol)), script.member(setup(protocol)));
        script.settle();
        script.add_partitions("t", 6);
        write(&mut script, 24);
        script.settle();
        assert_eq!((owned(&script, a), owned(&script, b)), (3, 3), "{protocol:?}");
        ends_well(script);
    }
}

#[test]
fn a_member_whose_every_connection_is_cut_stays_what_it_is() {
    for protocol in BOTH {
        let mut script = group(plan(), 4);
        let (a, heard) = listening(protocol);
        let a = script.member(a);
        script.member(setup(protocol));
        script.settle();
        heard.borrow_mut().clear();
        for _ in 0..5 {
            script.cut(a);
            write(&mut script, 4);
            script.pass(seconds(2));
        }
        assert_eq!(heard.borrow().len(), 0, "{protocol:?}: {:?}", heard.borrow());
        ends_well(script);
    }
}

#[test]
fn commits_of_a_topic_that_is_gone_never_reach_the_one_that_has_its_name_now() {
    for protocol in BOTH {
        for commits in [Commits::Auto, Commits::Sync, Commits::Async] {
            let mut script = group(plan(), 1);
            script.member(MemberSetup { commits, ..setup(protocol) });
            script.settle();
            script.pass(seconds(2));
            let place = TopicPartition::new("t", 0);
            assert_eq!(script.committed(&place), Some(30), "{protocol:?} {commits:?}");
            // Records wait to be committed when the topic goes.
            write(&mut script, 3);
            script.pass(Duration::from_millis(20));
            script.recreate("t", 1);
            write(&mut script, 5);
            script.settle();
            script.pass(seconds(2));
            assert_eq!(script.committed(&place), Some(5), "{protocol:?} {commits:?}");
            holds(&script);
        }
    }
}
