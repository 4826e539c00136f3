//! What a member of a test does: how it handles records, hears of its partitions, and commits.

use std::fmt;
use tontine::{Record, TopicPartition, state::StepKind};
use tontine_sim::{
    Life,
    script::MemberSetup,
    workload::{Commits, Protocol},
};

/// Names a member of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub(crate) Life);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A member in the making. It polls, handles what it is handed, commits after each poll, and polls again.
#[must_use = "it starts with `GroupTest::member`"]
pub struct Member(pub(crate) MemberSetup);

impl Default for Member {
    fn default() -> Self {
        Self::new()
    }
}

impl Member {
    /// One that commits after each poll, and waits for it.
    pub fn new() -> Self {
        let (commits, protocol) = (Commits::Sync, Protocol::Classic);
        Self(MemberSetup { commits, protocol, instance: None, handler: None, listener: None })
    }

    /// Handles each record.
    pub fn handler(mut self, handler: impl FnMut(&Record<'_>) + 'static) -> Self {
        self.0.handler = Some(Box::new(handler));
        self
    }

    /// Hears which partitions come, go and are lost.
    pub fn listener(mut self, listener: impl FnMut(StepKind, &[TopicPartition]) + 'static) -> Self {
        self.0.listener = Some(Box::new(listener));
        self
    }

    /// Commits in another way.
    pub fn commits(mut self, commits: Commits) -> Self {
        self.0.commits = commits;
        self
    }

    /// Speaks the consumer protocol (KIP-848): `group.protocol=consumer`. Members of one group may differ.
    pub fn consumer_protocol(mut self) -> Self {
        self.0.protocol = Protocol::Consumer;
        self
    }

    /// A static member: `group.instance.id`.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.0.instance = Some(name.into());
        self
    }
}
