//! The broker's side of groups: one [`Coordinator`] for each partition of `__consumer_offsets`.
//!
//! It decides what happens to groups of both protocols and their offsets. It does not find coordinators, know sockets, write logs
//! or read clocks: the driver hands requests, the outcome of appends and the time in, and drains [`Output`]s.
//! Mirrors `GroupCoordinatorShard`.
//!
//! An order to keep: replay the whole log, call [`Coordinator::loaded`], and after every call drain
//! [`Coordinator::poll_output`] until it answers [`Output::Wait`]. Appends must reach the log in the order in which they
//! come out. A reply comes out only after the records it depends on are appended.

mod append;
mod classic;
pub mod config;
pub mod consumer;
mod describe;
pub mod durable;
mod effects;
mod member_id;
mod offsets;
pub mod output;
pub mod record;
mod refuse;
mod requests;
mod session;
mod timers;
mod turn;
pub mod view;
mod volatile;

pub use config::{CoordinatorConfig, GroupSettings, HeartbeatPace, MigrationPolicy};
pub use consumer::ServerAssignors;
pub use durable::Durable;
pub use output::{AppendId, ClientInfo, GroupState, Output, Ticket, Transition};
pub use record::{GroupRecord, Record, RecordError};
pub use refuse::refuse;
pub use view::{GroupView, MemberView};

use crate::{time::Instant, topics::Topics};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tontine_wire::{
    ErrorCode,
    api::{ApiKey, Request},
};
use volatile::{Serving, Volatile};

/// The request is none of those that coordinators answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not answered by group coordinators", .0.name())]
pub struct NotServed(pub ApiKey);

/// Group coordinator of one partition of `__consumer_offsets`.
#[derive(Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    group_settings: BTreeMap<Arc<str>, GroupSettings>,
    durable: Durable,
    volatile: Volatile,
    out: VecDeque<Output>,
}

impl Coordinator {
    /// A coordinator that knows nothing yet and answers `COORDINATOR_LOAD_IN_PROGRESS` until [`Coordinator::loaded`].
    /// The seed makes member ids; it must differ from start to start, or ids of dead members come back.
    pub fn new(config: CoordinatorConfig, seed: u64) -> Self {
        Self {
            config,
            group_settings: BTreeMap::new(),
            durable: Durable::default(),
            volatile: Volatile::new(seed),
            out: VecDeque::new(),
        }
    }

    /// Gives one consumer group settings of its own, or the broker's again. They hold from the next heartbeat on.
    pub fn set_group_settings(&mut self, group: &str, settings: GroupSettings) {
        if settings == GroupSettings::default() {
            self.group_settings.remove(group);
        } else {
            self.group_settings.insert(group.into(), settings);
        }
    }

    /// What is in force for a consumer group.
    fn in_force(&self, group: &str) -> config::InForce {
        let settings = self.group_settings.get(group).copied().unwrap_or_default();
        self.config.in_force(settings, self.durable.consumers())
    }

    /// Takes one record of the log, in the log's order. Records of unknown types are stepped over.
    pub fn replay(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), RecordError> {
        if let Some(record) = Record::decode(key, value)? {
            self.durable.apply(&record);
        }
        Ok(())
    }

    /// Whether coordinators answer this API.
    pub fn serves(key: ApiKey) -> bool {
        requests::serves(key)
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
        let key = request.key();
        if !Self::serves(key) {
            return Err(NotServed(key));
        }
        match self.volatile.serving {
            Serving::Active => self.dispatch(now, ticket, client, version, request, topics),
            Serving::Loading => {
                self.turn_away(ticket, version, &request, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
            }
            Serving::Resigned => self.turn_away(ticket, version, &request, ErrorCode::NOT_COORDINATOR),
        }
        Ok(())
    }

    fn turn_away(&mut self, ticket: Ticket, version: i16, request: &Request, code: ErrorCode) {
        // Members need not be frightened while the log is read: their sessions begin when it has been.
        let spared = code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS && request.key() == ApiKey::Heartbeat;
        let code = if spared { ErrorCode::NONE } else { code };
        if let Some(response) = refuse(request, version, code) {
            self.out.push_back(Output::Reply { ticket, response });
        }
    }

    /// What to do next.
    pub fn poll_output(&mut self) -> Output {
        self.out.pop_front().unwrap_or_else(|| Output::Wait(self.volatile.timers.next()))
    }

    /// What the log says.
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// How many JoinGroup and SyncGroup requests wait for their answer.
    pub fn parked(&self) -> usize {
        self.volatile.parked.len()
    }
}
