//! One member in the hand of a test: its requests wait until the test answers them, its callbacks until the test runs them.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tontine_group::{
    Assignment, Cause, Instant, TopicPartition,
    assignor::{Assignor, MemberSubscription, RebalanceProtocol},
    member::{
        Callback, Event, Member, MemberConfig, MemberError, MemberState, Output, Planning, SendError, Ticket,
        Transition, Warning,
    },
    topics::Topics,
};
use tontine_wire::{
    ErrorCode,
    api::{Request, Response, heartbeat::*, join_group::*, leave_group::*, sync_group::*},
    consumer_protocol::{self, Subscription},
};

/// Deals partitions in turn; eager or cooperative by name.
#[derive(Debug)]
pub(crate) struct Dealer(pub(crate) &'static str, pub(crate) RebalanceProtocol);

impl Assignor for Dealer {
    fn name(&self) -> &str {
        self.0
    }
    fn rebalance_protocol(&self) -> RebalanceProtocol {
        self.1
    }
    fn user_data(&self, owned: &[TopicPartition], generation: i32) -> Option<bytes::Bytes> {
        Some(format!("{owned:?}@{generation}").into())
    }
    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        let mut plan = Assignment::new();
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|m| &members[*m].member_id);
        for (name, topic) in topics.iter() {
            let takers: Vec<_> = order.iter().filter(|m| members[**m].topics.contains(name)).collect();
            for p in 0..topic.partitions {
                if !takers.is_empty() {
                    plan.assign(name, p, *takers[p as usize % takers.len()]);
                }
            }
        }
        plan
    }
}

pub(crate) struct Rig {
    pub(crate) member: Member,
    pub(crate) now: Instant,
    pub(crate) requests: VecDeque<(Ticket, Request)>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) errors: Vec<MemberError>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) left: usize,
    pub(crate) lookups: usize,
    pub(crate) refreshes: Vec<BTreeSet<Arc<str>>>,
    /// How often a callback was announced.
    pub(crate) announced: usize,
    /// Keeps plans that are asked for back, in place of making them at once.
    pub(crate) plans_slowly: bool,
    pub(crate) plannings: Vec<Planning>,
}

pub(crate) fn config() -> MemberConfig {
    MemberConfig { group_id: "g".into(), client_id: "c".into(), ..MemberConfig::default() }
}

pub(crate) fn names(topics: &[&str]) -> BTreeSet<Arc<str>> {
    topics.iter().map(|t| Arc::from(*t)).collect()
}

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn eager() -> Rig {
    let dealer = Arc::new(Dealer("deal", RebalanceProtocol::Eager));
    Rig::new(MemberConfig { assignors: vec![dealer], ..config() })
}

pub(crate) fn cooperative() -> Rig {
    let dealer = Arc::new(Dealer("deal", RebalanceProtocol::Cooperative));
    Rig::new(MemberConfig { assignors: vec![dealer], ..config() })
}

pub(crate) fn static_member() -> Rig {
    let dealer = Arc::new(Dealer("deal", RebalanceProtocol::Cooperative));
    Rig::new(MemberConfig { assignors: vec![dealer], instance_id: Some("i1".into()), ..config() })
}

/// A member of each kind: what holds for both is tested on both.
pub(crate) fn both() -> [Rig; 2] {
    [eager(), cooperative()]
}

impl Rig {
    pub(crate) fn new(config: MemberConfig) -> Self {
        let mut rig = Self {
            member: Member::new(config, 1),
            now: Instant::ZERO + Duration::from_secs(1),
            requests: VecDeque::new(),
            transitions: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            left: 0,
            lookups: 0,
            refreshes: Vec::new(),
            announced: 0,
            plans_slowly: false,
            plannings: Vec::new(),
        };
        rig.member.handle_coordinator(rig.now, true);
        rig.drain();
        rig
    }

    pub(crate) fn drain(&mut self) -> Option<tontine_group::member::Deadline> {
        loop {
            match self.member.poll_output() {
                Output::Send { ticket, request, .. } => self.requests.push_back((ticket, request)),
                Output::FindCoordinator => self.lookups += 1,
                Output::RefreshTopics { topics } => self.refreshes.push(topics),
                Output::Plan(planning) if self.plans_slowly => self.plannings.push(planning),
                Output::Plan(planning) => self.member.handle_plan(self.now, planning.run()),
                Output::Event(Event::CallbackDue(_)) => self.announced += 1,
                Output::Event(Event::Error(error)) => self.errors.push(error),
                Output::Event(Event::Warned(warning)) => self.warnings.push(warning),
                Output::Event(Event::Left) => self.left += 1,
                Output::Event(Event::Transition(transition)) => self.transitions.push(transition),
                Output::Wait(deadline) => return deadline,
            }
        }
    }

    pub(crate) fn do_with(&mut self, act: impl FnOnce(&mut Member, Instant)) -> &mut Self {
        act(&mut self.member, self.now);
        self.drain();
        self
    }

    pub(crate) fn subscribe(&mut self, topics: &[&str]) -> &mut Self {
        self.do_with(|m, now| m.subscribe(now, names(topics)))
    }

