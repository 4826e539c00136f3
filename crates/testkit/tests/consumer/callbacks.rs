//! What the listener is told, and when: joins, leaves, lost members, errors and dropped polls.

use super::rig::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tontine::{Assigned, Consumer, Error, ListenerResult, Lost, RebalanceListener, Revoked};

const EAGER: &[(&str, &str)] = &[("partition.assignment.strategy", "range")];
const COOPERATIVE: &[(&str, &str)] = &[("partition.assignment.strategy", "cooperative-sticky")];

/// Polls both until each has this many partitions and the logs have settled.
async fn share(a: &mut Consumer, b: &mut Consumer, each: usize) {
    let both = tokio::time::timeout(LONG, async {
        while a.assignment().len() != each || b.assignment().len() != each {
            a.poll(Duration::from_millis(10)).await.unwrap();
            b.poll(Duration::from_millis(10)).await.unwrap();
        }
    });
    both.await.unwrap_or_else(|_| panic!("never shared: {a:?} {b:?}"));
}

#[tokio::test]
async fn eager_members_give_up_everything_when_another_joins() {
    let broker = broker(&[("t", 4)]).await;
    let (mut a, mut b) = (consumer(&broker, "g", EAGER), consumer(&broker, "g", EAGER));
    let (log_a, log_b) = (Log::default(), Log::default());
    a.subscribe(["t"], log_a.clone()).await.unwrap();
    poll_until(&mut a, "a has all", |a| a.assignment().len() == 4).await;
    b.subscribe(["t"], log_b.clone()).await.unwrap();
    share(&mut a, &mut b, 2).await;
    let mine = log_a.lines();
    assert_eq!(mine[..2], ["A(t-0 t-1 t-2 t-3)", "R(t-0 t-1 t-2 t-3)"]);
    assert_eq!(mine.len(), 3, "{mine:?}");
    assert_eq!(log_b.lines().len(), 1, "{:?}", log_b.lines());
    b.close().await.unwrap();
    poll_until(&mut a, "a has all again", |a| a.assignment().len() == 4).await;
    assert_eq!(log_a.lines().last().unwrap(), "A(t-0 t-1 t-2 t-3)");
    assert_eq!(log_b.lines().len(), 2);
    assert!(log_b.lines()[1].starts_with("R(t-"));
}

#[tokio::test]
async fn cooperative_members_hear_only_of_what_moves() {
    let broker = broker(&[("t", 4)]).await;
    let (mut a, mut b) = (consumer(&broker, "g", COOPERATIVE), consumer(&broker, "g", COOPERATIVE));
    let (log_a, log_b) = (Log::default(), Log::default());
    a.subscribe(["t"], log_a.clone()).await.unwrap();
    poll_until(&mut a, "a has all", |a| a.assignment().len() == 4).await;
    b.subscribe(["t"], log_b.clone()).await.unwrap();
    share(&mut a, &mut b, 2).await;
    let mine = log_a.lines();
    assert_eq!(mine[0], "A(t-0 t-1 t-2 t-3)");
    let revoked: Vec<_> = mine.iter().filter(|line| line.starts_with('R')).collect();
    assert_eq!(revoked.len(), 1, "{mine:?}");
    assert_eq!(revoked[0].matches("t-").count(), 2, "{mine:?}");
    assert_eq!(log_b.lines()[0], "A()", "a newcomer waits for what is given up: {:?}", log_b.lines());
    assert_eq!(log_b.lines()[1].matches("t-").count(), 2);
}

#[tokio::test]
async fn kept_partitions_keep_flowing_through_a_cooperative_rebalance() {
    let broker = broker(&[("t", 2)]).await;
    let (mut a, mut b) = (consumer(&broker, "g", COOPERATIVE), consumer(&broker, "g", COOPERATIVE));
    a.subscribe(["t"], ()).await.unwrap();
    poll_until(&mut a, "a has all", |a| a.assignment().len() == 2).await;
    b.subscribe(["t"], ()).await.unwrap();
    share(&mut a, &mut b, 1).await;
    plain(&broker).fill("t", 2, 5).await.unwrap();
    assert_eq!(read(&mut a, 5).await.len(), 5);
    assert_eq!(read(&mut b, 5).await.len(), 5);
}

