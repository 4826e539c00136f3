//! What to fetch next, broker by broker.
//!
//! One request at a time is under way to each broker; while one waits there, records of the one before are handed out.
//! What becomes fetchable while a request waits for records of others (a partition that has just been assigned, or sought
//! in) is asked for aside, over another connection and without waiting, so that it is not held up by a long poll.
//! Mirrors `AbstractFetch.prepareFetchRequests`.

use super::{
    buffer,
    partition::{Partition, Phase},
    portion::Portion,
    session::{Asked, Session},
};
use crate::{
    cluster::{Metadata, Ticket},
    config::IsolationLevel,
    lease::Incarnation,
};
use std::{
    collections::{BTreeMap, BTreeSet, btree_map},
    iter::Peekable,
    time::Duration,
};
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
    pub(crate) portion: Portion,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) aside: Option<UnderWay>,
    /// Requests aside that brought nothing while the same long poll waits.
    vain: u32,
    aside_not_before: Option<Instant>,
    /// The broker asked for a pause, or could not be reached.
    pub(crate) not_before: Option<Instant>,
    /// When to look again what may be fetched from it.
    wake: Option<Instant>,
}

impl Node {
    /// What is not being asked for already.
    fn without_covered(&self, mut wanted: Wanted) -> Wanted {
        for under_way in [&self.under_way, &self.aside].into_iter().flatten() {
            let mut hint = 0;
            wanted.retain(|want| {
                under_way.asked_of(&want.name, &mut hint) != Some((want.incarnation, want.asked.offset))
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
    pub(crate) asked: Wanted,
}

impl UnderWay {
    /// For which ownership, and from which offset on, a partition was asked for. Brokers answer in the order of the
    /// request, mostly: `hint` says where it was found last, and the one behind is looked at first.
    pub(crate) fn asked_of(&self, name: &TopicPartition, hint: &mut usize) -> Option<(Incarnation, i64)> {
        let at = match self.asked.get(*hint) {
            Some(want) if want.name == *name => *hint,
            _ => self.asked.binary_search_by(|want| want.name.cmp(name)).ok()?,
        };
        *hint = at + 1;
        self.asked.get(at).map(|want| (want.incarnation, want.asked.offset))
    }
}

/// Everything that is fetched, and from whom.
#[derive(Debug)]
pub(crate) struct Fetches {
    pub(crate) settings: FetchSettings,
    pub(crate) partitions: BTreeMap<TopicPartition, Partition>,
    pub(crate) nodes: BTreeMap<i32, Node>,
    /// Something changed that may make a fetch possible, from any broker.
    pub(crate) stale: bool,
    /// Brokers of which that is true while nothing has changed for the others.
    pub(crate) touched: BTreeSet<i32>,
    /// The next time that something may be fetched that may not be now.
    wake: Option<Instant>,
    /// That time has come.
    woken: bool,
    /// Some partitions may not know yet where they start.
    pub(crate) seeking: bool,
    /// The next time that a partition may be tried again.
    retry_at: Option<Instant>,
    index: Option<Index>,
}

/// Who is asked for which partitions. Made anew only when that changes, so that an answer of one broker costs no look at
/// the partitions of all others, nor at their leaders.
#[derive(Debug, Default)]
struct Index {
    by_node: BTreeMap<i32, Vec<Place>>,
    leaderless: Vec<TopicPartition>,
    /// When a follower is no longer preferred.
    until: Option<Instant>,
}

/// A partition at the broker that is asked for it.
#[derive(Debug)]
struct Place {
    name: TopicPartition,
    /// The epoch of the leader; -1 when it is not known.
    leader_epoch: i32,
}

impl Index {
    fn new(now: Instant, partitions: &mut BTreeMap<TopicPartition, Partition>, metadata: &Metadata) -> Self {
        let mut index = Self::default();
        let is_known = |id: &i32| metadata.brokers().contains_key(id);
        for (name, partition) in partitions {
            partition.preferred = partition.preferred.filter(|(node, until)| *until > now && is_known(node));
            index.until = soonest(index.until, partition.preferred.map(|(_, until)| until));
            partition.node =
                partition.preferred.map(|(node, _)| node).or(metadata.leader(name).filter(is_known));
            match partition.node {
                Some(node) => {
                    let leader_epoch = metadata.partition(name).and_then(|p| p.leader_epoch).unwrap_or(-1);
                    let place = Place { name: name.clone(), leader_epoch };
                    index.by_node.entry(node).or_default().push(place);
                }
                None => index.leaderless.push(name.clone()),
            }
        }
        index
    }
}

/// Finds partitions that are asked for in their order: by walking along when they are a good part of all, one by one
/// when they are few of many.
enum Along<'a> {
    All(Peekable<btree_map::Iter<'a, TopicPartition, Partition>>),
    Few(&'a BTreeMap<TopicPartition, Partition>),
}

impl<'a> Along<'a> {
    fn new(partitions: &'a BTreeMap<TopicPartition, Partition>, wanted: usize) -> Self {
        if wanted.saturating_mul(8) >= partitions.len() {
            Self::All(partitions.iter().peekable())
        } else {
            Self::Few(partitions)
        }
    }

    fn find(&mut self, name: &TopicPartition) -> Option<&'a Partition> {
        match self {
            Self::All(rest) => {
                while rest.next_if(|(known, _)| *known < name).is_some() {}
                rest.next_if(|(known, _)| *known == name).map(|(_, partition)| partition)
            }
            Self::Few(partitions) => partitions.get(name),
        }
    }
}

/// What to ask of one broker for one partition.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) name: TopicPartition,
    pub(crate) asked: Asked,
    pub(crate) incarnation: Incarnation,
}

/// What to ask of one broker, sorted by name.
pub(crate) type Wanted = Vec<Want>;

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
        Self {
            settings,
            partitions: BTreeMap::new(),
            nodes: BTreeMap::new(),
            stale: false,
            touched: BTreeSet::new(),
            wake: None,
            woken: false,
            seeking: false,
            retry_at: None,
            index: None,
        }
    }

    /// How many bytes of one partition may wait.
    pub(crate) fn share(&self) -> usize {
        let most = usize::try_from(self.settings.partition_max_bytes).unwrap_or(1);
        buffer::share(self.settings.queue_bytes, self.partitions.len(), most)
    }

    /// Leaders or partitions have changed: who is asked for what has to be looked up again.
    pub(crate) fn reindex(&mut self) {
        self.index = None;
        self.stale = true;
    }

    /// Whether a look at what may be fetched would find anything new.
    pub(crate) fn has_changed(&self) -> bool {
        self.stale || self.woken || !self.touched.is_empty()
    }

    /// What may be fetched now from brokers that have nothing to do. Only those are looked at for which something has changed.
    pub(crate) fn plan(&mut self, now: Instant, metadata: &Metadata) -> Plan {
        let share = self.share();
        let least = usize::try_from(self.settings.min_bytes).unwrap_or(0);
        self.woken = false;
        let (mut all, touched) = (std::mem::take(&mut self.stale), std::mem::take(&mut self.touched));
        let index = match self.index.take() {
            Some(index) if index.until.is_none_or(|until| until > now) => index,
            _ => {
                all = true;
                Index::new(now, &mut self.partitions, metadata)
            }
        };
        if all {
            self.nodes.values_mut().for_each(|node| node.wake = None);
        }
        let mut plan = Plan::default();
        for (id, places) in &index.by_node {
            let node = self.nodes.entry(*id).or_default();
            if !all && !touched.contains(id) && node.wake.is_none_or(|at| at > now) {
                continue;
            }
            node.wake = None;
            if node.under_way.is_some() && node.aside.is_some() {
                continue;
            }
            node.wake = node.not_before_at(now).filter(|at| *at > now);
            if node.wake.is_some() {
                continue;
            }
            let most = node.portion.of_each(places.len(), least, share);
            let wanted = Self::wanted(&self.partitions, places, now, (share, most));
            let wanted = node.without_covered(wanted);
            if wanted.is_empty() {
                continue;
            }
            let plans = if node.under_way.is_none() { &mut plan.by_node } else { &mut plan.aside };
            plans.insert(*id, wanted);
        }
        self.wake = self.nodes.values().filter_map(|node| node.wake).chain(index.until).min();
        let fetchable = |name: &&TopicPartition| {
            self.partitions.get(*name).is_some_and(|p| p.fetchable(now, share).is_some())
        };
        if all {
            plan.leaderless = index.leaderless.iter().filter(fetchable).cloned().collect();
        }
        self.index = Some(index);
        plan
    }

    fn wanted(
        partitions: &BTreeMap<TopicPartition, Partition>,
        places: &[Place],
        now: Instant,
        (share, most): (usize, usize),
    ) -> Wanted {
        let mut along = Along::new(partitions, places.len());
        let one = |place: &Place| {
            let partition = along.find(&place.name)?;
            let position = partition.fetchable(now, share)?;
            let asked = Asked {
                topic_id: partition.topic_id,
                offset: position.offset,
                leader_epoch: place.leader_epoch,
                max_bytes: i32::try_from(most).unwrap_or(i32::MAX),
            };
            Some(Want { name: place.name.clone(), asked, incarnation: partition.incarnation })
        };
        let mut wanted = Vec::with_capacity(places.len());
        wanted.extend(places.iter().filter_map(one));
        wanted
    }

    /// The request that asks a broker for this.
    pub(crate) fn request(&mut self, node: i32, wanted: &[Want]) -> FetchRequest {
        let mut request = self.frame();
        // No more than one partition can bring, whole batches only (see `Portion::of_each`).
        request.min_bytes = request.min_bytes.min((most_of_one(wanted) / 2).max(1));
        let node = self.nodes.entry(node).or_default();
        request.max_bytes = most_bytes(&node.portion, wanted, &request);
        node.session.fill(&mut request, wanted);
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
    pub(crate) fn request_aside(&mut self, node: i32, wanted: &[Want]) -> FetchRequest {
        let mut request = FetchRequest { max_wait_ms: 0, ..self.frame() };
        request.max_bytes = most_bytes(&self.nodes.entry(node).or_default().portion, wanted, &request);
        Session::default().fill(&mut request, wanted);
        FetchRequest { session_epoch: -1, ..request }
    }

    /// Partitions in this phase that may be tried now; also those that go away: a listener may ask for their position in
    /// revoked.
    pub(crate) fn due(&self, now: Instant, phase: impl Fn(&Phase) -> bool) -> Vec<TopicPartition> {
        if !self.seeking {
            return Vec::new();
        }
        let due = self.partitions.iter().filter(|(_, p)| phase(&p.phase) && p.is_due(now));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Looks whether any partition still does not know where it starts.
    pub(crate) fn look_for_seeking(&mut self) {
        let seeks = |p: &Partition| matches!(p.phase, Phase::Committed | Phase::Spot(_) | Phase::Doubtful(_));
        self.seeking = self.seeking && self.partitions.values().any(seeks);
    }

    /// A partition failed and is tried again at this time.
    pub(crate) fn retry(&mut self, at: Option<Instant>) {
        self.retry_at = soonest(self.retry_at, at);
        (self.stale, self.seeking) = (true, true);
    }

    /// Time passed: what failed may be tried again.
    pub(crate) fn time_passed(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            let later = self.partitions.values().filter_map(Partition::retry_at).filter(|at| *at > now);
            self.retry_at = later.min();
            self.stale = true;
        }
        self.woken |= self.wake.is_some_and(|at| at <= now);
    }

    /// When to say that time has passed.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        soonest(self.wake, self.retry_at)
    }
}

/// How much one partition may bring.
pub(crate) fn most_of_one(wanted: &[Want]) -> i32 {
    wanted.iter().map(|want| want.asked.max_bytes).max().unwrap_or(0)
}

/// How much the whole answer may bring.
fn most_bytes(portion: &Portion, wanted: &[Want], request: &FetchRequest) -> i32 {
    let each = most_of_one(wanted);
    let most = portion.of_all(wanted.len(), usize::try_from(each).unwrap_or(0));
    i32::try_from(most).unwrap_or(i32::MAX).max(request.min_bytes).min(request.max_bytes)
}
