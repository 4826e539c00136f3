//! The world of one history: clients, topics, the coordinator and its log.

use crate::{client::Client, dice::Dice};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tontine_group::{
    Instant, TopicPartition,
    coordinator::{
        AppendId, ClientInfo, Coordinator, CoordinatorConfig, GroupRecord, Output, Ticket, durable::Group,
    },
    member::{MemberState, SendError},
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{Request, Response},
};

pub(crate) const SESSION: Duration = Duration::from_secs(6);
const SUBSCRIPTIONS: [&[&str]; 4] = [&["a"], &["a"], &["a", "b", "c"], &["b", "c"]];

pub(crate) struct World {
    dice: Dice,
    now: Instant,
    config: CoordinatorConfig,
    coordinator: Coordinator,
    coordinator_wakes: Option<Instant>,
    log: Vec<GroupRecord>,
    log_fails: bool,
    /// Written, and not yet said to be.
    appended: Vec<AppendId>,
    log_is_slow: bool,
    topics: Topics,
    topic_ids: u128,
    clients: Vec<Client>,
    /// Who asked: a client and its ticket; nobody for strays.
    askers: BTreeMap<u64, Option<(usize, tontine_group::member::Ticket)>>,
    tickets: u64,
    events: u64,
}

impl World {
    pub(crate) fn new(number: u64) -> Self {
        let mut dice = Dice(number);
        let intervals = [0, 0, 20, 1_000];
        let config = CoordinatorConfig {
            consumer_session_timeout: SESSION,
            consumer_heartbeat_interval: Duration::from_secs(1),
            consumer_assignment_interval: Duration::from_millis(intervals[dice.below(intervals.len())]),
            ..CoordinatorConfig::default()
        };
        let mut coordinator = Coordinator::new(config.clone(), 1);
        coordinator.loaded(Instant::ZERO);
        let mut world = Self {
            dice,
            now: Instant::ZERO + Duration::from_secs(1),
            config,
            coordinator,
            coordinator_wakes: None,
            log: Vec::new(),
            log_fails: false,
            appended: Vec::new(),
            log_is_slow: false,
            topics: Topics::new(),
            topic_ids: 0,
            clients: Vec::new(),
            askers: BTreeMap::new(),
            tickets: 0,
            events: 0,
        };
        world.topic("a", 2);
        world.topic("b", 1);
        world
    }

    /// Tells the history and answers how many events it had.
    pub(crate) fn tell(mut self) -> u64 {
        for _ in 0..2 + self.dice.below(2) {
            self.start();
        }
        for _ in 0..20 + self.dice.below(30) {
            self.happen();
            self.check();
        }
        self.come_to_rest();
        self.events
    }

    fn happen(&mut self) {
        self.events += 1;
        let client = self.dice.below(self.clients.len());
        match self.dice.below(100) {
            0..25 => self.arrive(client),
            25..48 => self.hear(client),
            48..70 => self.turn(client),
            70..82 => self.pass(),
            82..87 => self.break_off(client),
            87..91 => self.arrive_late(client),
            91 => self.start(),
            92 => self.leave(client),
            93 => self.die(client),
            94 => self.subscribe(client),
            95 => self.change_topics(),
            96 => self.log_fails = self.dice.one_in(2),
            97 => self.log_is_slow = self.dice.one_in(2),
            98 => {
                self.written();
                self.drain();
            }
            _ => self.restart(),
        }
    }

    // Clients.

    fn start(&mut self) {
        if self.clients.iter().filter(|client| client.alive).count() >= 4 {
            return;
        }
        let (index, seed) = (self.clients.len(), self.dice.next());
        self.clients.push(Client::new(index, seed));
        self.clients[index].member.handle_topics(self.now, &self.topics);
        self.subscribe(index);
        self.turn(index);
    }

    fn subscribe(&mut self, client: usize) {
        let names = SUBSCRIPTIONS[self.dice.below(SUBSCRIPTIONS.len())];
        let names: BTreeSet<Arc<str>> = names.iter().map(|name| Arc::from(*name)).collect();
        self.with(client, |client, now| client.member.subscribe(now, names));
    }

    fn turn(&mut self, client: usize) {
        let fails = self.dice.one_in(20);
        self.with(client, |client, now| {
            client.find(now);
            client.turn(now, fails);
        });
    }

    fn hear(&mut self, client: usize) {
        self.with(client, |client, now| {
            client.hear(now);
        });
    }

    fn break_off(&mut self, client: usize) {
        let arrives_later = self.dice.one_in(2);
        let error = if self.dice.one_in(2) { SendError::TimedOut } else { SendError::Disconnected };
        self.with(client, |client, now| client.break_off(now, error, arrives_later));
    }

