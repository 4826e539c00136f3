//! What to fetch next, broker by broker.
//!
//! One request at a time is under way to each broker; while one waits there, records of the one before are handed out.
//! What becomes fetchable while a request waits for records of others (a partition that has just been assigned, or sought
//! in) is asked for aside, over another connection and without waiting, so that it is not held up by a long poll.
//! Mirrors `AbstractFetch.prepareFetchRequests`.

use super::{
    buffer,
    partition::{Partition, Phase},
    session::{Asked, Session},
};
use crate::{
    cluster::{Metadata, Ticket},
    config::IsolationLevel,
    lease::Incarnation,
};
use std::{collections::BTreeMap, time::Duration};
use tontine_group::{Instant, TopicPartition, time::soonest};
use tontine_wire::api::fetch::FetchRequest;

/// What fetching needs to know of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct FetchSettings {
    pub(crate) min_bytes: i32,
    pub(crate) max_wait: Duration,
    pub(crate) max_bytes: i32,
    pub(crate) partition_max_bytes: i32,
    pub(crate) queue_bytes: usize,
    pub(crate) isolation: IsolationLevel,
    pub(crate) rack: String,
}

/// A request that is answered within this time has not waited for records.
const QUICK: Duration = Duration::from_millis(5);
/// The first pause after a request aside that brought nothing; it doubles.
const ASIDE_PAUSE: Duration = Duration::from_millis(25);

/// The fetches of one broker.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) session: Session,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) aside: Option<UnderWay>,
    /// Requests aside that brought nothing while the same long poll waits.
    vain: u32,
    aside_not_before: Option<Instant>,
    /// The broker asked for a pause, or could not be reached.
    pub(crate) not_before: Option<Instant>,
}

impl Node {
    /// What is not being asked for already.
    fn without_covered(&self, mut wanted: Wanted) -> Wanted {
        for under_way in [&self.under_way, &self.aside].into_iter().flatten() {
            wanted.retain(|name, (asked, incarnation)| {
                under_way.asked.get(name) != Some(&(*incarnation, asked.offset))
            });
        }
        wanted
    }

    /// When the broker may be asked for something new.
    fn not_before_at(&self, now: Instant) -> Option<Instant> {
        let pause = self.not_before.filter(|at| *at > now);
        let Some(long_poll) = &self.under_way else { return pause };
        let quick = long_poll.since + QUICK;
        Some(pause.unwrap_or(quick).max(quick).max(self.aside_not_before.unwrap_or(quick)))
    }

    /// A request aside was answered.
    pub(crate) fn aside_answered(&mut self, now: Instant, brought_something: bool) {
        self.vain = if brought_something { 0 } else { self.vain.saturating_add(1) };
        let pause = ASIDE_PAUSE.saturating_mul(1 << self.vain.min(5));
        self.aside_not_before = (!brought_something).then(|| now + pause / 2);
    }

    /// The long poll was answered.
    pub(crate) fn long_poll_answered(&mut self) {
        (self.vain, self.aside_not_before) = (0, None);
    }
}

/// A fetch that has not been answered.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub(crate) ticket: Ticket,
    pub(crate) since: Instant,
    /// What was asked for, so that an answer that is out of date is known as such.
    pub(crate) asked: BTreeMap<TopicPartition, (Incarnation, i64)>,
}

/// Everything that is fetched, and from whom.
#[derive(Debug)]
pub(crate) struct Fetches {
    pub(crate) settings: FetchSettings,
    pub(crate) partitions: BTreeMap<TopicPartition, Partition>,
    pub(crate) nodes: BTreeMap<i32, Node>,
    /// Something changed that may make a fetch possible.
    pub(crate) stale: bool,
    /// The next time that something may be fetched that may not be now.
    pub(crate) wake: Option<Instant>,
}

/// What to ask of one broker.
pub(crate) type Wanted = BTreeMap<TopicPartition, (Asked, Incarnation)>;

/// What a look at all partitions came to.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) by_node: BTreeMap<i32, Wanted>,
    /// What to ask for while a long poll is under way to the same broker.
    pub(crate) aside: BTreeMap<i32, Wanted>,
    /// Partitions that could be fetched if their leader were known.
    pub(crate) leaderless: Vec<TopicPartition>,
}

