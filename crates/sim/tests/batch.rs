//! A fixed batch of histories, and proof that each kind of fault would be noticed.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

use tontine::{TopicPartition, state::StepKind};
use tontine_broker::disk::Outage;
use tontine_group::Instant;
use tontine_sim::{
    Counts, Fact, Life,
    cuts::Cuts,
    disk::Loss,
    invariants,
    lie::{ForgetsCommits, HidesAborted, Lie, NeverSettles, SharesPartitions, SkipsRecords, Slip},
    run, run_with_lie, run_with_slip,
    shrink::{shrink, shrink_with},
};
use tontine_wire::api::Response;

/// Runs these histories; what happened in them.
fn batch(seeds: std::ops::Range<u64>) -> Counts {
    let mut counts = Counts::default();
    for seed in seeds {
        let outcome = run(seed);
        counts.merge(&outcome.counts);
        if let Some(failure) = shrink(outcome, 60).failure {
            panic!("{failure}");
        }
    }
    counts
}

#[test]
fn a_fixed_batch_of_histories_holds_every_invariant_and_is_not_idle() {
    let counts = batch(0..20);
    for what in [
        "members: classic",
        "members: consumer",
        "members: consumer,classic",
        "rebalance: MemberJoined",
        "rebalance: MemberLeft",
        "rebalance: SessionExpired",
        "callbacks: Revoked",
        "commits in revoked",
        "callbacks: Lost",
        "trouble: Crash",
        "trouble: Stop",
        "trouble: HalfOpen",
        "commits accepted",
        "overlaps looked into",
        "requests held back",
        "trouble: Recreate",
        "trouble: Throttle",
    ] {
        assert!(counts.of(what) > 0, "{what} never happened\n{counts}");
    }
}

#[test]
fn another_batch_of_histories_holds_every_invariant() {
    batch(20..40);
}

#[test]
fn histories_of_brokers_with_a_disk_hold_every_invariant() {
    let counts = batch(40..75);
    for what in [
        "crashes of the brokers' process",
        "crashes of the brokers' machine",
        "crashes of the brokers' machine with writes that were not synced",
        "disks full",
        "disks that do not sync",
        "trouble: Torn",
        "trouble: SlowDisk",
    ] {
        assert!(counts.of(what) > 0, "{what} never happened\n{counts}");
    }
}

#[test]
fn histories_with_transactions_hold_every_invariant() {
    let counts = batch(80..100);
    for what in [
        "transactions committed",
        "transactions aborted",
        "transactions fenced or timed out",
        "producers replaced in the middle of a transaction",
        "producers that were replaced and went on",
        "members that read what is committed only",
    ] {
        assert!(counts.of(what) > 0, "{what} never happened\n{counts}");
    }
}