    fn leave(&mut self, client: usize) {
        self.with(client, |client, now| client.member.leave(now, "it closes"));
    }

    fn die(&mut self, client: usize) {
        self.clients[client].stop();
    }

    fn with(&mut self, client: usize, act: impl FnOnce(&mut Client, Instant)) {
        let client = &mut self.clients[client];
        if client.alive {
            act(client, self.now);
            client.drain(self.now, &self.topics);
        }
    }

    // The network.

    /// The oldest request on the way arrives. What was sent before it over another connection does no more: heartbeats
    /// have no numbers, so nothing defends the protocol against one that a newer one of the same member overtook.
    fn arrive(&mut self, client: usize) {
        if let Some((ticket, request)) = self.clients[client].requests.pop_front() {
            self.clients[client].stray = None;
            self.ask(client, Some(ticket), request);
        }
    }

    /// One that was sent over a connection that broke arrives after all.
    fn arrive_late(&mut self, client: usize) {
        if let Some(request) = self.clients[client].stray.take() {
            self.ask(client, None, request);
        }
    }

    fn ask(&mut self, client: usize, ticket: Option<tontine_group::member::Ticket>, request: Request) {
        self.tickets += 1;
        self.askers.insert(self.tickets, ticket.map(|ticket| (client, ticket)));
        let info = ClientInfo { client_id: format!("c{client}"), client_host: "/h".to_owned() };
        let ticket = Ticket(self.tickets);
        self.coordinator.handle_request(self.now, ticket, &info, 1, request, &self.topics).unwrap();
        self.drain();
    }

    // The coordinator.