#[tokio::test]
async fn auto_commit_commits_what_was_returned_before_partitions_are_revoked() {
    for strategy in [EAGER, COOPERATIVE] {
        let broker = broker(&[("t", 2)]).await;
        plain(&broker).fill("t", 2, 10).await.unwrap();
        let settings =
            [strategy, &[("enable.auto.commit", "true"), ("auto.commit.interval.ms", "3600000")]].concat();
        let (mut a, mut b) = (consumer(&broker, "g", &settings), consumer(&broker, "g", &settings));
        a.subscribe(["t"], ()).await.unwrap();
        read(&mut a, 20).await;
        b.subscribe(["t"], ()).await.unwrap();
        share(&mut a, &mut b, 1).await;
        plain(&broker).fill("t", 2, 1).await.unwrap();
        assert_eq!(read(&mut b, 1).await[0].1, 10, "nothing is read twice with {strategy:?}");
    }
}

#[tokio::test]
async fn auto_commit_happens_at_the_interval_and_at_close_but_not_in_unsubscribe() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 10).await.unwrap();
    let settings = [("enable.auto.commit", "true"), ("auto.commit.interval.ms", "3600000")];
    let mut a = consumer(&broker, "g", &settings);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 10).await;
    a.unsubscribe().await.unwrap();
    a.close().await.unwrap();
    assert!(plain(&broker).committed("g").await.unwrap().is_empty());
    let mut a = consumer(&broker, "g", &settings);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 10).await;
    a.close().await.unwrap();
    assert_eq!(plain(&broker).committed_in("g", "t").await.unwrap(), [(0, 10)].into());
    plain(&broker).fill("t", 1, 5).await.unwrap();
    let mut a = consumer(&broker, "g", &[("enable.auto.commit", "true"), ("auto.commit.interval.ms", "1")]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 5).await;
    let committed = tokio::time::timeout(LONG, async {
        while plain(&broker).committed_in("g", "t").await.unwrap() != [(0, 15)].into() {
            a.poll(TICK).await.unwrap();
        }
    });
    committed.await.unwrap();
}