    pub(crate) fn poll(&mut self) -> &mut Self {
        self.do_with(|m, now| m.poll(now))
    }

    pub(crate) fn topics(&mut self, topics: Topics) -> &mut Self {
        self.do_with(|m, now| m.handle_topics(now, &topics))
    }

    pub(crate) fn coordinator(&mut self, known: bool) -> &mut Self {
        self.do_with(|m, now| m.handle_coordinator(now, known))
    }

    /// Lets time pass, answering heartbeats with `NONE` on the way.
    pub(crate) fn pass(&mut self, wait: Duration) -> &mut Self {
        self.pass_with(wait, ErrorCode::NONE)
    }

    /// Lets time pass, polling and answering heartbeats on the way.
    pub(crate) fn pass_with(&mut self, wait: Duration, heartbeats: ErrorCode) -> &mut Self {
        let end = self.now + wait;
        for _ in 0..10_000 {
            self.answer_heartbeats(heartbeats);
            match self.drain() {
                Some(deadline) if deadline.at <= end => {
                    self.now = self.now.max(deadline.at);
                    self.do_with(|m, now| m.handle_timeout(now));
                }
                _ => {
                    self.now = end;
                    return self;
                }
            }
        }
        panic!("the member spins: it wants to be called again at {:?}", self.drain());
    }

    /// Lets time pass in which nobody answers anything.
    pub(crate) fn pass_without_answers(&mut self, wait: Duration) -> &mut Self {
        let end = self.now + wait;
        for _ in 0..10_000 {
            match self.drain() {
                Some(deadline) if deadline.at <= end => {
                    self.now = self.now.max(deadline.at);
                    self.do_with(|m, now| m.handle_timeout(now));
                }
                _ => {
                    self.now = end;
                    return self;
                }
            }
        }
        panic!("the member spins: it wants to be called again at {:?}", self.drain());
    }

    /// Takes the heartbeats that wait for an answer.
    pub(crate) fn heartbeats(&mut self) -> Vec<Ticket> {
        let (beats, others) = self.requests.drain(..).partition(|(_, r)| matches!(r, Request::Heartbeat(_)));
        self.requests = others;
        let beats: VecDeque<(Ticket, Request)> = beats;
        beats.into_iter().map(|(ticket, _)| ticket).collect()
    }

    pub(crate) fn heartbeats_waiting(&self) -> usize {
        self.requests.iter().filter(|(_, r)| matches!(r, Request::Heartbeat(_))).count()
    }

    pub(crate) fn answer_heartbeats(&mut self, code: ErrorCode) {
        while let Some(index) = self.requests.iter().position(|(_, r)| matches!(r, Request::Heartbeat(_))) {
            let (ticket, _) = self.requests.remove(index).unwrap();
            self.answer(ticket, HeartbeatResponse { error_code: code, ..Default::default() });
        }
    }

    /// Answers the next heartbeat, waiting for it.
    pub(crate) fn heartbeat_says(&mut self, code: ErrorCode) -> &mut Self {
        for _ in 0..1000 {
            let waiting = self.requests.iter().position(|(_, r)| matches!(r, Request::Heartbeat(_)));
            if let Some(index) = waiting {
                let (ticket, _) = self.requests.remove(index).unwrap();
                self.answer(ticket, HeartbeatResponse { error_code: code, ..Default::default() });
                return self;
            }
            self.now = self.drain().expect("a heartbeat is to come").at;
            self.do_with(|m, now| m.handle_timeout(now));
        }
        panic!("no heartbeat");
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, response: impl Into<Response>) -> &mut Self {
        let response = response.into();
        self.do_with(|m, now| m.handle_response(now, ticket, Ok(response)))
    }

    pub(crate) fn fail(&mut self, ticket: Ticket, error: SendError) -> &mut Self {
        self.do_with(|m, now| m.handle_response(now, ticket, Err(error)))
    }

    fn take<T>(&mut self, pick: impl Fn(&Request) -> Option<T>) -> Option<(Ticket, T)> {
        let index = self.requests.iter().position(|(_, r)| pick(r).is_some())?;
        let (ticket, request) = self.requests.remove(index)?;
        pick(&request).map(|r| (ticket, r))
    }

    pub(crate) fn join_request(&mut self) -> (Ticket, JoinGroupRequest) {
        let pick = |r: &Request| if let Request::JoinGroup(r) = r { Some(r.clone()) } else { None };
        self.take(pick).unwrap_or_else(|| panic!("no JoinGroup in state {}", self.member.state()))
    }

    pub(crate) fn sync_request(&mut self) -> (Ticket, SyncGroupRequest) {
        let pick = |r: &Request| if let Request::SyncGroup(r) = r { Some(r.clone()) } else { None };
        self.take(pick).unwrap_or_else(|| panic!("no SyncGroup in state {}", self.member.state()))
    }

    pub(crate) fn leave_request(&mut self) -> (Ticket, LeaveGroupRequest) {
        let pick = |r: &Request| if let Request::LeaveGroup(r) = r { Some(r.clone()) } else { None };
        self.take(pick).unwrap_or_else(|| panic!("no LeaveGroup in state {}", self.member.state()))
    }

