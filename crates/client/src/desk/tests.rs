//! The application's side by itself, told what an actor would tell it, in virtual time.

use super::*;
use crate::{
    config::ConsumerBuilder,
    fetch::position::Position,
    lease::{Chunk, LogEnd},
    state::{CommitKind, Step, StepId},
};
use std::collections::BTreeSet;
use tontine_group::member::{Due, Occasion};
use tontine_wire::{
    api::fetch::AbortedTransaction,
    records::{BatchBuilder, Compression, ControlType, end_transaction_marker},
};

/// A desk with a clock that the test moves.
struct Rig {
    desk: Desk,
    now: Instant,
    told: Vec<Ask>,
    steps: u64,
}

fn name(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn incarnation(partition: i32) -> Incarnation {
    Incarnation::granted(100 + partition.unsigned_abs() as u64)
}

fn membership() -> Membership {
    Membership { member_id: "me".into(), generation: 3, instance_id: None }
}

fn batch(first: i64, values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None);
    for value in values {
        builder.append(0, None, Some(value.as_bytes()), []).unwrap();
    }
    builder.build(first).to_vec()
}

fn transactional(first: i64, producer: i64, values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.producer(producer, 0, 0).transactional(true);
    for value in values {
        builder.append(0, None, Some(value.as_bytes()), []).unwrap();
    }
    builder.build(first).to_vec()
}

fn marker(offset: i64, producer: i64, outcome: ControlType) -> Vec<u8> {
    let bytes = end_transaction_marker(outcome, producer, 0, 0, 0).unwrap();
    let batch = tontine_wire::records::RecordBatch::parse(&mut bytes.clone()).unwrap().unwrap();
    batch.stamped(offset, 0, None).unwrap().into_bytes().to_vec()
}

impl Rig {
    fn new(settings: &[(&str, &str)]) -> Self {
        let mut builder = ConsumerBuilder::default().bootstrap_servers("localhost:9092").group_id("g");
        builder = builder.enable_auto_commit(false);
        for (key, value) in settings {
            builder = builder.set(key, value);
        }
        let mut desk = Desk::new(&ConsumerSettings::new(builder, 0).unwrap());
        desk.subscribe(["t".into()].into()).unwrap();
        Self { desk, now: Instant::ZERO, told: Vec::new(), steps: 0 }
    }

    /// With partitions 0 to `count` assigned, positions at zero.
    fn assigned(settings: &[(&str, &str)], count: i32) -> Self {
        let mut rig = Self::new(settings);
        rig.assign(0..count);
        for partition in 0..count {
            rig.deliver(partition, Delivery::Jump(Position::at(0)));
        }
        rig
    }

    fn assign(&mut self, partitions: std::ops::Range<i32>) {
        let names: Vec<_> = partitions.clone().map(name).collect();
        self.tell(Tell::Membership(Some(membership())));
        self.due(Due::Assign { added: names.clone() });
        assert!(self.begins());
        self.step(StepKind::Assigned, partitions);
        assert!(matches!(self.next(), Turn::Callback(StepKind::Assigned, told) if told == names));
        self.desk.callback_done(self.now, false);
    }

    fn due(&mut self, due: Due) {
        self.tell(Tell::Due(Some(due)));
    }

    fn step(&mut self, kind: StepKind, partitions: std::ops::Range<i32>) {
        self.steps += 1;
        let partitions = partitions.map(|p| (name(p), incarnation(p))).collect();
        let membership = (kind != StepKind::Lost).then(membership);
        let (id, confirmed) = (StepId(self.steps), self.now);
        self.tell(Tell::Step(Some(Step { id, kind, partitions, membership, confirmed })));
    }

    fn tell(&mut self, tell: Tell) {
        self.desk.handle(self.now, tell);
    }

    fn deliver(&mut self, partition: i32, delivery: Delivery) {
        self.tell(Tell::Delivery {
            partition: name(partition),
            incarnation: incarnation(partition),
            delivery,
        });
    }

