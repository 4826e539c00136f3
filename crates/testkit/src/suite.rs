//! One test body, many brokers.
//!
//! A body is an async function that takes a [`Cluster`]. It is registered once and becomes several tests:
//! `embedded::name` and `kafka::name`, or `embedded3::name` and `kafka3::name` when it needs three nodes. Embedded brokers
//! are fresh for every test. Apache Kafka is started once a binary, by the first test that needs it, and ended at the end;
//! its tests keep apart by names. Tests that take nodes away from the cluster of three run one after the other, each on a
//! healed cluster. Where Apache Kafka cannot run, its tests show as ignored with the reason; with `CI=true` they fail.

use crate::apache::{self, ApacheKafka};
use crate::cluster::{Cluster, Kind};
use crate::{Failure, failure};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How a body ends.
pub type Outcome = Result<(), Failed>;

/// Tests mostly wait, so more of them than cores may run at once.
const THREADS: usize = 6;
/// Far more than any body takes on a machine at rest: a deadline is for what never comes, not for what is slow.
const DEADLINE: Duration = Duration::from_secs(240);
/// How long tasks of a finished test may hold up the next one.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Settings of an embedded broker.
pub type Settings = &'static [(&'static str, &'static str)];

type Body = Arc<dyn Fn(Cluster) -> Pin<Box<dyn Future<Output = Outcome>>> + Send + Sync>;

/// The bodies of a test binary.
#[derive(Default)]
pub struct Suite {
    entries: Vec<Entry>,
}

/// One body, and what it needs.
pub struct Entry {
    name: String,
    nodes: usize,
    needs_java: bool,
    kinds: Vec<Kind>,
    deadline: Duration,
    settings: Settings,
    client: Option<Client>,
    body: Body,
}

/// Says why a client that a body needs cannot be had here.
type Client = fn() -> Option<String>;

impl Entry {
    /// Needs a client of others that may not be there.
    pub fn client(&mut self, missing: Client) -> &mut Self {
        self.client = Some(missing);
        self
    }

    /// Starts embedded brokers with these settings.
    pub fn embedded_with(&mut self, settings: Settings) -> &mut Self {
        self.settings = settings;
        self
    }

    /// Gives the body more or less time than four minutes.
    pub fn deadline(&mut self, deadline: Duration) -> &mut Self {
        self.deadline = deadline;
        self
    }

    /// Runs the body against this kind of broker only; the body's documentation says why.
    pub fn only(&mut self, kind: Kind) -> &mut Self {
        self.kinds.retain(|k| *k == kind);
        self
    }
}

impl Suite {
    /// No bodies yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a body that needs a broker.
    pub fn one<F>(&mut self, name: &str, body: fn(Cluster) -> F) -> &mut Entry
    where
        F: Future<Output = Outcome> + 'static,
    {
        self.add(name, 1, body)
    }

    /// Registers a body that takes a value more, so that one body becomes several tests.
    pub fn one_with<T, F>(&mut self, name: &str, value: T, body: fn(Cluster, T) -> F) -> &mut Entry
    where
        T: Clone + Send + Sync + 'static,
        F: Future<Output = Outcome> + 'static,
    {
        self.add_body(name, 1, Arc::new(move |cluster| Box::pin(body(cluster, value.clone()))))
    }

    /// [`Suite::one_with`] for a body that waits for the end of sessions of the consumer protocol: they are short in the
    /// embedded broker, and the body makes them short elsewhere with [`Cluster::shorten_sessions`].
    pub fn short_with<T, F>(&mut self, name: &str, value: T, body: fn(Cluster, T) -> F) -> &mut Entry
    where
        T: Clone + Send + Sync + 'static,
        F: Future<Output = Outcome> + 'static,
    {
        self.one_with(name, value, body).embedded_with(&[("group.consumer.session.timeout.ms", "1000")])
    }

    /// Registers a body that takes a value more and needs three nodes.
    pub fn three_with<T, F>(&mut self, name: &str, value: T, body: fn(Cluster, T) -> F) -> &mut Entry
    where
        T: Clone + Send + Sync + 'static,
        F: Future<Output = Outcome> + 'static,
    {
        self.add_body(name, 3, Arc::new(move |cluster| Box::pin(body(cluster, value.clone()))))
    }

    /// Registers a body that takes a value more and runs Java members.
    pub fn java_with<T, F>(&mut self, name: &str, value: T, body: fn(Cluster, T) -> F) -> &mut Entry
    where
        T: Clone + Send + Sync + 'static,
        F: Future<Output = Outcome> + 'static,
    {
        let entry = self.one_with(name, value, body);
        entry.needs_java = true;
        entry
    }

    /// Registers a body that needs three nodes.
    pub fn three<F>(&mut self, name: &str, body: fn(Cluster) -> F) -> &mut Entry
    where
        F: Future<Output = Outcome> + 'static,
    {
        self.add(name, 3, body)
    }

    /// Registers a body that needs a broker and runs Java members, so that it needs Java also on the embedded broker.
    pub fn java<F>(&mut self, name: &str, body: fn(Cluster) -> F) -> &mut Entry
    where
        F: Future<Output = Outcome> + 'static,
    {
        let entry = self.add(name, 1, body);
        entry.needs_java = true;
        entry
    }

