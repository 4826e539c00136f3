//! What a group costs its coordinator: heartbeats of a stable group, commits, and a whole rebalance of many members.
//!
//! `cargo bench -p tontine-group --bench coordinator` prints the figures. The log is a counter, time is virtual, and
//! nothing goes over a wire: this is the state machine alone.

use bytes::Bytes;
use std::time::{Duration, Instant as Clock};
use tontine_group::{
    Instant,
    coordinator::{ClientInfo, Coordinator, CoordinatorConfig, Output, Ticket},
    topics::Topics,
};
use tontine_wire::api::{
    Request, Response, consumer_group_heartbeat::*, heartbeat::HeartbeatRequest, join_group::*,
    offset_commit::*, sync_group::*,
};

struct Bench {
    coordinator: Coordinator,
    topics: Topics,
    client: ClientInfo,
    tickets: u64,
    records: usize,
    answers: Vec<Response>,
}

impl Bench {
    fn new() -> Self {
        let config = CoordinatorConfig {
            group_initial_rebalance_delay: Duration::ZERO,
            unix_ms_at_origin: 1_700_000_000_000,
            ..Default::default()
        };
        let mut coordinator = Coordinator::new(config, 1);
        coordinator.loaded(Instant::ZERO);
        let client = ClientInfo { client_id: "bench".to_owned(), client_host: "/127.0.0.1".to_owned() };
        let topics = Topics::new().with("t", 100);
        Self { coordinator, topics, client, tickets: 0, records: 0, answers: Vec::new() }
    }

    fn send(&mut self, version: i16, request: impl Into<Request>) {
        self.send_at(Instant::ZERO, version, request);
    }

    fn send_at(&mut self, now: Instant, version: i16, request: impl Into<Request>) {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let handled =
            self.coordinator.handle_request(now, ticket, &self.client, version, request.into(), &self.topics);
        assert!(handled.is_ok());
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    self.records += records.len();
                    self.coordinator.handle_appended(now, id, Ok(()));
                }
                Output::Reply { response, .. } => self.answers.push(response),
                Output::Transition(_) => {}
                Output::Wait(_) => return,
            }
        }
    }

    fn join(&mut self, member: &str) {
        let protocol =
            JoinGroupRequestProtocol { name: "range".to_owned(), metadata: Bytes::from_static(&[0; 40]) };
        let request = JoinGroupRequest {
            group_id: "g".to_owned(),
            session_timeout_ms: 45_000,
            rebalance_timeout_ms: 300_000,
            member_id: member.to_owned(),
            protocol_type: "consumer".to_owned(),
            protocols: vec![protocol],
            ..Default::default()
        };
        self.send(9, request);
    }

    /// Ids that are handed out now, for members that join together.
    fn ids(&mut self, members: usize) -> Vec<String> {
        (0..members).for_each(|_| self.join(""));
        let ids = std::mem::take(&mut self.answers).into_iter().filter_map(|answer| match answer {
            Response::JoinGroup(join) => Some(join.member_id),
            _ => None,
        });
        ids.collect()
    }

    /// All join, all sync. The generation they come to.
    fn rebalance(&mut self, ids: &[String]) -> i32 {
        ids.iter().for_each(|id| self.join(id));
        let mut generation = -1;
        let mut leader = String::new();
        for answer in std::mem::take(&mut self.answers) {
            if let Response::JoinGroup(join) = answer {
                generation = generation.max(join.generation_id);
                leader = join.leader;
            }
        }
        let assignment = |id: &String| SyncGroupRequestAssignment {
            member_id: id.clone(),
            assignment: Bytes::from_static(&[0; 60]),
        };
        for id in ids {
            let assignments = if *id == leader { ids.iter().map(assignment).collect() } else { Vec::new() };
            let request = SyncGroupRequest {
                group_id: "g".to_owned(),
                generation_id: generation,
                member_id: id.clone(),
                assignments,
                ..Default::default()
            };
            self.send(5, request);
        }
        self.answers.clear();
        generation
    }

    fn heartbeats(&mut self, ids: &[String], generation: i32, rounds: usize) {
        for _ in 0..rounds {
            for id in ids {
                let request = HeartbeatRequest {
                    group_id: "g".to_owned(),
                    generation_id: generation,
                    member_id: id.clone(),
                    group_instance_id: None,
                };
                self.send(4, request);
            }
            self.answers.clear();
        }
    }

    fn commits(&mut self, id: &str, generation: i32, rounds: usize) {
        let partition = |partition_index| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: 7,
            ..Default::default()
        };
        let topic = OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: (0..10).map(partition).collect(),
            ..Default::default()
        };
        for _ in 0..rounds {
            let request = OffsetCommitRequest {
                group_id: "g".to_owned(),
                generation_id_or_member_epoch: generation,
                member_id: id.to_owned(),
                topics: vec![topic.clone()],
                ..Default::default()
            };
            self.send(9, request);
            self.answers.clear();
        }
    }
}

