//! What a coordinator knows only while it runs: classic groups between two records, parked requests, timers, appends on
//! their way, ids handed out. A restart forgets it, and members find their way back by the errors they get.

use super::{
    append::Appends,
    classic::ClassicGroup,
    consumer::{Deferred, LiveConsumer},
    member_id::MemberIds,
    output::Ticket,
    timers::Timers,
};
use crate::topics::Topics;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tontine_wire::Uuid;

/// Requests that wait for an answer, each with its group and its member.
pub(super) type Parked = BTreeMap<Ticket, (Arc<str>, Arc<str>)>;

/// Everything that a restart forgets.
#[derive(Debug)]
pub(super) struct Volatile {
    /// Classic groups that somebody asked for since the start; the others are as the log says.
    pub(super) classic: BTreeMap<Arc<str>, ClassicGroup>,
    /// Timers of consumer groups.
    pub(super) consumer: BTreeMap<Arc<str>, LiveConsumer>,
    /// Requests of consumer groups that wait for the log.
    pub(super) deferred: BTreeMap<Arc<str>, VecDeque<Deferred>>,
    /// The topics that exist, for what happens without a request.
    pub(super) topics: Option<Topics>,
    /// The names of topics that are gone, as long as members may use them by these names.
    pub(super) gone: BTreeMap<Uuid, Arc<str>>,
    pub(super) timers: Timers,
    pub(super) parked: Parked,
    pub(super) appends: Appends,
    pub(super) ids: MemberIds,
    pub(super) serving: Serving,
}

/// Whether requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    /// The log is being read.
    Loading,
    /// Yes.
    Active,
    /// Another broker is the coordinator.
    Resigned,
}

impl Volatile {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            classic: BTreeMap::new(),
            consumer: BTreeMap::new(),
            deferred: BTreeMap::new(),
            topics: None,
            gone: BTreeMap::new(),
            timers: Timers::default(),
            parked: BTreeMap::new(),
            appends: Appends::default(),
            ids: MemberIds::new(seed),
            serving: Serving::Loading,
        }
    }
}
