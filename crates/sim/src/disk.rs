//! The brokers' disk: records, groups and everything else that they keep lie on it, and it is lost, torn, full and slow.
//!
//! All nodes of the simulated cluster are one process with one data directory, as in production. When the process is
//! killed, or its machine loses power, all of them are gone at once; what is started again is
//! [`BrokerState::open`] on what the disk has kept. What may be missing then is decided by the drawn flush policy, and judged by
//! `invariants::durability`.

use crate::{
    client::{UNIX_MS, unix_ms},
    fact::Fact,
    random::Random,
    workload::Trouble,
    world::{GROUP, Happening, Stream, World, broker_config, nodes},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tontine::TopicPartition;
use tontine_broker::{
    BrokerState,
    disk::{Outage, SimulatedDisk},
};
use tontine_group::Instant;
use tontine_wire::api::{Response, offset_commit::OffsetCommitRequest};

/// When what was written is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// `log.flush.interval.messages=1`: before each answer.
    Each,
    /// `log.flush.interval.ms`.
    Within(u64),
    /// As the operating system sees fit, which here is never.
    Never,
}

/// What may be missing after an end of the brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
    /// Nothing that was acknowledged.
    #[default]
    Nothing,
    /// What was acknowledged less than this long ago.
    Recent(Duration),
    /// Anything that was acknowledged.
    Anything,
}

/// What the brokers' disk is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlan {
    /// When it is synced.
    pub flush: Flush,
    /// What happens to it.
    pub troubles: Vec<Trouble>,
    /// `log.roll.ms`.
    pub roll: Option<u64>,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub checkpoint: u64,
}

const TROUBLES: [Trouble; 6] =
    [Trouble::Kill, Trouble::PowerCut, Trouble::Torn, Trouble::FullDisk, Trouble::SlowDisk, Trouble::BadSync];

impl DiskPlan {
    /// Draws a disk; most runs have none, so that they are as fast and as short as can be.
    pub fn draw(random: &mut Random) -> Option<Self> {
        if !random.percent(25) {
            return None;
        }
        let policies = [Flush::Each, Flush::Each, Flush::Each, Flush::Within(1_000), Flush::Never];
        let mut troubles: Vec<_> = TROUBLES.into_iter().filter(|_| random.percent(50)).collect();
        if troubles.is_empty() {
            troubles.push(Trouble::Torn);
        }
        let flush = random.pick(&policies).unwrap_or(Flush::Each);
        let roll = random.pick(&[None, Some(1_000), Some(10_000)]).flatten();
        Some(Self { flush, troubles, roll, checkpoint: random.pick(&[500, 60_000]).unwrap_or(60_000) })
    }

    /// As the brokers' configuration says it.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("log.flush.offset.checkpoint.interval.ms", self.checkpoint.to_string())];
        settings.extend(self.roll.map(|ms| ("log.roll.ms", ms.to_string())));
        match self.flush {
            Flush::Each => settings.push(("log.flush.interval.messages", "1".to_owned())),
            Flush::Within(ms) => settings.push(("log.flush.interval.ms", ms.to_string())),
            Flush::Never => {}
        }
        settings
    }

    /// What may be missing after such an end; what `docs/BROKER.md` promises.
    fn may_lose(&self, outage: Outage) -> Loss {
        match (outage, self.flush) {
            (Outage::Process, _) | (Outage::Machine, Flush::Each) => Loss::Nothing,
            (Outage::Machine, Flush::Within(ms)) => Loss::Recent(Duration::from_millis(ms * 3 / 2)),
            (Outage::Machine, Flush::Never) => Loss::Anything,
        }
    }
}

/// An end of the brokers in the middle of something that they do to the disk.
#[derive(Clone, Copy, Debug)]
struct Tear {
    /// The operation that gets through in part at most.
    at: u64,
    outage: Outage,
    /// How long they are gone.
    gone: Duration,
}

