//! The world of clients, network and coordinator: one queue of things to come, in virtual time.

use crate::{
    broker::{self, Asker, Broker, Said},
    client::{App, Client, Lane},
    dice::Dice,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tontine_group::{
    Instant, TopicPartition,
    assignor::by_name,
    coordinator::AppendId,
    member::{
        Callback, CommitRefusal, Event, GroupProtocol, Member, MemberConfig, MemberState, Output, SendError,
        Ticket,
    },
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{Request, Response, offset_commit::*},
};

pub(crate) enum Happening {
    Arrive { life: u64, asker: Asker, request: Request },
    Reply { asker: Asker, response: Response },
    Fail { client: usize, ticket: Ticket, error: SendError },
    Appended { life: u64, id: AppendId },
    BrokerWakes,
    BrokerLoads,
    ClientWakes(usize),
    Found(usize),
    Metadata(usize),
    AppTurns { client: usize, cycle: u64 },
    CallbackReturns(usize),
}

pub(crate) struct World {
    pub(crate) now: Instant,
    queue: BTreeMap<(Instant, u64), Happening>,
    order: u64,
    steps: u64,
    pub(crate) dice: Dice,
    pub(crate) broker: Broker,
    pub(crate) topics: Topics,
    pub(crate) clients: Vec<Client>,
    pub(crate) owners: BTreeMap<TopicPartition, usize>,
    connections: u64,
    topic_ids: u128,
    commit_tickets: u64,
    pub(crate) calm: bool,
    /// Delays of one way, from and to, in milliseconds.
    pub(crate) delay: (u64, u64),
    /// Why commits were refused by the coordinator, as the member sees it.
    pub(crate) refusals: Vec<CommitRefusal>,
}

/// The member's side of time limits, small enough for a short story. Whoever offers no assignor speaks the consumer
/// protocol.
pub(crate) fn config(assignors: &[&str], index: usize) -> MemberConfig {
    MemberConfig {
        group_id: "g".into(),
        client_id: format!("c{index}"),
        session_timeout: Duration::from_secs(6),
        heartbeat_interval: Duration::from_secs(1),
        rebalance_timeout: Duration::from_secs(10),
        max_poll_interval: Duration::from_secs(10),
        request_timeout: Duration::from_secs(5),
        protocol: if assignors.is_empty() { GroupProtocol::Consumer } else { GroupProtocol::Classic },
        assignors: assignors.iter().map(|name| by_name(name).unwrap()).collect(),
        ..MemberConfig::default()
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = Self::empty(seed);
        world.topic("a", 4);
        world.topic("b", 3);
        world
    }

    fn empty(seed: u64) -> Self {
        Self {
            now: Instant::ZERO + Duration::from_secs(1),
            queue: BTreeMap::new(),
            order: 0,
            steps: 0,
            dice: Dice(seed),
            broker: Broker::new(broker::config()),
            topics: Topics::new(),
            clients: Vec::new(),
            owners: BTreeMap::new(),
            connections: 0,
            topic_ids: 0,
            commit_tickets: 0,
            calm: false,
            delay: (1, 4),
            refusals: Vec::new(),
        }
    }

    pub(crate) fn at(&mut self, at: Instant, what: Happening) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), what);
    }

    pub(crate) fn after(&mut self, wait: Duration, what: Happening) {
        self.at(self.now + wait, what);
    }

    /// A topic with as many partitions as this; one that was not there before has an id of its own.
    pub(crate) fn topic(&mut self, name: &str, partitions: i32) {
        self.topic_ids += 1;
        let id = self.topics.get(name).map_or(Uuid::from_u128(self.topic_ids), |topic| topic.id);
        self.topics.insert(name, Topic { id, partitions, racks: Vec::new() });
    }

    // Commands of a story.

    pub(crate) fn start(&mut self, config: MemberConfig, topics: &[&str]) -> usize {
        let index = self.clients.len();
        let member = Member::new(config, self.dice.next());
        self.clients.push(Client::new(member, self.now));
        self.subscribe(index, topics);
        self.after(Duration::ZERO, Happening::AppTurns { client: index, cycle: 0 });
        index
    }

    pub(crate) fn subscribe(&mut self, client: usize, topics: &[&str]) {
        let topics: BTreeSet<Arc<str>> = topics.iter().map(|t| Arc::from(*t)).collect();
        let now = self.now;
        self.clients[client].member.subscribe(now, topics);
        self.drain(client);
    }

    pub(crate) fn close(&mut self, client: usize) {
        let now = self.now;
        self.clients[client].app = App::Closing;
        self.clients[client].app_cycle += 1;
        self.clients[client].member.leave(now, "closing");
        self.drain(client);
    }

    pub(crate) fn kill(&mut self, client: usize) {
        self.clients[client].alive = false;
        self.break_connection(client, Lane::Join);
        self.break_connection(client, Lane::Group);
        self.owners.retain(|_, owner| *owner != client);
    }

    pub(crate) fn break_connection(&mut self, client: usize, lane: Lane) {
        let Some(connection) = self.clients[client].connections.remove(&lane) else { return };
        self.broker.connection_broke(self.now, connection);
        self.drain_broker();
        let broken: Vec<Ticket> =
            self.clients[client].pending.iter().filter(|(_, l)| **l == lane).map(|(t, _)| *t).collect();
        for ticket in broken {
            self.after(
                Duration::from_millis(1),
                Happening::Fail { client, ticket, error: SendError::Disconnected },
            );
        }
    }

    /// The coordinator's node dies; another one loads the log a while later.
    pub(crate) fn fail_over(&mut self) {
        if !self.broker.up {
            return;
        }
        self.broker.die();
        for client in 0..self.clients.len() {
            self.break_connection(client, Lane::Join);
            self.break_connection(client, Lane::Group);
        }
        let wait = self.dice.millis(20, 2000);
        self.after(wait, Happening::BrokerLoads);
    }

    pub(crate) fn topics_changed(&mut self) {
        for client in 0..self.clients.len() {
            let wait = self.dice.millis(1, 2000);
            self.after(wait, Happening::Metadata(client));
        }
        let topics = self.topics.clone();
        self.broker.coordinator.handle_topics(self.now, &topics);
        self.drain_broker();
    }

    // Time.

    pub(crate) fn run_until(&mut self, end: Instant) {
        while let Some(entry) = self.queue.first_entry() {
            let at = entry.key().0;
            if at > end {
                break;
            }
            let what = entry.remove();
            self.now = at;
            self.steps += 1;
            assert!(self.steps < 300_000, "something spins: {}", self.spinning());
            self.happen(what);
        }
        self.now = end;
    }

    pub(crate) fn run(&mut self, wait: Duration) {
        self.run_until(self.now + wait);
    }

    fn spinning(&self) -> String {
        let clients = self.clients.iter().enumerate().filter(|(_, c)| c.alive);
        let show = |(i, c): (usize, &Client)| {
            format!("c{i} {} {:?} sent {} pending {}\n", c.member.state(), c.app, c.sent, c.pending.len())
        };
        format!("{:?}\n{}", self.now, clients.map(show).collect::<String>())
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Arrive { life, asker, request } => self.arrive(life, asker, request),
            Happening::Reply { asker, response } => self.reply(asker, response),
            Happening::Fail { client, ticket, error } => self.answer(client, ticket, Err(error)),
            Happening::Appended { life, id } => {
                if life == self.broker.life {
                    self.broker.coordinator.handle_appended(self.now, id, Ok(()));
                    self.drain_broker();
                }
            }
            Happening::BrokerWakes => {
                if self.broker.wake == Some(self.now) {
                    self.broker.wake = None;
                } else {
                    return;
                }
                if self.broker.up {
                    self.broker.coordinator.handle_timeout(self.now);
                    self.drain_broker();
                }
            }
            Happening::BrokerLoads => {
                self.broker.load(self.now);
                self.drain_broker();
            }
            Happening::ClientWakes(client) => {
                let now = self.now;
                if self.clients[client].wake.take_if(|at| *at == now).is_none() {
                    return;
                }
                self.clients[client].member.handle_timeout(now);
                self.drain(client);
            }
            Happening::Found(client) => self.found(client),
            Happening::Metadata(client) => {
                let topics = self.topics.clone();
                let now = self.now;
                self.clients[client].member.handle_topics(now, &topics);
                self.drain(client);
            }
            Happening::AppTurns { client, cycle } => self.app_turns(client, cycle),
            Happening::CallbackReturns(client) => self.callback_returns(client),
        }
    }

    // Network.

    fn found(&mut self, client: usize) {
        let now = self.now;
        if !self.broker.up || now < self.clients[client].stalled_until {
            return self.after(Duration::from_millis(50), Happening::Found(client));
        }
        self.clients[client].member.handle_coordinator(now, true);
        self.drain(client);
    }

    /// When something sent now over this lane gets through: after a delay, and never before what was sent earlier.
    fn arrival(&mut self, client: usize, lane: Lane, forth: bool) -> Instant {
        let (from, to) = self.delay;
        let slow = !self.calm && self.dice.one_in(40);
        let wait = if slow { self.dice.millis(20, 400) } else { self.dice.millis(from, to) };
        let client = &mut self.clients[client];
        let start = self.now.max(client.stalled_until);
        let latest = client.latest.entry((lane, forth)).or_default();
        *latest = (*latest).max(start + wait);
        *latest
    }

    pub(crate) fn send(
        &mut self,
        client: usize,
        ticket: Ticket,
        request: Request,
        timeout: Option<Duration>,
    ) {
        let lane = match request {
            Request::JoinGroup(_) | Request::SyncGroup(_) => Lane::Join,
            _ => Lane::Group,
        };
        let joins = match &request {
            Request::JoinGroup(_) => true,
            Request::ConsumerGroupHeartbeat(heartbeat) => heartbeat.member_epoch == 0,
            _ => false,
        };
        if matches!(request, Request::ConsumerGroupHeartbeat(_)) {
            self.clients[client].beats += 1;
        }
        if joins {
            self.clients[client].joins += 1;
        }
        self.clients[client].sent += 1;
        self.clients[client].pending.insert(ticket, lane);
        if !self.broker.up {
            let fail = Happening::Fail { client, ticket, error: SendError::Disconnected };
            return self.after(Duration::from_millis(2), fail);
        }
        self.connections += 1;
        let connection = *self.clients[client].connections.entry(lane).or_insert(self.connections);
        let asker = Asker { client, connection, ticket };
        let at = self.arrival(client, lane, true);
        let life = self.broker.life;
        self.at(at, Happening::Arrive { life, asker, request });
        let timeout = timeout.unwrap_or(Duration::from_secs(5));
        self.after(timeout, Happening::Fail { client, ticket, error: SendError::TimedOut });
    }

    fn arrive(&mut self, life: u64, asker: Asker, request: Request) {
        let connected = self.clients[asker.client].connections.values().any(|c| *c == asker.connection);
        if life != self.broker.life || !self.broker.up || !connected {
            return;
        }
        let topics = self.topics.clone();
        self.broker.ask(self.now, asker, request, &topics);
        self.drain_broker();
    }

    fn drain_broker(&mut self) {
        let (said, wake) = self.broker.drain();
        let life = self.broker.life;
        for said in said {
            match said {
                Said::Append(id) => {
                    self.after(Duration::from_micros(300), Happening::Appended { life, id });
                }
                Said::Reply(asker, response) => {
                    let lane = self.clients[asker.client].pending.get(&asker.ticket).copied();
                    let at = self.arrival(asker.client, lane.unwrap_or(Lane::Group), false);
                    self.at(at, Happening::Reply { asker, response });
                }
            }
        }
        let wake = wake.map(|at| at.max(self.now));
        if let Some(at) = wake
            && self.broker.wake != wake
        {
            self.at(at, Happening::BrokerWakes);
        }
        self.broker.wake = wake;
    }

    fn reply(&mut self, asker: Asker, response: Response) {
        if self.clients[asker.client].connections.values().any(|c| *c == asker.connection) {
            self.answer(asker.client, asker.ticket, Ok(response));
        }
    }

    fn answer(&mut self, client: usize, ticket: Ticket, result: Result<Response, SendError>) {
        let now = self.now;
        if self.clients[client].pending.remove(&ticket).is_none() || !self.clients[client].alive {
            return;
        }
        if let Some(membership) = self.clients[client].commits.remove(&ticket) {
            return self.commit_answered(client, &membership, result);
        }
        self.clients[client].member.handle_response(now, ticket, result);
        self.drain(client);
    }

    // The client around its member.

    pub(crate) fn drain(&mut self, client: usize) {
        if !self.clients[client].alive {
            return;
        }
        loop {
            match self.clients[client].member.poll_output() {
                Output::Send { ticket, request, timeout } => self.send(client, ticket, request, timeout),
                Output::FindCoordinator => {
                    let wait = self.dice.millis(1, 10);
                    self.after(wait, Happening::Found(client));
                }
                Output::RefreshTopics { topics } => {
                    self.clients[client].interest = topics;
                    let wait = self.dice.millis(1, 10);
                    self.after(wait, Happening::Metadata(client));
                }
                Output::Plan(planning) => {
                    let now = self.now;
                    self.clients[client].member.handle_plan(now, planning.run());
                }
                Output::Event(Event::Left) => {
                    assert!(self.clients[client].owned.is_empty(), "left with partitions");
                    self.clients[client].left = true;
                    if self.clients[client].app == App::Closing {
                        self.clients[client].alive = false;
                        return;
                    }
                }
                Output::Event(Event::Error(error)) => self.clients[client].errors.push(error),
                Output::Event(Event::Transition(t)) => {
                    let told = format!("{:?} -> {:?} in {:?}, {:?}", t.from, t.to, t.generation, t.cause);
                    self.clients[client].history.push((self.now, told));
                }
                Output::Event(Event::CallbackDue(_) | Event::Warned(_)) => {}
                Output::Wait(deadline) => {
                    let wake = deadline.map(|deadline| deadline.at.max(self.now));
                    if let Some(at) = wake
                        && self.clients[client].wake != wake
                    {
                        self.at(at, Happening::ClientWakes(client));
                    }
                    self.clients[client].wake = wake;
                    break;
                }
            }
        }
        self.run_due(client);
    }

    fn run_due(&mut self, client: usize) {
        let now = self.now;
        let c = &mut self.clients[client];
        if c.app == App::Busy || c.callback.is_some() || !c.alive {
            return;
        }
        let Some(callback) = c.member.begin_callback(now) else { return };
        c.history.push((now, format!("{callback:?}")));
        c.book(&callback);
        if let Callback::Assign(granted) = &callback {
            for tp in granted.added().to_vec() {
                self.take(client, tp);
            }
        }
        self.clients[client].callback = Some(callback);
        let long = !self.calm && self.dice.one_in(10);
        let wait = if long { self.dice.millis(50, 3000) } else { self.dice.millis(0, 3) };
        self.after(wait, Happening::CallbackReturns(client));
        self.drain(client);
    }

    /// Whether the coordinator has thrown it out and it has not heard of that.
    fn is_expelled(&self, client: usize) -> bool {
        let membership = self.clients[client].member.membership();
        membership.is_none_or(|membership| !self.broker.knows_member(&membership.member_id))
    }

    /// Two owners at once are a fault, unless one of them does not know yet that it is not a member any more.
    fn take(&mut self, client: usize, tp: TopicPartition) {
        let Some(other) = self.owners.insert(tp.clone(), client) else { return };
        assert!(
            other == client
                || !self.clients[other].alive
                || self.is_expelled(other)
                || self.is_expelled(client),
            "{tp} is owned by c{other} and by c{client}\n{}\n{}",
            self.clients[other].story(other),
            self.clients[client].story(client)
        );
    }

    fn callback_returns(&mut self, client: usize) {
        let now = self.now;
        let fails = !self.calm && self.dice.one_in(20);
        let c = &mut self.clients[client];
        if !c.alive {
            return;
        }
        match c.callback.take() {
            Some(Callback::Revoke(revocation) | Callback::Lost(revocation)) => {
                for tp in revocation.partitions() {
                    c.owned.remove(tp);
                    if self.owners.get(tp) == Some(&client) {
                        self.owners.remove(tp);
                    }
                }
                c.member.revoke_done(now, revocation);
            }
            Some(Callback::Assign(granted)) if fails => c.member.assign_failed(now, granted),
            Some(Callback::Assign(granted)) => c.member.assign_done(now, granted),
            None => {}
        }
        self.drain(client);
    }

    /// The application alternates between polling and working.
    fn app_turns(&mut self, client: usize, cycle: u64) {
        let now = self.now;
        let c = &mut self.clients[client];
        if !c.alive || c.app == App::Closing || c.app_cycle != cycle {
            return;
        }
        if c.callback.is_some() {
            return self.after(Duration::from_millis(5), Happening::AppTurns { client, cycle });
        }
        let polls = c.app == App::Busy;
        let until = c.stuck_until;
        if polls && now < until {
            return self.at(until, Happening::AppTurns { client, cycle });
        }
        c.app = if polls { App::Polling } else { App::Busy };
        if polls {
            c.member.poll(now);
        } else {
            self.commit(client);
        }
        self.drain(client);
        let wait = match (polls, self.calm) {
            (true, false) => self.dice.millis(20, 100),
            (true, true) => self.dice.millis(300, 900),
            (false, _) => self.dice.millis(1, 20),
        };
        self.after(wait, Happening::AppTurns { client, cycle });
    }

    // Commits.

    fn commit(&mut self, client: usize) {
        let now = self.now;
        let Ok(membership) = self.clients[client].member.may_commit() else { return };
        let request = OffsetCommitRequest {
            group_id: "g".into(),
            generation_id_or_member_epoch: membership.generation,
            member_id: membership.member_id.clone(),
            group_instance_id: membership.instance_id.clone(),
            topics: vec![commit_of_nothing_much()],
            ..OffsetCommitRequest::default()
        };
        self.commit_tickets += 1;
        let ticket = Ticket(1_000_000_000 + self.commit_tickets);
        self.clients[client].commits.insert(ticket, membership);
        let commits = self.clients[client].commits.len();
        self.clients[client].member.set_commits_in_flight(now, commits);
        self.send(client, ticket, request.into(), None);
    }

    fn commit_answered(
        &mut self,
        client: usize,
        membership: &tontine_group::ids::Membership,
        result: Result<Response, SendError>,
    ) {
        let now = self.now;
        let commits = self.clients[client].commits.len();
        self.clients[client].member.set_commits_in_flight(now, commits);
        if let Ok(Response::OffsetCommit(response)) = result {
            let codes = response.topics.iter().flat_map(|t| t.partitions.iter().map(|p| p.error_code));
            let code = codes.max().unwrap_or(ErrorCode::NONE);
            if code.is_err() {
                let refusal = self.clients[client].member.handle_commit_error(now, membership, code);
                self.refusals.extend(refusal);
            }
        }
        self.drain(client);
    }

    // What must hold once it is calm.

    pub(crate) fn living(&self) -> Vec<usize> {
        (0..self.clients.len()).filter(|c| self.clients[*c].alive).collect()
    }

    /// Everybody rests, in one generation, and every partition has an owner.
    pub(crate) fn assert_settled(&self) {
        let is_fenced =
            |c: &usize| matches!(self.clients[*c].member.state(), MemberState::Fenced | MemberState::Failed);
        let living: Vec<usize> = self.living().into_iter().filter(|c| !is_fenced(c)).collect();
        let mut generations = BTreeSet::new();
        let mut wanted: BTreeSet<TopicPartition> = BTreeSet::new();
        for c in &living {
            let client = &self.clients[*c];
            if client.member.subscription().is_empty() {
                continue;
            }
            assert_eq!(
                client.member.state(),
                MemberState::Stable,
                "c{c} does not rest: {:?}",
                client.history.last()
            );
            generations.insert(client.member.membership().unwrap().generation);
            for topic in client.member.subscription() {
                let partitions = self.topics.partitions(topic).unwrap_or(0);
                wanted.extend((0..partitions).map(|p| TopicPartition::new(topic.clone(), p)));
            }
        }
        assert!(generations.len() <= 1, "generations {generations:?}");
        let owned: Vec<&TopicPartition> = living.iter().flat_map(|c| self.clients[*c].owned.iter()).collect();
        let distinct: BTreeSet<TopicPartition> = owned.iter().map(|tp| (*tp).clone()).collect();
        assert_eq!(owned.len(), distinct.len(), "two owners");
        let told = || living.iter().map(|c| self.clients[*c].story(*c)).collect::<String>();
        assert_eq!(distinct, wanted, "not every partition has an owner, or one that is gone has\n{}", told());
    }

    pub(crate) fn joins(&self) -> usize {
        self.clients.iter().map(|c| c.joins).sum()
    }
}

fn commit_of_nothing_much() -> OffsetCommitRequestTopic {
    let partitions = vec![OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() }];
    OffsetCommitRequestTopic { name: "a".to_owned(), partitions, ..Default::default() }
}
