//! The coordinator, its log and its clients, and what must be true of them at any time.

use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tontine_group::{
    Instant,
    coordinator::{
        AppendId, ClientInfo, Coordinator, CoordinatorConfig, GroupRecord, GroupState, GroupView, Output,
        Record, Ticket, Transition, durable::Group,
    },
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        Request, Response, delete_groups::*, describe_groups::*, heartbeat::*, join_group::*, leave_group::*,
        offset_commit::*, offset_delete::*, sync_group::*,
    },
};

pub(crate) const CLIENTS: usize = 5;
const GROUP: &str = "g";
const PROTOCOLS: [&[&str]; 4] = [&["range"], &["range", "sticky"], &["sticky", "range"], &["sticky"]];

#[derive(Clone, Debug, Default)]
struct Client {
    id: String,
    instance: Option<String>,
    generation: i32,
    /// The members that its last join listed: it leads, and assigns one partition to each.
    leads: Vec<String>,
}

pub(crate) struct World {
    config: CoordinatorConfig,
    coordinator: Coordinator,
    topics: Topics,
    now: Instant,
    clients: Vec<Client>,
    waiting: BTreeMap<Ticket, (usize, bool)>,
    next_ticket: u64,
    log: Vec<GroupRecord>,
    log_waits: bool,
    in_flight: VecDeque<(AppendId, Vec<GroupRecord>)>,
    /// Acknowledged before an older append.
    early: BTreeMap<AppendId, bool>,
    seed: u64,
    /// Generations begin anew when a group does.
    life: u64,
    generation: i32,
    owners: BTreeMap<(u64, i32, Bytes), String>,
    leaders: BTreeMap<(u64, i32), String>,
}

impl World {
    pub(crate) fn new(seed: u64, delay: u64, size: usize) -> Self {
        let config = CoordinatorConfig {
            group_initial_rebalance_delay: Duration::from_millis(delay),
            group_min_session_timeout: Duration::from_millis(1),
            group_max_size: size,
            ..Default::default()
        };
        let mut coordinator = Coordinator::new(config.clone(), seed);
        coordinator.loaded(Instant::ZERO);
        let mut topics = Topics::new();
        topics.insert("t", Topic { id: Uuid::from_u128(1), partitions: 3, racks: Vec::new() });
        let instance = |i: usize| (i >= 3).then(|| format!("i{i}"));
        let client = |i| Client { generation: -1, instance: instance(i), ..Client::default() };
        Self {
            config,
            coordinator,
            topics,
            now: Instant::ZERO,
            clients: (0..CLIENTS).map(client).collect(),
            waiting: BTreeMap::new(),
            next_ticket: 0,
            log: Vec::new(),
            log_waits: false,
            in_flight: VecDeque::new(),
            early: BTreeMap::new(),
            seed,
            life: 0,
            generation: 0,
            owners: BTreeMap::new(),
            leaders: BTreeMap::new(),
        }
    }

    fn send(&mut self, client: usize, version: i16, request: impl Into<Request>) {
        let request = request.into();
        let parks = matches!(request, Request::JoinGroup(_) | Request::SyncGroup(_));
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.waiting.insert(ticket, (client, parks));
        let info = ClientInfo { client_id: format!("c{client}"), client_host: "/127.0.0.1".to_owned() };
        self.coordinator.handle_request(self.now, ticket, &info, version, request, &self.topics).unwrap();
        self.drain();
    }

    pub(crate) fn join(&mut self, index: usize, forget_id: bool, protocols: usize, version: i16) {
        let client = &mut self.clients[index];
        if forget_id {
            client.id.clear();
        }
        let protocol = |name: &&str| JoinGroupRequestProtocol {
            name: (*name).to_owned(),
            metadata: Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff"),
        };
        let request = JoinGroupRequest {
            group_id: GROUP.to_owned(),
            session_timeout_ms: 3_000 + 1_000 * index as i32,
            rebalance_timeout_ms: 2_000 + 700 * index as i32,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone().filter(|_| version >= 5),
            protocol_type: "consumer".to_owned(),
            protocols: PROTOCOLS[protocols].iter().map(protocol).collect(),
            reason: None,
        };
        self.send(index, version, request);
    }

