//! One member of a classic group, its session and its parked requests. Mirrors `ClassicGroupMember`.

use super::vote::Protocol;
use crate::{
    coordinator::{
        output::{ClientInfo, Ticket},
        session::Session,
    },
    time::Duration,
};
use bytes::Bytes;
use std::sync::Arc;

/// A member of a classic group.
#[derive(Clone, Debug, Default)]
pub(in crate::coordinator) struct Member {
    pub(in crate::coordinator) id: Arc<str>,
    pub(in crate::coordinator) instance_id: Option<Arc<str>>,
    pub(in crate::coordinator) client: ClientInfo,
    pub(in crate::coordinator) assignment: Bytes,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
    /// What it can work with, the best first, each with its subscription.
    pub(super) protocols: Vec<Protocol>,
    /// Not answered yet since it came: it may not know its id and cannot send heartbeats.
    pub(super) is_new: bool,
    /// The epoch that it has from when this was a consumer group, where the group was ahead of it. Until the members have
    /// joined it counts as the generation does: the member has heard of nothing newer, and has what it had.
    pub(super) epoch_before: Option<i32>,
    pub(super) arrival: u64,
    pub(super) join: Option<ParkedRequest>,
    pub(super) sync: Option<ParkedRequest>,
    pub(super) session: Session,
}

/// A request that waits for the others. It counts for the group even when nobody waits for its answer any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParkedRequest {
    /// `None` when the connection is gone.
    pub(super) ticket: Option<Ticket>,
    pub(super) version: i16,
}

impl Member {
    /// The metadata it sent for this protocol.
    pub(in crate::coordinator) fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols.iter().find(|p| p.name == protocol).map(|p| p.metadata.clone()).unwrap_or_default()
    }

    /// What it can work with, the best first, each with its subscription.
    pub(in crate::coordinator) fn protocols(&self) -> Vec<(&str, Bytes)> {
        self.protocols.iter().map(|p| (p.name.as_str(), p.metadata.clone())).collect()
    }

    pub(in crate::coordinator) fn session_timeout(&self) -> Duration {
        self.session_timeout
    }

    pub(in crate::coordinator) fn rebalance_timeout(&self) -> Duration {
        self.rebalance_timeout
    }

    pub(in crate::coordinator) fn is_joining(&self) -> bool {
        self.join.is_some()
    }

    pub(in crate::coordinator) fn is_syncing(&self) -> bool {
        self.sync.is_some()
    }

    /// A member that waits for an answer sends no heartbeats and is not expected to.
    pub(super) fn may_be_silent(&self) -> bool {
        let waits = |parked: &Option<ParkedRequest>| parked.is_some_and(|p| p.ticket.is_some());
        !self.is_new && (waits(&self.join) || waits(&self.sync))
    }
}
