//! Where reading starts, goes on and ends.

use super::rig::*;
use std::time::Duration;
use tontine::{Consumer, Error, OffsetAndMetadata};

fn offsets(seen: &[(tontine::TopicPartition, i64)]) -> Vec<i64> {
    seen.iter().map(|(_, offset)| *offset).collect()
}

#[tokio::test]
async fn the_next_member_goes_on_at_the_committed_offset() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 10).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 10).await;
    let at = OffsetAndMetadata::new(4).with_metadata("half way");
    a.commit_sync_offsets([(partition("t", 0), at.clone())]).await.unwrap();
    let found = a.committed(&[partition("t", 0)]).await.unwrap();
    assert_eq!(found[&partition("t", 0)], Some(at));
    a.close().await.unwrap();
    let mut b = consumer(&broker, "g", &[]);
    b.subscribe(["t"], ()).await.unwrap();
    assert_eq!(offsets(&read(&mut b, 6).await), [4, 5, 6, 7, 8, 9]);
    assert_eq!(b.position(&partition("t", 0)).await.unwrap(), 10);
}

#[tokio::test]
async fn partitions_can_be_assigned_without_a_group() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).fill("t", 2, 5).await.unwrap();
    let mut a = Consumer::builder()
        .bootstrap_servers(broker.bootstrap_servers())
        .set("auto.offset.reset", "earliest")
        .build()
        .unwrap();
    assert!(matches!(a.subscribe(["t"], ()).await, Err(Error::Configuration(_))));
    assert!(matches!(a.commit_sync().await, Err(Error::Configuration(_))));
    assert!(matches!(a.poll(TICK).await, Err(Error::Misuse(_))));
    a.assign([("t", 1)]).unwrap();
    assert_eq!(offsets(&read(&mut a, 5).await), [0, 1, 2, 3, 4]);
    a.assign([("t", 0), ("t", 1)]).unwrap();
    let seen = read(&mut a, 5).await;
    assert!(
        seen.iter().all(|(p, _)| p.partition() == 0),
        "what was assigned before goes on where it was: {seen:?}"
    );
    assert_eq!(a.assignment().len(), 2);
    a.close().await.unwrap();
    assert!(matches!(a.poll(TICK).await, Err(Error::Closed(_))));
    a.close().await.unwrap();
}

#[tokio::test]
async fn partitions_assigned_by_hand_can_be_committed_in_a_group() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 5).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    a.assign([("t", 0)]).unwrap();
    read(&mut a, 5).await;
    a.commit_sync().await.unwrap();
    assert_eq!(plain(&broker).committed_in("g", "t").await.unwrap(), [(0, 5)].into());
    assert!(matches!(a.subscribe(["t"], ()).await, Err(Error::Misuse(_))), "the kinds do not mix");
    a.unsubscribe().await.unwrap();
    a.subscribe(["t"], ()).await.unwrap();
}

#[tokio::test]
async fn seeking_goes_anywhere_and_drops_what_was_buffered() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 20).await.unwrap();
    let mut a = consumer(&broker, "g", &[("max.poll.records", "5")]);
    let t = partition("t", 0);
    a.assign([t.clone()]).unwrap();
    assert_eq!(offsets(&read(&mut a, 5).await), [0, 1, 2, 3, 4]);
    a.seek(&t, 17).unwrap();
    assert_eq!(a.position(&t).await.unwrap(), 17);
    assert_eq!(offsets(&read(&mut a, 3).await), [17, 18, 19]);
    a.seek_to_beginning(&[]).unwrap();
    assert_eq!(a.position(&t).await.unwrap(), 0);
    a.seek_to_end(std::slice::from_ref(&t)).unwrap();
    assert_eq!(a.position(&t).await.unwrap(), 20);
    a.seek_to_timestamp(std::slice::from_ref(&t), 0).unwrap();
    assert_eq!(offsets(&read(&mut a, 5).await), [0, 1, 2, 3, 4]);
    assert!(matches!(a.seek(&t, -1), Err(Error::Misuse(_))));
    assert!(matches!(a.seek(&partition("t", 9), 1), Err(Error::Misuse(_))));
    assert!(matches!(a.position(&partition("t", 9)).await, Err(Error::Misuse(_))));
    assert!(matches!(a.pause(&[partition("u", 0)]), Err(Error::Misuse(_))));
    assert!(matches!(a.commit_sync_offsets([(t, -5)]).await, Err(Error::Misuse(_))));
}

#[tokio::test]
async fn offsets_are_looked_up_by_time_and_at_both_ends() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).fill("t", 2, 5).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    let all = [partition("t", 0), partition("t", 1)];
    assert_eq!(a.beginning_offsets(&all).await.unwrap(), all.clone().map(|p| (p, 0)).into());
    assert_eq!(a.end_offsets(&all).await.unwrap(), all.clone().map(|p| (p, 5)).into());
    let early = a.offsets_for_times(all.clone().map(|p| (p, 0))).await.unwrap();
    assert_eq!(early[&all[0]].unwrap().offset, 0);
    let late = a.offsets_for_times(all.clone().map(|p| (p, i64::MAX))).await.unwrap();
    assert_eq!(late[&all[1]], None);
    assert_eq!(a.partitions_for("t").await.unwrap(), [0, 1]);
}

