//! The board that all members write on: what happened so far, and whether the group is at rest.

use super::audit::Rebalance;
use super::history::{Event, MemberId, Partition, What};
use super::timeline::Timeline;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A clock that all processes of the demo share: the system's, counted from the demo's beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: SystemTime,
}

impl Clock {
    /// A clock that begins now.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn start() -> Self {
        Self { began: SystemTime::now() }
    }

    /// The clock that began so many microseconds after 1970.
    pub(crate) fn since_unix_us(us: u64) -> Self {
        Self { began: UNIX_EPOCH + Duration::from_micros(us) }
    }

    /// When it began, in microseconds after 1970.
    pub(crate) fn unix_us(self) -> u64 {
        self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
    }

    /// Since the beginning.
    pub(crate) fn elapsed(self) -> Duration {
        self.began.elapsed().unwrap_or_default()
    }
}

/// Shared by members, producer and script. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Board {
    clock: Clock,
    inner: Arc<Mutex<Inner>>,
    show: Arc<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct Inner {
    events: Vec<Event>,
    timeline: Timeline,
    owned: BTreeMap<MemberId, BTreeSet<Partition>>,
    /// Partitions that their present owner has delivered something of since it got them.
    flowing: BTreeSet<(MemberId, Partition)>,
}

impl Board {
    /// A board on which nothing is written yet; `show` gets the lines of the timeline.
    pub(crate) fn new(clock: Clock, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { clock, inner: Arc::default(), show: Arc::new(show) }
    }

    /// The demo's clock.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Since the demo began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down that something happened just now.
    pub(crate) fn write(&self, member: MemberId, what: What) {
        self.record(Event { at: self.elapsed(), member, what });
    }

    /// Writes down what a member says has happened.
    pub(crate) fn record(&self, event: Event) {
        let mut inner = self.lock();
        inner.apply(&event);
        inner.timeline.event(&event).iter().for_each(|line| (self.show)(line));
        inner.events.push(event);
    }

    /// Something is done to the group.
    pub(crate) fn begin(&self, doing: &str) {
        let at = self.elapsed();
        self.lock().timeline.begin(at, doing).iter().for_each(|line| (self.show)(line));
    }

    /// The group is at rest again.
    pub(crate) fn settle(&self, at: Duration, took: Duration, cost: &Rebalance) {
        self.lock().timeline.settle(at, took, cost).iter().for_each(|line| (self.show)(line));
    }

    /// Everything that happened so far, in the order in which it happened.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.lock().events.clone();
        events.sort_by_key(|event| event.at);
        events
    }

    /// Whether these members, and nobody else, own all `partitions` partitions, fairly, and all of them flow.
    pub(crate) fn at_rest(&self, members: &[MemberId], partitions: usize) -> bool {
        let inner = self.lock();
        let shares: Vec<usize> =
            members.iter().map(|m| inner.owned.get(m).map_or(0, BTreeSet::len)).collect();
        let (most, least) = (shares.iter().max(), shares.iter().min());
        let fair = most.zip(least).is_some_and(|(most, least)| most - least <= 1);
        let all = inner.owned.values().map(BTreeSet::len).sum::<usize>() == partitions;
        let complete = shares.iter().sum::<usize>() == partitions;
        let mut held = inner.owned.iter().flat_map(|(m, ps)| ps.iter().map(move |p| (*m, p.clone())));
        fair && all && complete && held.all(|key| inner.flowing.contains(&key))
    }

    /// The next offset of every partition, counted from what members were handed.
    pub(crate) fn delivered_up_to(&self) -> BTreeMap<Partition, i64> {
        let mut next = BTreeMap::new();
        for event in &self.lock().events {
            if let What::Delivered { partition, runs } = &event.what {
                let highest = runs.iter().map(|(_, last)| last + 1).max().unwrap_or(0);
                let entry = next.entry(partition.clone()).or_insert(highest);
                *entry = (*entry).max(highest);
            }
        }
        next
    }
}

impl Inner {
    fn apply(&mut self, event: &Event) {
        let member = event.member;
        match &event.what {
            What::Assigned(partitions) => {
                self.owned.entry(member).or_default().extend(partitions.iter().cloned())
            }
            What::Revoked(partitions) | What::Lost(partitions) => {
                for partition in partitions {
                    self.owned.entry(member).or_default().remove(partition);
                    self.flowing.remove(&(member, partition.clone()));
                }
            }
            What::Delivered { partition, .. } => {
                self.flowing.insert((member, partition.clone()));
            }
            What::Killed => {
                self.owned.remove(&member);
                self.flowing.retain(|(m, _)| *m != member);
            }
            What::Started | What::Committed(_) | What::History(_) | What::Left | What::Trouble(_) => {}
        }
    }
}
