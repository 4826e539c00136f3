//! Random histories of several members of a consumer group against one coordinator: heartbeats whose answers are lost,
//! members that are slow to let go, leave, die and come back, topics that change, appends that fail, restarts.
//!
//! The members here are as careful as the protocol wants: they use what an answer gave them, and say that they let go
//! only after they did. Then no partition may ever be used by two of them, and when the world comes to rest everybody
//! has what the target says and nothing is left over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::Bytes;
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tontine_group::{
    Instant,
    coordinator::{
        AppendId, ClientInfo, Coordinator, CoordinatorConfig, GroupState, Output, Ticket, durable::Group,
    },
    topics::{Topic, Topics},
};
use tontine_wire::{
    ErrorCode, Uuid,
    api::{Response, consumer_group_heartbeat::*},
};

const MEMBERS: usize = 4;
type Places = BTreeSet<(Uuid, i32)>;

#[derive(Clone, Debug)]
enum Step {
    /// A heartbeat; the answer may be lost, the request may be sent in full.
    Beat {
        member: usize,
        lost: bool,
        full: bool,
    },
    /// A member lets go of what it was told to.
    Release {
        member: usize,
    },
    Leave {
        member: usize,
        for_a_while: bool,
    },
    /// A member dies, or is started again under a new id.
    Die {
        member: usize,
    },
    Subscribe {
        member: usize,
        wish: usize,
    },
    Topic {
        topic: usize,
        partitions: i32,
    },
    Wait {
        ms: u64,
    },
    LogFails(bool),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..MEMBERS;
    prop_oneof![
        40 => (member.clone(), prop::bool::weighted(0.15), prop::bool::weighted(0.2))
            .prop_map(|(member, lost, full)| Step::Beat { member, lost, full }),
        15 => member.clone().prop_map(|member| Step::Release { member }),
        3 => (member.clone(), any::<bool>()).prop_map(|(member, for_a_while)| Step::Leave { member, for_a_while }),
        2 => member.clone().prop_map(|member| Step::Die { member }),
        4 => (member, 0..WISHES.len()).prop_map(|(member, wish)| Step::Subscribe { member, wish }),
        2 => (0..3usize, 0..5i32).prop_map(|(topic, partitions)| Step::Topic { topic, partitions }),
        10 => prop_oneof![0..50u64, 0..6_000u64].prop_map(|ms| Step::Wait { ms }),
        2 => any::<bool>().prop_map(Step::LogFails),
        1 => Just(Step::Restart),
    ]
}

/// Topics by name and by expression.
const WISHES: [(&[&str], &str); 5] =
    [(&["t0"], ""), (&["t0", "t1"], ""), (&[], "t.*"), (&["t2"], "t[01]"), (&[], "")];

#[derive(Clone, Debug, Default)]
struct Member {
    id: String,
    instance: Option<String>,
    epoch: i32,
    /// What it uses.
    uses: Places,
    /// What the last answer with an assignment said.
    told: Places,
    wish: usize,
    /// It has to say everything with its next heartbeat.
    in_full: bool,
    gone: bool,
    incarnation: u32,
    /// Until when the coordinator will believe it alive, as far as it can know.
    heard: Instant,
    /// Since when it has been told to let go of something, and the coordinator has not heard that it did.
    told_to_release: Option<Instant>,
}

struct World {
    config: CoordinatorConfig,
    coordinator: Coordinator,
    topics: Topics,
    now: Instant,
    members: Vec<Member>,
    log: Vec<(Bytes, Option<Bytes>)>,
    log_fails: bool,
    tickets: u64,
    topic_ids: u128,
    answers: Vec<(Ticket, ConsumerGroupHeartbeatResponse)>,
}

const SESSION: Duration = Duration::from_millis(5_000);
const RELEASE: Duration = Duration::from_millis(20_000);

impl World {
    fn new(interval: u64) -> Self {
        let config = CoordinatorConfig {
            consumer_session_timeout: SESSION,
            consumer_assignment_interval: Duration::from_millis(interval),
            ..CoordinatorConfig::default()
        };
        let mut coordinator = Coordinator::new(config.clone(), 1);
        coordinator.loaded(Instant::ZERO);
        let member = |i: usize| Member {
            id: format!("m{i}"),
            instance: (i == 3).then(|| "i3".to_owned()),
            wish: i % 3,
            in_full: true,
            ..Member::default()
        };
        let members = (0..MEMBERS).map(member).collect();
        let mut world = Self {
            config,
            coordinator,
            topics: Topics::new(),
            now: Instant::ZERO,
            members,
            log: Vec::new(),
            log_fails: false,
            tickets: 0,
            topic_ids: 1,
            answers: Vec::new(),
        };
        world.topic(0, 3);
        world.topic(1, 2);
        world
    }

