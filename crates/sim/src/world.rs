//! The world of one run: the queue of what happens when, and everything that it happens to.
//!
//! One thread, one clock, one seed. Consumers and brokers are the production machines; only sockets and clocks are ours.
//! What brokers do is in `brokers`, what consumers do in `consumers`, what applications do in `app`, what is done to
//! the world in `trouble`, the course of a run in `phases`.

use crate::{
    client::{Client, UNIX_MS},
    cuts::Cuts,
    disk::{DiskPlan, Storage},
    fact::{Fact, Life},
    fate::{Fate, Gate, Judge},
    holders::Holders,
    invariants::{self, Invariant},
    lie::{Lie, Slip},
    network::{Link, Way},
    producers::Producer,
    random::Random,
    report::Counts,
    scan::Scan,
    workload::Plan,
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine::{TopicPartition, audit::Audit, cluster::ConnId as ClientConn};
use tontine_broker::{BrokerConfig, BrokerState, NewTopic, Node, NodeId};
use tontine_group::Instant;
use tontine_wire::{
    Uuid,
    api::{Response, offset_commit::OffsetCommitRequest},
};

/// The group's name in every run.
pub(crate) const GROUP: &str = "g";
/// Topics that members subscribe to; not all of them exist at all times.
pub(crate) const TOPICS: [&str; 3] = ["t0", "t1", "t2"];
/// A pattern for all of them.
pub(crate) const PATTERN: &str = "t[0-9]";
/// Connections of the simulator itself have numbers from here on.
pub(crate) const INSIDE: u64 = 1 << 60;
/// More happenings than this in one second of a run is a storm.
const STORM: u64 = 200_000;

/// How much the clocks of members differ at the end of a long run.
const TOLERANCE_MS: u32 = 400;

/// Whose chance it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Member(Life),
    Link(Life, ClientConn),
    Trouble(u64),
    Record(u64),
    Healing,
    Boot(u64),
    Producer(u64, u64),
}

impl Stream {
    pub(crate) fn tag(self) -> u64 {
        let (kind, number) = match self {
            Self::Member(life) => (1, life.0.into()),
            Self::Link(life, conn) => (2, u64::from(life.0) << 32 | conn.0),
            Self::Trouble(number) => (3, number),
            Self::Record(number) => (4, number),
            Self::Healing => (5, 0),
            Self::Boot(number) => (6, number),
            Self::Producer(number, turn) => (7, number << 32 | turn),
        };
        (kind << 56) | number
    }
}

