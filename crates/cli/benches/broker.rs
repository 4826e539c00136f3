//! What the embedded broker costs, as a table: how soon it serves, what it occupies, and what records, joins and heartbeats
//! cost it.
//!
//! `cargo bench -p tontine-cli --bench broker`. The broker is a process of its own; CPU is what the system charges it for.
//! Nothing is asserted: a busy machine shows in the figures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, missing_docs)]

mod table;

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use table::{cpu, row};
use tontine::{Admin, admin::NewTopic};
use tontine_testkit::raw::RawConnection;
use tontine_wire::api::{
    api_versions::ApiVersionsRequest,
    consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse},
    heartbeat::HeartbeatRequest,
    join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
    metadata::MetadataRequest,
    sync_group::{SyncGroupRequest, SyncGroupRequestAssignment},
};
use tontine_wire::codec::Message as _;
use tontine_wire::consumer_protocol::{Assignment, Subscription};

const ROUNDS: usize = 10;
/// Records of 128 bytes for the rows about records.
const RECORDS: u64 = 4_000_000;
/// 1 GB of log.
const MANY_RECORDS: u64 = 7_200_000;
const HEARTBEATS: u64 = 100_000;

fn main() {
    // `cargo test` runs benches to see that they build.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    table::head();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(starts());
    runtime.block_on(memory());
    records();
    runtime.block_on(groups());
}

/// A broker process that is killed when it is dropped.
struct Process {
    child: Child,
    address: String,
    began: Instant,
}

impl Process {
    fn start(args: &[&str]) -> Self {
        let began = Instant::now();
        let (child, address) = table::broker(args);
        Self { child, address, began }
    }

    fn cpu(&self) -> f64 {
        cpu(self.child.id())
    }