    fn topic(&mut self, topic: usize, partitions: i32) {
        let name = format!("t{topic}");
        let known = self.topics.get(&name).map(|t| (t.id, t.partitions));
        if partitions == 0 {
            self.topics.remove(&name);
        } else {
            self.topic_ids += 1;
            let (id, partitions) = match known {
                Some((id, before)) => (id, partitions.max(before)),
                None => (Uuid::from_u128(self.topic_ids), partitions),
            };
            self.topics.insert(name, Topic { id, partitions, racks: Vec::new() });
        }
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
    }

    fn beat(&mut self, index: usize, lost: bool, full: bool) {
        let member = self.members[index].clone();
        if member.gone {
            return;
        }
        let joins = member.epoch == 0;
        let full = full || joins || member.in_full;
        let (names, regex) = WISHES[member.wish];
        let owned = || if joins { Vec::new() } else { partitions(&member.uses) };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".to_owned(),
            member_id: member.id.clone(),
            member_epoch: member.epoch,
            instance_id: member.instance.clone(),
            rebalance_timeout_ms: if full { RELEASE.as_millis() as i32 } else { -1 },
            subscribed_topic_names: full.then(|| names.iter().map(|n| (*n).to_owned()).collect()),
            subscribed_topic_regex: full.then(|| regex.to_owned()),
            // What changed has to be said; that nothing did may be left out.
            topic_partitions: (full || member.uses == member.told).then(owned),
            ..Default::default()
        };
        let answer = self.send(request);
        if lost {
            // Whoever hears nothing says everything the next time.
            self.members[index].in_full = true;
        } else {
            self.heard(index, answer, member.uses == member.told);
        }
    }

    fn send(&mut self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let client = ClientInfo { client_id: "c".to_owned(), client_host: "/h".to_owned() };
        self.coordinator.handle_request(self.now, ticket, &client, 1, request.into(), &self.topics).unwrap();
        self.drain();
        let (answered, response) = self.answers.pop().expect("an answer");
        assert!(answered == ticket && self.answers.is_empty(), "one answer for one request");
        response
    }

    fn heard(&mut self, index: usize, answer: ConsumerGroupHeartbeatResponse, released: bool) {
        let now = self.now;
        let member = &mut self.members[index];
        match answer.error_code {
            ErrorCode::NONE => {
                member.in_full = false;
                member.epoch = answer.member_epoch;
                member.heard = now;
                if released {
                    member.told_to_release = None;
                }
                if let Some(assignment) = answer.assignment {
                    member.told = places(&assignment);
                    member.uses.extend(member.told.iter().copied());
                    if member.uses != member.told {
                        member.told_to_release.get_or_insert(now);
                    }
                }
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::GROUP_ID_NOT_FOUND => {
                (member.uses, member.told) = (Places::new(), Places::new());
                (member.epoch, member.in_full) = (0, true);
            }
            // Tries again: the log fails, or the former self is not given up yet.
            ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::UNRELEASED_INSTANCE_ID => member.in_full = true,
            other => panic!("{other}: {:?}", answer.error_message),
        }
    }

    fn release(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.uses = member.told.clone();
    }

    fn leave(&mut self, index: usize, for_a_while: bool) {
        let member = self.members[index].clone();
        if member.epoch <= 0 || member.gone {
            return;
        }
        let for_a_while = for_a_while && member.instance.is_some();
        // It lets go before it says so.
        let left = &mut self.members[index];
        (left.uses, left.told, left.epoch, left.in_full) = (Places::new(), Places::new(), 0, true);
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".to_owned(),
            member_id: member.id,
            member_epoch: if for_a_while { -2 } else { -1 },
            instance_id: member.instance,
            ..Default::default()
        };
        self.send(request);
    }

    fn die(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.gone = !member.gone;
        member.incarnation += 1;
        if !member.gone {
            // Another process: it has nothing.
            member.id = format!("m{index}-{}", member.incarnation);
            (member.epoch, member.in_full) = (0, true);
        }
        (member.uses, member.told) = (Places::new(), Places::new());
    }

    fn wait(&mut self, ms: u64) {
        let to = self.now + Duration::from_millis(ms);
        let mut wakes = 0;
        while let Some(at) = self.drain().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
            wakes += 1;
            assert!(wakes < 10_000, "the coordinator keeps its driver busy");
        }
        self.now = to;
        // A member that could not make itself heard in its session, or did not let go in time, stops by itself.
        for member in &mut self.members {
            let silent = self.now - member.heard >= SESSION;
            let late = member.told_to_release.is_some_and(|since| self.now - since >= RELEASE);
            if member.epoch > 0 && (silent || late) {
                (member.uses, member.told) = (Places::new(), Places::new());
                (member.epoch, member.in_full, member.told_to_release) = (0, true, None);
            }
        }
    }

    fn restart(&mut self) {
        self.coordinator.resign(self.now);
        self.drain();
        self.coordinator = self.read_log();
        self.coordinator.loaded(self.now);
        self.coordinator.handle_topics(self.now, &self.topics);
        self.drain();
    }

    fn read_log(&self) -> Coordinator {
        let mut again = Coordinator::new(self.config.clone(), self.tickets);
        for (key, value) in &self.log {
            again.replay(key.clone(), value.clone()).unwrap();
        }
        again
    }

    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    let result = if self.log_fails { Err(ErrorCode::NOT_ENOUGH_REPLICAS) } else { Ok(()) };
                    if result.is_ok() {
                        self.log.extend(records.into_iter().map(|r| (r.key, r.value)));
                    }
                    let id: AppendId = id;
                    self.coordinator.handle_appended(self.now, id, result);
                }
                Output::Reply { ticket, response: Response::ConsumerGroupHeartbeat(answer) } => {
                    self.answers.push((ticket, answer));
                }
                Output::Reply { response, .. } => panic!("{response:?}"),
                Output::Transition(_) => {}
                Output::Wait(at) => return at,
            }
        }
    }

    fn check(&self) {
        let mut owners: BTreeMap<(Uuid, i32), usize> = BTreeMap::new();
        for (index, member) in self.members.iter().enumerate().filter(|(_, m)| !m.gone) {
            for place in &member.uses {
                if let Some(other) = owners.insert(*place, index) {
                    panic!("{place:?} is used by {:?} and {member:?}", self.members[other]);
                }
            }
        }
    }

    fn check_log(&self) {
        assert_eq!(self.read_log().durable(), self.coordinator.durable(), "the log says something else");
    }

    fn is_at_rest(&self) -> bool {
        let Some(Group::Consumer(group)) = self.coordinator.durable().group("g") else { return false };
        let at_target =
            |m: &Member| m.uses == m.told && m.epoch == group.epoch && m.told_to_release.is_none();
        group.members.len() == MEMBERS
            && self.members.iter().all(at_target)
            && self.coordinator.groups()[0].state == GroupState::Stable
    }

    /// Everything works again, and everybody does what it should, until nothing moves any more.
    fn come_to_rest(&mut self) {
        self.log_fails = false;
        for index in 0..MEMBERS {
            if self.members[index].gone {
                self.die(index);
            }
        }
        // Whatever could not be written is tried again.
        self.wait(1_500);
        for _ in 0..200 {
            for index in 0..MEMBERS {
                self.release(index);
                self.beat(index, false, false);
                self.check();
            }
            self.wait(200);
            if self.is_at_rest() {
                break;
            }
        }
        self.check_log();
        let Some(Group::Consumer(group)) = self.coordinator.durable().group("g") else { panic!("no group") };
        let state = self.coordinator.groups()[0].state;
        assert_eq!(state, GroupState::Stable, "{group:#?}");
        let wanted: BTreeSet<&str> =
            self.members.iter().flat_map(|m| topics_of(&self.topics, m.wish)).collect();
        let mut all = Places::new();
        for topic in wanted.iter().filter_map(|name| self.topics.get(name)) {
            all.extend((0..topic.partitions).map(|partition| (topic.id, partition)));
        }
        let used: Places = self.members.iter().flat_map(|m| m.uses.iter().copied()).collect();
        assert_eq!(used, all, "partitions that nobody uses, or that are not there: {group:#?}");
    }
}

