//! One consumer in the world: the production machine, the production desk, and an application that drives the desk as
//! `Consumer::poll`, `unsubscribe`, `commit_sync` and `close` do.

use crate::{
    fact::Life,
    orders::Order,
    random::Random,
    workload::{Commits, Plan, Profile, Protocol},
};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tontine::{
    Error, Record, TopicPartition,
    cluster::ConnId,
    config::ConsumerBuilder,
    desk::Desk,
    state::{CallId, ConsumerSettings, ConsumerState, Event, StepKind},
};
use tontine_group::Instant;

/// The wall clock when a run begins.
pub(crate) const UNIX_MS: i64 = 1_700_000_000_000;

/// What a clock on the wall shows then.
pub(crate) fn unix_ms(at: Instant) -> i64 {
    UNIX_MS + i64::try_from(at.since_origin().as_millis()).unwrap_or(0)
}

/// What is done with each record that an application is handed.
pub type Handler = Box<dyn FnMut(&Record<'_>)>;
/// What a listener does.
pub type Listener = Box<dyn FnMut(StepKind, &[TopicPartition])>;

/// What the application is doing.
#[derive(Debug)]
pub(crate) enum Doing {
    /// Working on records, or waiting to poll.
    Working {
        until: Instant,
    },
    Polling {
        until: Instant,
    },
    Callback {
        kind: StepKind,
        partitions: Vec<TopicPartition>,
        until: Instant,
        commit: Option<CallId>,
        fails: bool,
        then: After,
    },
    /// In `commit_sync`.
    Committing {
        call: CallId,
    },
    /// Committing what polls returned, at the beginning of `close`.
    LastCommit {
        call: CallId,
    },
    Leaving {
        forever: bool,
        deadline: Instant,
    },
    /// The machine does its last work.
    Ending,
    Gone,
}

/// Where an application goes on after a callback.
#[derive(Clone, Copy, Debug)]
pub(crate) enum After {
    Poll(Instant),
    Leave { forever: bool, deadline: Instant },
}

/// What an application was told to do when it has time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wish {
    #[default]
    Nothing,
    Close,
    Resubscribe,
    Slow,
    Pause,
    Seek,
}

pub(crate) struct Client {
    pub(crate) life: Life,
    /// What chance decides in its process.
    pub(crate) random: Random,
    pub(crate) profile: Profile,
    pub(crate) state: ConsumerState,
    pub(crate) desk: Desk,
    /// What the machine said and the application has not heard.
    pub(crate) inbox: VecDeque<Event>,
    pub(crate) doing: Doing,
    pub(crate) wish: Wish,
    /// What a script has told it.
    pub(crate) orders: VecDeque<Order>,
    /// The next callback takes this long and fails.
    pub(crate) bad_callback: Option<(Duration, bool)>,
    pub(crate) links: BTreeMap<ConnId, u64>,
    /// When the machine wants to be called.
    pub(crate) timer: Option<Instant>,
    /// When the application goes on.
    pub(crate) app_at: Option<Instant>,
    pub(crate) frozen_until: Instant,
    pub(crate) cut_off_until: Instant,
    pub(crate) subscribed: bool,
    pub(crate) polls: u64,
    pub(crate) named: Option<String>,
    pub(crate) handler: Option<Handler>,
    pub(crate) listener: Option<Listener>,
    /// When the process began, to count its clock from.
    pub(crate) born: Instant,
}

impl Client {
    /// A consumer that has not done anything yet.
    pub(crate) fn new(
        life: Life,
        profile: Profile,
        plan: &Plan,
        bootstrap: &str,
        born: Instant,
        mut random: Random,
    ) -> Result<Self, Error> {
        let builder = configuration(life, &profile, plan, bootstrap);
        let settings = ConsumerSettings::new(builder, unix_ms(born))?;
        let desk = Desk::new(&settings);
        let state = ConsumerState::new(settings, random.bits());
        Ok(Self {
            life,
            random,
            profile,
            state,
            desk,
            inbox: VecDeque::new(),
            doing: Doing::Working { until: born },
            wish: Wish::Nothing,
            orders: VecDeque::new(),
            bad_callback: None,
            links: BTreeMap::new(),
            timer: None,
            app_at: None,
            frozen_until: Instant::ZERO,
            cut_off_until: Instant::ZERO,
            subscribed: false,
            polls: 0,
            named: None,
            handler: None,
            listener: None,
            born,
        })
    }

    /// The process's own clock: it starts at its birth and is a little fast or slow.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        Instant::from_origin(scaled(
            now.saturating_since(self.born),
            1_000_000 + self.profile.skew,
            1_000_000,
        ))
    }

    /// When the process's clock will show this.
    pub(crate) fn when(&self, own: Instant) -> Instant {
        // Rounded up, so that the clock has really got there.
        let since = scaled(own.since_origin(), 1_000_000, 1_000_000 + self.profile.skew);
        self.born + since + Duration::from_micros(2)
    }

    /// Whether the application waits for the machine.
    pub(crate) fn is_listening(&self) -> bool {
        !matches!(self.doing, Doing::Working { .. } | Doing::Gone)
            && !matches!(self.doing, Doing::Callback { commit: None, .. })
    }

    pub(crate) fn is_leaving(&self) -> bool {
        let leaves = |then: &After| matches!(then, After::Leave { .. });
        match &self.doing {
            Doing::LastCommit { .. } | Doing::Leaving { .. } | Doing::Ending | Doing::Gone => true,
            Doing::Callback { then, .. } => leaves(then),
            Doing::Working { .. } | Doing::Polling { .. } | Doing::Committing { .. } => false,
        }
    }
}

fn configuration(life: Life, profile: &Profile, plan: &Plan, bootstrap: &str) -> ConsumerBuilder {
    let auto = profile.commits == Commits::Auto;
    let mut builder = ConsumerBuilder::default()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "g")
        .set("group.protocol", profile.protocol.name())
        .set("client.id", life.to_string())
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", if auto { "true" } else { "false" })
        .set("auto.commit.interval.ms", "700")
        .set("max.poll.interval.ms", plan.max_poll.to_string())
        .set("max.poll.records", plan.max_poll_records.to_string())
        .set("isolation.level", if profile.read_committed { "read_committed" } else { "read_uncommitted" })
        .set("audit.log", "in memory")
        .set("metadata.max.age.ms", "3000")
        .set("request.timeout.ms", "8000")
        .set("default.api.timeout.ms", "10000");
    // In the consumer protocol it is the brokers that say how long these are.
    if profile.protocol != Protocol::Consumer {
        builder = builder
            .set("session.timeout.ms", plan.session.to_string())
            .set("heartbeat.interval.ms", plan.heartbeat.to_string())
            .set("partition.assignment.strategy", plan.assignor);
    }
    if let Some(instance) = &profile.instance {
        builder = builder.set("group.instance.id", instance);
    }
    builder
}

fn scaled(duration: Duration, by: i64, of: i64) -> Duration {
    let nanos = i128::try_from(duration.as_nanos()).unwrap_or(0) * i128::from(by) / i128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}
