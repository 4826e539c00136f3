//! What a run is like: which members, which faults, how often. Drawn from the seed in the manner of swarm testing: each run
//! has a few kinds of trouble switched on and leaves the others out, because trouble of all kinds at once hides faults.

use crate::{
    disk::{DiskPlan, Flush},
    producers::TransactionPlan,
    random::Random,
};
use std::time::Duration;

/// How a member commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commits {
    /// `enable.auto.commit`.
    Auto,
    /// After each poll, waiting for it.
    Sync,
    /// After each poll, not waiting.
    Async,
    /// Only when partitions are revoked, and now and then.
    Seldom,
    /// Only in `on_partitions_revoked`.
    Never,
}

/// `group.protocol` of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The classic one.
    Classic,
    /// The consumer protocol (KIP-848).
    Consumer,
    /// The consumer protocol, unless a broker does not have it: all of ours do.
    Either,
}

impl Protocol {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Either => "consumer,classic",
        }
    }
}

/// Which protocols the members of a group speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// The classic one.
    Classic,
    /// The consumer protocol.
    Consumer,
    /// Each its own: the group goes over to the consumer protocol when the first member comes that speaks it, and back when
    /// the last one has gone.
    Mixed,
}

/// How a member behaves.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How it commits.
    pub commits: Commits,
    /// It commits in `on_partitions_revoked`.
    pub commits_on_revoke: bool,
    /// `group.protocol`.
    pub protocol: Protocol,
    /// It subscribes to a pattern, not to names.
    pub pattern: bool,
    /// `isolation.level=read_committed`.
    pub read_committed: bool,
    /// `group.instance.id`.
    pub instance: Option<String>,
    /// How long it works on what a poll returned, in milliseconds at most.
    pub work: u64,
    /// How long a callback takes, in milliseconds at most.
    pub callback: u64,
    /// How long a poll waits, in milliseconds at most.
    pub poll: u64,
    /// How fast its clock is, in millionths off the right speed.
    pub skew: i64,
}

/// Something that is done to the world now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A member starts.
    Join,
    /// A member closes.
    Close,
    /// A member unsubscribes and subscribes again.
    Resubscribe,
    /// A member's process dies.
    Crash,
    /// A member's process stands still, as by SIGSTOP.
    Freeze,
    /// A member does not poll for longer than it may.
    Slow,
    /// A member pauses or resumes a partition.
    Pause,
    /// A member reads some records again.
    Seek,
    /// A callback takes long, or fails.
    Callback,
    /// A connection is lost.
    Cut,
    /// A connection delivers late.
    Stall,
    /// All connections of a member are dead, and neither side knows.
    HalfOpen,
    /// A node is stopped and started later.
    Stop,
    /// A node takes everything and answers nothing, for a while.
    BlackHole,
    /// A partition gets another leader.
    Leader,
    /// The group gets another coordinator.
    Coordinator,
    /// A topic grows.
    Partitions,
    /// A topic appears.
    Create,
    /// A topic is deleted.
    Delete,
    /// A topic is deleted, and one with its name created at once.
    Recreate,
    /// The next request of some kind is held back before it reaches its node.
    Gate,
    /// Nodes tell everybody to slow down.
    Throttle,
    /// The brokers' process is killed and started again; it keeps things on a disk, as in all that follow.
    Kill,
    /// The brokers' machine loses power and comes back.
    PowerCut,
    /// Either happens in the middle of something that is done to the disk.
    Torn,
    /// The disk is full for a while.
    FullDisk,
    /// The disk is slow for a while.
    SlowDisk,
    /// The disk does not do what a sync asks for, until the brokers are started again.
    BadSync,
}

const ALL: [Trouble; 22] = [
    Trouble::Join,
    Trouble::Close,
    Trouble::Resubscribe,
    Trouble::Crash,
    Trouble::Freeze,
    Trouble::Slow,
    Trouble::Pause,
    Trouble::Seek,
    Trouble::Callback,
    Trouble::Cut,
    Trouble::Stall,
    Trouble::HalfOpen,
    Trouble::Stop,
    Trouble::BlackHole,
    Trouble::Leader,
    Trouble::Coordinator,
    Trouble::Partitions,
    Trouble::Create,
    Trouble::Delete,
    Trouble::Recreate,
    Trouble::Gate,
    Trouble::Throttle,
];

