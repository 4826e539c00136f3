//! One consumer around a member: its application, its connections, and the record of its callbacks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tontine_group::{
    Instant, TopicPartition,
    assignor::RebalanceProtocol,
    member::{Callback, Member, MemberError, Ticket},
};

/// What the application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum App {
    /// Inside a poll: callbacks run at once.
    Polling,
    /// Working on what it polled.
    Busy,
    /// Inside unsubscribe or close.
    Closing,
}

/// The connections to the coordinator: a parked join holds up nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Join,
    Group,
}

pub(crate) struct Client {
    pub(crate) member: Member,
    pub(crate) alive: bool,
    pub(crate) app: App,
    pub(crate) callback: Option<Callback>,
    /// Not polling until then.
    pub(crate) stuck_until: Instant,
    /// No byte gets through until then.
    pub(crate) stalled_until: Instant,
    pub(crate) pending: BTreeMap<Ticket, Lane>,
    pub(crate) connections: BTreeMap<Lane, u64>,
    /// On one connection nothing overtakes.
    pub(crate) latest: BTreeMap<(Lane, bool), Instant>,
    pub(crate) interest: BTreeSet<Arc<str>>,
    pub(crate) owned: BTreeSet<TopicPartition>,
    pub(crate) protocol: RebalanceProtocol,
    pub(crate) commits: BTreeMap<Ticket, tontine_group::ids::Membership>,
    pub(crate) sent: usize,
    pub(crate) joins: usize,
    /// Heartbeats of the consumer protocol.
    pub(crate) beats: usize,
    pub(crate) errors: Vec<MemberError>,
    pub(crate) left: bool,
    /// Callbacks that began and changes of state, with their times.
    pub(crate) history: Vec<(Instant, String)>,
    pub(crate) app_cycle: u64,
    /// Which static member it is, where members are static.
    pub(crate) instance: usize,
    pub(crate) wake: Option<Instant>,
}

impl Client {
    pub(crate) fn new(member: Member, now: Instant) -> Self {
        Self {
            protocol: member.rebalance_protocol(),
            member,
            alive: true,
            app: App::Busy,
            callback: None,
            stuck_until: now,
            stalled_until: now,
            pending: BTreeMap::new(),
            connections: BTreeMap::new(),
            latest: BTreeMap::new(),
            interest: BTreeSet::new(),
            owned: BTreeSet::new(),
            commits: BTreeMap::new(),
            sent: 0,
            joins: 0,
            beats: 0,
            errors: Vec::new(),
            left: false,
            history: Vec::new(),
            app_cycle: 0,
            instance: 0,
            wake: None,
        }
    }

    /// What happened to it lately, for whoever has to find out why.
    pub(crate) fn story(&self, name: usize) -> String {
        let latest = &self.history[self.history.len().saturating_sub(14)..];
        let line = |(at, what): &(Instant, String)| format!("c{name} {:?} {what}\n", at.since_origin());
        latest.iter().map(line).collect()
    }

    /// Checks and books a callback at the moment it begins.
    pub(crate) fn book(&mut self, callback: &Callback) {
        match callback {
            Callback::Revoke(revocation) => {
                let partitions = revocation.partitions();
                assert!(
                    !partitions.is_empty() || self.protocol == RebalanceProtocol::Eager,
                    "cooperative revoked with nothing"
                );
                self.let_go(partitions, "revoked");
            }
            Callback::Lost(revocation) => {
                assert!(!revocation.partitions().is_empty(), "lost with nothing");
                self.let_go(revocation.partitions(), "lost");
            }
            Callback::Assign(granted) => {
                for tp in granted.added() {
                    assert!(self.owned.insert(tp.clone()), "{tp} assigned although it was kept");
                }
                assert!(granted.all().iter().eq(self.owned.iter()), "assignment and callbacks differ");
            }
        }
    }

    fn let_go(&mut self, partitions: &[TopicPartition], how: &str) {
        assert!(partitions.is_sorted(), "not sorted");
        for tp in partitions {
            assert!(self.owned.contains(tp), "{tp} {how} without having been assigned");
            assert!(self.member.assignment().contains(tp), "{tp} is not in assignment() while it is {how}");
        }
    }
}
