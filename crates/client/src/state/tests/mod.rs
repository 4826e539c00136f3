//! Scripts for the machine in virtual time: one broker that answers as the test says, no socket, no clock.

mod hostile;
mod rig;

use super::*;
use crate::{OffsetAndMetadata, desk::Turn};
use rig::{Rig, error, name};
use std::time::Duration;
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        ApiKey, Request,
        fetch::{LeaderIdAndEpoch, NodeEndpoint, PartitionData},
    },
};

#[test]
fn an_error_of_one_partition_is_tried_again_and_stops_no_other() {
    for code in [
        ErrorCode::NOT_LEADER_OR_FOLLOWER,
        ErrorCode::FENCED_LEADER_EPOCH,
        ErrorCode::REPLICA_NOT_AVAILABLE,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::OFFSET_NOT_AVAILABLE,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode::UNKNOWN_TOPIC_ID,
        ErrorCode::INCONSISTENT_TOPIC_ID,
        ErrorCode::UNKNOWN_LEADER_EPOCH,
        ErrorCode::UNKNOWN_SERVER_ERROR,
    ] {
        let mut rig = Rig::assigned(&[1, 1], &[]);
        rig.world.ends = vec![2, 2];
        rig.world.errors.insert(0, vec![error(code), error(code)]);
        let (seen, failed) = rig.poll(3_000);
        assert!(failed.is_none(), "{code}: {failed:?}");
        assert_eq!(seen[..2], [(1, 0), (1, 1)], "{code}: the other one comes first");
        assert_eq!(seen[2..], [(0, 0), (0, 1)], "{code}");
    }
}

#[test]
fn a_lack_of_rights_is_reported_and_what_others_have_still_comes() {
    let mut rig = Rig::assigned(&[1, 1], &[]);
    rig.world.ends = vec![1, 1];
    rig.world.errors.insert(0, vec![error(ErrorCode::TOPIC_AUTHORIZATION_FAILED)]);
    let (mut seen, failed) = rig.poll(2_000);
    assert_eq!(failed.unwrap().code(), Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    seen.sort_unstable();
    assert_eq!(seen, [(0, 0), (1, 0)], "rights came back");
}

#[test]
fn a_new_leader_named_in_the_answer_is_asked_without_waiting_for_metadata() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.poll(100);
    rig.world.ends = vec![1];
    rig.world.leaders = vec![2];
    rig.world.held = Some(ApiKey::Metadata);
    rig.world.endpoints =
        vec![NodeEndpoint { node_id: 2, host: "two".into(), port: 2, ..NodeEndpoint::default() }];
    let current_leader = LeaderIdAndEpoch { leader_id: 2, leader_epoch: 5 };
    let data = PartitionData { current_leader, ..error(ErrorCode::NOT_LEADER_OR_FOLLOWER) };
    rig.world.errors.insert(0, vec![data]);
    let started = rig.now;
    let (seen, _) = rig.poll(20);
    assert_eq!(seen, [(0, 0)]);
    assert!(rig.now.saturating_since(started) <= Duration::from_millis(20), "no backoff");
}

#[test]
fn an_offset_out_of_range_is_reset_or_reported_by_the_policy() {
    for policy in ["earliest", "none"] {
        let mut rig = Rig::new(&[1], &[("auto.offset.reset", policy)]);
        rig.desk.assign(Instant::ZERO, [name(0)].into()).unwrap();
        rig.desk.seek(&name(0), &OffsetAndMetadata::new(99)).unwrap();
        rig.world.ends = vec![2];
        rig.world.errors.insert(0, vec![error(ErrorCode::OFFSET_OUT_OF_RANGE)]);
        let (seen, failed) = rig.poll(500);
        match policy {
            "none" => {
                assert!(matches!(failed, Some(Error::OffsetOutOfRange { offset: 99, .. })), "{failed:?}")
            }
            _ => assert_eq!(seen, [(0, 0), (0, 1)]),
        }
    }
}

#[test]
fn a_forgotten_session_is_started_again_at_once() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.world.ends = vec![1];
    rig.world.top_level = vec![ErrorCode::INVALID_FETCH_SESSION_EPOCH, ErrorCode::FETCH_SESSION_ID_NOT_FOUND];
    let (seen, failed) = rig.poll(20);
    assert_eq!((seen, failed.is_none()), (vec![(0, 0)], true));
}

#[test]
fn a_seek_drops_what_is_under_way() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.poll(50);
    rig.world.ends = vec![10];
    rig.settle();
    rig.desk.seek(&name(0), &OffsetAndMetadata::new(8)).unwrap();
    let (seen, _) = rig.poll(50);
    assert_eq!(seen, [(0, 8), (0, 9)]);
}