impl Fetches {
    pub(crate) fn new(settings: FetchSettings) -> Self {
        Self { settings, partitions: BTreeMap::new(), nodes: BTreeMap::new(), stale: false, wake: None }
    }

    /// How many bytes of one partition may wait.
    pub(crate) fn share(&self) -> usize {
        let most = usize::try_from(self.settings.partition_max_bytes).unwrap_or(1);
        buffer::share(self.settings.queue_bytes, self.partitions.len(), most)
    }

    /// What may be fetched now from brokers that have nothing to do.
    pub(crate) fn plan(&mut self, now: Instant, metadata: &Metadata) -> Plan {
        let share = self.share();
        let mut plan = Plan::default();
        let mut wake = None;
        for (name, partition) in &mut self.partitions {
            if let Some(at) = partition.retry_at().filter(|at| *at > now) {
                wake = soonest(wake, Some(at));
            }
            let Some(position) = partition.fetchable(now, share) else { continue };
            if partition.preferred.is_some_and(|(_, until)| until <= now) {
                partition.preferred = None;
            }
            let known = metadata.partition(name);
            let leader = known.and_then(|p| p.leader).filter(|id| metadata.brokers().contains_key(id));
            let preferred =
                partition.preferred.map(|(node, _)| node).filter(|id| metadata.brokers().contains_key(id));
            let Some(node) = preferred.or(leader) else {
                plan.leaderless.push(name.clone());
                continue;
            };
            let asked = Asked {
                topic_id: partition.topic_id,
                offset: position.offset,
                leader_epoch: known.and_then(|p| p.leader_epoch).unwrap_or(-1),
                max_bytes: i32::try_from(share).unwrap_or(i32::MAX),
            };
            plan.by_node.entry(node).or_default().insert(name.clone(), (asked, partition.incarnation));
        }
        for (id, wanted) in std::mem::take(&mut plan.by_node) {
            let node = self.nodes.entry(id).or_default();
            let (at, free) = (node.not_before_at(now), node.under_way.is_none());
            let wanted = node.without_covered(wanted);
            match at.filter(|at| *at > now) {
                _ if wanted.is_empty() => {}
                Some(at) => wake = soonest(wake, Some(at)),
                None if free => drop(plan.by_node.insert(id, wanted)),
                None if node.aside.is_none() => drop(plan.aside.insert(id, wanted)),
                None => {}
            }
        }
        self.wake = wake;
        plan
    }

    /// The request that asks a broker for this.
    pub(crate) fn request(&mut self, node: i32, wanted: &Wanted) -> FetchRequest {
        let mut request = self.frame();
        let asked = wanted.iter().map(|(name, (asked, _))| (name.clone(), *asked)).collect();
        self.nodes.entry(node).or_default().session.fill(&mut request, asked);
        request
    }

    /// A request that asks for nothing yet.
    fn frame(&self) -> FetchRequest {
        let settings = &self.settings;
        FetchRequest {
            replica_id: -1,
            max_wait_ms: i32::try_from(settings.max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: settings.min_bytes,
            max_bytes: settings.max_bytes,
            isolation_level: i8::from(settings.isolation == IsolationLevel::ReadCommitted),
            rack_id: settings.rack.clone(),
            ..FetchRequest::default()
        }
    }

    /// The request that asks a broker for this without waiting, and without its session.
    pub(crate) fn request_aside(&mut self, wanted: &Wanted) -> FetchRequest {
        let asked = wanted.iter().map(|(name, (asked, _))| (name.clone(), *asked)).collect();
        let mut request = FetchRequest { max_wait_ms: 0, ..self.frame() };
        Session::default().fill(&mut request, asked);
        FetchRequest { session_epoch: -1, ..request }
    }

    /// Partitions in this phase that may be tried now; also those that go away: a listener may ask for their position in
    /// revoked.
    pub(crate) fn due(&self, now: Instant, phase: impl Fn(&Phase) -> bool) -> Vec<TopicPartition> {
        let due = self.partitions.iter().filter(|(_, p)| phase(&p.phase) && p.is_due(now));
        due.map(|(name, _)| name.clone()).collect()
    }
}
