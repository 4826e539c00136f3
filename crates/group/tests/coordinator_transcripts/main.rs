//! What Apache Kafka 4.4.0 was seen to answer, replayed against our coordinator in virtual time: the same answers with
//! the same meaning, the same requests parked for as long, the same records in the log.
//!
//! A transcript is a text in `tests/transcripts`: settings and topics first, then requests with the time they were sent
//! (`@43 b JoinGroup v9 ..`), each with its answer on the next line. A request with a number (`#6`) was answered later
//! (`@350 answer #6`); `parked #6 for 300 ms` says that it was not until then. `records` are those that had been written
//! since the last time somebody looked; the look may have missed the newest.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod compare;
mod embedded;
mod render;
mod requests;

use compare::Names;
use requests::Words;
use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    time::Duration,
};
use tontine_group::{
    Instant,
    coordinator::{ClientInfo, Coordinator, CoordinatorConfig, Output, Record, Ticket},
    topics::{Topic, Topics},
};
use tontine_wire::{Uuid, api::Response};

struct Replay {
    name: String,
    coordinator: Coordinator,
    topics: Topics,
    now: Instant,
    tickets: u64,
    answers: BTreeMap<Ticket, Response>,
    log: Vec<(bytes::Bytes, Option<bytes::Bytes>)>,
    unseen: VecDeque<String>,
    names: Names,
    parked: BTreeMap<String, (Ticket, i16)>,
    line: usize,
}

impl Replay {
    fn new(name: &str, config: CoordinatorConfig, topics: Topics) -> Self {
        let mut coordinator = Coordinator::new(config, 7);
        coordinator.loaded(Instant::ZERO);
        Self {
            name: name.to_owned(),
            coordinator,
            topics,
            now: Instant::ZERO,
            tickets: 0,
            answers: BTreeMap::new(),
            log: Vec::new(),
            unseen: VecDeque::new(),
            names: Names::default(),
            parked: BTreeMap::new(),
            line: 0,
        }
    }

    /// Lets time pass, stopping wherever the coordinator wants to be woken.
    fn advance(&mut self, to: Instant) {
        while let Some(at) = self.drain().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.coordinator.handle_timeout(self.now);
        }
        self.now = self.now.max(to);
    }

    /// Carries out what the coordinator wants, and returns when it wants to be woken.
    fn drain(&mut self) -> Option<Instant> {
        loop {
            match self.coordinator.poll_output() {
                Output::Append { id, records } => {
                    for record in records {
                        let read = Record::decode(record.key.clone(), record.value.clone()).unwrap().unwrap();
                        if read.group().starts_with('g') {
                            self.unseen.push_back(render::record(&read, &self.topics));
                        }
                        self.log.push((record.key, record.value));
                    }
                    self.coordinator.handle_appended(self.now, id, Ok(()));
                }
                Output::Reply { ticket, response } => {
                    let before = self.answers.insert(ticket, response);
                    assert!(before.is_none(), "{}: {ticket:?} is answered twice", self.place());
                }
                Output::Transition(_) => {}
                Output::Wait(at) => return at,
            }
        }
    }

    fn place(&self) -> String {
        format!("{}:{}", self.name, self.line)
    }

    fn send(&mut self, client: &str, api: &str, version: i16, words: &str) -> Ticket {
        let words = self.names.fill(words);
        let request = requests::request(api, version, &Words::read(&words), &self.topics);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let client = ClientInfo { client_id: client.to_owned(), client_host: "/127.0.0.1".to_owned() };
        self.coordinator.handle_request(self.now, ticket, &client, version, request, &self.topics).unwrap();
        self.drain();
        ticket
    }

    fn expect(&mut self, ticket: Ticket, version: i16, expected: &str) {
        let Some(response) = self.answers.get(&ticket) else {
            panic!("{}: not answered; seen was: {expected}", self.place());
        };
        let actual = render::response(response, version, &self.topics);
        let same = self.names.matches(expected, &actual);
        assert!(same, "{}\n  seen: {}\n  ours: {actual}", self.place(), self.names.fill(expected));
    }

    fn expect_record(&mut self, expected: &str) {
        let actual = self.unseen.pop_front().unwrap_or_default();
        let same = self.names.matches(expected, &actual);
        assert!(same, "{}\n  seen: {}\n  ours: {actual}", self.place(), self.names.fill(expected));
        self.check_log();
    }

    /// Reading the log again gives what is known.
    fn check_log(&mut self) {
        let mut again = Coordinator::new(CoordinatorConfig::default(), 0);
        for (key, value) in &self.log {
            again.replay(key.clone(), value.clone()).unwrap();
        }
        assert_eq!(again.durable(), self.coordinator.durable(), "{}", self.place());
    }

    fn step(&mut self, line: &str, answer: &str) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap();
        if let Some(at) = first.strip_prefix('@') {
            self.advance(Instant::from_origin(Duration::from_millis(at.parse().unwrap())));
            let client = words.next().unwrap();
            let rest: Vec<&str> = words.collect();
            return self.request_or_answer(client, &rest, answer);
        }
        assert_eq!(first, "parked", "{}", self.place());
        let ticket = self.parked[words.next().unwrap()].0;
        let wait: u64 = words.nth(1).unwrap().parse().unwrap();
        self.advance(self.now + Duration::from_millis(wait));
        assert!(!self.answers.contains_key(&ticket), "{}: answered too early", self.place());
    }

    fn request_or_answer(&mut self, client: &str, rest: &[&str], answer: &str) {
        if client == "answer" {
            let (ticket, version) = self.parked.remove(rest[0]).unwrap();
            return self.expect(ticket, version, answer);
        }
        let (api, version) = (rest[0], rest[1].trim_start_matches('v').parse().unwrap());
        match rest.get(2).filter(|word| word.starts_with('#')) {
            Some(number) => {
                let ticket = self.send(client, api, version, &rest[3..].join(" "));
                assert!(!self.answers.contains_key(&ticket), "{}: answered at once", self.place());
                self.parked.insert((*number).to_owned(), (ticket, version));
            }
            None => {
                let ticket = self.send(client, api, version, &rest[2..].join(" "));
                self.expect(ticket, version, answer);
            }
        }
    }
}