/// The disk, and what is remembered of what was on it.
#[derive(Debug)]
pub(crate) struct Storage {
    disk: SimulatedDisk,
    plan: DiskPlan,
    /// Nobody uses it: the brokers are gone.
    dark: bool,
    tear: Option<Tear>,
    boots: u64,
    /// Since when no sync gets through.
    bad_sync: Option<Instant>,
    /// How long one operation takes, and until when it takes any time.
    slow: (Duration, Instant),
    busy_until: Instant,
    operations: u64,
    /// What has come to the brokers while they waited for the disk.
    backlog: VecDeque<Happening>,
    /// What was committed, as far as it was answered, in this order.
    committed: BTreeMap<TopicPartition, Vec<i64>>,
    /// Commits that were not answered any more.
    unsure: Vec<OffsetCommitRequest>,
    /// What may be missing when the brokers come back.
    loss: Loss,
    /// The partitions that there were, and their leader epochs.
    before: BTreeMap<TopicPartition, Option<i32>>,
    /// What was read of these, and who had them, may have been lost afterwards.
    pub(crate) rewound: BTreeSet<TopicPartition>,
}

impl Storage {
    pub(crate) fn new(plan: &DiskPlan, seed: u64) -> Self {
        Self {
            disk: SimulatedDisk::new(seed),
            plan: plan.clone(),
            dark: true,
            tear: None,
            boots: 0,
            bad_sync: None,
            slow: (Duration::ZERO, Instant::ZERO),
            busy_until: Instant::ZERO,
            operations: 0,
            backlog: VecDeque::new(),
            committed: BTreeMap::new(),
            unsure: Vec::new(),
            loss: Loss::Nothing,
            before: BTreeMap::new(),
            rewound: BTreeSet::new(),
        }
    }

    fn is_torn(&self) -> bool {
        !self.dark && self.tear.is_some_and(|tear| self.disk.operations() >= tear.at)
    }
}

/// Whether something happens to the brokers' process.
fn is_of_the_brokers(what: &Happening) -> bool {
    match what {
        Happening::Arrives(_, way, _) => *way == crate::network::Way::Up,
        Happening::HungUp(_) | Happening::BrokerTimer | Happening::Opens(_) => true,
        _ => false,
    }
}

fn is_of_the_disk(kind: Trouble) -> bool {
    TROUBLES.contains(&kind)
}

/// Whether it needs brokers that run.
fn needs_brokers(kind: Trouble) -> bool {
    use Trouble as T;
    match kind {
        T::Join
        | T::Close
        | T::Resubscribe
        | T::Crash
        | T::Freeze
        | T::Slow
        | T::Pause
        | T::Seek
        | T::Callback
        | T::Cut
        | T::Stall
        | T::HalfOpen
        | T::Gate
        | T::Throttle => false,
        T::Stop
        | T::BlackHole
        | T::Leader
        | T::Coordinator
        | T::Partitions
        | T::Create
        | T::Delete
        | T::Recreate
        | T::Kill
        | T::PowerCut
        | T::Torn
        | T::FullDisk
        | T::SlowDisk
        | T::BadSync => true,
    }
}

impl World {
    pub(crate) fn is_dark(&self) -> bool {
        self.storage.as_ref().is_some_and(|storage| storage.dark)
    }

    /// Whether this can be done to the world as it is.
    pub(crate) fn may_happen(&mut self, kind: Trouble) -> bool {
        if self.storage.is_none() {
            return !is_of_the_disk(kind);
        }
        let changes_topics = matches!(kind, Trouble::Create | Trouble::Delete | Trouble::Recreate);
        // Whoever seeks a place does not know in which epoch it was written: what comes there after a loss is another matter.
        if kind == Trouble::Seek && self.plan.disk.as_ref().is_some_and(|disk| disk.flush != Flush::Each) {
            return false;
        }
        // Whoever changes topics here is no client that could ask whether it was done.
        if changes_topics && self.storage.as_ref().is_some_and(|storage| storage.tear.is_some()) {
            self.stop_in_the_middle();
        }
        if changes_topics && self.storage.as_ref().is_some_and(|storage| storage.bad_sync.is_some()) {
            return false;
        }
        !(self.is_dark() && needs_brokers(kind))
    }

    /// The brokers' process starts for the first time.
    pub(crate) fn open_disk(&mut self) {
        self.power_on();
    }

