//! The cluster as a client sees it: which broker to ask, over which connection, in which version, and when to try again.
//!
//! Pure: bytes and the time come in, bytes to send go out. Decides connections, versions, metadata and the lookup of
//! coordinators. Does not decide what a group, a fetch or a producer does with the answers. Mirrors Kafka's
//! `NetworkClient`, `Metadata`, `ApiVersions` and the coordinator lookup of its consumers.

mod answers;
pub(crate) mod backoff;
mod connection;
mod coordinator;
mod dispatch;
mod machine;
mod metadata;
mod nodes;
mod refresh;
mod settings;
#[cfg(test)]
mod tests;
mod throttle;
mod versions;

pub use machine::Cluster;
pub use metadata::{BrokerInfo, Metadata, PartitionMetadata, TopicMetadata};
pub use settings::ClusterSettings;

use bytes::Bytes;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tontine_group::Instant;
use tontine_wire::{ErrorCode, api::Response};

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
    /// Produces, which wait for copies of what they store.
    Produce,
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
    /// The broker speaks this API, but in no version that has room for all that the request says.
    #[error("{why}")]
    TooOld {
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