#[tokio::test]
async fn unsubscribe_revokes_and_a_new_subscription_starts_again() {
    let broker = broker(&[("t", 2), ("u", 1)]).await;
    let mut a = consumer(&broker, "g", &[]);
    let log = Log::default();
    a.subscribe(["t"], log.clone()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 2).await;
    a.unsubscribe().await.unwrap();
    assert_eq!(log.lines(), ["A(t-0 t-1)", "R(t-0 t-1)"]);
    assert!(a.assignment().is_empty() && a.subscription().is_empty());
    assert!(matches!(a.poll(TICK).await, Err(Error::Misuse(_))));
    a.subscribe(["u"], log.clone()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    assert_eq!(log.lines().last().unwrap(), "A(u-0)");
}

#[tokio::test]
async fn changing_the_topics_revokes_what_was_dropped() {
    for (strategy, told) in [
        (EAGER, vec!["A(t-0 u-0)", "R(t-0 u-0)", "A(t-0)"]),
        (COOPERATIVE, vec!["A(t-0 u-0)", "R(u-0)", "A()"]),
    ] {
        let broker = broker(&[("t", 1), ("u", 1)]).await;
        let mut a = consumer(&broker, "g", strategy);
        let log = Log::default();
        a.subscribe(["t", "u"], log.clone()).await.unwrap();
        poll_until(&mut a, "assigned", |a| a.assignment().len() == 2).await;
        a.subscribe_topics(["t"]).await.unwrap();
        poll_until(&mut a, "changed", |_| log.lines().len() >= 3).await;
        assert_eq!(log.lines(), told);
        assert_eq!(a.assignment().len(), 1);
    }
}

/// Seeks and pauses in the callback, commits in revoked.
struct Seeker(i64);

impl RebalanceListener for Seeker {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        for partition in cx.partitions().to_vec() {
            assert!(cx.assignment().contains(&partition));
            cx.seek(&partition, self.0)?;
            assert_eq!(cx.position(&partition).await?, self.0);
            assert_eq!(cx.committed(std::slice::from_ref(&partition)).await?[&partition], None);
        }
        Ok(())
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        cx.commit_sync().await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_listener_seeks_in_assigned_and_commits_in_revoked() {
    let broker = broker(&[("t", 2)]).await;
    plain(&broker).fill("t", 2, 10).await.unwrap();
    let mut a = consumer(&broker, "g", EAGER);
    a.subscribe(["t"], Seeker(7)).await.unwrap();
    let seen = read(&mut a, 6).await;
    assert!(seen.iter().all(|(_, offset)| *offset >= 7), "{seen:?}");
    a.close().await.unwrap();
    assert_eq!(plain(&broker).committed_in("g", "t").await.unwrap(), [(0, 10), (1, 10)].into());
}

/// Fails as told.
struct Failing {
    log: Log,
    assigned: bool,
    revoked: bool,
}

impl RebalanceListener for Failing {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.log.add("A", cx.partitions());
        if std::mem::take(&mut self.assigned) { Err("no".into()) } else { Ok(()) }
    }
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        self.log.add("R", cx.partitions());
        if std::mem::take(&mut self.revoked) { Err("no".into()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn an_error_of_a_callback_is_reported_by_poll_and_vetoes_nothing() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", EAGER);
    let log = Log::default();
    a.subscribe(["t"], Failing { log: log.clone(), assigned: true, revoked: true }).await.unwrap();
    let error = a.poll(LONG).await.unwrap_err();
    assert!(matches!(error, Error::Callback(_)), "{error}");
    assert_eq!(read(&mut a, 3).await.len(), 3);
    let told = log.lines();
    assert_eq!(told, ["A(t-0)", "A()"], "assigned is called again, with nothing new");
    let error = a.close().await.unwrap_err();
    assert!(matches!(error, Error::Callback(_)), "{error}");
    assert!(a.is_closed());
    assert_eq!(log.lines().last().unwrap(), "R(t-0)");
}

/// Stalls the first time.
struct Stalling {
    log: Log,
    stalls: Arc<AtomicUsize>,
}

impl RebalanceListener for Stalling {
    async fn on_partitions_assigned(&mut self, cx: &mut Assigned<'_>) -> ListenerResult {
        self.log.add("A", cx.partitions());
        if self.stalls.fetch_add(1, Ordering::SeqCst) < 2 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_callback_whose_poll_is_dropped_runs_again() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[]);
    let (log, stalls) = (Log::default(), Arc::new(AtomicUsize::new(0)));
    a.subscribe(["t"], Stalling { log: log.clone(), stalls: stalls.clone() }).await.unwrap();
    while stalls.load(Ordering::SeqCst) < 2 {
        let _ = tokio::time::timeout(TICK, a.poll(LONG)).await;
    }
    assert_eq!(read(&mut a, 3).await.len(), 3);
    assert_eq!(log.lines(), ["A(t-0)"; 3]);
}

#[tokio::test]
async fn records_of_a_dropped_poll_are_not_skipped() {
    let broker = broker(&[("t", 1)]).await;
    let mut a = consumer(&broker, "g", &[("max.poll.records", "3")]);
    a.subscribe(["t"], ()).await.unwrap();
    let mut seen = Vec::new();
    let all = tokio::time::timeout(LONG, async {
        for round in 0.. {
            if round % 7 == 0 && round < 70 {
                plain(&broker).fill("t", 1, 10).await.unwrap();
            }
            tokio::select! {
                biased;
                () = tokio::task::yield_now() => {}
                records = a.poll(LONG) => seen.extend(places(&records.unwrap())),
            }
            seen.extend(places(&a.poll(Duration::ZERO).await.unwrap()));
            if seen.len() >= 100 {
                return;
            }
        }
    });
    all.await.unwrap();
    assert_eq!(seen.iter().map(|(_, offset)| *offset).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
}

/// Overrides lost, or not.
struct Losing(Log);

impl RebalanceListener for Losing {
    async fn on_partitions_revoked(&mut self, cx: &mut Revoked<'_>) -> ListenerResult {
        let error = cx.commit_sync().await.unwrap_err();
        assert!(matches!(error, Error::Lost(_)), "{error}");
        self.0.add(if cx.is_lost() { "R lost" } else { "R" }, cx.partitions());
        Ok(())
    }
}

#[tokio::test]
async fn a_member_that_does_not_poll_in_time_loses_its_partitions_and_comes_back() {
    let broker = broker(&[("t", 1)]).await;
    let settings = [("max.poll.interval.ms", "300"), ("session.timeout.ms", "6000")];
    let mut a = consumer(&broker, "g", &settings);
    let log = Log::default();
    a.subscribe(["t"], log.clone()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    assert_eq!(a.position(&partition("t", 0)).await.unwrap(), 0);
    plain(&broker).until_group("g", "Empty", 0).await.unwrap();
    let error = a.commit_sync().await;
    assert!(matches!(error, Err(Error::Lost(_))), "{error:?}");
    poll_until(&mut a, "back", |_| log.lines().len() == 3).await;
    assert_eq!(log.lines(), ["A(t-0)", "L(t-0)", "A(t-0)"]);
}

#[tokio::test]
async fn lost_is_treated_as_revoked_unless_overridden_and_its_commit_is_refused_here() {
    let broker = broker(&[("t", 1)]).await;
    let mut a = consumer(&broker, "g", &[("max.poll.interval.ms", "200")]);
    let log = Log::default();
    a.subscribe(["t"], Losing(log.clone())).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    plain(&broker).until_group("g", "Empty", 0).await.unwrap();
    poll_until(&mut a, "told", |_| !log.lines().is_empty()).await;
    assert_eq!(log.lines(), ["R lost(t-0)"]);
}

#[tokio::test]
async fn close_without_a_poll_after_the_deadline_ends_in_lost() {
    let broker = broker(&[("t", 1)]).await;
    let mut a = consumer(&broker, "g", &[("max.poll.interval.ms", "200")]);
    let log = Log::default();
    a.subscribe(["t"], log.clone()).await.unwrap();
    poll_until(&mut a, "assigned", |a| a.assignment().len() == 1).await;
    plain(&broker).until_group("g", "Empty", 0).await.unwrap();
    a.close().await.unwrap();
    assert_eq!(log.lines(), ["A(t-0)", "L(t-0)"]);
}

#[tokio::test]
async fn dropping_a_consumer_leaves_the_group_without_a_commit() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[("enable.auto.commit", "true")]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 3).await;
    drop(a);
    plain(&broker).until_group("g", "Empty", 0).await.unwrap();
    assert!(plain(&broker).committed("g").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_commit_that_was_asked_for_before_the_consumer_was_dropped_tells_its_end() {
    let broker = broker(&[("t", 1)]).await;
    plain(&broker).fill("t", 1, 3).await.unwrap();
    let mut a = consumer(&broker, "g", &[("enable.auto.commit", "false")]);
    a.subscribe(["t"], ()).await.unwrap();
    read(&mut a, 3).await;
    let end = a.commit_async();
    drop(a);
    let end = tokio::time::timeout(LONG, end).await.unwrap();
    let stored = !plain(&broker).committed("g").await.unwrap().is_empty();
    assert_eq!(end.is_ok(), stored, "{end:?}");
    plain(&broker).until_group("g", "Empty", 0).await.unwrap();
}

/// Never hears of a loss: the type has no commit, this only has to compile.
struct OnlyLost;

impl RebalanceListener for OnlyLost {
    async fn on_partitions_lost(&mut self, cx: &mut Lost<'_>) -> ListenerResult {
        assert!(!cx.partitions().is_empty());
        Ok(())
    }
}

#[test]
fn a_listener_may_implement_only_what_it_cares_about() {
    let _: Box<dyn Send> = Box::new(OnlyLost);
}