    pub(crate) fn kill_brokers(&mut self) {
        let gone = self.random.millis(50, 6_000);
        self.stop_brokers(Outage::Process, gone);
    }

    pub(crate) fn cut_power(&mut self) {
        let gone = self.random.millis(50, 6_000);
        self.stop_brokers(Outage::Machine, gone);
    }

    /// One of the next operations will not get through.
    pub(crate) fn tear(&mut self) {
        let (ahead, gone) = (self.random.between(1, 40), self.random.millis(50, 6_000));
        let outage = if self.random.percent(50) { Outage::Process } else { Outage::Machine };
        let Some(storage) = &mut self.storage else { return };
        if storage.tear.is_none() {
            let at = storage.disk.operations() + ahead;
            storage.disk.fail_at(at);
            storage.tear = Some(Tear { at, outage, gone });
            self.record(Fact::Done(format!("the disk will be gone in the middle of its {ahead}. operation")));
        }
    }

    pub(crate) fn fill_disk(&mut self) {
        let (room, long) = (self.random.below(2_000), self.random.millis(200, 6_000));
        let Some(storage) = &self.storage else { return };
        storage.disk.set_capacity(Some(storage.disk.used() + usize::try_from(room).unwrap_or(0)));
        self.counts.count("disks full");
        self.record(Fact::Done(format!("the disk has room for {room} bytes for {} ms", long.as_millis())));
        self.schedule(self.now + long, Happening::Room);
    }

    pub(crate) fn make_room(&mut self) {
        if let Some(storage) = &self.storage {
            storage.disk.set_capacity(None);
            self.record(Fact::Done("there is room on the disk".into()));
        }
    }

    pub(crate) fn slow_disk(&mut self) {
        let (each, long) = (self.random.between(200, 15_000), self.random.millis(200, 4_000));
        let Some(storage) = &mut self.storage else { return };
        storage.slow = (Duration::from_micros(each), self.now + long);
        storage.operations = storage.disk.operations();
        self.record(Fact::Done(format!(
            "for {} ms each operation of the disk takes {each} us",
            long.as_millis()
        )));
    }

    /// No sync gets through, until somebody starts the brokers again.
    pub(crate) fn spoil_sync(&mut self) {
        let long = self.random.millis(200, 5_000);
        let Some(storage) = &mut self.storage else { return };
        storage.disk.set_sync_fails(true);
        storage.bad_sync.get_or_insert(self.now);
        self.counts.count("disks that do not sync");
        self.record(Fact::Done("no sync of the disk gets through".into()));
        self.schedule(self.now + long, Happening::Power);
    }

    pub(crate) fn is_torn(&self) -> bool {
        self.storage.as_ref().is_some_and(Storage::is_torn)
    }

    /// The disk is gone in the middle of an operation, and the brokers with it: nothing that they say now is heard.
    pub(crate) fn stop_in_the_middle(&mut self) {
        if let Some(tear) = self.storage.as_ref().and_then(|storage| storage.tear) {
            self.stop_brokers(tear.outage, tear.gone);
        }
    }