    /// Resident memory, in MB.
    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// Asks it to stop in good order, and waits until it has.
    fn stop(mut self) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().unwrap();
        self.child.wait().unwrap();
    }

    fn bench(&self, args: &[&str]) {
        let status = Command::new(env!("CARGO_BIN_EXE_tontine"))
            .arg("bench")
            .args(args)
            .args(["-b", &self.address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{args:?}");
    }

    async fn raw(&self) -> RawConnection {
        RawConnection::connect(&self.address, "bench").await.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From the start of the process until ApiVersions and Metadata were answered, in ms.
async fn ready(data_dir: &Path) -> (f64, Process) {
    let process = Process::start(&["--data-dir", data_dir.to_str().unwrap()]);
    let mut raw = process.raw().await;
    raw.call(0, ApiVersionsRequest::default()).await.unwrap();
    raw.call(9, MetadataRequest { topics: None, ..Default::default() }).await.unwrap();
    (process.began.elapsed().as_secs_f64() * 1e3, process)
}

async fn starts() {
    let mut empty = Vec::new();
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir().unwrap();
        empty.push(ready(dir.path()).await.0);
    }
    row("ready with an empty data directory, ms", empty, "< 10");

    let dir = tempfile::tempdir().unwrap();
    let (_, process) = ready(dir.path()).await;
    process.bench(&["load", "-t", "big", "-n", &MANY_RECORDS.to_string()]);
    process.stop();
    let mut full = Vec::new();
    for _ in 0..ROUNDS {
        let (took, process) = ready(dir.path()).await;
        full.push(took);
        process.stop();
    }
    row("ready with 1 GB of log, cleanly closed, ms", full, "< 200");
}

async fn memory() {
    let process = Process::start(&[]);
    process.raw().await.call(0, ApiVersionsRequest::default()).await.unwrap();
    row("resident when idle, MB", vec![process.resident()], "< 12");
    let admin = Admin::builder().set("bootstrap.servers", &process.address).build().unwrap();
    admin.create_topics((0..1_000).map(|n| NewTopic::new(format!("topic-{n}"), 1))).await.unwrap();
    row("resident with 1,000 topics, MB", vec![process.resident()], "< 20");
}

fn records() {
    let (mut produced, mut consumed) = (Vec::new(), Vec::new());
    let n = RECORDS.to_string();
    for _ in 0..3 {
        let process = Process::start(&[]);
        let start = process.cpu();
        process.bench(&["load", "-t", "big", "-n", &n]);
        let loaded = process.cpu();
        process.bench(&["consume", "-t", "big", "-g", "g", "-n", &n]);
        produced.push((loaded - start) / RECORDS as f64);
        consumed.push((process.cpu() - loaded) / RECORDS as f64);
    }
    row("broker CPU per record of 128 bytes produced, us", produced, "< 0.15");
    row("broker CPU per record of 128 bytes consumed, us", consumed, "< 0.05");
}

async fn groups() {
    let process = Process::start(&["--topic", "orders:8"]);
    let mut raw = process.raw().await;
    let (mut classic, mut consumer) = (Vec::new(), Vec::new());
    let mut member = JoinGroupResponse::default();
    for round in 0..ROUNDS {
        let began = Instant::now();
        member = join_classic(&mut raw, &format!("classic-{round}")).await;
        classic.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        join_consumer(&mut raw, &format!("consumer-{round}")).await;
        consumer.push(began.elapsed().as_secs_f64() * 1e3);
    }
    row("a lone member joins, classic, ms", classic, "< 2");
    row("a lone member joins, consumer protocol, ms", consumer, "< 1");

    let group = format!("classic-{}", ROUNDS - 1);
    let mut figures = Vec::new();
    for _ in 0..3 {
        let before = process.cpu();
        for _ in 0..HEARTBEATS {
            let request = HeartbeatRequest {
                group_id: group.clone(),
                generation_id: member.generation_id,
                member_id: member.member_id.clone(),
                ..Default::default()
            };
            assert!(raw.call(4, request).await.unwrap().error_code.is_ok());
        }
        figures.push((process.cpu() - before) / HEARTBEATS as f64);
    }
    row("broker CPU per heartbeat, network included, us", figures, "< 10");
    large_group().await;
}

/// A member of the consumer protocol that does what it is told at once, and speaks as often as it is told.
struct Member {
    request: ConsumerGroupHeartbeatRequest,
    due: Instant,
    partitions: usize,
}

impl Member {
    fn new(n: usize) -> Self {
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "large".to_owned(),
            member_id: format!("member-{n}"),
            rebalance_timeout_ms: 45_000,
            subscribed_topic_names: Some(vec!["wide".to_owned()]),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        Self { request, due: Instant::now(), partitions: 0 }
    }

    fn answered(&mut self, answer: ConsumerGroupHeartbeatResponse, now: Instant) {
        assert!(answer.error_code.is_ok(), "{answer:?}");
        self.request.member_epoch = answer.member_epoch;
        self.request.subscribed_topic_names = None;
        self.due = now + Duration::from_millis(answer.heartbeat_interval_ms.unsigned_abs().into());
        self.request.topic_partitions = answer.assignment.map(|assignment| assignment.topic_partitions);
        if let Some(owned) = &self.request.topic_partitions {
            // What changed is acknowledged at once.
            self.due = now;
            self.partitions = owned.iter().map(|topic| topic.partitions.len()).sum();
        }
    }
}

/// From the first heartbeat of the first member until every member of 2,000 has what it is to have of 5,000 partitions.
async fn large_group() {
    const MEMBERS: usize = 2_000;
    const PARTITIONS: usize = 5_000;
    let mut figures = Vec::new();
    for _ in 0..3 {
        let process = Process::start(&["--topic", &format!("wide:{PARTITIONS}")]);
        let mut raw = process.raw().await;
        let began = Instant::now();
        let mut members: Vec<Member> = (0..MEMBERS).map(Member::new).collect();
        while !is_stable(&members, PARTITIONS) {
            let now = Instant::now();
            let due = members.iter_mut().filter(|member| member.due <= now);
            for batch in due.collect::<Vec<_>>().chunks_mut(64) {
                let mut pending = Vec::new();
                for member in &*batch {
                    pending.push(raw.send(1, member.request.clone()).await.unwrap());
                }
                for (member, pending) in batch.iter_mut().zip(pending) {
                    member.answered(raw.receive(pending).await.unwrap(), Instant::now());
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        figures.push(began.elapsed().as_secs_f64() * 1e3);
    }
    row("2,000 members over 5,000 partitions stable, ms", figures, "< 1000");
}

/// Everybody is in the same epoch, has acknowledged it, and all partitions are owned.
fn is_stable(members: &[Member], partitions: usize) -> bool {
    let epoch = members[0].request.member_epoch;
    epoch > 0
        && members.iter().all(|m| m.request.member_epoch == epoch && m.request.topic_partitions.is_none())
        && members.iter().map(|m| m.partitions).sum::<usize>() == partitions
}

/// Two joins, since the first only brings a member id, and the assignment.
async fn join_classic(raw: &mut RawConnection, group: &str) -> JoinGroupResponse {
    let subscription = Subscription { topics: vec!["orders".to_owned()], ..Default::default() };
    let protocol =
        JoinGroupRequestProtocol { name: "range".to_owned(), metadata: subscription.to_metadata(1) };
    let join = |member_id: String| JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 45_000,
        member_id,
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol.clone()],
        ..Default::default()
    };
    let named = raw.call(9, join(String::new())).await.unwrap();
    let joined = raw.call(9, join(named.member_id)).await.unwrap();
    let assignment = SyncGroupRequestAssignment {
        member_id: joined.member_id.clone(),
        assignment: Assignment::default().to_bytes(1),
    };
    let sync = SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: joined.protocol_type.clone(),
        protocol_name: joined.protocol_name.clone(),
        assignments: vec![assignment],
        ..Default::default()
    };
    assert!(raw.call(5, sync).await.unwrap().error_code.is_ok());
    joined
}

/// Heartbeats until the member has its assignment, without a pause.
async fn join_consumer(raw: &mut RawConnection, group: &str) {
    let mut request = ConsumerGroupHeartbeatRequest {
        group_id: group.to_owned(),
        member_id: format!("member-of-{group}"),
        rebalance_timeout_ms: 45_000,
        subscribed_topic_names: Some(vec!["orders".to_owned()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = raw.call(1, request.clone()).await.unwrap();
        assert!(answer.error_code.is_ok(), "{answer:?}");
        if answer.assignment.is_some_and(|assignment| !assignment.topic_partitions.is_empty()) {
            return;
        }
        assert!(Instant::now() < deadline, "no assignment");
        request.member_epoch = answer.member_epoch;
        (request.subscribed_topic_names, request.topic_partitions) = (None, None);
    }
}
