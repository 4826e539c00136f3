//! Writing a history, and waiting for what it should come to say.

use super::event::{Callback, CommitResult, End, Event, What};
use super::reading::{callbacks, delivered, has_returned, owners, shapes};
use crate::{Failure, failure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tontine_group::TopicPartition;

/// How many of the last events a failure shows.
const SHOWN: usize = 60;

/// A history that many members write into. Cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    origin: SystemTime,
    events: Mutex<Vec<Event>>,
    count: watch::Sender<usize>,
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

impl History {
    /// An empty history that begins now.
    #[allow(clippy::disallowed_methods, reason = "what really happened is stamped with the real clock")]
    pub fn new() -> Self {
        let inner =
            Inner { origin: SystemTime::now(), events: Mutex::new(Vec::new()), count: watch::Sender::new(0) };
        Self { inner: Arc::new(inner) }
    }

    /// Time since the history began.
    #[allow(clippy::disallowed_methods, reason = "what really happened is stamped with the real clock")]
    pub fn now(&self) -> Duration {
        SystemTime::now().duration_since(self.inner.origin).unwrap_or_default()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Event>> {
        self.inner.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pen of one member.
    pub fn member(&self, name: &str) -> MemberLog {
        MemberLog { history: self.clone(), name: name.into() }
    }

    /// Writes an event that happens now. The order of writing is the order of time.
    pub fn write(&self, member: &Arc<str>, what: What) {
        let mut events = self.locked();
        // A killed member may still run for a moment; nobody sees what it does any more.
        let killed = |event: &Event| event.member == *member && event.what == What::Ended(End::Killed);
        if events.iter().any(killed) {
            return;
        }
        let at = events.last().map_or(Duration::ZERO, |last| last.at).max(self.now());
        events.push(Event { at, member: member.clone(), what });
        let count = events.len();
        drop(events);
        self.inner.count.send_replace(count);
    }

    /// Writes an event of another process, which happened at `time` by the clock of this machine.
    pub fn write_at(&self, time: SystemTime, member: &Arc<str>, what: What) {
        let at = time.duration_since(self.inner.origin).unwrap_or_default();
        let mut events = self.locked();
        let place = events.partition_point(|event| event.at <= at);
        events.insert(place, Event { at, member: member.clone(), what });
        let count = events.len();
        drop(events);
        self.inner.count.send_replace(count);
    }

    /// Everything so far, in the order of time.
    pub fn events(&self) -> Vec<Event> {
        self.locked().clone()
    }

    /// Waits until `condition` finds what it looks for in the events. It must not ask the history itself, which is held
    /// while it looks.
    ///
    /// Fails with `what` and the last events when `deadline` passes.
    pub async fn until<T>(
        &self,
        what: &str,
        deadline: Duration,
        mut condition: impl FnMut(&[Event]) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut count = self.inner.count.subscribe();
        let found = async {
            loop {
                count.mark_unchanged();
                if let Some(found) = condition(&self.locked()) {
                    return found;
                }
                // The sender lives as long as this history, so an error cannot come.
                let _ = count.changed().await;
            }
        };
        let found = tokio::time::timeout(deadline, found).await;
        found.map_err(|_| failure!("waited {deadline:?} in vain: {what}\n{}", self.tail()))
    }

    /// The last events, one a line.
    pub fn tail(&self) -> String {
        let events = self.locked();
        let shown = &events[events.len().saturating_sub(SHOWN)..];
        let lines: Vec<String> = shown.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    /// A failure with the last events below the message.
    pub fn failure(&self, message: &str) -> Failure {
        failure!("{message}\n{}", self.tail())
    }

    /// The callbacks of one member, as text: `R(t0 t1) A() L(t0)`; topics by the stems of their names.
    pub fn callbacks(&self, member: &str) -> Vec<String> {
        callbacks(&self.locked(), member)
    }

    /// The callbacks of one member with the numbers of their partitions: `R(6) A(3)`.
    pub fn shapes(&self, member: &str) -> Vec<String> {
        shapes(&self.locked(), member)
    }

    /// Waits until the callbacks of `member` from the `skip`th on have exactly these shapes, separated by blanks,
    /// and the last one has returned.
    pub async fn until_shapes(
        &self,
        member: &str,
        skip: usize,
        expected: &str,
        deadline: Duration,
    ) -> Result<(), Failure> {
        self.until_called(member, expected, deadline, |events| {
            shapes(events, member).into_iter().skip(skip).collect()
        })
        .await
    }

    /// Waits until the callbacks of `member` from the `skip`th on are exactly these, separated by blanks, and
    /// the last one has returned.
    pub async fn until_callbacks(
        &self,
        member: &str,
        skip: usize,
        expected: &str,
        deadline: Duration,
    ) -> Result<(), Failure> {
        self.until_called(member, expected, deadline, |events| {
            callbacks(events, member).into_iter().skip(skip).collect()
        })
        .await
    }

    async fn until_called(
        &self,
        member: &str,
        expected: &str,
        deadline: Duration,
        read: impl Fn(&[Event]) -> Vec<String>,
    ) -> Result<(), Failure> {
        let what = format!("{member} is called {expected}");
        let called = |events: &[Event]| read(events).join(" ") == expected && has_returned(events, member);
        self.until(&what, deadline, |events| called(events).then_some(())).await
    }

    /// Who owns what now, by the callbacks that have begun (revoked, lost) or returned (assigned).
    pub fn owners(&self) -> BTreeMap<TopicPartition, BTreeSet<Arc<str>>> {
        owners(&self.locked())
    }

    /// What one member owns now.
    pub fn owned_by(&self, member: &str) -> BTreeSet<TopicPartition> {
        let owners = self.owners();
        owners.into_iter().filter(|(_, who)| who.iter().any(|m| &**m == member)).map(|(tp, _)| tp).collect()
    }

    /// Waits until each of `partitions` has exactly one owner, all of `members` own at least `least` of them, and nobody
    /// else owns anything.
    pub async fn until_shared(
        &self,
        partitions: &[TopicPartition],
        members: &[&str],
        least: usize,
        deadline: Duration,
    ) -> Result<(), Failure> {
        let what = format!("{members:?} share {} partitions, {least} or more each", partitions.len());
        self.until(&what, deadline, |events| {
            let owners = owners(events);
            let mut held: BTreeMap<&str, usize> = members.iter().map(|m| (*m, 0)).collect();
            for partition in partitions {
                let who = owners.get(partition).filter(|who| who.len() == 1)?;
                *held.get_mut(&**who.first()?)? += 1;
            }
            let others = owners.iter().any(|(tp, who)| !who.is_empty() && !partitions.contains(tp));
            (!others && held.values().all(|count| *count >= least)).then_some(())
        })
        .await
    }

    /// Waits until this many different records of `topic` have been delivered to anybody.
    pub async fn until_delivered(
        &self,
        topic: &str,
        count: usize,
        deadline: Duration,
    ) -> Result<(), Failure> {
        let what = format!("{count} records of {topic} are delivered");
        self.until(&what, deadline, |events| (delivered(events, topic).len() >= count).then_some(())).await
    }
}

/// Writes the events of one member.
#[derive(Debug, Clone)]
pub struct MemberLog {
    history: History,
    name: Arc<str>,
}

impl MemberLog {
    /// The member's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The history it writes into.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Writes any event.
    pub fn write(&self, what: What) {
        self.history.write(&self.name, what);
    }

    /// A callback begins.
    pub fn called(&self, callback: Callback, partitions: Vec<TopicPartition>) {
        self.write(What::Called(callback, partitions));
    }

    /// The callback has returned.
    pub fn returned(&self, callback: Callback) {
        self.write(What::Returned(callback));
    }

    /// Records were handed out.
    pub fn delivered(&self, partition: TopicPartition, offsets: Vec<i64>) {
        self.write(What::Delivered(partition, offsets));
    }

    /// A commit begins.
    pub fn commit_sent(&self, offsets: BTreeMap<TopicPartition, i64>) {
        self.write(What::CommitSent(offsets));
    }

    /// A commit has ended.
    pub fn commit_ended(&self, offsets: BTreeMap<TopicPartition, i64>, result: CommitResult) {
        self.write(What::CommitEnded(offsets, result));
    }

    /// The member is gone.
    pub fn ended(&self, end: End) {
        self.write(What::Ended(end));
    }
}