    fn stop_brokers(&mut self, outage: Outage, gone: Duration) {
        // Members may still have what they got.
        self.scan_all();
        let with_epoch = |name: TopicPartition| {
            let leader = self.broker.leader(&name.topic, name.partition);
            (name, leader.map(|(_, epoch)| epoch))
        };
        // One that is being created has not been answered for.
        let stored = |name: &TopicPartition| self.broker.is_stored(&name.topic, name.partition);
        let before: BTreeMap<_, _> = self.partitions().into_iter().filter(stored).map(with_epoch).collect();
        let Some(storage) = self.storage.as_mut().filter(|storage| !storage.dark) else { return };
        let unsynced = storage.disk.unsynced();
        storage.disk = storage.disk.after(outage);
        storage.dark = true;
        let bad_since = storage.bad_sync.take().unwrap_or(self.now);
        storage.tear = None;
        storage.unsure.extend(std::mem::take(&mut self.commits).into_values());
        // Those that were starting had not found anything yet.
        if storage.before.is_empty() {
            storage.before = before;
        }
        storage.backlog.clear();
        storage.busy_until = self.now;
        self.counts.count(match (outage, unsynced) {
            (Outage::Process, _) => "crashes of the brokers' process",
            (Outage::Machine, false) => "crashes of the brokers' machine",
            (Outage::Machine, true) => "crashes of the brokers' machine with writes that were not synced",
        });
        if storage.plan.may_lose(outage) != Loss::Nothing {
            storage.rewound.extend(storage.before.keys().cloned());
        }
        let loss = match storage.plan.may_lose(outage) {
            // What was to be made durable since then was not, and nobody was told: it had been answered before.
            Loss::Recent(time) => Loss::Recent(time + self.now.saturating_since(bad_since)),
            other => other,
        };
        storage.loss = loss.max(storage.loss);
        self.record(Fact::Dark(outage, loss));
        let mut nodes = nodes(&self.plan);
        nodes.values_mut().for_each(|node| node.up = false);
        self.broker = BrokerState::new(broker_config(&self.plan), nodes, 0, UNIX_MS);
        self.broker_timer = None;
        self.gated.clear();
        let accepted: Vec<_> =
            self.links.iter().filter(|(_, link)| link.accepted).map(|(id, _)| *id).collect();
        accepted.into_iter().for_each(|id| self.disconnect(id, "the broker is gone"));
        self.schedule(self.now + gone, Happening::Power);
    }

    /// The brokers' process starts on what the disk has kept.
    pub(crate) fn power_on(&mut self) {
        if self.storage.as_ref().is_some_and(|storage| storage.bad_sync.is_some()) {
            self.stop_brokers(Outage::Process, Duration::ZERO);
        }
        let Some(storage) = self.storage.as_mut().filter(|storage| storage.dark) else { return };
        storage.boots += 1;
        let mut random = self.root.fork(Stream::Boot(storage.boots).tag());
        let tears = storage.boots > 1 && !self.healed && storage.plan.troubles.contains(&Trouble::Torn);
        if tears && random.percent(25) {
            let (at, gone) = (random.between(1, 12), random.millis(10, 500));
            let outage = if random.percent(50) { Outage::Process } else { Outage::Machine };
            storage.disk.fail_at(at);
            storage.tear = Some(Tear { at, outage, gone });
        }
        let disk = Arc::new(storage.disk.clone());
        let opened = BrokerState::open(
            broker_config(&self.plan),
            nodes(&self.plan),
            random.bits(),
            unix_ms(self.now),
            disk,
        );
        storage.dark = false;
        match opened {
            Ok(broker) => (self.broker, self.booted) = (broker, self.now),
            Err(_) if storage.is_torn() => {
                self.counts.count("crashes of brokers that were starting");
                return self.stop_in_the_middle();
            }
            Err(error) => {
                let why = format!("the brokers do not start again: {error}");
                self.failure = Some(("what is acknowledged is kept", why));
                return;
            }
        }
        if self.storage.as_ref().is_some_and(|storage| storage.boots > 1) {
            self.record(Fact::Done("the brokers are back".into()));
            for note in self.broker.take_notes() {
                self.record(Fact::Done(note));
            }
            self.say_what_was_kept();
        }
        self.pump_broker();
    }

    fn say_what_was_kept(&mut self) {
        let committed = self.broker.committed_offsets(GROUP);
        let Some(storage) = &mut self.storage else { return };
        let (unsure, before) = (std::mem::take(&mut storage.unsure), std::mem::take(&mut storage.before));
        for request in unsure {
            self.say_what_came_of(&request, &committed);
        }
        for (what, epoch) in before {
            let Some((_, end)) = self.broker.log_offsets(&what.topic, what.partition) else {
                self.record(Fact::Gone(what));
                continue;
            };
            let now = self.broker.leader(&what.topic, what.partition).map(|(_, epoch)| epoch);
            let (committed, epochs) = (committed.get(&what).copied(), (epoch, now));
            self.record(Fact::Kept { what, end, committed, epochs });
        }
        self.scans.clear();
        self.scan_all();
        if let Some(storage) = &mut self.storage {
            storage.loss = Loss::Nothing;
            storage.committed = committed.into_iter().map(|(what, offset)| (what, vec![offset])).collect();
        }
    }