    pub(crate) fn sends(&self, kind: fn(&Request) -> bool) -> bool {
        self.requests.iter().any(|(_, r)| kind(r))
    }

    pub(crate) fn is_joining(&self) -> bool {
        self.sends(|r| matches!(r, Request::JoinGroup(_)))
    }

    pub(crate) fn refuse_join(&mut self, code: ErrorCode) -> &mut Self {
        let (ticket, _) = self.join_request();
        self.answer(ticket, JoinGroupResponse { error_code: code, ..Default::default() })
    }

    /// Answers JoinGroup: the group has come together, somebody else leads.
    pub(crate) fn follow(&mut self, generation: i32) -> &mut Self {
        let (ticket, request) = self.join_request();
        let member_id = if request.member_id.is_empty() { "m1".into() } else { request.member_id };
        self.answer(ticket, joined(&member_id, generation, "leader", Vec::new()))
    }

    pub(crate) fn give(&mut self, share: &[(&str, i32)]) -> &mut Self {
        let (ticket, _) = self.sync_request();
        self.answer(ticket, synced(share))
    }

    pub(crate) fn refuse_sync(&mut self, code: ErrorCode) -> &mut Self {
        let (ticket, _) = self.sync_request();
        self.answer(ticket, SyncGroupResponse { error_code: code, ..Default::default() })
    }

    /// A whole round up to the callbacks.
    pub(crate) fn round(&mut self, generation: i32, share: &[(&str, i32)]) -> &mut Self {
        self.follow(generation).give(share)
    }

    /// Stable, with this assignment in this generation, as member `m1`.
    pub(crate) fn settled(&mut self, topics: &[&str], generation: i32, share: &[(&str, i32)]) -> &mut Self {
        self.subscribe(topics).poll().round(generation, share);
        self.run();
        assert_eq!(self.member.state(), MemberState::Stable);
        self.pass(Duration::from_secs(10))
    }

    pub(crate) fn begin(&mut self) -> Option<Callback> {
        let callback = self.member.begin_callback(self.now);
        self.drain();
        callback
    }

    pub(crate) fn done(&mut self, callback: Callback) -> &mut Self {
        self.do_with(|m, now| match callback {
            Callback::Revoke(r) | Callback::Lost(r) => m.revoke_done(now, r),
            Callback::Assign(g) => m.assign_done(now, g),
        })
    }

    /// Runs every callback that is due, and writes down what was called.
    pub(crate) fn run(&mut self) -> Vec<String> {
        let mut called = Vec::new();
        while let Some(callback) = self.begin() {
            called.push(show(&callback));
            self.done(callback);
        }
        called
    }

    pub(crate) fn owned(&self) -> String {
        show_partitions(self.member.assignment().iter())
    }

    pub(crate) fn last_cause(&self) -> Cause {
        self.member.last_cause().expect("a cause").clone()
    }
}

fn show_partitions<'a>(partitions: impl IntoIterator<Item = &'a TopicPartition>) -> String {
    partitions.into_iter().map(|tp| tp.to_string()).collect::<Vec<_>>().join(" ")
}

/// `R(..)`, `A(..)` or `L(..)`.
pub(crate) fn show(callback: &Callback) -> String {
    match callback {
        Callback::Revoke(r) => format!("R({})", show_partitions(r.partitions())),
        Callback::Assign(g) => format!("A({})", show_partitions(g.added())),
        Callback::Lost(r) => format!("L({})", show_partitions(r.partitions())),
    }
}

pub(crate) fn joined(
    member_id: &str,
    generation: i32,
    leader: &str,
    members: Vec<JoinGroupResponseMember>,
) -> JoinGroupResponse {
    JoinGroupResponse {
        generation_id: generation,
        protocol_type: Some("consumer".into()),
        protocol_name: Some("deal".into()),
        leader: leader.into(),
        member_id: member_id.into(),
        members,
        ..Default::default()
    }
}

pub(crate) fn synced(share: &[(&str, i32)]) -> SyncGroupResponse {
    let assigned_partitions = share
        .iter()
        .map(|(topic, p)| consumer_protocol::TopicPartitions {
            topic: topic.to_string(),
            partitions: vec![*p],
        })
        .collect();
    let assignment = consumer_protocol::Assignment { assigned_partitions, user_data: None };
    SyncGroupResponse {
        protocol_type: Some("consumer".into()),
        protocol_name: Some("deal".into()),
        assignment: assignment.to_assignment(3),
        ..Default::default()
    }
}

/// What another member of the group says in its JoinGroup.
pub(crate) fn other_member(id: &str, topics: &[&str]) -> JoinGroupResponseMember {
    let subscription =
        Subscription { topics: topics.iter().map(|t| t.to_string()).collect(), ..Subscription::default() };
    JoinGroupResponseMember {
        member_id: id.into(),
        metadata: subscription.to_metadata(3),
        ..JoinGroupResponseMember::default()
    }
}

pub(crate) fn subscription_of(request: &JoinGroupRequest) -> Subscription {
    Subscription::from_metadata(request.protocols[0].metadata.clone()).unwrap()
}
