//! The brokers that can be connected to, and which of them were not reachable lately. Mirrors `ClusterConnectionStates`.

use super::versions::Versions;
use std::sync::Arc;
use tontine_group::Instant;

/// A broker by its number, or a line of `bootstrap.servers` of which the number is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeKey {
    Bootstrap(usize),
    Broker(i32),
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    /// How often in a row it could not be reached.
    pub(super) failures: u32,
    /// It is not tried again before.
    pub(super) retry_at: Instant,
    pub(super) last_error: Option<Arc<str>>,
    pub(super) versions: Option<Versions>,
}

impl Node {
    pub(super) fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            failures: 0,
            retry_at: Instant::ZERO,
            last_error: None,
            versions: None,
        }
    }

    pub(super) fn is_at(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    pub(super) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub(super) fn succeeded(&mut self, versions: Versions) {
        self.failures = 0;
        self.retry_at = Instant::ZERO;
        self.last_error = None;
        self.versions = Some(versions);
    }
}
