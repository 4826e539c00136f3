//! What goes in and comes out of a coordinator: tickets, appends, transitions.

use super::record::GroupRecord;
use crate::{cause::Cause, time::Instant};
use std::{fmt, sync::Arc};
use tontine_wire::api::Response;

/// Names a request until it is answered. Chosen by the driver, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names an append until the driver says how it went. Appends are numbered in the order in which they must reach the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendId(pub u64);

/// Who sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// `client.id` of the request's header.
    pub client_id: String,
    /// The address it came from, as Kafka shows it: `/127.0.0.1`.
    pub client_host: String,
}

/// What the driver must do next. Drain with `poll_output` until `Wait`.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Output {
    /// Append these records to the log, all or none, then call `handle_appended`.
    Append {
        /// Comes back in `handle_appended`.
        id: AppendId,
        /// Keys and values in the order in which they must stand in the log.
        records: Vec<GroupRecord>,
    },
    /// Answer a request.
    Reply {
        /// The request.
        ticket: Ticket,
        /// Its answer.
        response: Response,
    },
    /// A group changed its state. Nothing to do; for logs, reports and pages.
    Transition(Transition),
    /// Nothing left to do until this time, or until something comes in.
    Wait(Option<Instant>),
}

/// A group changed its state, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The group.
    pub group: Arc<str>,
    /// Its state before.
    pub from: GroupState,
    /// Its state now.
    pub to: GroupState,
    /// Its generation (classic) or group epoch (consumer) now.
    pub generation: i32,
    /// Why.
    pub cause: Cause,
}

/// The states a group can be in, as Kafka spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupState {
    /// No members.
    Empty,
    /// Classic: waiting for the members to join.
    PreparingRebalance,
    /// Classic: waiting for the leader's assignment.
    CompletingRebalance,
    /// Consumer: a newer target has to be computed.
    Assigning,
    /// Consumer: members are on their way to the target.
    Reconciling,
    /// Everybody has their assignment.
    Stable,
    /// The group is gone, or about to be.
    Dead,
}

impl GroupState {
    /// The name as it goes over the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
            Self::Dead => "Dead",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