/// Each found a fault: logs of members that were put out or died, partitions that two static members had, a member that
/// left without its last callback, brokers that forgot partitions and leader epochs or hid records behind a torn write, and worlds that were not at rest yet when they were taken to be.
#[test]
fn histories_that_once_found_a_fault_hold() {
    for seed in [33, 166, 1290, 2152, 3030, 3217, 3460, 3853, 32, 84, 1314] {
        batch(seed..seed + 1);
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    assert_eq!(run(3).history, run(3).history);
}

#[test]
fn brokers_that_skip_records_are_caught() {
    let caught =
        (0..20).find_map(|seed| run_with_lie(seed, &Cuts::default(), Box::new(SkipsRecords)).failure);
    let failure = caught.expect("the lie is noticed");
    assert_eq!(failure.invariant, "records come in order, only to their owner");
    assert!(failure.to_string().contains("replay: cargo run --release -p tontine-sim -- --seed"));
}

#[test]
fn a_failing_history_is_made_shorter_and_the_command_replays_what_is_left() {
    let lying = |seed, cuts: &Cuts| run_with_lie(seed, cuts, Box::new(SkipsRecords));
    let failing = (0..20).map(|seed| lying(seed, &Cuts::default())).find(|it| it.failure.is_some());
    let failing = failing.expect("the lie is noticed");
    let (seed, whole) = (failing.seed, failing.history.len());
    let short = shrink_with(failing, 40, &mut { lying }).failure.expect("it still fails");
    assert!(short.history.len() < whole, "{short}");
    assert!(short.to_string().ends_with(&format!("--seed {seed}{}", short.cuts)), "{short}");
    let again = lying(seed, &short.cuts).failure.expect("it fails again");
    assert_eq!(again.history, short.history);
}

#[test]
fn brokers_that_give_one_partition_to_two_members_are_caught() {
    let lie = || Box::<SharesPartitions>::default();
    let caught: Vec<_> =
        (0..8).filter_map(|seed| run_with_lie(seed, &Cuts::default(), lie()).failure).collect();
    assert!(
        caught.iter().any(|failure| failure.invariant == "one owner at a time"),
        "{:?}",
        caught.iter().map(|failure| failure.invariant).collect::<Vec<_>>()
    );
}

#[test]
fn brokers_that_acknowledge_what_their_disk_did_not_take_are_caught() {
    let caught = (40..400)
        .filter_map(|seed| run_with_lie(seed, &Cuts::default(), Box::new(ForgetsCommits)).failure)
        .find(|failure| failure.invariant == "what is acknowledged is kept");
    assert!(caught.is_some());
}

#[test]
fn brokers_that_hide_what_was_aborted_are_caught() {
    let caught = (80..120)
        .filter_map(|seed| run_with_lie(seed, &Cuts::default(), Box::new(HidesAborted)).failure)
        .any(|failure| failure.invariant == "transactions are all or nothing");
    assert!(caught);
}

#[test]
fn a_coordinator_that_never_lets_its_group_rest_is_caught() {
    let caught = (0..8)
        .filter_map(|seed| run_with_lie(seed, &Cuts::default(), Box::new(NeverSettles)).failure)
        .any(|failure| failure.invariant == "the group comes to rest");
    assert!(caught);
}

struct Panics;

impl Lie for Panics {
    fn tell(&mut self, response: &mut Response) {
        assert!(!matches!(response, Response::OffsetFetch(_)), "whoever is asked for offsets falls over");
    }
}

#[test]
fn a_panic_anywhere_is_a_fault_with_a_seed_and_a_timeline() {
    let failure = run_with_lie(1, &Cuts::default(), Box::new(Panics)).failure.expect("it is caught");
    assert_eq!(
        (failure.invariant, &*failure.why),
        ("nothing panics", "whoever is asked for offsets falls over")
    );
    assert!(failure.to_string().contains("--seed 1") && !failure.history.is_empty());
}

#[test]
fn members_that_err_are_caught_by_the_invariant_that_is_there_for_it() {
    for (slip, invariant) in [
        (Slip::CommitsAhead, "commits are safe and never go back"),
        (Slip::ForgetsRevoked, "callbacks come in pairs and in order"),
        (Slip::HandsOutTwice, "records come in order, only to their owner"),
        (Slip::ForgetsTimers, "the group comes to rest"),
    ] {
        let caught: Vec<_> =
            (0..12).filter_map(|seed| run_with_slip(seed, slip).failure).map(|it| it.invariant).collect();
        assert!(caught.contains(&invariant), "{slip:?}: {caught:?}");
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_origin(std::time::Duration::from_millis(ms))
}

fn p0() -> TopicPartition {
    TopicPartition::new("t", 0)
}

/// A history in which all is well: one member reads a partition, commits, gives it up, and another one goes on.
fn good() -> Vec<(Instant, Fact)> {
    let (a, b) = (Life(1), Life(2));
    let facts = [
        Fact::Named(a, "a".into()),
        Fact::Named(b, "b".into()),
        Fact::Began(a, StepKind::Assigned, vec![p0()]),
        Fact::Returned(a, StepKind::Assigned, vec![p0()]),
        Fact::Delivered(a, p0(), 0, 10),
        Fact::Committed("a".into(), p0(), 10),
        Fact::Began(a, StepKind::Revoked, vec![p0()]),
        Fact::Returned(a, StepKind::Revoked, vec![p0()]),
        Fact::Began(b, StepKind::Assigned, vec![p0()]),
        Fact::Returned(b, StepKind::Assigned, vec![p0()]),
        Fact::Delivered(b, p0(), 10, 20),
        Fact::Committed("b".into(), p0(), 20),
        Fact::Log(p0(), 0, 20),
        Fact::End,
    ];
    (0..).map(at).zip(facts).collect()
}

fn caught_by(history: &[(Instant, Fact)]) -> &'static str {
    match invariants::judge(history) {
        Err((name, _)) => name,
        Ok(()) => panic!("nobody complains"),
    }
}

#[test]
fn a_history_without_faults_pleases_everybody() {
    assert_eq!(invariants::judge(&good()), Ok(()));
}

#[test]
fn a_callback_that_never_came_is_caught() {
    let mut history = good();
    history.retain(|(_, fact)| !matches!(fact, Fact::Began(_, StepKind::Revoked, _)));
    assert_eq!(caught_by(&history), "callbacks come in pairs and in order");
}

#[test]
fn a_record_after_the_partition_was_given_up_is_caught() {
    let mut history = good();
    history.insert(8, (at(8), Fact::Delivered(Life(1), p0(), 10, 11)));
    assert_eq!(caught_by(&history), "records come in order, only to their owner");
}

#[test]
fn two_owners_that_are_both_members_are_caught() {
    let mut history = good();
    history.retain(|(_, fact)| !matches!(fact, Fact::Began(Life(1), StepKind::Revoked, _)));
    history.retain(|(_, fact)| !matches!(fact, Fact::Returned(Life(1), StepKind::Revoked, _)));
    let members = Fact::Members(["a".into(), "b".into()].into());
    let place = history.iter().position(|(_, fact)| matches!(fact, Fact::Delivered(Life(2), ..))).unwrap();
    let when = history[place].0;
    history.insert(place, (when, members));
    assert_eq!(caught_by(&history), "one owner at a time");
}

#[test]
fn a_commit_that_goes_back_is_caught() {
    let mut history = good();
    history.insert(12, (at(12), Fact::Committed("b".into(), p0(), 5)));
    assert_eq!(caught_by(&history), "commits are safe and never go back");
}

#[test]
fn a_commit_of_what_was_never_handed_out_is_caught() {
    let mut history = good();
    history.insert(6, (at(6), Fact::Committed("a".into(), p0(), 11)));
    assert_eq!(caught_by(&history), "commits are safe and never go back");
}

#[test]
fn a_commit_of_a_partition_that_somebody_else_has_is_caught() {
    let mut history = good();
    history.insert(11, (at(11), Fact::Committed("a".into(), p0(), 10)));
    assert_eq!(caught_by(&history), "commits are safe and never go back");
}

#[test]
fn a_record_that_nobody_got_is_caught() {
    let mut history = good();
    history.insert(12, (at(12), Fact::Log(p0(), 0, 21)));
    assert_eq!(caught_by(&history), "nothing is lost");
}

#[test]
fn logs_that_do_not_fit_together_are_caught() {
    let told = [(at(0), Fact::Unfit("m1: t-0: m2 got it before m1 had given it up".into()))];
    assert_eq!(caught_by(&told), "the members' own logs fit together");
}

#[test]
fn a_group_that_does_not_come_to_rest_is_caught() {
    let never = [(at(0), Fact::Unsettled("t-0 has no owner".into()))];
    assert_eq!(caught_by(&never), "the group comes to rest");
    let rested = |requests, joins| Fact::Rested {
        members: 2,
        requests,
        joins,
        time: std::time::Duration::from_secs(10),
    };
    assert_eq!(invariants::judge(&[(at(0), rested(100, 0))]), Ok(()));
    assert_eq!(caught_by(&[(at(0), rested(100_000, 0))]), "a group at rest is quiet");
    assert_eq!(caught_by(&[(at(0), rested(100, 1))]), "a group at rest is quiet");
}

#[test]
fn a_position_that_is_not_the_end_of_the_log_is_caught() {
    let stands = |at_offset| [(at(0), Fact::Position(Life(1), p0(), at_offset, 20))];
    assert_eq!(invariants::judge(&stands(20)), Ok(()));
    assert_eq!(caught_by(&stands(19)), "positions equal the log");
    assert_eq!(caught_by(&stands(21)), "positions equal the log");
}

#[test]
fn a_coordinator_that_forgets_is_caught() {
    let replayed = |read: &str| [(at(0), Fact::Replayed { live: "a, b".into(), read: read.into() })];
    assert_eq!(invariants::judge(&replayed("a, b")), Ok(()));
    assert_eq!(caught_by(&replayed("a")), "the log holds all that the coordinator has");
}

#[test]
fn a_member_that_hoards_is_caught() {
    let keeps =
        |connections, unheard| [(at(0), Fact::Keeps { who: Life(1), connections, unheard, nodes: 3 })];
    assert_eq!(invariants::judge(&keeps(5, 3)), Ok(()));
    assert_eq!(caught_by(&keeps(40, 0)), "memory is bounded");
    assert_eq!(caught_by(&keeps(5, 100_000)), "memory is bounded");
}

#[test]
fn a_member_that_forgets_its_timer_is_caught() {
    let ms = std::time::Duration::from_millis;
    let wakes = |after| [(at(0), Fact::Wakes(Life(1), after, ms(1_000)))];
    assert_eq!(invariants::judge(&wakes(Some(ms(900)))), Ok(()));
    assert_eq!(caught_by(&wakes(None)), "no timer is forgotten");
    assert_eq!(caught_by(&wakes(Some(ms(9_000)))), "no timer is forgotten");
}

#[test]
fn a_group_that_goes_on_at_an_old_place_in_a_new_topic_is_caught() {
    let mut history = good();
    history.insert(8, (at(8), Fact::Deleted("t".into())));
    assert_eq!(caught_by(&history), "records come in order, only to their owner");
    let mut history = good();
    history.truncate(8);
    history.push((at(8), Fact::Deleted("t".into())));
    history.push((at(9), Fact::Committed("a".into(), p0(), 10)));
    assert_eq!(caught_by(&history), "commits are safe and never go back");
}

/// What was told of a partition, an end of the brokers one second later, and what they found.
fn after_an_outage(loss: Loss, end: i64, committed: Option<i64>, epoch: i32) -> Vec<(Instant, Fact)> {
    let kept = Fact::Kept { what: p0(), end, committed, epochs: (Some(1), Some(epoch)) };
    vec![
        (at(0), Fact::Written(p0(), 10)),
        (at(1), Fact::Committed("nobody".into(), p0(), 7)),
        (at(1_000), Fact::Dark(Outage::Machine, loss)),
        (at(1_000), kept),
    ]
}

#[test]
fn what_is_lost_although_it_was_acknowledged_is_caught() {
    let recent = |ms| Loss::Recent(std::time::Duration::from_millis(ms));
    for fine in [
        after_an_outage(Loss::Nothing, 10, Some(7), 2),
        after_an_outage(Loss::Anything, 3, None, 2),
        after_an_outage(recent(1_500), 3, None, 2),
    ] {
        assert_eq!(invariants::judge(&fine), Ok(()));
    }
    for wrong in [
        after_an_outage(Loss::Nothing, 9, Some(7), 2),
        after_an_outage(Loss::Nothing, 10, Some(6), 2),
        after_an_outage(Loss::Nothing, 10, None, 2),
        after_an_outage(recent(500), 9, Some(7), 2),
        after_an_outage(recent(500), 10, None, 2),
        // Whoever read what is gone would not notice.
        after_an_outage(Loss::Anything, 3, None, 1),
    ] {
        assert_eq!(caught_by(&wrong), "what is acknowledged is kept");
    }
    let gone = [(at(0), Fact::Gone(p0()))];
    assert_eq!(caught_by(&gone), "what is acknowledged is kept");
}

/// A member that reads only what is committed, and a transaction of three records.
fn in_a_transaction(then: impl IntoIterator<Item = Fact>) -> Vec<(Instant, Fact)> {
    let first = [
        Fact::Careful(Life(1)),
        Fact::Began(Life(1), StepKind::Assigned, vec![p0()]),
        Fact::Returned(Life(1), StepKind::Assigned, vec![p0()]),
        Fact::Undecided(p0(), 0, 3),
    ];
    (0..).map(at).zip(first.into_iter().chain(then)).collect()
}

#[test]
fn transactions_that_are_not_all_or_nothing_are_caught() {
    let (mark, decided) = (Fact::Mark(p0(), 3), |committed| Fact::Decided(p0(), 0, 3, committed));
    let (all, next) = (Fact::Delivered(Life(1), p0(), 0, 3), Fact::Delivered(Life(1), p0(), 4, 5));
    let offsets = |found| Fact::Offsets { who: "x0".into(), possible: [Some(1)].into(), found };
    for fine in [
        in_a_transaction([mark.clone(), decided(true), all.clone(), next.clone(), Fact::End]),
        in_a_transaction([mark.clone(), decided(false), next, Fact::End]),
        in_a_transaction([Fact::Promised(p0(), 0, 3, true), mark.clone(), decided(true), offsets(Some(1))]),
    ] {
        assert_eq!(invariants::judge(&fine), Ok(()));
    }
    for wrong in [
        in_a_transaction([all.clone()]),
        in_a_transaction([mark.clone(), decided(false), all]),
        in_a_transaction([Fact::Promised(p0(), 0, 3, true), mark.clone(), decided(false)]),
        in_a_transaction([mark, decided(true), Fact::Promised(p0(), 0, 3, false)]),
        in_a_transaction([offsets(None)]),
        in_a_transaction([Fact::Outlived("x0 wrote after it was replaced".into())]),
        in_a_transaction([Fact::End]),
    ] {
        assert_eq!(caught_by(&wrong), "transactions are all or nothing");
    }
    // What is committed has to be handed out, and is no gap that may be stepped over.
    let skipped = [Fact::Mark(p0(), 3), decided(true), Fact::Delivered(Life(1), p0(), 4, 5)];
    assert_eq!(caught_by(&in_a_transaction(skipped)), "records come in order, only to their owner");
}