    pub(crate) fn sync(&mut self, index: usize) {
        let client = &self.clients[index];
        let assignment = |(number, member): (usize, &String)| SyncGroupRequestAssignment {
            member_id: member.clone(),
            assignment: Bytes::from(format!("partition {number}")),
        };
        let request = SyncGroupRequest {
            group_id: GROUP.to_owned(),
            generation_id: client.generation,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
            assignments: client.leads.iter().enumerate().map(assignment).collect(),
            ..Default::default()
        };
        self.send(index, 5, request);
    }

    pub(crate) fn heartbeat(&mut self, index: usize) {
        let generation = self.clients[index].generation;
        self.stale(index, generation);
    }

    pub(crate) fn stale(&mut self, index: usize, generation_id: i32) {
        let client = &self.clients[index];
        let request = HeartbeatRequest {
            group_id: GROUP.to_owned(),
            generation_id,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
        };
        self.send(index, 4, request);
    }

    pub(crate) fn leave(&mut self, index: usize) {
        let client = &self.clients[index];
        let member = MemberIdentity {
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
            reason: None,
        };
        self.leave_of(index, member);
    }

    pub(crate) fn kick(&mut self, instance: usize) {
        let group_instance_id = Some(format!("i{}", 3 + instance));
        self.leave_of(0, MemberIdentity { group_instance_id, ..Default::default() });
    }

    fn leave_of(&mut self, index: usize, member: MemberIdentity) {
        let group_id = GROUP.to_owned();
        self.send(index, 5, LeaveGroupRequest { group_id, members: vec![member], ..Default::default() });
    }

    pub(crate) fn commit(&mut self, index: usize, partition_index: i32, committed_offset: i64) {
        let client = &self.clients[index];
        let partition =
            OffsetCommitRequestPartition { partition_index, committed_offset, ..Default::default() };
        let name = "t".to_owned();
        let request = OffsetCommitRequest {
            group_id: GROUP.to_owned(),
            generation_id_or_member_epoch: client.generation,
            member_id: client.id.clone(),
            group_instance_id: client.instance.clone(),
            topics: vec![OffsetCommitRequestTopic {
                name,
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        };
        self.send(index, 9, request);
    }

    pub(crate) fn delete(&mut self) {
        self.send(0, 2, DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] });
    }

    pub(crate) fn delete_offsets(&mut self) {
        let partitions = (0..3).map(|partition_index| OffsetDeleteRequestPartition { partition_index });
        let topic = OffsetDeleteRequestTopic { name: "t".to_owned(), partitions: partitions.collect() };
        self.send(0, 0, OffsetDeleteRequest { group_id: GROUP.to_owned(), topics: vec![topic] });
    }

    pub(crate) fn describe(&mut self) {
        self.send(0, 6, DescribeGroupsRequest { groups: vec![GROUP.to_owned()], ..Default::default() });
    }