fn topics_of(topics: &Topics, wish: usize) -> Vec<&str> {
    let (names, regex) = WISHES[wish];
    let matches = |name: &str| match regex {
        "t.*" => true,
        "t[01]" => name == "t0" || name == "t1",
        _ => false,
    };
    topics.iter().map(|(name, _)| &**name).filter(|name| names.contains(name) || matches(name)).collect()
}

fn places(assignment: &Assignment) -> Places {
    let topics = assignment.topic_partitions.iter();
    topics.flat_map(|t| t.partitions.iter().map(|partition| (t.topic_id, *partition))).collect()
}

fn partitions(places: &Places) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    places.iter().for_each(|(topic, partition)| topics.entry(*topic).or_default().push(*partition));
    topics.into_iter().map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_partition_has_two_users_and_all_comes_to_rest(
        interval in prop_oneof![Just(0u64), Just(20u64), Just(1_000u64)],
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut world = World::new(interval);
        for step in &steps {
            match *step {
                Step::Beat { member, lost, full } => world.beat(member, lost, full),
                Step::Release { member } => world.release(member),
                Step::Leave { member, for_a_while } => world.leave(member, for_a_while),
                Step::Die { member } => world.die(member),
                Step::Subscribe { member, wish } => {
                    world.members[member].wish = wish;
                    world.members[member].in_full = true;
                }
                Step::Topic { topic, partitions } => world.topic(topic, partitions),
                Step::Wait { ms } => world.wait(ms),
                Step::LogFails(fails) => world.log_fails = fails,
                Step::Restart => world.restart(),
            }
            world.check();
        }
        world.check_log();
        world.come_to_rest();
    }
}
