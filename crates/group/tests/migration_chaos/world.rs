//! The members, the coordinator, its log, and time.

use crate::classic::{self, Next, Place};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};
use tontine_group::{
    Instant,
    coordinator::{
        AppendId, ClientInfo, Coordinator, CoordinatorConfig, GroupRecord, GroupState, Output, Ticket,
        durable::Group,
    },
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        Request, Response, consumer_group_heartbeat::*, heartbeat::*, join_group::*, leave_group::*,
        sync_group::*,
    },
};

pub(crate) const MEMBERS: usize = 4;
const SESSION: Duration = Duration::from_millis(6_000);
/// Long: nobody is late in these histories, and a member that cannot be heard stops by its session.
const PATIENCE_MS: i32 = 600_000;
const TOPICS: [&str; 2] = ["t", "u"];

#[derive(Clone, Debug, Default)]
struct Member {
    id: String,
    /// The last one is static.
    instance: Option<String>,
    is_consumer: bool,
    /// The epoch, or the generation.
    epoch: i32,
    uses: BTreeSet<Place>,
    told: BTreeSet<Place>,
    in_full: bool,
    gone: bool,
    incarnation: u32,
    heard: Instant,
    next: Next,
    assignments: Vec<SyncGroupRequestAssignment>,
    waits_for: Option<Ticket>,
    /// It leads and was told not to assign: somebody may wait for what was withheld in a round before.
    leads_blindly: bool,
}

impl Member {
    fn lose(&mut self) {
        (self.uses, self.told) = (BTreeSet::new(), BTreeSet::new());
        (self.epoch, self.in_full, self.next) = (if self.is_consumer { 0 } else { -1 }, true, Next::Join);
    }
}

pub(crate) struct World {
    config: CoordinatorConfig,
    coordinator: Coordinator,
    eager: bool,
    topics: Topics,
    now: Instant,
    members: Vec<Member>,
    log: Vec<(Bytes, Option<Bytes>)>,
    pub(crate) log_fails: bool,
    slow: bool,
    on_their_way: VecDeque<(AppendId, Vec<GroupRecord>)>,
    tickets: u64,
    /// Who asked, in which incarnation, and whether the answer gets lost.
    asked: BTreeMap<Ticket, (usize, u32, bool)>,
}

impl World {
    pub(crate) fn new(eager: bool, consumers: &[bool]) -> Self {
        let config = CoordinatorConfig {
            consumer_session_timeout: SESSION,
            group_initial_rebalance_delay: Duration::ZERO,
            ..CoordinatorConfig::default()
        };
        let mut coordinator = Coordinator::new(config.clone(), 1);
        coordinator.loaded(Instant::ZERO);
        let mut topics = Topics::new();
        for (index, name) in TOPICS.iter().enumerate() {
            let id = Uuid::from_u128(index as u128 + 1);
            topics.insert(*name, Topic { id, partitions: 3, racks: Vec::new() });
        }
        let mut world = Self {
            config,
            coordinator,
            eager,
            topics,
            now: Instant::ZERO,
            members: vec![Member::default(); MEMBERS],
            log: Vec::new(),
            log_fails: false,
            slow: false,
            on_their_way: VecDeque::new(),
            tickets: 0,
            asked: BTreeMap::new(),
        };
        for (index, consumer) in consumers.iter().enumerate() {
            world.members[index].instance = (index == MEMBERS - 1).then(|| "static".to_owned());
            world.start(index, *consumer);
        }
        world
    }

    fn start(&mut self, index: usize, is_consumer: bool) {
        let now = self.now;
        let member = &mut self.members[index];
        member.incarnation += 1;
        member.is_consumer = is_consumer;
        member.id = if is_consumer { format!("m{index}-{}", member.incarnation) } else { String::new() };
        (member.gone, member.heard, member.waits_for) = (false, now, None);
        member.lose();
    }

    fn send(&mut self, index: usize, version: i16, request: impl Into<Request>, lost: bool) {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.asked.insert(ticket, (index, self.members[index].incarnation, lost));
        self.members[index].waits_for = Some(ticket);
        let client = ClientInfo { client_id: "c".to_owned(), client_host: "/h".to_owned() };
        let request = request.into();
        self.coordinator.handle_request(self.now, ticket, &client, version, request, &self.topics).unwrap();
        self.drain();
        if lost {
            self.hang_up(index);
        }
    }

