//! What Apache Kafka 4.4.0 was seen to answer, replayed against our coordinator in virtual time: the same answers with
//! the same meaning, the same requests parked for as long, the same records in the log.
//!
//! A transcript is a text in `tests/transcripts`: settings and topics first, then requests with the time they were sent
//! (`@43 b JoinGroup v9 ..`), each with its answer on the next line. A request with a number (`#6`) was answered later
//! (`@350 answer #6`); `parked #6 for 300 ms` says that it was not until then. `records` are those that had been written
//! since the last time somebody looked; the look may have missed the newest.
//!
//! Where we do something else on purpose a line `ours: ..` stands below what was seen, and a comment says why. `UPDATE=1`
//! writes such lines; each needs its reason before it is committed.

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
    coordinator::{ClientInfo, Coordinator, CoordinatorConfig, MigrationPolicy, Output, Record, Ticket},
    topics::{Topic, Topics},
};
use tontine_wire::{Uuid, api::Response};

/// No record, where Kafka writes one.
const NOTHING: &str = "nothing";

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
    /// What happened instead of what was seen.
    noted: Vec<String>,
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
            noted: Vec::new(),
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
                        if read.group() == "g" {
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
        if self.names.matches(expected, &actual) {
            return;
        }
        self.different(vec![actual], expected);
    }

    fn expect_records(&mut self, expected: &[&str], ours: &[&str]) {
        if !ours.is_empty() {
            let actual: Vec<String> = self.unseen.drain(..).collect();
            let same = ours
                .iter()
                .filter(|line| **line != NOTHING)
                .map(|line| self.names.fill(line))
                .eq(actual.iter().cloned());
            if !same {
                self.different(actual, &ours.join("\n"));
            }
        } else {
            let mut unseen = self.unseen.clone();
            for line in expected {
                if !self.expect_record(&mut unseen, line) {
                    let mut actual: Vec<String> = self.unseen.drain(..).collect();
                    if actual.is_empty() {
                        actual.push(NOTHING.to_owned());
                    }
                    return self.different(actual, line);
                }
            }
            self.unseen = unseen;
        }
        self.check_log();
    }

    fn expect_record(&mut self, unseen: &mut VecDeque<String>, expected: &str) -> bool {
        // Members come in no order: any of the targets that are written together will do.
        let targets = unseen.iter().take_while(|line| line.starts_with("Target ")).count();
        let same_target = |line: &String| self.names.fill(expected) == *line;
        let place = unseen.iter().take(targets).position(same_target).unwrap_or(0);
        let actual = unseen.remove(place).unwrap_or_default();
        self.names.matches(expected, &actual)
    }

    /// Something else happened than was seen: noted when transcripts are brought up to date, wrong otherwise.
    fn different(&mut self, ours: Vec<String>, expected: &str) {
        if std::env::var_os("UPDATE").is_some() {
            self.noted.extend(ours);
            return;
        }
        panic!(
            "{}\n  seen: {}\n  ours: {}",
            self.place(),
            self.names.fill(expected),
            ours.join("\n        ")
        );
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
        if client == "topic" {
            change_topic(&mut self.topics, rest[0]);
            return self.coordinator.handle_topics(self.now, &self.topics);
        }
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
    let mut config = CoordinatorConfig {
        consumer_assignment_interval: Duration::from_secs(1),
        ..CoordinatorConfig::default()
    };
    let mut topics = Topics::new();
    for line in text.lines() {
        if let Some((key, value)) = line.strip_prefix("config ").and_then(|line| line.split_once('=')) {
            if key == "group.consumer.migration.policy" {
                assert_eq!(value, "disabled");
                config.consumer_migration_policy = MigrationPolicy::Disabled;
                continue;
            }
            let value: u64 = value.parse().unwrap();
            match key {
                "group.initial.rebalance.delay.ms" => {
                    config.group_initial_rebalance_delay = Duration::from_millis(value);
                }
                "group.min.session.timeout.ms" => {
                    config.group_min_session_timeout = Duration::from_millis(value)
                }
                "group.max.size" => config.group_max_size = value as usize,
                "group.consumer.max.size" => config.consumer_group_max_size = value as usize,
                "consumer.assignment.interval.ms" => {
                    config.consumer_assignment_interval = Duration::from_millis(value)
                }
                "consumer.session.timeout.ms" => {
                    config.consumer_session_timeout = Duration::from_millis(value)
                }
                "consumer.heartbeat.interval.ms" => {
                    config.consumer_heartbeat_interval = Duration::from_millis(value)
                }
                other => panic!("no such setting: {other}"),
            }
        }
        if let Some(topic) = line.strip_prefix("topic ") {
            change_topic(&mut topics, topic);
        }
    }
    (config, topics)
}

