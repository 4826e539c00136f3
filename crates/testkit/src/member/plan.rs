//! What a member's application does.

use crate::history::Callback;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Settings that only the classic protocol has.
const CLASSIC: [&str; 3] = ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"];

/// When a member commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Never by hand.
    Never,
    /// After every poll that returned records.
    EachPoll,
    /// In `on_partitions_revoked`.
    InRevoked,
    /// After every poll that returned records, and in `on_partitions_revoked`.
    EachPollAndInRevoked,
}

impl Commit {
    pub(super) fn is_each_poll(self) -> bool {
        matches!(self, Self::EachPoll | Self::EachPollAndInRevoked)
    }

    pub(super) fn is_in_revoked(self) -> bool {
        matches!(self, Self::InRevoked | Self::EachPollAndInRevoked)
    }
}

/// What a callback does, once.
#[derive(Debug, Clone)]
pub enum In {
    /// Fails with this message.
    Fail(String),
    /// Moves every assigned partition to this offset.
    Seek(i64),
    /// Commits what was consumed.
    Commit,
    /// Wakes the consumer up, commits what was consumed, and fails when that fails.
    WakeAndCommit(tontine::Waker),
    /// Waits until the sender says true.
    Wait(watch::Receiver<bool>),
}

/// What a member is started with.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) settings: BTreeMap<String, String>,
    pub(super) topics: Vec<String>,
    pub(super) pattern: Option<String>,
    pub(super) commit: Commit,
    pub(super) todo: Todo,
}

/// What the next callbacks do. Shared, so that a test can add to it while the member runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Todo(Arc<Mutex<Vec<(Callback, In)>>>);

impl Todo {
    fn push(&self, callback: Callback, what: In) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((callback, what));
    }

    /// What this callback does now.
    pub(super) fn take(&self, callback: Callback) -> Option<In> {
        let mut todo = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = todo.iter().position(|(other, _)| *other == callback)?;
        Some(todo.remove(place).1)
    }
}

impl Plan {
    /// A member of `group` that reads `topics` from their beginning and commits after each poll.
    pub fn new(bootstrap_servers: &str, group: &str, topics: &[&str]) -> Self {
        let settings = [
            ("bootstrap.servers", bootstrap_servers),
            ("group.id", group),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "earliest"),
            ("heartbeat.interval.ms", "300"),
            ("metadata.max.age.ms", "500"),
        ];
        Self {
            settings: settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            topics: topics.iter().map(ToString::to_string).collect(),
            pattern: None,
            commit: Commit::EachPoll,
            todo: Todo::default(),
        }
    }

    pub(super) fn servers(&self) -> &str {
        self.settings.get("bootstrap.servers").map_or("", String::as_str)
    }

    /// Any setting of the consumer, by Kafka's key. One that has no meaning with the consumer protocol is left out there: it
    /// is the coordinator's to decide.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        let is_consumer = self.settings.get("group.protocol").is_some_and(|protocol| protocol == "consumer");
        if is_consumer && CLASSIC.contains(&key) {
            return self;
        }
        self.settings.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Speaks the consumer protocol.
    #[must_use]
    pub fn consumer_protocol(mut self) -> Self {
        self.settings.retain(|key, _| !CLASSIC.contains(&key.as_str()));
        self.set("group.protocol", "consumer")
    }

    /// The assignor, by the name that members vote with.
    #[must_use]
    pub fn assignor(self, name: &str) -> Self {
        self.set("partition.assignment.strategy", name)
    }

    /// Subscribes to the topics whose names match, instead of names.
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.pattern = Some(pattern.to_owned());
        self
    }

    /// When the member commits.
    #[must_use]
    pub fn commit(mut self, commit: Commit) -> Self {
        self.commit = commit;
        self
    }

    /// The consumer commits by itself, and the application never does.
    #[must_use]
    pub fn auto_commit(self, interval: &str) -> Self {
        self.commit(Commit::Never).set("enable.auto.commit", "true").set("auto.commit.interval.ms", interval)
    }

    /// The next callback of this kind does this; several are used up one after the other. Works on a running member's plan
    /// as well: clones share what is to be done.
    pub fn next(&self, callback: Callback, what: In) {
        self.todo.push(callback, what);
    }
}