    fn chunk(&mut self, partition: i32, start: i64, records: Vec<u8>) {
        self.deliver(
            partition,
            Delivery::Chunk(Chunk { start, records: records.into(), aborted: Vec::new() }),
        );
    }

    fn next(&mut self) -> Turn {
        let turn = self.desk.next(self.now);
        self.told.extend(self.desk.commands().map(|Command(ask)| ask));
        turn
    }

    /// Whether a poll at this moment asks the actor to begin what is due.
    fn begins(&mut self) -> bool {
        let _ = self.next();
        std::mem::take(&mut self.told).iter().any(|ask| matches!(ask, Ask::Begin))
    }

    /// The values that a poll returns at this moment.
    fn poll(&mut self) -> Vec<String> {
        match self.next() {
            Turn::Records(records) => records
                .iter()
                .map(|r| {
                    format!("{}:{}", r.partition(), String::from_utf8_lossy(r.value().unwrap_or_default()))
                })
                .collect(),
            Turn::Wait(_) => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    fn offset(&self, partition: i32) -> i64 {
        self.desk.position(&name(partition)).unwrap().unwrap().offset
    }

    /// The commit that was asked for since the last look.
    fn commit(&mut self) -> Option<(CallId, Vec<i64>, bool)> {
        self.told.extend(self.desk.commands().map(|Command(ask)| ask));
        std::mem::take(&mut self.told).into_iter().find_map(|ask| match ask {
            Ask::Commit { call, offsets, kind, .. } => {
                Some((call, offsets.iter().map(|(_, at)| at.offset).collect(), kind == CommitKind::Awaited))
            }
            _ => None,
        })
    }

    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }
}

#[test]
fn records_come_in_order_and_no_more_at_once_than_allowed() {
    let mut rig = Rig::assigned(&[("max.poll.records", "2")], 1);
    rig.chunk(0, 0, batch(0, &["a", "b", "c"]));
    rig.chunk(0, 3, batch(3, &["d"]));
    assert_eq!(rig.poll(), ["0:a", "0:b"]);
    assert_eq!(rig.offset(0), 2);
    assert_eq!(rig.poll(), ["0:c", "0:d"]);
    assert_eq!((rig.poll().len(), rig.offset(0)), (0, 4));
}

#[test]
fn partitions_take_turns() {
    let mut rig = Rig::assigned(&[("max.poll.records", "2")], 2);
    for start in [0, 2] {
        rig.chunk(0, start, batch(start, &["a", "a"]));
        rig.chunk(1, start, batch(start, &["b", "b"]));
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(rig.poll().first().cloned());
    }
    seen.sort();
    assert_eq!(seen, ["0:a", "0:a", "1:b", "1:b"]);
}

#[test]
fn what_starts_before_the_position_and_what_is_behind_gaps_is_right() {
    let mut rig = Rig::assigned(&[], 1);
    rig.desk.seek(&name(0), &OffsetAndMetadata::new(1)).unwrap();
    let after = incarnation(0).after_seek();
    let chunk = Chunk {
        start: 1,
        records: [batch(0, &["a", "b"]), batch(9, &["z"])].concat().into(),
        aborted: vec![],
    };
    rig.tell(Tell::Delivery { partition: name(0), incarnation: after, delivery: Delivery::Chunk(chunk) });
    assert_eq!(rig.poll(), ["0:b", "0:z"]);
    assert_eq!(rig.offset(0), 10);
}

#[test]
fn answers_for_an_earlier_place_or_ownership_are_dropped() {
    let mut rig = Rig::assigned(&[], 1);
    rig.desk.seek(&name(0), &OffsetAndMetadata::new(50)).unwrap();
    rig.chunk(0, 0, batch(0, &["late"]));
    assert!(rig.poll().is_empty());
    assert_eq!(rig.offset(0), 50);
    rig.tell(Tell::Restarted { partition: name(0), incarnation: Incarnation::granted(900) });
    assert_eq!(rig.desk.position(&name(0)).unwrap(), None, "another topic of the same name");
    rig.chunk(0, 0, batch(0, &["later still"]));
    assert!(rig.poll().is_empty());
}

#[test]
fn room_is_given_back_when_a_chunk_is_begun() {
    let mut rig = Rig::assigned(&[("max.poll.records", "1"), ("max.partition.fetch.bytes", "100")], 1);
    let bytes = batch(0, &["a", "b"]);
    let size = bytes.len();
    rig.chunk(0, 0, bytes);
    rig.told.clear();
    rig.poll();
    let credit = rig.told.iter().filter(|ask| matches!(ask, Ask::Credit { bytes, .. } if *bytes == size));
    assert_eq!(credit.count(), 1);
}

#[test]
fn room_is_given_back_in_halves_of_a_share() {
    let sixteenth = batch(0, &[&"v".repeat(4_000)]);
    let share = (sixteenth.len() * 16).to_string();
    let mut rig = Rig::assigned(&[("max.poll.records", "1"), ("max.partition.fetch.bytes", &share)], 1);
    for offset in 0..10 {
        rig.chunk(0, offset, batch(offset, &[&"v".repeat(4_000)]));
    }
    let mut told = Vec::new();
    for _ in 0..11 {
        rig.told.clear();
        rig.poll();
        let bytes = |ask: &Ask| if let Ask::Credit { bytes, .. } = ask { *bytes } else { 0 };
        told.push(rig.told.iter().map(bytes).sum::<usize>());
    }
    let size = sixteenth.len();
    assert_eq!(told, [0, 0, 0, 0, 0, 0, 0, 8 * size, 0, 0, 0], "what is left does not make it look full");
}

#[test]
fn a_corrupt_batch_names_its_place_stays_in_the_way_and_can_be_sought_past() {
    let mut rig = Rig::assigned(&[], 2);
    let mut damaged = batch(2, &["x"]);
    *damaged.last_mut().unwrap() ^= 1;
    rig.chunk(0, 0, [batch(0, &["a", "b"]), damaged].concat());
    assert_eq!(rig.poll(), ["0:a", "0:b"], "what is before it is returned first");
    for _ in 0..2 {
        let Turn::Failed(error) = rig.next() else { panic!("an error") };
        assert!(error.to_string().starts_with("t-0 at offset 2:"), "{error}");
        assert_eq!(rig.offset(0), 2);
    }
    rig.chunk(1, 0, batch(0, &["fine"]));
    let mut seen = Vec::new();
    for _ in 0..2 {
        if let Turn::Records(records) = rig.next() {
            seen.extend(records.iter().map(|r| r.partition()));
        }
    }
    assert_eq!(seen, [1], "others are not held back");
    rig.desk.seek(&name(0), &OffsetAndMetadata::new(3)).unwrap();
    assert!(rig.poll().is_empty());
}

#[test]
fn a_batch_of_an_old_format_or_cut_off_at_the_start_is_an_error_and_no_endless_wait() {
    for damage in [|b: &mut Vec<u8>| b[16] = 1, |b: &mut Vec<u8>| b.truncate(40)] {
        let mut rig = Rig::assigned(&[], 1);
        let mut bytes = batch(0, &["a"]);
        damage(&mut bytes);
        rig.chunk(0, 0, bytes);
        assert!(matches!(rig.next(), Turn::Failed(Error::Malformed(_))));
    }
}

#[test]
fn an_answer_that_holds_only_what_was_read_before_is_an_error() {
    let mut rig = Rig::assigned(&[], 1);
    rig.deliver(0, Delivery::Jump(Position::at(7)));
    rig.chunk(0, 7, batch(0, &["old", "older"]));
    assert!(matches!(rig.next(), Turn::Failed(Error::Malformed(_))));
}

#[test]
fn aborted_records_and_markers_are_left_out_when_only_committed_ones_are_read() {
    let log = [
        transactional(0, 1, &["gone"]),
        transactional(1, 2, &["kept"]),
        marker(2, 1, ControlType::Abort),
        transactional(3, 1, &["kept too"]),
        marker(4, 1, ControlType::Commit),
        marker(5, 2, ControlType::Commit),
        batch(6, &["plain"]),
    ]
    .concat();
    let aborted = vec![AbortedTransaction { producer_id: 1, first_offset: 0 }];
    let chunk = Chunk { start: 0, records: log.into(), aborted };
    for (level, expected) in [
        ("read_committed", vec!["0:kept", "0:kept too", "0:plain"]),
        ("read_uncommitted", vec!["0:gone", "0:kept", "0:kept too", "0:plain"]),
    ] {
        let mut rig = Rig::assigned(&[("isolation.level", level)], 1);
        rig.deliver(0, Delivery::Chunk(chunk.clone()));
        assert_eq!(rig.poll(), expected, "{level}");
        assert_eq!(rig.offset(0), 7);
    }
}

#[test]
fn aborted_transactions_may_be_listed_in_any_order_and_cover_what_lies_between_their_marks() {
    let log = [
        transactional(0, 1, &["one, gone"]),
        transactional(1, 2, &["two, gone"]),
        transactional(2, 1, &["one, gone as well"]),
        marker(3, 2, ControlType::Abort),
        transactional(4, 2, &["two, kept"]),
        marker(5, 1, ControlType::Abort),
        // Compaction has left a gap, and the mark of a transaction without its records.
        marker(9, 3, ControlType::Abort),
        transactional(10, 1, &["one, kept"]),
        marker(11, 1, ControlType::Commit),
        marker(12, 2, ControlType::Commit),
        transactional(13, 1, &["one, gone again"]),
        marker(14, 1, ControlType::Abort),
    ]
    .concat();
    let places = [(1, 13), (3, 7), (2, 1), (1, 0)];
    let mut aborted: Vec<_> = places
        .map(|(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset })
        .into_iter()
        .collect();
    for _ in 0..aborted.len() {
        aborted.rotate_left(1);
        let mut rig = Rig::assigned(&[("isolation.level", "read_committed")], 1);
        let chunk = Chunk { start: 0, records: log.clone().into(), aborted: aborted.clone() };
        rig.deliver(0, Delivery::Chunk(chunk));
        assert_eq!(rig.poll(), ["0:two, kept", "0:one, kept"], "{aborted:?}");
        assert!(rig.poll().is_empty());
        assert_eq!(rig.offset(0), 15, "behind the last mark");
    }
}

#[test]
fn only_markers_move_the_position_without_records() {
    let mut rig = Rig::assigned(&[("isolation.level", "read_committed")], 1);
    rig.chunk(0, 0, marker(0, 1, ControlType::Commit));
    assert!(rig.poll().is_empty());
    assert_eq!(rig.offset(0), 1);
}

#[test]
fn a_paused_partition_keeps_what_it_has() {
    let mut rig = Rig::assigned(&[], 2);
    rig.chunk(0, 0, batch(0, &["a"]));
    rig.chunk(1, 0, batch(0, &["b"]));
    let first: BTreeSet<_> = [name(0)].into();
    rig.desk.set_paused(&first, true).unwrap();
    assert_eq!(rig.poll(), ["1:b"]);
    assert!(rig.poll().is_empty());
    rig.desk.set_paused(&first, false).unwrap();
    assert_eq!(rig.poll(), ["0:a"]);
    assert!(rig.desk.set_paused(&[name(0), name(7)].into(), true).is_err());
    assert!(rig.desk.paused().is_empty(), "all or nothing");
}

#[test]
fn partitions_without_an_offset_are_reported_together() {
    let mut rig = Rig::new(&[]);
    rig.assign(0..2);
    for partition in 0..2 {
        rig.deliver(partition, Delivery::Failed(Error::NoOffset(vec![name(partition)])));
    }
    let Turn::Failed(Error::NoOffset(missing)) = rig.next() else { panic!("an error") };
    assert_eq!(missing, [name(0), name(1)]);
    assert!(matches!(rig.desk.position(&name(0)), Err(Error::NoOffset(_))));
}

#[test]
fn a_revocation_stops_delivery_commits_and_lets_kept_partitions_flow() {
    let mut rig = Rig::assigned(&[("enable.auto.commit", "true")], 2);
    rig.chunk(0, 0, batch(0, &["a"]));
    assert_eq!(rig.poll(), ["0:a"]);
    rig.chunk(0, 1, batch(1, &["held back"]));
    rig.due(Due::Revoke { partitions: vec![name(0)], occasion: Occasion::AfterSync });
    assert!(rig.poll().is_empty());
    let (call, offsets, retry) = rig.commit().unwrap();
    assert_eq!((offsets, retry), (vec![1, 0], true));
    rig.chunk(1, 0, batch(0, &["kept"]));
    assert_eq!(rig.poll(), ["1:kept"], "the commit is under way");
    assert!(!rig.begins());
    rig.tell(Tell::Answer { call, answer: Err(Error::RebalanceInProgress) });
    assert!(rig.begins(), "however the commit ended");
    rig.step(StepKind::Revoked, 0..1);
    assert!(matches!(rig.next(), Turn::Callback(StepKind::Revoked, names) if names == [name(0)]));
    assert!(rig.desk.assignment().contains(&name(0)), "still ours in the callback");
    assert_eq!(rig.offset(0), 1);
    assert!(
        matches!(rig.next(), Turn::Callback(StepKind::Revoked, _)),
        "its poll was dropped: it runs again"
    );
    rig.desk.callback_done(rig.now, false);
    assert_eq!(rig.desk.assignment(), [name(1)].into());
    assert!(rig.desk.commands().any(|Command(ask)| matches!(ask, Ask::StepDone { failed: false, .. })));
    assert!(rig.poll().is_empty(), "what was held back is gone");
}

#[test]
fn what_was_to_be_revoked_and_is_lost_meanwhile_is_told_as_lost() {
    let mut rig = Rig::assigned(&[], 1);
    rig.due(Due::Revoke { partitions: vec![name(0)], occasion: Occasion::BeforeJoin });
    assert!(rig.begins());
    rig.step(StepKind::Lost, 0..1);
    assert!(matches!(rig.next(), Turn::Callback(StepKind::Lost, _)));
    assert_eq!(rig.desk.membership(), None);
}

#[test]
fn what_was_frozen_for_a_change_that_does_not_come_flows_again() {
    let mut rig = Rig::assigned(&[], 1);
    rig.chunk(0, 0, batch(0, &["a"]));
    rig.due(Due::Revoke { partitions: vec![name(0)], occasion: Occasion::AfterSync });
    assert!(rig.begins());
    assert!(rig.poll().is_empty());
    rig.tell(Tell::Step(None));
    assert_eq!(rig.poll(), ["0:a"]);
}

#[test]
fn nothing_flows_before_the_assigned_callback_has_returned() {
    let mut rig = Rig::new(&[]);
    rig.due(Due::Assign { added: vec![name(0)] });
    assert!(rig.begins());
    rig.step(StepKind::Assigned, 0..1);
    assert!(rig.desk.assignment().is_empty(), "seen only inside a poll");
    rig.deliver(0, Delivery::Jump(Position::at(5)));
    rig.chunk(0, 5, batch(5, &["a"]));
    assert!(matches!(rig.next(), Turn::Callback(..)));
    assert!(matches!(rig.next(), Turn::Callback(..)));
    assert_eq!(rig.offset(0), 5, "the committed offset can be seen in the callback");
    rig.desk.callback_done(rig.now, false);
    assert_eq!(rig.poll(), ["0:a"]);
}

#[test]
fn positions_are_committed_at_the_interval_one_commit_at_a_time() {
    let mut rig = Rig::assigned(&[("enable.auto.commit", "true"), ("auto.commit.interval.ms", "1000")], 1);
    rig.chunk(0, 0, batch(0, &["a"]));
    rig.poll();
    rig.wait(999);
    rig.poll();
    assert!(rig.commit().is_none());
    rig.wait(1);
    rig.poll();
    let (call, offsets, retry) = rig.commit().unwrap();
    assert_eq!((offsets, retry), (vec![1], false));
    rig.wait(5000);
    rig.poll();
    assert!(rig.commit().is_none(), "one is under way");
    rig.tell(Tell::Answer { call, answer: Err(Error::Disconnected("gone".into())) });
    rig.wait(100);
    rig.poll();
    assert!(rig.commit().is_some(), "tried again after retry.backoff.ms");
}

#[test]
fn a_topic_that_is_not_subscribed_any_more_is_not_handed_out() {
    let mut rig = Rig::assigned(&[], 1);
    rig.chunk(0, 0, batch(0, &["a"]));
    rig.desk.subscribe(["other".into()].into()).unwrap();
    assert!(rig.poll().is_empty());
    rig.desk.subscribe(["t".into()].into()).unwrap();
    assert_eq!(rig.poll(), ["0:a"]);
}

#[test]
fn the_lag_is_counted_to_the_end_that_readers_may_see() {
    for (level, lag) in [("read_uncommitted", 10), ("read_committed", 7)] {
        let mut rig = Rig::assigned(&[("isolation.level", level)], 1);
        assert_eq!(rig.desk.lag(&name(0)).unwrap(), None);
        let end = LogEnd { high_watermark: 10, last_stable: 7 };
        rig.tell(Tell::LogEnd { partition: name(0), incarnation: incarnation(0), end });
        assert_eq!(rig.desk.lag(&name(0)).unwrap(), Some(lag));
    }
}

#[test]
fn a_fatal_error_is_told_by_every_poll_and_another_one_once() {
    let mut rig = Rig::assigned(&[], 1);
    rig.tell(Tell::Failed { error: Error::misuse("once"), fatal: false });
    assert!(matches!(rig.next(), Turn::Failed(Error::Misuse(_))));
    assert!(matches!(rig.next(), Turn::Wait(_)));
    rig.tell(Tell::Failed { error: Error::Fenced("twin".into()), fatal: true });
    assert!(matches!(rig.next(), Turn::Failed(Error::Fenced(_))));
    assert!(matches!(rig.next(), Turn::Failed(Error::Fenced(_))));
}

#[test]
fn kinds_of_subscriptions_do_not_mix_and_names_must_be_names() {
    let mut rig = Rig::new(&[]);
    assert!(matches!(rig.desk.assign(Instant::ZERO, [name(0)].into()), Err(Error::Misuse(_))));
    assert!(matches!(rig.desk.subscribe([" ".into()].into()), Err(Error::Misuse(_))));
    assert!(matches!(rig.desk.subscribe_pattern("("), Err(Error::Misuse(_))));
    rig.desk.set_closed();
    assert!(matches!(rig.desk.begin_poll(Instant::ZERO), Err(Error::Closed(_))));
    assert!(matches!(rig.desk.seek(&name(0), &1.into()), Err(Error::Closed(_))));
}

#[test]
fn polls_are_told_to_the_actor_now_and_then() {
    let mut rig = Rig::assigned(&[("max.poll.interval.ms", "10000")], 1);
    rig.poll();
    rig.told.clear();
    for _ in 0..100 {
        rig.wait(10);
        rig.poll();
    }
    let polls = rig.told.iter().filter(|ask| matches!(ask, Ask::Poll)).count();
    assert_eq!(polls, 2, "once per 500 ms");
}

#[test]
fn a_commit_that_is_due_but_not_possible_does_not_keep_a_poll_awake() {
    let mut rig = Rig::assigned(&[("enable.auto.commit", "true"), ("auto.commit.interval.ms", "1000")], 1);
    rig.due(Due::Revoke { partitions: vec![name(0)], occasion: Occasion::BeforeJoin });
    let _ = rig.next();
    rig.now += Duration::from_secs(5);
    let _ = rig.next();
    match rig.next() {
        Turn::Wait(Some(at)) => assert!(at > rig.now, "a poll that waits for the past spins"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn after_a_dropped_unsubscribe_polling_is_refused_and_a_new_subscription_commits_before_revocations() {
    let mut rig = Rig::assigned(&[("enable.auto.commit", "true")], 1);
    rig.chunk(0, 0, batch(0, &["a"]));
    assert_eq!(rig.poll(), ["0:a"]);
    rig.desk.leave("unsubscribed", false, Duration::from_secs(1));
    assert!(matches!(rig.desk.begin_poll(rig.now), Err(Error::Misuse(_))), "it would wait for ever");
    assert!(matches!(rig.desk.assign(rig.now, [name(0)].into()), Err(Error::Misuse(_))));
    rig.desk.subscribe(["t".into()].into()).unwrap();
    rig.due(Due::Revoke { partitions: vec![name(0)], occasion: Occasion::BeforeJoin });
    rig.poll();
    assert_eq!(rig.commit().map(|(_, offsets, _)| offsets), Some(vec![1]));
}

#[test]
fn an_epoch_that_is_told_while_a_callback_waits_stays_told_when_it_runs() {
    let mut rig = Rig::new(&[]);
    rig.tell(Tell::Membership(Some(membership())));
    rig.due(Due::Assign { added: vec![name(0)] });
    assert!(rig.begins());
    rig.step(StepKind::Assigned, 0..1);
    let later = Membership { generation: 4, ..membership() };
    rig.tell(Tell::Membership(Some(later.clone())));
    assert!(matches!(rig.next(), Turn::Callback(StepKind::Assigned, _)));
    assert_eq!(rig.desk.membership(), Some(&later));
    rig.desk.callback_done(rig.now, false);
    assert_eq!(rig.desk.membership(), Some(&later));
}

/// What the log says, in short.
fn audited(rig: &mut Rig) -> Vec<String> {
    let entries = rig.desk.audit_entries().into_iter();
    let short = entries.map(|entry| match entry.event {
        crate::audit::Event::Released { why, .. } => format!("{why:?} in {}", entry.epoch),
        crate::audit::Event::Assigned { .. } => format!("Assigned in {}", entry.epoch),
        other => format!("{other:?} in {}", entry.epoch),
    });
    short.collect()
}

#[test]
fn a_revocation_during_which_the_membership_ends_is_written_down_as_a_loss() {
    let mut rig = Rig::assigned(&[("audit.log", "in memory")], 1);
    assert_eq!(audited(&mut rig), ["Assigned in 3"]);
    let revoke = || Due::Revoke { partitions: vec![name(0)], occasion: Occasion::BeforeJoin };
    rig.due(revoke());
    assert!(rig.begins());
    rig.step(StepKind::Revoked, 0..1);
    assert!(matches!(rig.next(), Turn::Callback(StepKind::Revoked, _)));
    rig.tell(Tell::Membership(None));
    rig.desk.callback_done(rig.now, false);
    assert_eq!(audited(&mut rig), ["Lost in 3"]);

    let mut rig = Rig::assigned(&[("audit.log", "in memory")], 1);
    audited(&mut rig);
    rig.due(revoke());
    assert!(rig.begins());
    rig.step(StepKind::Revoked, 0..1);
    assert!(matches!(rig.next(), Turn::Callback(StepKind::Revoked, _)));
    // Whoever goes on to the next generation before it is done has the partition in both.
    rig.tell(Tell::Membership(Some(Membership { generation: 4, ..membership() })));
    rig.desk.callback_done(rig.now, false);
    assert_eq!(audited(&mut rig), ["Revoked in 4"]);
}

#[test]
fn a_commit_is_written_down_before_it_is_sent_and_when_it_is_stored() {
    let mut rig = Rig::assigned(&[("audit.log", "in memory")], 1);
    audited(&mut rig);
    let call = rig.desk.commit(vec![(name(0), OffsetAndMetadata::new(5))], Duration::from_secs(1));
    assert_eq!(audited(&mut rig), ["Asked { offset: 5 } in 3"]);
    let sent: Vec<_> = rig.desk.commands().collect();
    assert!(matches!(sent[..], [.., Command(Ask::Commit { .. })]), "{sent:?}");
    rig.tell(Tell::Answer { call, answer: Ok(Answer::Done) });
    assert_eq!(audited(&mut rig), ["Committed { offset: 5 } in 3"]);
}