#[test]
fn a_recreated_topic_starts_afresh() {
    let mut rig = Rig::assigned(&[1], &[("metadata.max.age.ms", "500")]);
    rig.world.ends = vec![5];
    assert_eq!(rig.poll(50).0.len(), 5);
    rig.world.topic_id = Uuid::from_u128(8);
    rig.world.ends = vec![7];
    rig.world.held = Some(ApiKey::Fetch);
    rig.poll(1_000);
    rig.world.held = None;
    let (seen, _) = rig.poll(2_000);
    assert_eq!(seen.first(), Some(&(0, 0)), "{seen:?}");
}

#[test]
fn what_was_read_of_a_topic_is_not_committed_to_the_next_one_of_that_name() {
    let classic = ("partition.assignment.strategy", "range");
    let settings = [("group.id", "g"), classic, ("metadata.max.age.ms", "500")];
    let mut rig = Rig::new(&[1], &settings);
    rig.world.ends = vec![5];
    rig.desk.subscribe(["t".into()].into()).unwrap();
    assert_eq!(rig.poll(50).0.len(), 5);
    rig.world.topic_id = Uuid::from_u128(8);
    rig.unheard = Some(Vec::new());
    rig.pass(1_000);
    // The topic began anew, and the application does not know it yet.
    let call = rig.desk.commit(rig.desk.consumed(), Duration::from_secs(60));
    rig.settle();
    for event in rig.unheard.take().unwrap() {
        rig.desk.hear(rig.now, event);
    }
    let code = rig.desk.take_commit(call).unwrap().unwrap_err().code();
    assert_eq!(code, Some(ErrorCode::UNKNOWN_TOPIC_ID));
    assert!(rig.requests(ApiKey::OffsetCommit).is_empty());
}

#[test]
fn a_commit_that_is_sent_after_its_partition_was_given_up_names_the_topic_that_was_read() {
    let classic = ("partition.assignment.strategy", "range");
    let mut rig = Rig::new(&[1], &[("group.id", "g"), classic, ("heartbeat.interval.ms", "100")]);
    rig.world.ends = vec![5];
    rig.desk.subscribe(["t".into()].into()).unwrap();
    assert_eq!(rig.poll(50).0.len(), 5);
    rig.world.held = Some(ApiKey::OffsetCommit);
    for _ in 0..2 {
        rig.desk.commit_later(rig.desk.consumed(), Duration::from_secs(60));
        rig.settle();
    }
    rig.world.heartbeat_error = ErrorCode::REBALANCE_IN_PROGRESS;
    assert_eq!(rig.poll_for_callback(), (StepKind::Revoked, vec![name(0)]));
    rig.desk.callback_done(rig.now, false);
    rig.settle();
    rig.world.topic_id = Uuid::from_u128(8);
    rig.state.cluster.refresh_metadata(rig.now);
    rig.settle();
    rig.world.held = None;
    rig.settle();
    let topics = rig.requests(ApiKey::OffsetCommit).into_iter().map(|(_, request)| match request {
        Request::OffsetCommit(request) => request.topics[0].topic_id,
        other => panic!("{other:?}"),
    });
    assert_eq!(topics.collect::<Vec<_>>(), [Uuid::from_u128(7); 2]);
}

#[test]
fn a_full_queue_stops_its_own_partition_only() {
    let mut rig = Rig::assigned(&[1, 1], &[("max.partition.fetch.bytes", "1")]);
    rig.world.ends = vec![1, 1];
    rig.desk.begin_poll(rig.now).unwrap();
    rig.settle();
    // Both have data that nobody takes; more of partition 1 is asked for only once its own was taken.
    rig.requests(ApiKey::Fetch);
    rig.desk.set_paused(&[name(0)].into(), true).unwrap();
    assert_eq!(rig.poll(10).0, [(1, 0)]);
    rig.world.ends = vec![2, 2];
    assert_eq!(rig.poll(10).0, [(1, 1)]);
    let asked = rig.requests(ApiKey::Fetch);
    let partitions: Vec<_> = asked
        .iter()
        .flat_map(|(_, request)| match request {
            Request::Fetch(fetch) => {
                fetch.topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.partition)).collect()
            }
            _ => vec![],
        })
        .collect();
    assert!(partitions.iter().all(|p| *p == 1), "{partitions:?}");
    rig.desk.set_paused(&[name(0)].into(), false).unwrap();
    assert_eq!(rig.poll(10).0, [(0, 0), (0, 1)]);
}