/// `t2=2`: the topic has 2 partitions now; with none it is gone.
fn change_topic(topics: &mut Topics, line: &str) {
    let (name, partitions) = line.split_once('=').unwrap();
    let partitions = partitions.parse().unwrap();
    let next = Uuid::from_u128(
        0xabc0 + topics.iter().map(|(_, t)| t.id).max().map_or(0, |_| topics.iter().count()) as u128,
    );
    let id = topics.get(name).map_or(next, |topic| topic.id);
    if partitions == 0 {
        topics.remove(name);
    } else {
        topics.insert(name, Topic { id, partitions, racks: Vec::new() });
    }
}

/// The lines below a line: what was seen, and what happens with us instead where that differs on purpose.
fn answers<'a>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut below = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
        below.push(line.trim_start());
    }
    let (ours, seen): (Vec<_>, Vec<_>) = below.into_iter().partition(|line| line.starts_with("ours: "));
    (seen, ours.into_iter().map(|line| line.trim_start_matches("ours: ")).collect())
}

/// Replays a transcript and writes it again, with what happened where that differs.
fn replay(name: &str, text: &str) -> String {
    let (config, topics) = settings(text);
    let mut replay = Replay::new(name, config, topics);
    let mut out = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        replay.line += 1;
        if line.is_empty() || ["#", "config ", "topic "].iter().any(|start| line.starts_with(start)) {
            continue;
        }
        let (seen, ours) = answers(&mut lines);
        if line == "records" {
            replay.expect_records(&seen, &ours);
        } else {
            replay.step(line, ours.first().or(seen.first()).unwrap_or(&""));
        }
        replay.line += seen.len() + ours.len();
        out.extend(seen.iter().map(|line| format!("  {line}")));
        let noted = std::mem::take(&mut replay.noted);
        let ours = if noted.is_empty() { ours.into_iter().map(str::to_owned).collect() } else { noted };
        out.extend(ours.iter().map(|line| format!("  ours: {line}")));
    }
    replay.check_log();
    out.join("\n") + "\n"
}

fn replay_file(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let again = replay(name, &text);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, again).unwrap();
    }
}

macro_rules! transcripts {
    ($($test:ident = $file:literal;)*) => {
        $(#[test] fn $test() { replay_file($file); })*

        #[test]
        fn every_transcript_is_replayed() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
            for file in std::fs::read_dir(folder).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                assert!([$($file),*].contains(&name.as_str()), "{name} is not replayed");
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
    consumer_requests_carry_what_they_must = "consumer-01-validation.txt";
    the_first_consumer_gets_everything = "consumer-02-first-member.txt";
    consumers_let_go_before_others_get = "consumer-03-two-members.txt";
    repeated_heartbeats_harm_nobody = "consumer-04-repeated-heartbeats.txt";
    static_consumers_leave_for_a_while = "consumer-05-static.txt";
    consumers_that_do_not_let_go_are_removed = "consumer-06-rebalance-timeout.txt";
    consumers_subscribe_by_expression = "consumer-07-regex.txt";
    consumers_commit_by_epoch = "consumer-08-commit-fetch.txt";
    consumers_change_what_they_want = "consumer-09-subscription-changes.txt";
    a_classic_group_becomes_a_consumer_group_under_its_members = "migration-01-upgrade-live.txt";
    a_consumer_group_becomes_classic_when_only_classic_members_are_left = "migration-02-downgrade-live.txt";
    some_groups_cannot_become_consumer_groups = "migration-03-refused.txt";
    eager_members_free_everything_when_they_join_again = "migration-04-eager-member.txt";
    nothing_migrates_when_it_must_not = "policy-01-disabled-and-sizes.txt";
    expressions_and_names_go_together = "consumer-10-regex-and-names.txt";
    a_static_consumer_that_stays_away_is_removed = "consumer-11-static-away.txt";
    groups_are_described_and_listed = "classic-07-describe-list.txt";
    the_first_rebalance_waits_and_a_full_group_refuses = "classic-08-initial-delay-and-size.txt";
}