    /// The connection breaks: nobody waits for the answer any more.
    fn hang_up(&mut self, index: usize) {
        let Some(ticket) = self.members[index].waits_for.take() else { return };
        self.asked.remove(&ticket);
        self.coordinator.handle_disconnected(self.now, ticket);
        self.members[index].in_full = true;
        self.drain();
    }

    pub(crate) fn act(&mut self, index: usize, lost: bool) {
        let member = self.members[index].clone();
        if member.gone || member.waits_for.is_some() {
            return;
        }
        if member.is_consumer {
            return self.beat(index, lost);
        }
        match member.next {
            Next::Join => self.join(index, lost),
            Next::Sync => {
                let sync = SyncGroupRequest {
                    group_id: "g".to_owned(),
                    generation_id: member.epoch,
                    member_id: member.id,
                    group_instance_id: member.instance,
                    assignments: member.assignments,
                    ..Default::default()
                };
                self.send(index, 5, sync, lost);
            }
            Next::Beat => {
                let heartbeat = HeartbeatRequest {
                    group_id: "g".to_owned(),
                    generation_id: member.epoch,
                    member_id: member.id,
                    group_instance_id: member.instance,
                };
                self.send(index, 4, heartbeat, lost);
            }
        }
    }

    fn join(&mut self, index: usize, lost: bool) {
        if self.eager {
            self.members[index].uses.clear();
        }
        let member = self.members[index].clone();
        let name = if self.eager { "range" } else { "cooperative-sticky" };
        let metadata = classic::metadata(&TOPICS, &member.uses, member.epoch);
        let join = JoinGroupRequest {
            group_id: "g".to_owned(),
            session_timeout_ms: SESSION.as_millis() as i32,
            rebalance_timeout_ms: PATIENCE_MS,
            member_id: member.id,
            group_instance_id: member.instance,
            protocol_type: "consumer".to_owned(),
            protocols: vec![JoinGroupRequestProtocol { name: name.to_owned(), metadata }],
            reason: None,
        };
        self.send(index, 9, join, lost);
    }