fn settings(text: &str) -> (CoordinatorConfig, Topics) {
    let mut config = CoordinatorConfig::default();
    let mut topics = Topics::new();
    for line in text.lines() {
        if let Some((key, value)) = line.strip_prefix("config ").and_then(|line| line.split_once('=')) {
            let value: u64 = value.parse().unwrap();
            match key {
                "group.initial.rebalance.delay.ms" => {
                    config.group_initial_rebalance_delay = Duration::from_millis(value);
                }
                "group.min.session.timeout.ms" => {
                    config.group_min_session_timeout = Duration::from_millis(value)
                }
                "group.max.size" => config.group_max_size = value as usize,
                other => panic!("no such setting: {other}"),
            }
        }
        if let Some((name, partitions)) = line.strip_prefix("topic ").and_then(|line| line.split_once('=')) {
            let id = Uuid::from_u128(0xabc0 + topics.iter().count() as u128);
            topics.insert(name, Topic { id, partitions: partitions.parse().unwrap(), racks: Vec::new() });
        }
    }
    (config, topics)
}

fn replay(name: &str, text: &str) {
    let (config, topics) = settings(text);
    let mut replay = Replay::new(name, config, topics);
    let mut reading_records = false;
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        replay.line = number + 1;
        let skipped =
            line.is_empty() || ["#", "config ", "topic "].iter().any(|start| line.starts_with(start));
        if skipped {
            reading_records = false;
        } else if line == "records" {
            reading_records = true;
        } else if reading_records {
            replay.expect_record(line.trim());
        } else {
            let answer = lines.next_if(|(_, next)| next.starts_with("  ")).map_or("", |(_, next)| &next[2..]);
            replay.step(line, answer);
        }
    }
    replay.check_log();
}

fn replay_file(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name);
    replay(name, &std::fs::read_to_string(path).unwrap());
}

macro_rules! transcripts {
    ($($test:ident = $file:literal;)*) => {
        $(#[test] fn $test() { replay_file($file); })*

        #[test]
        fn every_transcript_is_replayed() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
            for file in std::fs::read_dir(folder).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                let classic = name.starts_with("classic-");
                assert!(!classic || [$($file),*].contains(&name.as_str()), "{name} is not replayed");
            }
        }
    };
}

transcripts! {
    one_member_joins_commits_and_leaves = "classic-01-single-member-life.txt";
    a_second_member_joins_and_the_leader_leaves = "classic-02-second-member.txt";
    members_that_do_not_sync_or_rejoin_or_live_are_removed = "classic-03-sync-timeout.txt";
    errors_come_in_kafkas_order = "classic-04-errors.txt";
    static_members_come_back_and_are_fenced = "classic-05-static-membership.txt";
    offsets_are_committed_fetched_and_deleted = "classic-06-offset-commit-fetch.txt";
    groups_are_described_and_listed = "classic-07-describe-list.txt";
    the_first_rebalance_waits_and_a_full_group_refuses = "classic-08-initial-delay-and-size.txt";
}
