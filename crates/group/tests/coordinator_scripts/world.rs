//! A coordinator, its log, its clients and a clock that stands still until the script lets it go.

use crate::client::{Client, State, assignment_text};
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tontine_group::{
    Instant,
    coordinator::{
        AppendId, ClientInfo, Coordinator, CoordinatorConfig, GroupRecord, Output, Record, Ticket, Transition,
    },
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{Request, Response},
};

pub(crate) struct World {
    pub(crate) config: CoordinatorConfig,
    pub(crate) coordinator: Coordinator,
    pub(crate) topics: Topics,
    pub(crate) now: Instant,
    pub(crate) clients: BTreeMap<String, Client>,
    /// What happened since the last look.
    pub(crate) events: Vec<String>,
    /// How appends go: at once, not yet, or not at all.
    pub(crate) log_mode: LogMode,
    waiting: VecDeque<(AppendId, Vec<GroupRecord>)>,
    log: Vec<GroupRecord>,
    tickets: BTreeMap<Ticket, String>,
    next_ticket: u64,
    names: BTreeMap<String, String>,
    restarts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LogMode {
    Appends,
    Waits,
    Fails(ErrorCode),
}

impl World {
    pub(crate) fn new() -> Self {
        let config =
            CoordinatorConfig { group_initial_rebalance_delay: Duration::ZERO, ..Default::default() };
        let mut coordinator = Coordinator::new(config.clone(), 1);
        coordinator.loaded(Instant::ZERO);
        Self {
            config,
            coordinator,
            topics: Topics::new(),
            now: Instant::ZERO,
            clients: BTreeMap::new(),
            events: Vec::new(),
            log_mode: LogMode::Appends,
            waiting: VecDeque::new(),
            log: Vec::new(),
            tickets: BTreeMap::new(),
            next_ticket: 0,
            names: BTreeMap::new(),
            restarts: 0,
        }
    }

    pub(crate) fn topic(&mut self, name: &str, partitions: i32) {
        let id =
            self.topics.get(name).map_or(Uuid::from_u128(self.topics.iter().count() as u128 + 1), |t| t.id);
        self.topics.insert(name, Topic { id, partitions, racks: Vec::new() });
    }

    pub(crate) fn partitions(&self) -> BTreeMap<String, i32> {
        self.topics.iter().map(|(name, topic)| (name.to_string(), topic.partitions)).collect()
    }

    pub(crate) fn send(&mut self, client: &str, version: i16, request: Request) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.tickets.insert(ticket, client.to_owned());
        let info = ClientInfo { client_id: client.to_owned(), client_host: "/127.0.0.1".to_owned() };
        self.coordinator.handle_request(self.now, ticket, &info, version, request, &self.topics).unwrap();
        self.drain();
    }

    /// The connection of a client breaks: nobody waits for answers to what it sent.
    pub(crate) fn disconnect(&mut self, client: &str) {
        let gone: Vec<Ticket> =
            self.tickets.iter().filter(|(_, name)| *name == client).map(|(t, _)| *t).collect();
        for ticket in gone {
            self.tickets.remove(&ticket);
            self.coordinator.handle_disconnected(self.now, ticket);
        }
        self.drain();
    }

    /// Another coordinator reads the log and takes over.
    pub(crate) fn restart(&mut self) {
        self.coordinator.resign(self.now);
        self.drain();
        self.waiting.clear();
        self.restarts += 1;
        self.coordinator = self.read_log_again(1 + self.restarts);
        self.coordinator.loaded(self.now);
        self.drain();
    }

    fn read_log_again(&self, seed: u64) -> Coordinator {
        let mut again = Coordinator::new(self.config.clone(), seed);
        for record in &self.log {
            again.replay(record.key.clone(), record.value.clone()).unwrap();
        }
        again
    }

    pub(crate) fn check_log(&self) {
        assert_eq!(
            self.read_log_again(0).durable(),
            self.coordinator.durable(),
            "the log says something else"
        );
    }

    /// Lets appends that wait go through, or fail.
    pub(crate) fn release(&mut self, mode: LogMode) {
        self.log_mode = mode;
        for (id, records) in std::mem::take(&mut self.waiting) {
            self.append(id, records);
        }
        self.drain();
    }