/// What a run is like.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many brokers.
    pub nodes: i32,
    /// How many members at first.
    pub members: u64,
    /// How many members at most.
    pub most_members: usize,
    /// How many partitions the first topic has.
    pub partitions: i32,
    /// What the members speak.
    pub protocols: Protocols,
    /// `partition.assignment.strategy` of everybody who speaks the classic protocol.
    pub assignor: &'static str,
    /// How many members out of a hundred subscribe to a pattern.
    pub patterns: u64,
    /// Whether members may be static.
    pub statics: bool,
    /// `session.timeout.ms`, and `group.consumer.session.timeout.ms` of the brokers.
    pub session: u64,
    /// `heartbeat.interval.ms`, and `group.consumer.heartbeat.interval.ms` of the brokers.
    pub heartbeat: u64,
    /// `max.poll.interval.ms`.
    pub max_poll: u64,
    /// `max.poll.records`.
    pub max_poll_records: u64,
    /// What happens.
    pub troubles: Vec<Trouble>,
    /// How long there is between two troubles, in milliseconds on average.
    pub pace: u64,
    /// How long trouble lasts.
    pub duration: Duration,
    /// How long there is between two records, in milliseconds on average.
    pub produce: u64,
    /// How long bytes are under way, in milliseconds at most.
    pub delay: u64,
    /// The brokers' disk, when they do not keep things in memory.
    pub disk: Option<DiskPlan>,
    /// Transactional producers, if there are any.
    pub transactions: Option<TransactionPlan>,
}

impl Plan {
    /// Draws a run.
    pub fn draw(random: &mut Random) -> Self {
        let share = random.between(15, 60);
        let mut troubles: Vec<_> = ALL.into_iter().filter(|_| random.percent(share)).collect();
        if troubles.is_empty() {
            troubles.push(Trouble::Join);
        }
        let disk = DiskPlan::draw(&mut random.fork(5));
        troubles.extend(disk.iter().flat_map(|disk| &disk.troubles));
        // What a machine may lose of a transaction is another matter.
        let safe = disk.as_ref().is_none_or(|disk| disk.flush == Flush::Each);
        let transactions = TransactionPlan::draw(&mut random.fork(6)).filter(|_| safe);
        let session = random.between(6, 12) * 1_000;
        let assignors = ["cooperative-sticky", "cooperative-sticky", "range", "roundrobin", "sticky"];
        let members = random.between(1, 4);
        Self {
            nodes: i32::try_from(random.between(1, 3)).unwrap_or(1),
            members,
            most_members: usize::try_from(members + 2).unwrap_or(4),
            partitions: i32::try_from(random.between(1, 6)).unwrap_or(1),
            protocols: Self::draw_protocols(&mut random.fork(1)),
            assignor: random.pick(&assignors).unwrap_or("range"),
            patterns: random.fork(3).pick(&[0, 0, 50, 100]).unwrap_or(0),
            statics: random.percent(30),
            session,
            heartbeat: session / random.between(3, 10),
            max_poll: random.between(5, 15) * 1_000,
            max_poll_records: random.pick(&[1, 5, 50, 500]).unwrap_or(500),
            troubles,
            pace: random.between(200, 3_000),
            duration: random.millis(5_000, 30_000),
            produce: random.between(20, 400),
            delay: random.pick(&[1, 1, 5, 40]).unwrap_or(1),
            disk,
            transactions,
        }
    }

    fn draw_protocols(random: &mut Random) -> Protocols {
        let choices = [Protocols::Classic, Protocols::Consumer, Protocols::Mixed];
        random.pick(&choices).unwrap_or(Protocols::Classic)
    }

    fn draw_protocol(&self, random: &mut Random) -> Protocol {
        match self.protocols {
            Protocols::Classic => Protocol::Classic,
            Protocols::Mixed if random.percent(50) => Protocol::Classic,
            Protocols::Consumer | Protocols::Mixed if random.percent(20) => Protocol::Either,
            Protocols::Consumer | Protocols::Mixed => Protocol::Consumer,
        }
    }

    /// Draws how a member behaves.
    pub fn profile(&self, random: &mut Random) -> Profile {
        let kinds = [Commits::Auto, Commits::Sync, Commits::Async, Commits::Seldom];
        Profile {
            protocol: self.draw_protocol(&mut random.fork(2)),
            pattern: random.fork(4).percent(self.patterns),
            read_committed: random.fork(8).percent(self.transactions.map_or(0, |plan| plan.read_committed)),
            commits: random.pick(&kinds).unwrap_or(Commits::Auto),
            commits_on_revoke: random.percent(50),
            instance: (self.statics && random.percent(60)).then(|| format!("s{}", random.below(4))),
            work: random.pick(&[0, 1, 20, 200]).unwrap_or(0),
            callback: random.pick(&[0, 0, 5, 300]).unwrap_or(0),
            poll: random.pick(&[20, 50, 500, 1_000]).unwrap_or(100),
            skew: i64::try_from(random.below(2_000)).unwrap_or(0) - 1_000,
        }
    }
}
