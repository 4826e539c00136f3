//! The cluster as a client sees it: which broker to ask, over which connection, in which version, and when to try again.
//!
//! Pure: bytes and the time come in, bytes to send go out. Decides connections, versions, metadata and the lookup of
//! coordinators. Does not decide what a group, a fetch or a producer does with the answers. Mirrors Kafka's
//! `NetworkClient`, `Metadata`, `ApiVersions` and the coordinator lookup of its consumers.

mod metadata;
mod settings;

pub use metadata::{BrokerInfo, Metadata, PartitionMetadata, TopicMetadata};
pub use settings::ClusterSettings;

use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine_group::{Instant, TopicPartition};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, Response},
};

/// What a connection is called between a machine and its driver. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// What a request is called between [`Cluster::send`] and its answer. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Whom a request is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Any broker.
    Any,
    /// The broker that takes administrative requests.
    Controller,
    /// This broker.
    Node(i32),
    /// The coordinator of this group, which is looked up first when it is not known.
    Coordinator(Arc<str>),
}

/// Which of the connections to a broker a request takes. A broker answers one request of a connection after the other,
/// so what may wait long has a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Fetches, which wait for records.
    Fetch,
    /// Heartbeats, commits and whatever else a group needs quickly.
    Group,
    /// Joins and syncs, which wait for other members.
    Join,
    /// Everything else.
    Other,
}

/// Which topics the metadata has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicsOfInterest {
    /// All of them.
    All,
    /// These.
    Names(BTreeSet<Arc<str>>),
}

impl Default for TopicsOfInterest {
    fn default() -> Self {
        Self::Names(BTreeSet::new())
    }
}

/// Why a request has no answer. Every variant carries the last cause, in words for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The broker could not be reached, or the connection was lost while the request was under way.
    #[error("{why}")]
    Disconnected {
        /// The cause.
        why: Arc<str>,
    },
    /// The time ran out.
    #[error("{what} had no answer within {after:?}{}", .why.as_ref().map_or_else(String::new, |w| format!(": {w}")))]
    TimedOut {
        /// The API.
        what: &'static str,
        /// The time that was given.
        after: Duration,
        /// What went wrong meanwhile, when something did.
        why: Option<Arc<str>>,
    },
    /// The broker speaks no version of this API that is spoken here.
    #[error("{why}")]
    Unsupported {
        /// The cause.
        why: Arc<str>,
    },
    /// The broker sent bytes that make no sense; its connection was closed.
    #[error("{why}")]
    Malformed {
        /// The cause.
        why: Arc<str>,
    },
    /// The lookup that the request waited for was refused for good.
    #[error("{context}: the broker answered {code}")]
    Refused {
        /// The broker's answer.
        code: ErrorCode,
        /// What was asked.
        context: Arc<str>,
        /// What the broker says about it.
        message: Option<Arc<str>>,
    },
}

/// What a [`Cluster`] wants done or tells.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum ClusterOutput {
    /// Open a connection.
    Connect {
        /// What the connection is called from now on.
        conn: ConnId,
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Send these bytes.
    Write {
        /// Where to.
        conn: ConnId,
        /// One frame, its length included.
        bytes: Bytes,
    },
    /// Close a connection, or stop opening it.
    Close {
        /// Which.
        conn: ConnId,
    },
    /// A request has its answer, or never gets one.
    Response {
        /// The request.
        ticket: Ticket,
        /// The answer.
        result: Result<Response, SendError>,
    },
    /// Fresh metadata has arrived. Told after every answer, also when nothing is different.
    MetadataChanged,
    /// The coordinator of a group is known now.
    CoordinatorFound {
        /// The group.
        group: Arc<str>,
    },
    /// The coordinator of a group is not known any more: it could not be reached. It is looked up again as soon as a
    /// request needs it.
    CoordinatorLost {
        /// The group.
        group: Arc<str>,
    },
    /// The lookup of a group's coordinator was refused for good, as without authorization.
    CoordinatorRefused {
        /// The group.
        group: Arc<str>,
        /// Why: always [`SendError::Refused`].
        error: SendError,
    },
    /// Nothing to do until something comes in, or until this time.
    Wait(Option<Instant>),
}

/// The cluster as one client sees it.
#[derive(Debug)]
pub struct Cluster {
    settings: ClusterSettings,
    metadata: Metadata,
}

impl Cluster {
    /// Knows nothing yet and opens nothing until something is asked. `seed` spreads jitter and the choice of brokers.
    pub fn new(settings: ClusterSettings, _seed: u64) -> Self {
        Self { settings, metadata: Metadata::default() }
    }

    /// Sends a request to where it belongs, as soon as there is a connection; its answer comes as
    /// [`ClusterOutput::Response`]. Fields of all versions may be filled in: each version takes its own.
    pub fn send(
        &mut self,
        now: Instant,
        target: Target,
        lane: Lane,
        request: Request,
        timeout: Duration,
    ) -> Ticket {
        self.send_at_most(now, target, lane, request, timeout, i16::MAX)
    }

    /// Like [`Cluster::send`], in no higher version than this one.
    pub fn send_at_most(
        &mut self,
        _now: Instant,
        _target: Target,
        _lane: Lane,
        _request: Request,
        _timeout: Duration,
        _max_version: i16,
    ) -> Ticket {
        Ticket(0)
    }

    /// The answer to this request does not matter any more and is not reported.
    pub fn cancel(&mut self, _now: Instant, _ticket: Ticket) {}

    /// Says which topics the metadata has to know. New ones are asked for at once.
    pub fn set_topics(&mut self, _now: Instant, _topics: TopicsOfInterest) {}

    /// Asks for fresh metadata: at once, or a little later when that was done a moment ago.
    pub fn refresh_metadata(&mut self, _now: Instant) {}

    /// What is known of the cluster.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Takes over a leader that a fetch or a produce answer named, and where that broker is reached; `false` when this
    /// is not news.
    pub fn update_leader(
        &mut self,
        _partition: &TopicPartition,
        _leader: i32,
        _epoch: i32,
        _endpoint: Option<(String, u16)>,
    ) -> bool {
        false
    }

    /// Looks the coordinator of a group up, unless it is known or being looked up.
    pub fn find_coordinator(&mut self, _now: Instant, _group: &Arc<str>) {}

    /// The broker that coordinates a group, when it is known.
    pub fn coordinator(&self, _group: &str) -> Option<i32> {
        None
    }

    /// A broker said that it does not coordinate this group.
    pub fn coordinator_lost(&mut self, _now: Instant, _group: &str) {}

    /// The highest version that both sides speak: of this broker, or of the brokers met so far. `None` when no broker
    /// has been met, or when there is no common version.
    pub fn max_version(&self, _node: Option<i32>, _api: ApiKey) -> Option<i16> {
        None
    }

    /// Whether this broker failed a moment ago and is not tried again yet.
    pub fn is_backing_off(&self, _now: Instant, _node: i32) -> bool {
        false
    }

    /// A connection is open.
    pub fn handle_connected(&mut self, _now: Instant, _conn: ConnId) {}

    /// A connection could not be opened, or was closed by the other side.
    pub fn handle_disconnected(&mut self, _now: Instant, _conn: ConnId, _why: &str) {}

    /// A frame has arrived.
    pub fn handle_frame(&mut self, _now: Instant, _conn: ConnId, _frame: Bytes) {}

    /// A time that `Wait` named has come.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// What to do next; drained until it answers `Wait`.
    pub fn poll_output(&mut self) -> ClusterOutput {
        let _ = &self.settings;
        ClusterOutput::Wait(None)
    }
}