#[test]
fn a_commit_is_retried_while_that_can_help_and_never_overtaken() {
    let mut rig = Rig::assigned(&[1], &[("group.id", "g")]);
    let at = |offset| vec![(name(0), OffsetAndMetadata::new(offset))];
    rig.world.commit_errors = vec![
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::NOT_COORDINATOR,
        ErrorCode::REQUEST_TIMED_OUT,
    ];
    let first = rig.desk.commit(at(1), Duration::from_secs(60));
    let mut ended = None;
    while ended.is_none() {
        let wake = rig.settle().unwrap();
        rig.now = wake.max(rig.now + Duration::from_millis(1));
        rig.state.handle_timeout(rig.now);
        ended = rig.desk.take_commit(first);
    }
    assert!(ended.unwrap().is_ok());
    assert_eq!(rig.requests(ApiKey::OffsetCommit).len(), 4);
    rig.world.held = Some(ApiKey::OffsetCommit);
    rig.desk.call_later(|call| Ask::commit(call, at(2), CommitKind::Once, Duration::from_secs(60)));
    let last = rig.desk.commit(at(3), Duration::from_secs(60));
    rig.pass(1_000);
    let under_way =
        rig.waiting.iter().filter(|(_, b, _)| b[..2] == (ApiKey::OffsetCommit as i16).to_be_bytes()).count();
    assert_eq!(under_way, 1, "the second waits for the first");
    rig.world.held = None;
    rig.pass(1_000);
    assert!(rig.desk.take_commit(last).unwrap().is_ok());
    let order: Vec<_> = rig
        .requests(ApiKey::OffsetCommit)
        .into_iter()
        .filter_map(|(_, request)| match request {
            Request::OffsetCommit(commit) => Some(commit.topics[0].partitions[0].committed_offset),
            _ => None,
        })
        .collect();
    assert_eq!(order, [2, 3]);
}

/// What the last heartbeat that names partitions names, since the last look.
fn last_named(rig: &mut Rig) -> Option<Vec<i32>> {
    let named =
        rig.requests(ApiKey::ConsumerGroupHeartbeat).into_iter().filter_map(|(_, request)| match request {
            Request::ConsumerGroupHeartbeat(request) => request.topic_partitions,
            other => panic!("{other:?}"),
        });
    named.last().map(|topics| topics.into_iter().flat_map(|topic| topic.partitions).collect())
}

#[test]
fn commits_go_before_the_word_that_their_partitions_are_let_go_and_never_come_after_it() {
    for late in [false, true] {
        let mut rig = Rig::new(&[1, 1], &[("group.id", "g"), ("group.protocol", "consumer")]);
        rig.world.dealt = vec![0, 1];
        rig.desk.subscribe(["t".into()].into()).unwrap();
        rig.poll(50);
        assert_eq!(last_named(&mut rig), Some(vec![0, 1]));
        rig.world.dealt = vec![0];
        assert_eq!(rig.poll_for_callback(), (StepKind::Revoked, vec![name(1)]));
        rig.world.held = Some(ApiKey::OffsetCommit);
        let minute = Duration::from_secs(60);
        let calls = [1, 2].map(|at| {
            let call = rig.desk.commit_later(offset(name(1), at), minute);
            rig.settle();
            call
        });
        rig.desk.callback_done(rig.now, false);
        rig.pass(if late { 300 } else { 5 });
        let named = last_named(&mut rig);
        assert_eq!(named == Some(vec![0]), late, "commits are waited for a little while: {named:?}");
        rig.world.held = None;
        rig.pass(50);
        let sent: Vec<_> = commits(&mut rig).into_iter().map(|offsets| offsets[0].2).collect();
        assert_eq!(sent, if late { vec![1] } else { vec![1, 2] });
        if !late {
            assert_eq!(last_named(&mut rig), Some(vec![0]), "nothing holds the word up any more");
            let ended: Vec<_> = std::iter::from_fn(|| rig.desk.next_ended_commit()).collect();
            assert!(ended.iter().all(|(_, result)| result.is_ok()), "{ended:?}");
            assert_eq!(ended.into_iter().map(|(call, _)| call).collect::<Vec<_>>(), calls);
        }
    }
}

fn offset(of: TopicPartition, at: i64) -> Vec<(TopicPartition, OffsetAndMetadata)> {
    vec![(of, OffsetAndMetadata::new(at))]
}