    pub(crate) fn disconnect(&mut self, index: usize) {
        let gone: Vec<Ticket> =
            self.waiting.iter().filter(|(_, (c, _))| *c == index).map(|(t, _)| *t).collect();
        for ticket in gone {
            self.waiting.remove(&ticket);
            self.coordinator.handle_disconnected(self.now, ticket);
        }
        self.drain();
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        let to = self.now + Duration::from_millis(ms);
        let mut wakes = 0;
        while let Some(at) = self.drain().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
            wakes += 1;
            assert!(wakes < 1_000 + ms, "the coordinator keeps its driver busy");
        }
        self.now = to;
        self.coordinator.handle_timeout(self.now);
        self.drain();
    }

    pub(crate) fn log_waits(&mut self, waits: bool) {
        self.log_waits = waits;
    }

    /// An append ends, the oldest or the newest one; the log itself knows only one order.
    pub(crate) fn append_ends(&mut self, newest: bool, fails: bool) {
        let ended = |id: &AppendId| self.early.contains_key(id);
        let mut open = self.in_flight.iter().map(|(id, _)| *id).filter(|id| !ended(id));
        let Some(id) = (if newest { open.next_back() } else { open.next() }) else { return };
        drop(open);
        self.early.insert(id, fails);
        let result = if fails { Err(ErrorCode::NOT_ENOUGH_REPLICAS) } else { Ok(()) };
        while let Some((first, _)) = self.in_flight.front() {
            let Some(failed) = self.early.remove(first) else { break };
            let (_, records) = self.in_flight.pop_front().unwrap();
            if !failed {
                self.log.extend(records);
            } else if records.iter().any(begins_a_group) {
                self.new_life();
            }
        }
        self.coordinator.handle_appended(self.now, id, result);
        // A group that could not be written, or that was deleted, is another one when it comes back.
        if self.coordinator.groups().is_empty() {
            self.new_life();
        }
        self.drain();
    }

    pub(crate) fn topic(&mut self, exists: bool) {
        if exists {
            let id = Uuid::from_u128(1 + u128::from(self.next_ticket));
            self.topics.insert("t", Topic { id, partitions: 3, racks: Vec::new() });
        } else {
            self.topics.remove("t");
        }
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
    }

    pub(crate) fn restart(&mut self) {
        self.coordinator.resign(self.now);
        self.drain();
        assert!(self.waiting.is_empty(), "a coordinator that resigned forgot {:?}", self.waiting);
        self.in_flight.clear();
        self.early.clear();
        self.seed = self.seed.wrapping_add(1);
        self.coordinator = self.read_log();
        self.coordinator.loaded(self.now);
        self.new_life();
        self.drain();
    }

    fn new_life(&mut self) {
        self.life += 1;
        self.generation = 0;
    }

    fn read_log(&self) -> Coordinator {
        let mut again = Coordinator::new(self.config.clone(), self.seed);
        for record in &self.log {
            again.replay(record.key.clone(), record.value.clone()).unwrap();
        }
        again
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    self.in_flight.push_back((id, records));
                    if !self.log_waits {
                        self.append_ends(false, false);
                    }
                }
                Output::Reply { ticket, response } => {
                    let waited = self.waiting.remove(&ticket);
                    let (client, _) = waited.expect("a reply that nobody waits for");
                    self.answered(client, response);
                }
                Output::Transition(transition) => self.moved(&transition),
                Output::Wait(at) => return at,
            }
        }
    }

    fn moved(&mut self, transition: &Transition) {
        // So is one of generation 0.
        if transition.from == GroupState::Empty && transition.generation == 0 {
            self.new_life();
        }
        assert!(transition.generation >= self.generation, "generations go back: {transition:?}");
        self.generation = transition.generation;
    }

    fn answered(&mut self, index: usize, response: Response) {
        let client = &mut self.clients[index];
        match response {
            Response::JoinGroup(join) => match join.error_code {
                ErrorCode::NONE => {
                    client.id = join.member_id.clone();
                    client.generation = join.generation_id;
                    let leads = join.leader == join.member_id && !join.skip_assignment;
                    client.leads = if leads {
                        join.members.into_iter().map(|m| m.member_id).collect()
                    } else {
                        Vec::new()
                    };
                    let key = (self.life, join.generation_id);
                    let leader = self.leaders.entry(key).or_insert_with(|| same_over_restarts(&join.leader));
                    assert_eq!(*leader, same_over_restarts(&join.leader), "two leaders of one generation");
                }
                ErrorCode::MEMBER_ID_REQUIRED => client.id = join.member_id,
                ErrorCode::UNKNOWN_MEMBER_ID => client.id.clear(),
                _ => {}
            },
            Response::SyncGroup(sync) if sync.error_code.is_ok() && !sync.assignment.is_empty() => {
                let (key, id) =
                    ((self.life, client.generation, sync.assignment), same_over_restarts(&client.id));
                let owner = self.owners.entry(key).or_insert_with(|| id.clone());
                assert_eq!(*owner, id, "one partition of one generation has two owners");
            }
            Response::Heartbeat(heartbeat) if heartbeat.error_code == ErrorCode::UNKNOWN_MEMBER_ID => {
                client.id.clear();
            }
            _ => {}
        }
    }

    /// What holds at any time.
    pub(crate) fn check(&mut self) {
        let wakes_up = self.drain().is_some();
        assert!(wakes_up, "nothing would ever happen again");
        if self.in_flight.is_empty() {
            assert_eq!(self.read_log().durable(), self.coordinator.durable(), "the log says something else");
            assert_eq!(
                self.waiting.len(),
                self.coordinator.parked(),
                "somebody is forgotten: {:?}",
                self.waiting
            );
            assert!(self.waiting.values().all(|(_, parks)| *parks), "only joins and syncs may wait");
        }
        for group in self.coordinator.groups() {
            self.check_group(&group);
        }
    }

    fn check_group(&self, group: &GroupView) {
        let has = |id: &str| group.members.iter().any(|m| *m.id == *id);
        let instances: Vec<_> = group.members.iter().filter_map(|m| m.instance_id.clone()).collect();
        assert!(instances.iter().all(|i| instances.iter().filter(|j| *j == i).count() == 1), "{group:?}");
        match group.state {
            GroupState::Empty | GroupState::Dead => assert!(group.members.is_empty(), "{group:?}"),
            GroupState::PreparingRebalance => assert!(group.members.iter().all(|m| !m.syncing), "{group:?}"),
            GroupState::CompletingRebalance | GroupState::Stable => {
                assert!(group.leader.as_deref().is_some_and(has), "{group:?}");
                assert!(group.protocol.is_some(), "{group:?}");
            }
            GroupState::Assigning | GroupState::Reconciling => panic!("not of a classic group: {group:?}"),
        }
        if group.state == GroupState::Stable {
            assert!(group.members.iter().all(|m| !m.syncing), "{group:?}");
            if self.in_flight.is_empty() {
                self.check_stored(group);
            }
        }
    }

    /// A stable group is in the log as it lives.
    fn check_stored(&self, group: &GroupView) {
        let Some(Group::Classic(stored)) = self.coordinator.durable().group(&group.id) else {
            panic!("a stable group that the log does not know: {group:?}");
        };
        assert_eq!((stored.generation, &stored.protocol), (group.generation, &group.protocol));
        assert_eq!(stored.leader, group.leader);
        let stored =
            stored.members.iter().map(|(id, m)| (id.clone(), m.instance_id.clone(), m.assignment.clone()));
        let live = group.members.iter().map(|m| (m.id.clone(), m.instance_id.clone(), m.assignment.clone()));
        assert_eq!(stored.collect::<Vec<_>>(), live.collect::<Vec<_>>());
    }

    /// Appends end, and then nobody says anything any more.
    pub(crate) fn fall_silent(&mut self) {
        self.log_waits = false;
        while !self.in_flight.is_empty() {
            self.append_ends(false, false);
        }
        self.check();
        self.wait(3_600_000);
        assert!(self.waiting.is_empty(), "never answered: {:?}", self.waiting);
        for group in self.coordinator.groups() {
            assert_eq!(group.state, GroupState::Empty, "{group:?}");
        }
        self.check();
    }
}

/// The record of a group that is new: when it cannot be written the group has never been.
fn begins_a_group(record: &GroupRecord) -> bool {
    let record = Record::decode(record.key.clone(), record.value.clone()).unwrap();
    matches!(record, Some(Record::GroupMetadata(_, Some(value))) if value.generation == 0)
}

/// A static member is the same under each of its ids.
fn same_over_restarts(id: &str) -> String {
    if id.starts_with('i') { id.split('-').next().unwrap_or_default().to_owned() } else { id.to_owned() }
}