    fn append(&mut self, id: AppendId, records: Vec<GroupRecord>) {
        match self.log_mode {
            LogMode::Appends => {
                self.log.extend(records);
                self.coordinator.handle_appended(self.now, id, Ok(()));
                self.check_log();
            }
            LogMode::Fails(code) => {
                self.events.push(format!("append failed: {code}"));
                self.coordinator.handle_appended(self.now, id, Err(code));
            }
            LogMode::Waits => self.waiting.push_back((id, records)),
        }
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        let to = self.now + by;
        while let Some(at) = self.drain().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
        }
        self.now = to;
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    for record in &records {
                        self.tell_record(record);
                    }
                    self.append(id, records);
                }
                Output::Reply { ticket, response } => {
                    let client = self.tickets.remove(&ticket).expect("a reply that nobody waits for");
                    self.answer(&client, response);
                }
                Output::Transition(transition) => self.tell_transition(&transition),
                Output::Wait(at) => return at,
            }
        }
    }

    fn tell_record(&mut self, record: &GroupRecord) {
        let record = Record::decode(record.key.clone(), record.value.clone()).unwrap().unwrap();
        let text = match record {
            Record::OffsetCommit(key, Some(value)) => {
                format!("{}:{} = {}", key.topic, key.partition, value.offset)
            }
            Record::OffsetCommit(key, None) => format!("{}:{} gone", key.topic, key.partition),
            Record::Consumer(record) => format!("{record:?}"),
            Record::GroupMetadata(_, None) => "group gone".to_owned(),
            Record::GroupMetadata(_, Some(value)) => {
                let members: Vec<String> = value.members.iter().map(|m| self.name(&m.member_id)).collect();
                format!("group generation {} members [{}]", value.generation, members.join(" "))
            }
        };
        self.events.push(format!("log: {text}"));
    }

    fn tell_transition(&mut self, t: &Transition) {
        let text = format!("{} -> {}, generation {}: {}", t.from, t.to, t.generation, t.cause);
        let text = self.with_names(&text);
        self.events.push(text);
    }

    /// Names a member id: `a`, and `a.2` for the second id that client a got.
    pub(crate) fn name(&mut self, id: &str) -> String {
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let Some(client) = id.len().checked_sub(37).map(|end| id[..end].to_owned()) else {
            return id.to_owned();
        };
        let number =
            self.names.keys().filter(|known| known.len() == id.len() && known.starts_with(&client)).count()
                + 1;
        let name = if number == 1 { client } else { format!("{client}.{number}") };
        self.names.insert(id.to_owned(), name.clone());
        name
    }

    fn with_names(&mut self, text: &str) -> String {
        let words: Vec<String> = text.split(' ').map(|word| self.name(word)).collect();
        words.join(" ")
    }

    fn answer(&mut self, name: &str, response: Response) {
        if let Response::JoinGroup(join) = &response
            && !join.member_id.is_empty()
        {
            self.name(&join.member_id.clone());
        }
        let text = self.tell(&response);
        if let Some(text) = text {
            self.events.push(format!("{name}: {text}"));
        }
        let Some(client) = self.clients.get_mut(name) else { return };
        match response {
            Response::JoinGroup(join) => match join.error_code {
                ErrorCode::NONE => {
                    client.id = join.member_id.clone();
                    client.generation = join.generation_id;
                    client.state = State::Joined(join);
                }
                ErrorCode::MEMBER_ID_REQUIRED => {
                    client.id = join.member_id;
                    let (version, request) = (client.version, client.join());
                    self.send(name, version, request);
                }
                code => client.refused(code),
            },
            Response::SyncGroup(sync) if sync.error_code.is_ok() => client.state = State::Stable,
            Response::SyncGroup(sync) => client.refused(sync.error_code),
            Response::Heartbeat(heartbeat) if heartbeat.error_code.is_err() => {
                client.refused(heartbeat.error_code)
            }
            Response::LeaveGroup(leave) if leave.error_code.is_ok() => client.state = State::Gone,
            _ => {}
        }
    }

    /// An answer in words. A heartbeat that is well is not worth any.
    fn tell(&mut self, response: &Response) -> Option<String> {
        Some(match response {
            Response::JoinGroup(r) if r.error_code.is_err() => format!("join {}", r.error_code),
            Response::JoinGroup(r) => {
                let leads = if r.leader == r.member_id { ", leads" } else { "" };
                let members: Vec<String> = r.members.iter().map(|m| self.name(&m.member_id)).collect();
                let members =
                    if members.is_empty() { String::new() } else { format!(" [{}]", members.join(" ")) };
                let skips = if r.skip_assignment { ", skips the assignment" } else { "" };
                let protocol = r.protocol_name.clone().unwrap_or_default();
                let id = self.name(&r.member_id.clone());
                format!("joined as {id}, generation {}, {protocol}{leads}{members}{skips}", r.generation_id)
            }
            Response::SyncGroup(r) if r.error_code.is_err() => format!("sync {}", r.error_code),
            Response::SyncGroup(r) => format!("has {}", assignment_text(&r.assignment)),
            Response::Heartbeat(r) if r.error_code.is_ok() => return None,
            Response::Heartbeat(r) => format!("heartbeat {}", r.error_code),
            Response::LeaveGroup(r) => {
                let code = r.members.first().map_or(r.error_code, |m| m.error_code.max(r.error_code));
                format!("left {code}")
            }
            Response::OffsetCommit(r) => format!("commit {}", r.topics[0].partitions[0].error_code),
            Response::OffsetFetch(r) => {
                let topics = r.groups[0].topics.iter();
                let offsets = topics.flat_map(|t| {
                    t.partitions
                        .iter()
                        .map(|p| format!("{}:{} = {}", t.name, p.partition_index, p.committed_offset))
                });
                format!("offsets [{}]", offsets.collect::<Vec<_>>().join(", "))
            }
            Response::DeleteGroups(r) => format!("deleted {}", r.results[0].error_code),
            other => format!("{other:?}"),
        })
    }

    /// One line for the group and one for each member.
    pub(crate) fn describe(&mut self) {
        for group in self.coordinator.groups() {
            let protocol = group.protocol.as_deref().unwrap_or("no protocol");
            self.events
                .push(format!("{} {}, generation {}, {protocol}", group.id, group.state, group.generation));
            for member in group.members {
                let leads = if group.leader.as_ref() == Some(&member.id) { ", leads" } else { "" };
                let waits = match (member.joining, member.syncing) {
                    (true, _) => ", joining",
                    (_, true) => ", syncing",
                    (false, false) => "",
                };
                let name = self.name(&member.id);
                self.events.push(format!("  {name} {}{leads}{waits}", assignment_text(&member.assignment)));
            }
        }
    }
}