/// The offsets of each commit that was sent, by topic and partition.
fn commits(rig: &mut Rig) -> Vec<Vec<(String, i32, i64)>> {
    let of = |request: Request| match request {
        Request::OffsetCommit(request) => request
            .topics
            .iter()
            .flat_map(|t| {
                t.partitions.iter().map(|p| (t.name.clone(), p.partition_index, p.committed_offset))
            })
            .collect(),
        other => panic!("{other:?}"),
    };
    rig.requests(ApiKey::OffsetCommit).into_iter().map(|(_, request)| of(request)).collect()
}

#[test]
fn commits_that_nobody_waits_for_go_out_together_when_they_come_faster_than_answers() {
    let mut rig = Rig::assigned(&[1, 1], &[("group.id", "g")]);
    rig.poll(10);
    rig.world.held = Some(ApiKey::OffsetCommit);
    let second = Duration::from_secs(1);
    let calls: Vec<_> =
        (1..=300).map(|at| rig.desk.commit_later(offset(name(at % 2), at.into()), second)).collect();
    rig.pass(10);
    rig.world.held = None;
    rig.pass(10);
    let t = |partition, at| ("t".to_owned(), partition, at);
    let sent = commits(&mut rig);
    assert_eq!(sent.last(), Some(&vec![t(0, 300), t(1, 299)]));
    assert!(sent.len() <= 2, "{sent:?}");
    let ended: Vec<_> = std::iter::from_fn(|| rig.desk.next_ended_commit()).collect();
    assert!(ended.iter().all(|(_, result)| result.is_ok()), "{ended:?}");
    assert_eq!(ended.into_iter().map(|(call, _)| call).collect::<Vec<_>>(), calls);
}

