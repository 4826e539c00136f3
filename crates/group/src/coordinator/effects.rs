//! What one turn of the coordinator brings about: replies, records, transitions, timers. Collected while a group decides,
//! carried out when it has decided.

use super::{
    append::After,
    config::CoordinatorConfig,
    member_id::MemberIds,
    output::{Output, Ticket},
    record::Record,
    timers::Timers,
    volatile::Parked,
};
use crate::time::Instant;
use std::{collections::VecDeque, sync::Arc};
use tontine_wire::api::Response;

/// The surroundings of a group while it decides, and what it has decided so far.
pub(super) struct Effects<'a> {
    pub(super) now: Instant,
    /// The wall clock, milliseconds since 1970.
    pub(super) wall_ms: i64,
    pub(super) config: &'a CoordinatorConfig,
    pub(super) timers: &'a mut Timers,
    pub(super) parked: &'a mut Parked,
    pub(super) ids: &'a mut MemberIds,
    pub(super) out: &'a mut VecDeque<Output>,
    pub(super) decided: Decided,
}

/// Replies that leave when the records are appended, and what else has to happen then.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) records: Vec<Record>,
    pub(super) replies: Vec<(Ticket, Response)>,
    pub(super) after: After,
}

impl Effects<'_> {
    /// Answers the request of this turn, or one that was parked.
    pub(super) fn reply(&mut self, ticket: Ticket, response: impl Into<Response>) {
        self.decided.replies.push((ticket, response.into()));
    }

    /// Notes that a request of this member waits for its answer.
    pub(super) fn park(&mut self, ticket: Ticket, group: &Arc<str>, member: &Arc<str>) {
        self.parked.insert(ticket, (group.clone(), member.clone()));
    }

    /// Answers a request that was parked.
    pub(super) fn unpark(&mut self, ticket: Ticket, response: impl Into<Response>) {
        self.parked.remove(&ticket);
        self.reply(ticket, response);
    }
}