    fn beat(&mut self, index: usize, lost: bool) {
        // It lets go of what it was told to, and then says so.
        let member = &mut self.members[index];
        let told = member.told.clone();
        member.uses.retain(|place| told.contains(place));
        let member = member.clone();
        let joins = member.epoch == 0;
        let full = joins || member.in_full;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".to_owned(),
            member_id: member.id.clone(),
            member_epoch: member.epoch,
            instance_id: member.instance.clone(),
            rebalance_timeout_ms: if full { PATIENCE_MS } else { -1 },
            subscribed_topic_names: full.then(|| TOPICS.map(str::to_owned).to_vec()),
            topic_partitions: Some(if joins { Vec::new() } else { self.by_id(&member.uses) }),
            ..Default::default()
        };
        self.send(index, 1, request, lost);
    }

    fn by_id(&self, places: &BTreeSet<Place>) -> Vec<TopicPartitions> {
        let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for (name, partition) in places {
            topics.entry(self.topics.get(name).unwrap().id).or_default().push(*partition);
        }
        topics.into_iter().map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions }).collect()
    }

    /// Goes, and comes back with the other protocol. The static one says nothing when it goes.
    pub(crate) fn switch(&mut self, index: usize) {
        let member = self.members[index].clone();
        if member.gone {
            return;
        }
        self.hang_up(index);
        let joined = if member.is_consumer { member.epoch > 0 } else { !member.id.is_empty() };
        if member.instance.is_none() && joined {
            self.leave(index);
        } else if member.is_consumer && joined {
            self.leave_for_a_while(index);
        }
        self.start(index, !member.is_consumer);
    }

    fn leave(&mut self, index: usize) {
        let member = self.members[index].clone();
        self.members[index].lose();
        if member.is_consumer {
            let request = ConsumerGroupHeartbeatRequest {
                group_id: "g".to_owned(),
                member_id: member.id,
                member_epoch: -1,
                ..Default::default()
            };
            return self.send(index, 1, request, true);
        }
        let identity = MemberIdentity { member_id: member.id, ..Default::default() };
        let request =
            LeaveGroupRequest { group_id: "g".to_owned(), members: vec![identity], ..Default::default() };
        self.send(index, 5, request, true);
    }

    fn leave_for_a_while(&mut self, index: usize) {
        let member = self.members[index].clone();
        self.members[index].lose();
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".to_owned(),
            member_id: member.id,
            member_epoch: -2,
            instance_id: member.instance,
            ..Default::default()
        };
        self.send(index, 1, request, true);
    }

    pub(crate) fn die(&mut self, index: usize) {
        self.hang_up(index);
        let member = &mut self.members[index];
        if member.gone {
            let is_consumer = member.is_consumer;
            return self.start(index, is_consumer);
        }
        member.gone = true;
        member.incarnation += 1;
        member.lose();
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        let to = self.now + Duration::from_millis(ms);
        let mut wakes = 0;
        self.catch_up();
        while let Some(at) = self.drain().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
            self.catch_up();
            wakes += 1;
            assert!(wakes < 10_000, "the coordinator keeps its driver busy");
        }
        self.now = to;
        for index in 0..MEMBERS {
            let member = &mut self.members[index];
            if !member.gone && self.now - member.heard >= SESSION {
                member.lose();
                member.heard = self.now;
                self.hang_up(index);
            }
        }
    }

    pub(crate) fn set_slow(&mut self, slow: bool) {
        self.slow = slow;
        self.catch_up();
    }

    /// What is on its way to the log gets there.
    fn catch_up(&mut self) {
        while let Some((id, records)) = self.on_their_way.pop_front() {
            self.append(id, records);
            self.drain();
        }
    }

    fn append(&mut self, id: AppendId, records: Vec<GroupRecord>) {
        let result = if self.log_fails { Err(ErrorCode::NOT_ENOUGH_REPLICAS) } else { Ok(()) };
        if result.is_ok() {
            self.log.extend(records.into_iter().map(|r| (r.key, r.value)));
        }
        self.coordinator.handle_appended(self.now, id, result);
    }

    pub(crate) fn restart(&mut self) {
        self.catch_up();
        self.coordinator.resign(self.now);
        self.drain();
        self.coordinator = self.read_log();
        self.coordinator.loaded(self.now);
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
    }

    fn read_log(&self) -> Coordinator {
        let mut again = Coordinator::new(self.config.clone(), 1_000 + self.tickets);
        for (key, value) in &self.log {
            again.replay(key.clone(), value.clone()).unwrap();
        }
        again
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } if self.slow => self.on_their_way.push_back((id, records)),
                Output::Append { id, records } => self.append(id, records),
                Output::Reply { ticket, response } => self.answered(ticket, response),
                Output::Transition(_) => {}
                Output::Wait(at) => return at,
            }
        }
    }

    fn answered(&mut self, ticket: Ticket, response: Response) {
        let Some((index, incarnation, lost)) = self.asked.remove(&ticket) else { return };
        if lost || self.members[index].incarnation != incarnation {
            return;
        }
        self.members[index].waits_for = None;
        match response {
            Response::ConsumerGroupHeartbeat(answer) => self.beaten(index, answer),
            Response::JoinGroup(answer) => self.joined(index, answer),
            Response::SyncGroup(answer) => self.synced(index, answer),
            Response::Heartbeat(answer) => {
                // Only of a heartbeat is it sure that it counts as a sign of life when it is answered so.
                if matches!(answer.error_code, ErrorCode::NONE | ErrorCode::REBALANCE_IN_PROGRESS) {
                    self.members[index].heard = self.now;
                }
                self.told(index, answer.error_code);
            }
            other => panic!("{other:?}"),
        }
    }

    fn beaten(&mut self, index: usize, answer: ConsumerGroupHeartbeatResponse) {
        let names: BTreeMap<Uuid, String> =
            self.topics.iter().map(|(name, topic)| (topic.id, name.to_string())).collect();
        let member = &mut self.members[index];
        match answer.error_code {
            ErrorCode::NONE => {
                (member.in_full, member.epoch, member.heard) = (false, answer.member_epoch, self.now);
                if let Some(assignment) = answer.assignment {
                    let topics = assignment.topic_partitions.iter();
                    member.told = topics
                        .flat_map(|t| t.partitions.iter().map(|p| (names[&t.topic_id].clone(), *p)))
                        .collect();
                    member.uses.extend(member.told.iter().cloned());
                }
            }
            ErrorCode::UNKNOWN_MEMBER_ID
            | ErrorCode::FENCED_MEMBER_EPOCH
            | ErrorCode::FENCED_INSTANCE_ID
            | ErrorCode::GROUP_ID_NOT_FOUND => member.lose(),
            ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::UNRELEASED_INSTANCE_ID => member.in_full = true,
            other => panic!("{other}: {:?}", answer.error_message),
        }
    }

    fn joined(&mut self, index: usize, answer: JoinGroupResponse) {
        if answer.error_code == ErrorCode::MEMBER_ID_REQUIRED {
            self.members[index].id = answer.member_id;
            return;
        }
        if answer.error_code != ErrorCode::NONE {
            return self.told(index, answer.error_code);
        }
        let all: Vec<Place> = self
            .topics
            .iter()
            .flat_map(|(name, t)| (0..t.partitions).map(|p| (name.to_string(), p)))
            .collect();
        let member = &mut self.members[index];
        member.assignments = match answer.leader == answer.member_id && !answer.skip_assignment {
            true => classic::assign(&answer.members, &all),
            false => Vec::new(),
        };
        member.leads_blindly = answer.skip_assignment;
        (member.id, member.epoch, member.next) = (answer.member_id, answer.generation_id, Next::Sync);
        member.heard = self.now;
    }

    fn synced(&mut self, index: usize, answer: SyncGroupResponse) {
        if answer.error_code != ErrorCode::NONE {
            return self.told(index, answer.error_code);
        }
        let member = &mut self.members[index];
        let assigned = classic::assigned(&answer.assignment);
        let gives_up = member.uses.iter().any(|place| !assigned.contains(place));
        (member.uses, member.heard) = (assigned, self.now);
        let joins_again = gives_up || std::mem::take(&mut member.leads_blindly);
        member.next = if joins_again { Next::Join } else { Next::Beat };
    }

    fn told(&mut self, index: usize, code: ErrorCode) {
        let member = &mut self.members[index];
        match code {
            ErrorCode::NONE => {}
            ErrorCode::REBALANCE_IN_PROGRESS => member.next = Next::Join,
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR => {}
            ErrorCode::ILLEGAL_GENERATION => member.lose(),
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => {
                member.lose();
                member.id.clear();
            }
            other => panic!("{other}"),
        }
    }

    pub(crate) fn check(&self) {
        let mut owners: BTreeMap<&Place, usize> = BTreeMap::new();
        for (index, member) in self.members.iter().enumerate().filter(|(_, m)| !m.gone) {
            for place in &member.uses {
                if let Some(other) = owners.insert(place, index) {
                    panic!("{place:?} is used by {:#?} and {member:#?}", self.members[other]);
                }
            }
        }
    }

    fn group_is_stable(&self) -> bool {
        let consumers = self.members.iter().any(|member| member.is_consumer);
        let (kind, members) = match self.coordinator.durable().group("g") {
            Some(Group::Consumer(group)) => (true, group.members.len()),
            Some(Group::Classic(group)) => (false, group.members.len()),
            None => return false,
        };
        let views = self.coordinator.groups();
        kind == consumers && members == MEMBERS && views[0].state == GroupState::Stable
    }

    fn is_at_rest(&self) -> bool {
        let rests = |member: &Member| {
            member.waits_for.is_none()
                && if member.is_consumer { member.uses == member.told } else { member.next == Next::Beat }
        };
        let used: usize = self.members.iter().map(|member| member.uses.len()).sum();
        self.group_is_stable() && self.members.iter().all(rests) && used == 6
    }

    /// Everything works again, and everybody does what it should, until nothing moves any more.
    pub(crate) fn come_to_rest(&mut self) {
        self.log_fails = false;
        self.set_slow(false);
        for index in 0..MEMBERS {
            if self.members[index].gone {
                self.die(index);
            }
        }
        self.wait(1_500);
        for _ in 0..300 {
            for index in 0..MEMBERS {
                self.act(index, false);
                self.check();
            }
            self.wait(100);
            self.check();
            if self.is_at_rest() {
                break;
            }
        }
        assert!(self.is_at_rest(), "{:#?}\n{:#?}", self.members, self.coordinator.durable().group("g"));
        assert_eq!(self.read_log().durable(), self.coordinator.durable(), "the log says something else");
    }
}