#[test]
fn a_refused_offset_fails_only_the_commits_that_it_is_in() {
    let mut rig = Rig::assigned(&[1], &[("group.id", "g")]);
    rig.poll(10);
    rig.world.held = Some(ApiKey::OffsetCommit);
    let gone = TopicPartition::new("gone", 0);
    let (first, second) = (Duration::from_secs(5), Duration::from_secs(5));
    rig.desk.commit_later(offset(name(0), 1), first);
    rig.pass(1);
    let good = rig.desk.commit_later(offset(name(0), 2), second);
    let bad = rig.desk.commit_later([offset(gone, 7), offset(name(0), 3)].concat(), second);
    let late = rig.desk.commit_later(offset(name(0), 4), second);
    rig.pass(1);
    rig.world.held = None;
    rig.pass(1);
    let ended: BTreeMap<_, _> = std::iter::from_fn(|| rig.desk.next_ended_commit()).collect();
    assert!(ended[&good].is_ok() && ended[&late].is_ok(), "{ended:?}");
    assert_eq!(ended[&bad].as_ref().unwrap_err().code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert_eq!(commits(&mut rig).len(), 2, "nothing was sent again");
}

#[test]
fn each_of_the_commits_that_went_out_together_ends_by_its_own_deadline() {
    let mut rig = Rig::assigned(&[1], &[("group.id", "g")]);
    rig.poll(10);
    rig.world.held = Some(ApiKey::OffsetCommit);
    let calls: Vec<_> = [3_000, 1_000, 2_000]
        .map(|ms| rig.desk.commit_later(offset(name(0), 1), Duration::from_millis(ms)))
        .into_iter()
        .collect();
    rig.pass(900);
    assert!(rig.desk.next_ended_commit().is_none());
    for (ms, call) in [(200, calls[1]), (1_000, calls[2]), (1_000, calls[0])] {
        rig.pass(ms);
        let (ended, result) = rig.desk.next_ended_commit().unwrap();
        assert_eq!(ended, call);
        assert!(result.is_err());
        assert!(rig.desk.next_ended_commit().is_none());
    }
}

#[test]
fn a_commit_for_a_topic_that_is_gone_fails_at_once() {
    let mut rig = Rig::new(&[1], &[("group.id", "g")]);
    rig.world.commit_errors = vec![ErrorCode::UNKNOWN_TOPIC_OR_PARTITION; 9];
    let gone = TopicPartition::new("gone", 0);
    let call = rig.desk.commit(vec![(gone, OffsetAndMetadata::new(1))], Duration::from_secs(60));
    rig.settle();
    let refusal = rig.desk.take_commit(call).unwrap().unwrap_err();
    assert_eq!(refusal.code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
}

#[test]
fn a_commit_without_an_answer_ends_in_time() {
    let mut rig = Rig::new(&[1], &[("group.id", "g")]);
    rig.world.held = Some(ApiKey::OffsetCommit);
    let call = rig.desk.commit(vec![(name(0), OffsetAndMetadata::new(1))], Duration::from_secs(2));
    let mut refusal = None;
    while refusal.is_none() && rig.now < Instant::ZERO + Duration::from_secs(10) {
        let wake = rig.settle().unwrap();
        rig.now = wake.max(rig.now + Duration::from_millis(1));
        rig.state.handle_timeout(rig.now);
        rig.settle();
        refusal = rig.desk.take_commit(call);
    }
    assert!(matches!(refusal, Some(Err(Error::Timeout { .. }))), "{refusal:?}");
    assert!(rig.now < Instant::ZERO + Duration::from_secs(3));
}

#[test]
fn a_consumer_at_rest_does_nothing() {
    let mut rig = Rig::assigned(&[1, 2], &[]);
    rig.poll(1_000);
    rig.world.seen.clear();
    rig.poll(10_000);
    assert_eq!(rig.requests(ApiKey::Fetch).len(), 40, "two long polls a second and broker");
    assert!(rig.world.seen.is_empty(), "{:?}", rig.world.seen);
}

#[test]
fn a_deleted_topic_is_asked_for_more_and_more_rarely() {
    let mut rig = Rig::assigned(&[1], &[]);
    rig.poll(100);
    rig.world.gone = true;
    rig.world.seen.clear();
    let (seen, failed) = rig.poll(10_000);
    assert!(seen.is_empty() && failed.is_none(), "{failed:?}");
    assert!(rig.requests(ApiKey::Fetch).len() < 30, "no loop");
}

#[test]
fn a_commit_that_is_still_under_way_when_closing_ends_in_time_ends_too() {
    let mut rig = Rig::new(&[1], &[("group.id", "g")]);
    rig.world.held = Some(ApiKey::OffsetCommit);
    let offsets = vec![(name(0), OffsetAndMetadata::new(1))];
    let timeout = Duration::from_secs(60);
    rig.desk.call_later(|call| Ask::commit(call, offsets, CommitKind::Once, timeout));
    rig.desk.close(Duration::from_millis(300));
    rig.settle();
    assert!(rig.desk.next_ended_commit().is_none(), "it has until the deadline");
    rig.now += Duration::from_millis(300);
    rig.state.handle_timeout(rig.now);
    rig.settle();
    assert!(matches!(rig.desk.next_ended_commit(), Some((_, Err(Error::Closed(_))))));
}

#[test]
fn a_callback_that_outlasts_the_time_for_leaving_is_still_followed_by_the_last_one() {
    let settings = [("group.id", "g"), ("partition.assignment.strategy", "range")];
    let mut rig = Rig::new(&[1], &settings);
    rig.desk.subscribe(["t".into()].into()).unwrap();
    assert_eq!(rig.poll_for_callback(), (StepKind::Assigned, vec![name(0)]));
    rig.desk.leave("enough", false, Duration::from_secs(10));
    rig.pass(60_000);
    assert!(!rig.desk.has_left(), "the listener was told of the partition and has not been told of its end");
    rig.desk.callback_done(rig.now, false);
    rig.settle();
    assert!(rig.desk.next_callback().is_none(), "it gets ready");
    rig.settle();
    let last = rig.desk.next_callback();
    assert!(
        matches!(&last, Some(Turn::Callback(StepKind::Revoked, names)) if *names == [name(0)]),
        "{last:?}"
    );
    rig.desk.callback_done(rig.now, false);
    rig.pass(1);
    assert!(rig.desk.has_left());
}

#[test]
fn damaged_answers_cost_an_error_or_a_retry_and_the_consumer_goes_on() {
    for seed in 0..300 {
        let mut rig = Rig::assigned(&[1, 1], &[]);
        rig.world.ends = vec![3, 3];
        rig.damage = vec![seed, seed + 7, seed + 13];
        let mut seen = Vec::new();
        let is_done = |rig: &Rig| {
            let mut offsets = (0..2).map(|p| rig.desk.position(&name(p)).ok().flatten().map(|at| at.offset));
            rig.damage.is_empty() && offsets.all(|offset| offset == Some(3))
        };
        // A damaged throttle time holds a broker up for a while.
        while !is_done(&rig) && rig.now < Instant::ZERO + Duration::from_secs(120) {
            let (records, failed) = rig.poll(500);
            seen.extend(records);
            if failed.is_some() {
                // As the message says: seek to go on.
                rig.desk.seek(&name(0), &OffsetAndMetadata::new(0)).unwrap();
                rig.desk.seek(&name(1), &OffsetAndMetadata::new(0)).unwrap();
            }
        }
        assert!(is_done(&rig), "seed {seed}: {seen:?} {:?}", rig.state.fetches);
    }
}