#[tokio::test]
async fn a_paused_partition_keeps_what_it_has_and_holds_nobody_back() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).fill("t", 2, 10).await.unwrap();
    let mut a = consumer(&broker, "g", &[("max.poll.records", "2")]);
    a.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 2).await;
    let (paused, other) = (partition("t", 0), partition("t", 1));
    a.pause(std::slice::from_ref(&paused)).unwrap();
    assert_eq!(a.paused(), [paused.clone()].into());
    let before = a.position(&paused).await.unwrap();
    let position = a.position(&other).await.unwrap();
    let seen = read(&mut a, 10 - usize::try_from(position).unwrap()).await;
    assert!(seen.iter().all(|(p, _)| *p == other), "{seen:?}");
    plain(&broker).produce("t", 1, 5).await.unwrap();
    assert!(read(&mut a, 5).await.iter().all(|(p, _)| *p == other));
    assert_eq!(a.position(&paused).await.unwrap(), before);
    assert_eq!(a.lag(&other).unwrap(), Some(0));
    a.resume(std::slice::from_ref(&paused)).unwrap();
    let rest = read(&mut a, 10 - usize::try_from(before).unwrap()).await;
    assert_eq!(offsets(&rest), (before..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn without_a_policy_a_missing_offset_is_an_error_until_the_application_seeks() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).fill("t", 2, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[("auto.offset.reset", "none")]);
    a.subscribe(["t"], ()).await.unwrap();
    let error = tokio::time::timeout(LONG, async {
        loop {
            if let Err(error) = a.poll(TICK).await {
                return error;
            }
        }
    })
    .await
    .unwrap();
    assert!(matches!(&error, Error::NoOffset(p) if !p.is_empty()), "{error}");
    for p in a.assignment() {
        a.seek(&p, 1).unwrap();
    }
    assert_eq!(read(&mut a, 4).await.len(), 4);
    a.seek(&partition("t", 0), 100).unwrap();
    let error = tokio::time::timeout(LONG, async {
        loop {
            if let Err(error) = a.poll(TICK).await {
                return error;
            }
        }
    })
    .await
    .unwrap();
    assert!(matches!(error, Error::OffsetOutOfRange { offset: 100, .. }), "{error}");
}

#[tokio::test]
async fn an_offset_out_of_range_is_reset_by_the_policy() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    a.assign([("t", 0)]).unwrap();
    a.seek(&partition("t", 0), 1000).unwrap();
    assert_eq!(offsets(&read(&mut a, 3).await), [0, 1, 2]);
}

#[tokio::test]
async fn by_duration_without_a_young_record_starts_at_the_end() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[("auto.offset.reset", "by_duration:PT0S")]);
    a.assign([("t", 0)]).unwrap();
    assert_eq!(a.position_with(&partition("t", 0), LONG).await.unwrap(), 3);
}

#[tokio::test]
async fn async_commits_keep_their_order_and_tell_how_they_ended() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 30).await.unwrap();
    let mut a = consumer(&broker, "g", &[("max.poll.records", "1")]);
    a.subscribe(["t"], ()).await.unwrap();
    let (sender, ended) = std::sync::mpsc::channel();
    let mut seen = 0;
    while seen < 30 {
        let records = a.poll(LONG).await.unwrap();
        seen += records.len();
        let (sender, number) = (sender.clone(), seen);
        a.commit_async_with(move |result| sender.send((number, result.is_ok())).unwrap()).unwrap();
    }
    a.commit_sync().await.unwrap();
    let order: Vec<_> = ended.try_iter().collect();
    assert_eq!(order, (1..=30).map(|number| (number, true)).collect::<Vec<_>>());
    assert_eq!(plain(&broker).committed_in("g", "t").await.unwrap(), [(0, 30)].into());
    a.commit_async_offsets([(partition("t", 0), 7)]).await.unwrap();
    assert_eq!(plain(&broker).committed_in("g", "t").await.unwrap(), [(0, 7)].into());
}

#[tokio::test]
async fn wakeup_ends_a_waiting_poll_and_the_next_one_goes_on() {
    let broker = broker(&[("t", 1)]).await;
    let mut a = consumer(&broker, "g", &[]);
    a.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    let waker = a.waker();
    let task = tokio::spawn(async move {
        tokio::task::yield_now().await;
        waker.wake();
    });
    assert!(matches!(a.poll(LONG).await, Err(Error::Woken)));
    task.await.unwrap();
    plain(&broker).fill("t", 1, 1).await.unwrap();
    assert_eq!(read(&mut a, 1).await.len(), 1);
}

#[tokio::test]
async fn polling_without_a_timeout_makes_progress() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 10).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    a.subscribe(["t"], ()).await.unwrap();
    let all = tokio::time::timeout(LONG, async {
        let mut seen = 0;
        while seen < 10 {
            seen += a.poll(Duration::ZERO).await.unwrap().len();
            tokio::task::yield_now().await;
        }
    });
    all.await.unwrap();
}

#[tokio::test]
async fn a_log_that_was_cut_off_is_noticed_and_read_on_where_it_parts() {
    for policy in ["earliest", "none"] {
        let broker = broker(&[("t", 1)]).await;
        plain(&broker).fill("t", 1, 10).await.unwrap();
        let mut a = consumer(&broker, "g", &[("auto.offset.reset", policy), ("metadata.max.age.ms", "100")]);
        let t = partition("t", 0);
        a.assign([t.clone()]).unwrap();
        a.seek(&t, 0).unwrap();
        read(&mut a, 10).await;
        broker.lose_records("t", 0, 6).unwrap();
        plain(&broker).fill("t", 1, 10).await.unwrap();
        if policy == "none" {
            let error = tokio::time::timeout(LONG, async {
                loop {
                    if let Err(error) = a.poll(TICK).await {
                        return error;
                    }
                }
            });
            let error = error.await.unwrap();
            assert!(matches!(error, Error::Truncated { offset: 10, parts_at: Some(6), .. }), "{error}");
        } else {
            assert_eq!(offsets(&read(&mut a, 10).await), (6..16).collect::<Vec<_>>());
        }
    }
}