    /// A commit that was never answered may be stored or not.
    fn say_what_came_of(&mut self, request: &OffsetCommitRequest, kept: &BTreeMap<TopicPartition, i64>) {
        for topic in &request.topics {
            let name = self.name_in(topic);
            for partition in &topic.partitions {
                let what = TopicPartition::new(name.as_str(), partition.partition_index);
                let offset = partition.committed_offset;
                let told = self.storage.as_ref().and_then(|storage| storage.committed.get(&what));
                let lossless = self.storage.as_ref().is_none_or(|storage| storage.loss == Loss::Nothing);
                // One that was answered before is what is left when later ones are lost, where they may be.
                let old = told.is_some_and(|told| match lossless {
                    true => told.last() == Some(&offset),
                    false => told.contains(&offset),
                });
                if kept.get(&what) == Some(&offset) && !old {
                    self.counts.count("commits stored but not answered");
                    self.note_commit(&what, offset);
                    self.record(Fact::Committed(request.member_id.clone(), what, offset));
                }
            }
        }
    }

    /// A commit was refused, which does not say that nothing of it is on the disk.
    pub(crate) fn note_refusal(&mut self, request: &OffsetCommitRequest) {
        if let Some(storage) = &mut self.storage {
            storage.unsure.push(request.clone());
        }
    }

    /// A commit was answered.
    pub(crate) fn note_commit(&mut self, what: &TopicPartition, offset: i64) {
        if let Some(storage) = &mut self.storage {
            storage.committed.entry(what.clone()).or_default().push(offset);
        }
    }

    /// Whether records are in the log, as its answer says.
    pub(crate) fn is_written(
        &mut self,
        what: &TopicPartition,
        end: i64,
        many: u64,
        answer: &Response,
    ) -> bool {
        let Response::Produce(answer) = answer else { return true };
        if self.storage.is_none() {
            return true;
        }
        let partitions = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
        let refused = partitions.map(|partition| partition.error_code).find(|code| !code.is_ok());
        match refused {
            Some(code) => self.counts.count(format!("writes refused: {code}")),
            None => {
                let end = end + i64::try_from(many).unwrap_or(0);
                self.record(Fact::Written(what.clone(), end));
            }
        }
        refused.is_none()
    }

    /// Takes what happens to brokers that wait for their disk, to give it to them later.
    pub(crate) fn brokers_take(&mut self, what: Happening) -> Option<Happening> {
        let now = self.now;
        let Some(storage) = self.storage.as_mut().filter(|_| is_of_the_brokers(&what)) else {
            return Some(what);
        };
        if storage.backlog.is_empty() && storage.busy_until <= now {
            return Some(what);
        }
        storage.backlog.push_back(what);
        None
    }

    /// When the disk has done what it was asked for by now.
    pub(crate) fn disk_is_done(&mut self) -> Instant {
        let now = self.now;
        let Some(storage) = &mut self.storage else { return now };
        let done = storage.disk.operations();
        let more = u32::try_from(done.saturating_sub(storage.operations)).unwrap_or(0);
        storage.operations = done;
        let (each, until) = storage.slow;
        if until <= now || more == 0 {
            return now.max(storage.busy_until);
        }
        let at = now.max(storage.busy_until) + each * more;
        storage.busy_until = at;
        self.schedule(at, Happening::DiskReady);
        at
    }

    pub(crate) fn go_on_with_the_disk(&mut self) {
        let now = self.now;
        while let Some(what) = self
            .storage
            .as_mut()
            .filter(|storage| storage.busy_until <= now)
            .and_then(|storage| storage.backlog.pop_front())
        {
            self.happen_now(what);
        }
    }

    /// Nothing bad happens to the disk any more, and the brokers run.
    pub(crate) fn heal_disk(&mut self) {
        let Some(storage) = &mut self.storage else { return };
        storage.disk.fail_at(u64::MAX);
        storage.disk.set_capacity(None);
        storage.tear = None;
        storage.slow.1 = self.now;
        self.power_on();
    }

    /// Ends the brokers and starts them again at once.
    pub(crate) fn restart_brokers(&mut self) {
        self.stop_brokers(Outage::Process, Duration::ZERO);
        self.power_on();
    }
}