/// What happens at a point in time.
#[derive(Debug)]
pub(crate) enum Happening {
    Connected(u64),
    Refused(u64),
    Arrives(u64, Way, Bytes),
    /// The client's end is closed.
    HungUp(u64),
    /// The broker's end is closed.
    Closed(u64),
    Timer(Life),
    App(Life),
    BrokerTimer,
    Trouble,
    Produce,
    /// A transactional producer does the next thing.
    Producer(u64),
    Restart(NodeId),
    /// A request that was held back on this connection goes on.
    Opens(u64),
    Sees(NodeId),
    /// The brokers' process is started again.
    Power,
    /// There is room on the disk again.
    Room,
    /// The disk has done what it was asked.
    DiskReady,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    /// The source of all others: each member, connection and trouble has its own, so that leaving one out changes the others
    /// as little as can be.
    pub(crate) root: Random,
    /// The source of whatever happens now.
    pub(crate) random: Random,
    pub(crate) now: Instant,
    pub(crate) queue: BTreeMap<(Instant, u64), Happening>,
    count: u64,
    second: (u64, u64),
    pub(crate) broker: BrokerState,
    /// When the brokers' process was started: its clock counts from there.
    pub(crate) booted: Instant,
    /// What the brokers keep things on; nothing when it is memory.
    pub(crate) storage: Option<Storage>,
    pub(crate) broker_timer: Option<Instant>,
    pub(crate) producers: BTreeMap<u64, Producer>,
    /// How far logs were looked at for transactions.
    pub(crate) scans: BTreeMap<TopicPartition, Scan>,
    pub(crate) links: BTreeMap<u64, Link>,
    pub(crate) next_link: u64,
    pub(crate) clients: BTreeMap<Life, Box<Client>>,
    pub(crate) next_life: u32,
    /// Commits that wait for their answers.
    pub(crate) commits: BTreeMap<u64, OffsetCommitRequest>,
    pub(crate) inside: Option<Response>,
    pub(crate) history: Vec<(Instant, Fact)>,
    invariants: Vec<Box<dyn Invariant>>,
    pub(crate) failure: Option<(&'static str, String)>,
    pub(crate) counts: Counts,
    pub(crate) topic_names: BTreeMap<Uuid, String>,
    /// The ids of the topics that exist.
    pub(crate) topic_ids: BTreeMap<String, Uuid>,
    pub(crate) topics: BTreeSet<String>,
    /// How many topics of each name there have been.
    births: BTreeMap<String, u32>,
    /// What is to become of requests when they come.
    pub(crate) gates: Vec<Gate>,
    /// What is to become of the answer that is due on a connection.
    pub(crate) fates: BTreeMap<u64, Fate>,
    pub(crate) judge: Judge,
    /// How many requests of which kind members have made; counted in scripts only.
    pub(crate) asked: BTreeMap<(Life, i16), u64>,
    /// Connections on which one is.
    pub(crate) gated: BTreeSet<u64>,
    /// Until when answers ask for patience, and for how many milliseconds.
    pub(crate) throttle: (Instant, i32),
    pub(crate) holders: Holders,
    pub(crate) seen: BTreeMap<TopicPartition, BTreeMap<i64, i64>>,
    pub(crate) healed: bool,
    pub(crate) producing: bool,
    /// When the group changed last, as its coordinator or a listener saw it.
    pub(crate) changed: Instant,
    /// When there was something last that may yet turn out to have gone wrong, unseen: what is dead or late is noticed when
    /// it is used.
    pub(crate) uneasy: Instant,
    /// How many times the group has come together, and who was last told so in which round.
    pub(crate) rounds: u64,
    pub(crate) joined: BTreeMap<String, u64>,
    pub(crate) requests: u64,
    pub(crate) joins: u64,
    /// How many times records were written.
    pub(crate) produced: u64,
    /// How many troubles there were, with those left out.
    pub(crate) troubles: u64,
    left_out: BTreeSet<u64>,
    pub(crate) lie: Option<Box<dyn Lie>>,
    /// What members do wrong.
    pub(crate) slip: Option<Slip>,
    /// Requests and answers go into the timeline.
    pub(crate) verbose: bool,
    /// What members wrote down.
    pub(crate) audit: Audit,
    /// Records hold what a test says, not what tells where they are.
    pub(crate) foreign_records: bool,
    /// What members subscribe to.
    pub(crate) wanted: BTreeSet<Arc<str>>,
}

pub(crate) fn broker_config(plan: &Plan) -> BrokerConfig {
    let mut config = BrokerConfig::new();
    for (key, value) in [
        ("offsets.topic.num.partitions", "1"),
        ("auto.create.topics.enable", "false"),
        ("group.initial.rebalance.delay.ms", "0"),
        ("group.consumer.min.session.timeout.ms", "1000"),
        ("group.consumer.session.timeout.ms", &plan.session.to_string()),
        ("group.consumer.min.heartbeat.interval.ms", "100"),
        ("group.consumer.heartbeat.interval.ms", &plan.heartbeat.to_string()),
    ] {
        // Each is in the table, with these values allowed.
        let _ = config.set(key, value);
    }
    if plan.transactions.is_some() {
        let _ = config.set("transaction.state.log.num.partitions", "1");
    }
    for (key, value) in plan.disk.iter().flat_map(DiskPlan::settings) {
        let _ = config.set(key, &value);
    }
    config
}

pub(crate) fn nodes(plan: &Plan) -> BTreeMap<NodeId, Node> {
    (1..=plan.nodes).map(|id| (id, Node::new(format!("n{id}"), 9_092))).collect()
}

impl World {
    pub(crate) fn new(seed: u64, cuts: &Cuts, lie: Option<Box<dyn Lie>>) -> Self {
        let mut random = Random::new(seed);
        let plan = Plan::draw(&mut random);
        let mut world = Self::of(cuts.applied_to(plan), random, lie);
        world.left_out.clone_from(&cuts.troubles);
        world
    }

