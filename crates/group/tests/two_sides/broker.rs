//! The coordinator with its log, as one broker has it: it can die and be replayed elsewhere.

use std::collections::BTreeMap;
use tontine_group::{
    Instant,
    coordinator::{AppendId, ClientInfo, Coordinator, CoordinatorConfig, GroupRecord, Output, Ticket},
    topics::Topics,
};
use tontine_wire::api::{ApiKey, Request, Response};

/// Who asked: a client, its connection, and its own ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) client: usize,
    pub(crate) connection: u64,
    pub(crate) ticket: tontine_group::member::Ticket,
}

pub(crate) enum Said {
    Reply(Asker, Response),
    Append(AppendId),
}

pub(crate) struct Broker {
    pub(crate) coordinator: Coordinator,
    config: CoordinatorConfig,
    log: Vec<GroupRecord>,
    askers: BTreeMap<u64, Asker>,
    tickets: u64,
    /// Counts failovers: what was sent to an earlier coordinator never arrives.
    pub(crate) life: u64,
    pub(crate) up: bool,
    pub(crate) wake: Option<Instant>,
}

/// Time limits of the consumer protocol that are small enough for a short story.
pub(crate) fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        group_initial_rebalance_delay: std::time::Duration::ZERO,
        consumer_session_timeout: std::time::Duration::from_secs(6),
        consumer_heartbeat_interval: std::time::Duration::from_secs(1),
        ..CoordinatorConfig::default()
    }
}

impl Broker {
    pub(crate) fn new(config: CoordinatorConfig) -> Self {
        let mut coordinator = Coordinator::new(config.clone(), 0);
        coordinator.loaded(Instant::ZERO);
        Self {
            coordinator,
            config,
            log: Vec::new(),
            askers: BTreeMap::new(),
            tickets: 0,
            life: 0,
            up: true,
            wake: None,
        }
    }

    pub(crate) fn ask(&mut self, now: Instant, asker: Asker, request: Request, topics: &Topics) {
        self.tickets += 1;
        self.askers.insert(self.tickets, asker);
        let client =
            ClientInfo { client_id: format!("c{}", asker.client), client_host: "/127.0.0.1".to_owned() };
        // Version 10 names topics by their ids, which this world has not.
        let version = *request.key().versions().end();
        let version = if request.key() == ApiKey::OffsetCommit { 9 } else { version };
        self.coordinator
            .handle_request(now, Ticket(self.tickets), &client, version, request, topics)
            .unwrap();
    }

    /// What it has to say, and when it wants to be called again.
    pub(crate) fn drain(&mut self) -> (Vec<Said>, Option<Instant>) {
        let mut said = Vec::new();
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    self.log.extend(records);
                    said.push(Said::Append(id));
                }
                Output::Reply { ticket, response } => {
                    if let Some(asker) = self.askers.remove(&ticket.0) {
                        said.push(Said::Reply(asker, response));
                    }
                }
                Output::Transition(_) => {}
                Output::Wait(wake) => return (said, wake),
            }
        }
    }

    pub(crate) fn connection_broke(&mut self, now: Instant, connection: u64) {
        let gone: Vec<u64> =
            self.askers.iter().filter(|(_, asker)| asker.connection == connection).map(|(t, _)| *t).collect();
        for ticket in gone {
            self.askers.remove(&ticket);
            self.coordinator.handle_disconnected(now, Ticket(ticket));
        }
    }

    pub(crate) fn die(&mut self) {
        self.up = false;
        self.life += 1;
        self.askers.clear();
    }

    /// Comes up elsewhere, from the log.
    pub(crate) fn load(&mut self, now: Instant) {
        self.coordinator = Coordinator::new(self.config.clone(), self.life);
        for record in &self.log {
            self.coordinator.replay(record.key.clone(), record.value.clone()).unwrap();
        }
        self.coordinator.loaded(now);
        self.up = true;
    }

    pub(crate) fn knows_member(&self, id: &str) -> bool {
        self.coordinator.groups().iter().any(|group| group.members.iter().any(|member| &*member.id == id))
    }
}