    fn add<F>(&mut self, name: &str, nodes: usize, body: fn(Cluster) -> F) -> &mut Entry
    where
        F: Future<Output = Outcome> + 'static,
    {
        self.add_body(name, nodes, Arc::new(move |cluster| Box::pin(body(cluster))))
    }

    fn add_body(&mut self, name: &str, nodes: usize, body: Body) -> &mut Entry {
        let at = self.entries.len();
        self.entries.push(Entry {
            name: name.to_owned(),
            nodes,
            needs_java: false,
            kinds: vec![Kind::Embedded, Kind::Apache],
            deadline: DEADLINE,
            settings: &[],
            client: None,
            body,
        });
        &mut self.entries[at]
    }

    /// Runs what the command line asks for.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads.get_or_insert(THREADS);
        let shared = Arc::new(Shared::default());
        let trials = self.entries.into_iter().flat_map(|entry| entry.into_trials(&shared)).collect();
        let conclusion = libtest_mimic::run(&arguments, trials);
        // Ends the JVMs and removes their folders before the process goes.
        drop(shared);
        conclusion.exit_code()
    }
}

impl Entry {
    fn into_trials(self, shared: &Arc<Shared>) -> Vec<Trial> {
        let trial = |kind: &Kind| {
            let run = Run {
                kind: *kind,
                nodes: self.nodes,
                needs_java: self.needs_java || *kind == Kind::Apache,
                deadline: self.deadline,
                settings: self.settings,
                client: self.client,
                body: self.body.clone(),
                shared: shared.clone(),
            };
            let name = format!("{}::{}", label(run.kind, run.nodes), self.name);
            Trial::ignorable_test(name, move || run.start())
        };
        self.kinds.iter().map(trial).collect()
    }
}

fn label(kind: Kind, nodes: usize) -> &'static str {
    match (kind, nodes > 1) {
        (Kind::Embedded, false) => "embedded",
        (Kind::Embedded, true) => "embedded3",
        (Kind::Apache, false) => "kafka",
        (Kind::Apache, true) => "kafka3",
    }
}

/// A body on its way to one kind of broker.
struct Run {
    kind: Kind,
    nodes: usize,
    needs_java: bool,
    deadline: Duration,
    settings: Settings,
    client: Option<Client>,
    body: Body,
    shared: Arc<Shared>,
}

impl Run {
    fn start(self) -> Result<Completion, Failed> {
        let java = || apache::unavailable().filter(|_| self.needs_java).map(str::to_owned);
        if let Some(reason) = java().or_else(|| self.client.and_then(|missing| missing())) {
            return if in_ci() { Err(reason.into()) } else { Ok(Completion::ignored_with(reason)) };
        }
        if self.kind == Kind::Embedded {
            run_body(Cluster::embedded(self.nodes, self.settings), self.deadline, &self.body)?;
            return Ok(Completion::Completed);
        }
        let kafka = self.shared.kafka(self.nodes)?;
        let alone = || self.shared.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let _alone = (self.nodes > 1).then(alone);
        run_body(Cluster::apache(kafka), self.deadline, &self.body)?;
        Ok(Completion::Completed)
    }
}

/// Whether a tool that is missing is a failure, and not a reason to skip.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

fn run_body(
    cluster: impl Future<Output = Result<Cluster, Failure>>,
    deadline: Duration,
    body: &Body,
) -> Outcome {
    let runtime = new_runtime()?;
    let ended = runtime.block_on(async {
        let cluster = cluster.await?;
        let late = || Failed::from(format!("not finished after {deadline:?}"));
        tokio::time::timeout(deadline, body(cluster)).await.unwrap_or_else(|_| Err(late()))
    });
    runtime.shutdown_timeout(LEFTOVERS);
    ended
}

fn new_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| failure!("no runtime: {e}"))
}

/// What the tests of one binary share.
#[derive(Default)]
struct Shared {
    one: OnceLock<Result<Arc<ApacheKafka>, Failure>>,
    three: OnceLock<Result<Arc<ApacheKafka>, Failure>>,
    /// Held by a test that may take nodes away.
    alone: Mutex<()>,
}

impl Shared {
    fn kafka(&self, nodes: usize) -> Result<Arc<ApacheKafka>, Failure> {
        let slot = if nodes > 1 { &self.three } else { &self.one };
        slot.get_or_init(|| new_runtime()?.block_on(ApacheKafka::start(nodes)).map(Arc::new)).clone()
    }
}

/// Registers functions of the current module as tests with one value more.
#[macro_export]
macro_rules! bodies_with {
    ($suite:expr, $group:expr, $value:expr, $kind:ident: [$($name:ident),* $(,)?] $(,)?) => {
        $($suite.$kind(&format!("{}::{}", $group, stringify!($name)), $value, $name);)*
    };
}

/// Registers functions of the current module under its name: `bodies!(suite, "joining", one: [a, b], three: [c])`.
#[macro_export]
macro_rules! bodies {
    ($suite:expr, $group:literal, $($kind:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        $($($suite.$kind(concat!($group, "::", stringify!($name)), $name);)*)*
    };
}