    pub(crate) fn of(plan: Plan, mut random: Random, lie: Option<Box<dyn Lie>>) -> Self {
        let config = broker_config(&plan);
        let storage = plan.disk.as_ref().map(|disk| Storage::new(disk, random.fork(7).bits()));
        let broker = BrokerState::new(config, nodes(&plan), random.bits(), UNIX_MS);
        let mut world = Self {
            plan,
            booted: Instant::ZERO,
            storage,
            root: random.clone(),
            random,
            produced: 0,
            troubles: 0,
            left_out: BTreeSet::new(),
            now: Instant::ZERO,
            queue: BTreeMap::new(),
            count: 0,
            second: (0, 0),
            broker,
            broker_timer: None,
            producers: BTreeMap::new(),
            scans: BTreeMap::new(),
            links: BTreeMap::new(),
            next_link: 0,
            clients: BTreeMap::new(),
            next_life: 0,
            commits: BTreeMap::new(),
            inside: None,
            history: Vec::new(),
            invariants: invariants::all(),
            failure: None,
            counts: Counts::default(),
            topic_names: BTreeMap::new(),
            topic_ids: BTreeMap::new(),
            topics: BTreeSet::new(),
            births: BTreeMap::new(),
            gates: Vec::new(),
            fates: BTreeMap::new(),
            judge: Judge::default(),
            asked: BTreeMap::new(),
            gated: BTreeSet::new(),
            throttle: (Instant::ZERO, 0),
            holders: Holders::default(),
            seen: BTreeMap::new(),
            healed: false,
            producing: true,
            changed: Instant::ZERO,
            uneasy: Instant::ZERO,
            rounds: 0,
            joined: BTreeMap::new(),
            requests: 0,
            joins: 0,
            lie,
            slip: None,
            verbose: false,
            audit: Audit::new(TOLERANCE_MS),
            foreign_records: false,
            wanted: TOPICS.into_iter().map(Into::into).collect(),
        };
        if world.storage.is_some() {
            world.open_disk();
        }
        world
    }

    /// What the clock of the brokers' process says.
    pub(crate) fn broker_now(&self) -> Instant {
        Instant::ZERO + self.now.saturating_since(self.booted)
    }

    /// Lets something happen with a source of chance of its own.
    pub(crate) fn by_chance_of<T>(&mut self, stream: Stream, what: impl FnOnce(&mut Self) -> T) -> T {
        let own = self.root.fork(stream.tag());
        let before = std::mem::replace(&mut self.random, own);
        let result = what(self);
        self.random = before;
        result
    }

    /// Whether a trouble of this number is left out of the history.
    pub(crate) fn leaves_out(&self, trouble: u64) -> bool {
        self.left_out.contains(&trouble)
    }

    /// Something happened: everybody who watches is told.
    pub(crate) fn record(&mut self, fact: Fact) {
        if self.failure.is_some() {
            return;
        }
        self.note(&fact);
        for invariant in &mut self.invariants {
            if let Err(why) = invariant.see(self.now, &fact) {
                self.failure = Some((invariant.name(), why));
                break;
            }
        }
        self.history.push((self.now, fact));
    }

    fn note(&mut self, fact: &Fact) {
        if matches!(fact, Fact::Group(_) | Fact::Began(..) | Fact::Returned(..) | Fact::Left(_)) {
            self.changed = self.now;
        }
        // What a script does shows a little later.
        if self.foreign_records && matches!(fact, Fact::Done(_)) {
            self.changed = self.now;
        }
        self.holders.see(fact);
        // What no member has to be handed out counts as seen.
        if let Fact::Mark(what, at) = fact {
            invariants::add(self.seen.entry(what.clone()).or_default(), *at, at + 1);
        }
        if let Fact::Decided(what, from, to, false) = fact {
            invariants::add(self.seen.entry(what.clone()).or_default(), *from, *to);
        }
        if let Fact::Deleted(topic) = fact {
            self.seen.retain(|name, _| *name.topic != **topic);
        }
        if let Fact::Kept { what, end, .. } = fact
            && let Some(ranges) = self.seen.get_mut(what)
        {
            invariants::cut(ranges, *end);
        }
        if let Fact::Delivered(_, what, from, to) = fact {
            // What the brokers have lost meanwhile does not count.
            let end = self.broker.log_offsets(&what.topic, what.partition).map(|(_, end)| end);
            let to =
                end.filter(|_| self.storage.is_some() && !self.is_dark()).map_or(*to, |end| end.min(*to));
            if *from >= to {
                return;
            }
            invariants::add(self.seen.entry(what.clone()).or_default(), *from, to);
        }
    }