#[allow(clippy::disallowed_methods)]
fn timed(what: &str, count: usize, run: impl FnOnce()) {
    let start = Clock::now();
    run();
    let each = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{what:<60} {each:>12.0} ns");
}

/// A member of a consumer group that does at once what it is told.
#[derive(Default)]
struct Consumer {
    id: String,
    epoch: i32,
    owned: Option<Vec<TopicPartitions>>,
}

impl Bench {
    /// A heartbeat, and what its answer changes. Whether it changed anything.
    fn beat(&mut self, now: Instant, member: &mut Consumer) -> bool {
        let joins = member.epoch == 0;
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "c".to_owned(),
            member_id: member.id.clone(),
            member_epoch: member.epoch,
            rebalance_timeout_ms: if joins { 300_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec!["t".to_owned()]),
            topic_partitions: if joins { Some(Vec::new()) } else { member.owned.take() },
            ..Default::default()
        };
        self.send_at(now, 1, request);
        let Some(Response::ConsumerGroupHeartbeat(answer)) = self.answers.pop() else { return false };
        let changed = answer.member_epoch != member.epoch || answer.assignment.is_some();
        member.epoch = answer.member_epoch;
        member.owned = answer.assignment.map(|a| a.topic_partitions);
        changed
    }

    /// All members join and go on, a heartbeat each 100 ms, until nothing changes any more. How long that is for them.
    fn come_together(&mut self, members: &mut [Consumer]) -> Duration {
        let mut now = Instant::ZERO;
        loop {
            let mut changed = false;
            for member in members.iter_mut() {
                changed |= self.beat(now, member);
            }
            if !changed {
                return now.since_origin();
            }
            now += Duration::from_millis(100);
            self.coordinator.handle_timeout(now);
        }
    }
}

/// How long 2,000 members over 5,000 partitions take on Apache Kafka 4.4.0, when they do at once what they are told.
const KAFKA: &str = "12500 ms with its default heartbeat of 5 s, 2100 ms with one of 200 ms";

fn consumers(members: usize, partitions: i32) {
    let mut bench = Bench::new();
    bench.topics = Topics::new().with("t", partitions);
    let mut group: Vec<Consumer> =
        (0..members).map(|i| Consumer { id: format!("member-{i:05}"), ..Consumer::default() }).collect();
    let mut took = Duration::ZERO;
    timed(
        &format!("{members} consumers over {partitions} partitions: from nothing to rest, each"),
        members,
        || {
            took = bench.come_together(&mut group);
        },
    );
    println!("{:<60} {:>12} ms", "  for the members, with a heartbeat each 100 ms", took.as_millis());
    if (members, partitions) == (2_000, 5_000) {
        println!("  Apache Kafka 4.4.0: {KAFKA}");
    }
    let now = Instant::ZERO + took;
    let rounds = 200_000 / members;
    timed(&format!("{members} consumers: heartbeat at rest"), rounds * members, || {
        for _ in 0..rounds {
            for member in &mut group {
                bench.beat(now, member);
            }
        }
    });
}

fn main() {
    consumers(10, 100);
    consumers(2_000, 5_000);
    for members in [1, 10, 100, 2_000] {
        let mut bench = Bench::new();
        let ids = bench.ids(members);
        let mut generation = 0;
        timed(&format!("{members} members: join and sync, each member"), members, || {
            generation = bench.rebalance(&ids);
        });
        let rounds = 200_000 / members;
        timed(&format!("{members} members: heartbeat"), rounds * members, || {
            bench.heartbeats(&ids, generation, rounds);
        });
        timed(&format!("{members} members: commit of 10 partitions"), 10_000, || {
            bench.commits(&ids[0], generation, 10_000);
        });
    }
}
