//! The broker's side of groups: one [`Coordinator`] for each partition of `__consumer_offsets`.
//!
//! It decides what happens to classic groups and their offsets. It does not find coordinators, know sockets, write logs
//! or read clocks: the driver hands requests, the outcome of appends and the time in, and drains [`Output`]s.
//! Mirrors `GroupCoordinatorShard`.
//!
//! An order to keep: replay the whole log, call [`Coordinator::loaded`], and after every call drain
//! [`Coordinator::poll_output`] until it answers [`Output::Wait`]. Appends must reach the log in the order in which they
//! come out. A reply comes out only after the records it depends on are appended.

pub mod config;
pub mod output;
pub mod record;

pub use config::CoordinatorConfig;
pub use output::{AppendId, ClientInfo, GroupState, Output, Ticket, Transition};
pub use record::{GroupRecord, Record, RecordError};

use crate::{time::Instant, topics::Topics};
use bytes::Bytes;
use std::sync::Arc;
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request, Response},
};

/// The request is none of those that coordinators answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not answered by group coordinators", .0.name())]
pub struct NotServed(pub ApiKey);

/// A group as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// The group's id.
    pub id: Arc<str>,
    /// Its state.
    pub state: GroupState,
    /// Its generation.
    pub generation: i32,
    /// `consumer` for groups of consumers; empty when nobody joined yet.
    pub protocol_type: String,
    /// The assignor that the members voted for.
    pub protocol: Option<String>,
    /// The member that assigns.
    pub leader: Option<Arc<str>>,
    /// Its members, by id.
    pub members: Vec<MemberView>,
    /// How many partitions it has committed offsets for.
    pub offsets: usize,
}

/// A member as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// Its id.
    pub id: Arc<str>,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<Arc<str>>,
    /// How its client calls itself.
    pub client_id: String,
    /// Where it is.
    pub client_host: String,
    /// What the leader assigned, as bytes of the embedded protocol.
    pub assignment: Bytes,
    /// Whether a JoinGroup of it is waiting for an answer.
    pub joining: bool,
    /// Whether a SyncGroup of it is waiting for an answer.
    pub syncing: bool,
}

/// Group coordinator of one partition of `__consumer_offsets`.
#[derive(Debug)]
pub struct Coordinator {}

impl Coordinator {
    /// A coordinator that knows nothing yet and answers `COORDINATOR_LOAD_IN_PROGRESS` until [`Coordinator::loaded`].
    /// The seed makes member ids; it must differ from start to start, or ids of dead members come back.
    pub fn new(config: CoordinatorConfig, seed: u64) -> Self {
        let _ = (config, seed);
        Self {}
    }

    /// Takes one record of the log, in the log's order. Records of unknown types are stepped over.
    pub fn replay(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), RecordError> {
        let _ = Record::decode(key, value)?;
        Ok(())
    }

    /// The log has been read to its end: sessions of the members found in it begin.
    pub fn loaded(&mut self, now: Instant) {
        let _ = now;
    }

    /// Another broker is the coordinator from now on: everything parked is answered with `NOT_COORDINATOR`.
    pub fn resign(&mut self, now: Instant) {
        let _ = now;
    }

    /// Whether coordinators answer this API.
    pub fn serves(key: ApiKey) -> bool {
        matches!(
            key,
            ApiKey::JoinGroup
                | ApiKey::SyncGroup
                | ApiKey::Heartbeat
                | ApiKey::LeaveGroup
                | ApiKey::OffsetCommit
                | ApiKey::OffsetFetch
                | ApiKey::OffsetDelete
                | ApiKey::DescribeGroups
                | ApiKey::ListGroups
                | ApiKey::DeleteGroups
        )
    }

    /// Takes a request. The answer comes out of [`Coordinator::poll_output`], now or later. `topics` are all topics that
    /// exist. Requests that name several groups are answered for each of them from what this coordinator knows: the
    /// driver splits them among coordinators and merges the answers.
    pub fn handle_request(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        request: Request,
        topics: &Topics,
    ) -> Result<(), NotServed> {
        let _ = (now, ticket, client, version, topics);
        Err(NotServed(request.key()))
    }

    /// An append is durable, or failed. Records of a failed append must not be in the log.
    pub fn handle_appended(&mut self, now: Instant, id: AppendId, result: Result<(), ErrorCode>) {
        let _ = (now, id, result);
    }

    /// The time of [`Output::Wait`] has come. Spurious calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// Topics changed. `topics` are all topics that exist: offsets of any other topic, or of another topic of the same
    /// name, are deleted.
    pub fn handle_topics(&mut self, now: Instant, topics: &Topics) {
        let _ = (now, topics);
    }

    /// The connection that a request came from is gone: it needs no answer any more.
    pub fn handle_disconnected(&mut self, now: Instant, ticket: Ticket) {
        let _ = (now, ticket);
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Output {
        Output::Wait(None)
    }

    /// All groups, by id.
    pub fn groups(&self) -> Vec<GroupView> {
        Vec::new()
    }
}

/// The answer that refuses a request with this error, wherever the API has room for it; `None` for an API that
/// coordinators do not answer. For drivers that cannot reach a coordinator.
pub fn refuse(request: &Request, version: i16, code: ErrorCode) -> Option<Response> {
    let _ = (request, version, code);
    None
}