    pub(crate) fn schedule(&mut self, at: Instant, what: Happening) {
        self.count += 1;
        self.queue.insert((at.max(self.now), self.count), what);
    }

    /// Runs until this time, or until something is wrong.
    pub(crate) fn run_until(&mut self, end: Instant) {
        while self.failure.is_none() {
            let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) else { break };
            let ((at, _), what) = entry.remove_entry();
            self.now = at.max(self.now);
            self.watch_for_storms(&what);
            self.happen(what);
        }
        self.now = end.max(self.now);
    }

    fn watch_for_storms(&mut self, what: &Happening) {
        let second = self.now.since_origin().as_secs();
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        if self.second.1 > STORM {
            self.record(Fact::Storm(format!(
                "more than {STORM} happenings in one second; the last: {what:?}"
            )));
        }
    }

    fn happen(&mut self, what: Happening) {
        if let Some(life) = self.whose(&what)
            && let Some(client) = self.clients.get(&life)
            && client.frozen_until > self.now
        {
            // In the order in which it came, once the process goes on.
            let at = client.frozen_until;
            return self.schedule(at, what);
        }
        if let Some(what) = self.brokers_take(what) {
            self.happen_now(what);
        }
    }

    pub(crate) fn happen_now(&mut self, what: Happening) {
        match what {
            Happening::Connected(id) => self.connected(id),
            Happening::Refused(id) => self.refused(id, "connection refused"),
            Happening::Closed(id) => self.refused(id, "the connection was closed by the broker"),
            Happening::Arrives(id, Way::Up, bytes) => self.arrived_up(id, &bytes),
            Happening::Arrives(id, Way::Down, bytes) => self.arrived_down(id, &bytes),
            Happening::HungUp(id) => self.hung_up(id),
            Happening::Timer(life) => self.timer(life),
            Happening::App(life) => self.app(life),
            Happening::BrokerTimer => {
                if self.broker_timer.is_some_and(|at| at <= self.now) {
                    self.broker_timer = None;
                    self.broker.handle_timeout(self.broker_now());
                    self.pump_broker();
                }
            }
            Happening::Trouble => self.trouble(),
            Happening::Produce => self.produce(),
            Happening::Producer(number) => self.producer(number),
            Happening::Restart(node) => self.restart(node),
            Happening::Opens(id) => self.open_gate(id),
            Happening::Sees(node) => {
                let _ = self.broker.set_black_hole(node, false);
            }
            Happening::Power => self.power_on(),
            Happening::Room => self.make_room(),
            Happening::DiskReady => self.go_on_with_the_disk(),
        }
    }

    /// The process that something happens in, if it is one that can stand still.
    fn whose(&self, what: &Happening) -> Option<Life> {
        match what {
            Happening::Timer(life) | Happening::App(life) => Some(*life),
            Happening::Connected(id)
            | Happening::Refused(id)
            | Happening::Closed(id)
            | Happening::Arrives(id, Way::Down, _) => Some(self.links.get(id)?.life),
            _ => None,
        }
    }

    /// Which topic of this name it is by now: the first, the second.
    pub(crate) fn birth(&self, topic: &str) -> u32 {
        self.births.get(topic).copied().unwrap_or(1)
    }

    /// What the record at a place says.
    pub(crate) fn value_at(&self, name: &TopicPartition, birth: u32, offset: i64) -> String {
        match birth {
            1 => format!("{name}:{offset}"),
            _ => format!("{name}:{offset} of topic number {birth}"),
        }
    }

    pub(crate) fn create(&mut self, name: &str, partitions: i32) {
        if let Ok(id) = self.broker.create_topic(self.broker_now(), &NewTopic::new(name, partitions)) {
            self.topic_names.insert(id, name.to_owned());
            self.topic_ids.insert(name.to_owned(), id);
            self.topics.insert(name.to_owned());
            *self.births.entry(name.to_owned()).or_default() += 1;
            self.record(Fact::Done(format!("topic {name} is created with {partitions} partitions")));
        }
        self.pump_broker();
    }
}