    fn drain(&mut self) {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } if self.log_fails => {
                    drop(records);
                    // What came before has to be told before.
                    self.written();
                    self.coordinator.handle_appended(self.now, id, Err(ErrorCode::NOT_ENOUGH_REPLICAS));
                }
                Output::Append { id, records } => {
                    self.log.extend(records);
                    self.appended.push(id);
                    if !self.log_is_slow {
                        self.written();
                    }
                }
                Output::Reply { ticket, response } => self.reply(ticket, response),
                Output::Transition(_) => {}
                Output::Wait(at) => {
                    self.coordinator_wakes = at;
                    return;
                }
            }
        }
    }

    /// What was appended is known to be.
    fn written(&mut self) {
        for id in std::mem::take(&mut self.appended) {
            self.coordinator.handle_appended(self.now, id, Ok(()));
        }
    }

    fn reply(&mut self, ticket: Ticket, response: Response) {
        let Some((client, ticket)) = self.askers.remove(&ticket.0).flatten() else { return };
        if self.clients[client].alive {
            self.clients[client].answers.push_back((ticket, response));
        }
    }

    fn restart(&mut self) {
        self.coordinator.resign(self.now);
        self.appended.clear();
        self.askers.clear();
        self.coordinator = Coordinator::new(self.config.clone(), self.tickets);
        for record in &self.log {
            self.coordinator.replay(record.key.clone(), record.value.clone()).unwrap();
        }
        self.coordinator.loaded(self.now);
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
        for client in 0..self.clients.len() {
            self.with(client, |client, now| client.break_off(now, SendError::Disconnected, false));
        }
    }

    // Topics and time.

    fn topic(&mut self, name: &str, partitions: i32) {
        self.topic_ids += 1;
        let id = self.topics.get(name).map_or(Uuid::from_u128(self.topic_ids), |topic| topic.id);
        self.topics.insert(name, Topic { id, partitions, racks: Vec::new() });
    }

    /// A topic grows, goes or comes; everybody hears of it.
    fn change_topics(&mut self) {
        if self.dice.one_in(2) {
            let partitions = self.topics.partitions("a").unwrap_or(0);
            self.topic("a", (partitions + 1).min(4));
        } else if self.topics.remove("b").is_none() && self.topics.remove("c").is_none() {
            // None comes again under its name: it would be another one, and partitions are told apart by names here.
            if self.topic_ids < 100 {
                self.topic_ids = 100;
                self.topic("c", 1);
            }
        }
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
        let topics = self.topics.clone();
        for client in 0..self.clients.len() {
            self.with(client, |client, now| client.member.handle_topics(now, &topics));
        }
    }

    /// Time passes: to the next deadline of anybody, or a little, or for long.
    fn pass(&mut self) {
        let next = self.next_deadline().unwrap_or(self.now);
        self.now = match self.dice.below(20) {
            0 => self.now + self.dice.millis(1_000, 7_000),
            1..8 => self.now + self.dice.millis(1, 100),
            _ => next.max(self.now),
        };
        self.ring();
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.clients.iter().filter_map(|client| client.wake).chain(self.coordinator_wakes).min()
    }

    fn ring(&mut self) {
        for client in 0..self.clients.len() {
            if self.clients[client].wake.is_some_and(|at| at <= self.now) {
                self.with(client, |client, now| client.member.handle_timeout(now));
            }
        }
        if self.coordinator_wakes.is_some_and(|at| at <= self.now) {
            self.coordinator.handle_timeout(self.now);
            self.drain();
        }
    }

    // What must hold.

    /// Whether the coordinator has thrown it out, or it has already given up its membership.
    fn is_out(&self, client: &Client) -> bool {
        let Some(membership) = client.member.membership() else { return true };
        match self.coordinator.durable().group("g") {
            Some(Group::Consumer(group)) => !group.members.contains_key(&*membership.member_id),
            Some(Group::Classic(_)) | None => true,
        }
    }

    fn check(&self) {
        let mut users: BTreeMap<&TopicPartition, &Client> = BTreeMap::new();
        for client in self.clients.iter().filter(|client| !self.is_out(client)) {
            for partition in &client.uses {
                if let Some(other) = users.insert(partition, client) {
                    let (one, other) = (&client.member, &other.member);
                    panic!(
                        "{partition} is used by {one:#?}\nand {other:#?}\n{:#?}",
                        self.coordinator.durable()
                    );
                }
            }
        }
    }

    /// Everything works again, until nothing moves any more.
    fn come_to_rest(&mut self) {
        (self.log_fails, self.log_is_slow) = (false, false);
        self.clients.iter_mut().for_each(|client| client.stray = None);
        self.written();
        self.drain();
        if !self.clients.iter().any(|client| client.alive) {
            self.start();
        }
        // The dead stay in the group until their session is over.
        let end = self.now + 10 * SESSION;
        for _ in 0..10_000 {
            for client in 0..self.clients.len() {
                while self.clients[client].alive && !self.clients[client].requests.is_empty() {
                    self.arrive(client);
                    self.hear(client);
                    self.events += 1;
                }
                self.hear(client);
                self.with(client, |client, now| {
                    client.find(now);
                    client.turn(now, false);
                    client.member.poll(now);
                });
                self.check();
            }
            if self.is_at_rest() {
                return self.check_log();
            }
            self.events += 1;
            // Whoever has something to do at once does it before time passes.
            if self.clients.iter().all(|client| !client.alive || client.is_quiet()) {
                self.now = self.next_deadline().unwrap_or(self.now).max(self.now);
            }
            self.ring();
            if self.now > end {
                break;
            }
        }
        let living = self.clients.iter().filter(|client| client.alive);
        let members: Vec<_> = living.map(|client| (&client.member, &client.uses)).collect();
        let wakes: Vec<_> = self.clients.iter().map(|client| client.wake).collect();
        let times = (self.now, end, wakes, self.coordinator_wakes);
        panic!("it does not come to rest: {members:#?}\n{:#?}\n{times:?}", self.coordinator.durable());
    }

    fn is_at_rest(&self) -> bool {
        let living: Vec<_> = self.clients.iter().filter(|client| client.alive).collect();
        let Some(Group::Consumer(group)) = self.coordinator.durable().group("g") else {
            return living.is_empty();
        };
        let rests = |client: &&Client| {
            client.member.state() == MemberState::Stable
                && client.is_quiet()
                && client.member.membership().is_some_and(|m| m.generation == group.epoch)
        };
        group.members.len() == living.len()
            && group.epoch == group.target_epoch
            && living.iter().all(rests)
            && self.all_are_used(&living)
    }

    fn all_are_used(&self, living: &[&Client]) -> bool {
        let mut wanted = BTreeSet::new();
        for topic in living.iter().flat_map(|client| client.member.subscription()) {
            let partitions = self.topics.partitions(topic).unwrap_or(0);
            wanted.extend((0..partitions).map(|partition| TopicPartition::new(topic.clone(), partition)));
        }
        let used: BTreeSet<_> = living.iter().flat_map(|client| client.uses.iter().cloned()).collect();
        used == wanted
    }

    fn check_log(&self) {
        let mut again = Coordinator::new(self.config.clone(), 0);
        for record in &self.log {
            again.replay(record.key.clone(), record.value.clone()).unwrap();
        }
        assert!(again.durable() == self.coordinator.durable(), "the log says something else");
    }
}
