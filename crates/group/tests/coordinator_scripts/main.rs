//! Conformance of the coordinator as readable scripts: blocks of commands, `----`, and what happened.
//!
//! `UPDATE=1 cargo test -p tontine-group --test coordinator_scripts` writes down what happens instead of comparing it;
//! read the difference before committing it. Commands:
//!
//! | command | what it does |
//! |---|---|
//! | `config key=value` | a setting of the broker |
//! | `topic t=4` | topic t has 4 partitions |
//! | `join a topics=t+u protocols=range+roundrobin instance=i1 session=10000 rebalance=60000 version=9` | client a joins, or joins again with what changed |
//! | `sync a`, `heartbeat a`, `leave a reason=..`, `disconnect a` | client a does that |
//! | `stabilize` | every client does what a client does until all are stable, at most for 20 s |
//! | `silence a` | client a does nothing any more |
//! | `expire a` | client a falls silent, the others go on, until its session has ended |
//! | `wait 1500` | that many milliseconds pass; clients that are stable send heartbeats |
//! | `kick i1` | an administrator sends an instance away |
//! | `commit a t:0=5`, `fetch`, `delete` | offsets are committed or shown, the group is deleted |
//! | `log waits`, `log appends`, `log fails NOT_ENOUGH_REPLICAS` | how appends go from now on, those that wait too |
//! | `restart` | another coordinator reads the log and takes over |
//! | `describe` | shows the group |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod world;

use client::{Client, GROUP, State};
use std::{collections::BTreeMap, fmt::Write, path::Path, time::Duration};
use tontine_wire::api::{delete_groups::*, leave_group::*, offset_fetch::*};
use world::{LogMode, World};

const HEARTBEAT: Duration = Duration::from_millis(100);

struct Script {
    world: World,
}

impl Script {
    fn run(&mut self, command: &str) {
        let mut words = command.split_whitespace();
        let verb = words.next().unwrap();
        let rest: Vec<&str> = words.collect();
        let first = rest.first().copied().unwrap_or_default();
        match verb {
            "config" => self.config(first),
            "topic" => {
                let (name, partitions) = first.split_once('=').unwrap();
                self.world.topic(name, partitions.parse().unwrap());
            }
            "join" => self.join(first, &rest[1..]),
            "sync" => self.sync(first),
            "heartbeat" => self.heartbeat(first),
            "leave" => {
                let reason = rest[1..].join(" ");
                let client = self.client(first).clone();
                self.world.send(first, 5, client.leave(reason.trim_start_matches("reason=")));
            }
            "disconnect" => self.world.disconnect(first),
            "silence" => self.client(first).state = State::Gone,
            "expire" => self.expire(first),
            "wait" => self.wait(Duration::from_millis(first.parse().unwrap())),
            "stabilize" => self.stabilize(),
            "kick" => self.kick(first),
            "commit" => self.commit(first, rest[1]),
            "fetch" => self.fetch(),
            "delete" => {
                self.world.send(
                    "admin",
                    2,
                    DeleteGroupsRequest { groups_names: vec![GROUP.to_owned()] }.into(),
                );
            }
            "log" => self.log(&rest),
            "restart" => self.world.restart(),
            "describe" => self.world.describe(),
            other => panic!("no such command: {other}"),
        }
        self.world.check_log();
    }

    fn config(&mut self, setting: &str) {
        let (key, value) = setting.split_once('=').unwrap();
        let value: u64 = value.parse().unwrap();
        let config = &mut self.world.config;
        match key {
            "group.initial.rebalance.delay.ms" => {
                config.group_initial_rebalance_delay = Duration::from_millis(value)
            }
            "group.max.size" => config.group_max_size = value as usize,
            "offsets.retention.minutes" => config.offsets_retention = Duration::from_secs(60 * value),
            other => panic!("no such setting: {other}"),
        }
        self.world.restart();
    }

    fn client(&mut self, name: &str) -> &mut Client {
        self.world.clients.entry(name.to_owned()).or_insert_with(|| Client::new(name))
    }

    fn join(&mut self, name: &str, changes: &[&str]) {
        let client = self.client(name);
        for change in changes {
            let (key, value) = change.split_once('=').unwrap();
            let list = || value.split('+').map(str::to_owned).collect();
            match key {
                "topics" => client.topics = list(),
                "protocols" => client.protocols = list(),
                "instance" => client.instance = Some(value.to_owned()),
                "session" => client.session_ms = value.parse().unwrap(),
                "rebalance" => client.rebalance_ms = value.parse().unwrap(),
                "version" => client.version = value.parse().unwrap(),
                "id" => client.id = value.trim_matches('"').to_owned(),
                other => panic!("no such property of a client: {other}"),
            }
        }
        client.state = State::Joining;
        let (version, request) = (client.version, client.join());
        self.world.send(name, version, request);
    }

    fn sync(&mut self, name: &str) {
        let partitions = self.world.partitions();
        let client = self.client(name);
        let request = client.sync(&partitions);
        client.state = State::Syncing;
        self.world.send(name, 5, request);
    }

    fn heartbeat(&mut self, name: &str) {
        let request = self.client(name).heartbeat();
        self.world.send(name, 4, request);
    }

    /// Every client does its next step. Whether one did.
    fn step_all(&mut self) -> bool {
        let mut moved = false;
        for name in self.world.clients.keys().cloned().collect::<Vec<_>>() {
            match self.client(&name).state {
                State::Out => self.join(&name, &[]),
                State::Joined(_) => self.sync(&name),
                State::Stable => {
                    self.heartbeat(&name);
                    moved |= self.client(&name).state != State::Stable;
                    continue;
                }
                State::Joining | State::Syncing | State::Gone => continue,
            }
            moved = true;
        }
        moved
    }

    fn stabilize(&mut self) {
        for _ in 0..200 {
            let steps = (0..1_000).take_while(|_| self.step_all()).count();
            assert!(steps < 1_000, "the clients never come to rest");
            let waiting = |c: &Client| matches!(c.state, State::Joining | State::Syncing);
            if !self.world.clients.values().any(waiting) {
                return;
            }
            self.world.advance(HEARTBEAT);
        }
        self.world.events.push("not stable after 20 s".to_owned());
    }

    /// Time passes; clients that are stable send heartbeats, and take no notice of the answer.
    fn wait(&mut self, duration: Duration) {
        let mut left = duration;
        while !left.is_zero() {
            let step = left.min(HEARTBEAT);
            self.world.advance(step);
            left -= step;
            let stable = self.world.clients.values().filter(|c| c.state == State::Stable);
            for name in stable.map(|c| c.name.clone()).collect::<Vec<_>>() {
                self.heartbeat(&name);
            }
        }
    }

    fn expire(&mut self, name: &str) {
        let client = self.client(name);
        client.state = State::Gone;
        let session = Duration::from_millis(client.session_ms as u64);
        self.wait(session);
    }

    fn kick(&mut self, instance: &str) {
        let member = MemberIdentity { group_instance_id: Some(instance.to_owned()), ..Default::default() };
        let group_id = GROUP.to_owned();
        let request = LeaveGroupRequest { group_id, members: vec![member], ..Default::default() };
        self.world.send("admin", 5, request.into());
    }

    fn commit(&mut self, name: &str, what: &str) {
        let (place, offset) = what.split_once('=').unwrap();
        let (topic, partition) = place.split_once(':').unwrap();
        let request = self.client(name).commit(topic, partition.parse().unwrap(), offset.parse().unwrap());
        self.world.send(name, 9, request);
    }

    fn fetch(&mut self) {
        let group = OffsetFetchRequestGroup { group_id: GROUP.to_owned(), ..Default::default() };
        self.world.send("admin", 9, OffsetFetchRequest { groups: vec![group], ..Default::default() }.into());
    }

    fn log(&mut self, words: &[&str]) {
        let mode = match words[0] {
            "appends" => LogMode::Appends,
            "waits" => LogMode::Waits,
            "fails" => {
                let code = tontine_wire::error_code::ALL.iter().find(|code| code.name() == Some(words[1]));
                LogMode::Fails(*code.unwrap())
            }
            other => panic!("a log does not {other}"),
        };
        self.world.release(mode);
    }
}

/// Runs a script and writes it again with what happened.
fn rerun(text: &str) -> String {
    let mut script = Script { world: World::new() };
    let mut out = String::new();
    let mut skipping = false;
    for line in text.lines() {
        let blank = line.trim().is_empty();
        if line == "----" {
            writeln!(out, "----").unwrap();
            for event in script.world.events.drain(..) {
                writeln!(out, "{event}").unwrap();
            }
            skipping = true;
        } else if !skipping || blank {
            skipping = false;
            writeln!(out, "{line}").unwrap();
            if !blank && !line.starts_with('#') {
                script.run(line);
            }
        }
    }
    assert!(script.world.events.is_empty(), "the last commands have no ---- behind them");
    out
}

#[test]
fn scripts_happen_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let update = std::env::var_os("UPDATE").is_some();
    let mut different = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let actual = rerun(&text);
        if update {
            std::fs::write(&path, actual).unwrap();
        } else if actual != text {
            different.insert(path, first_difference(&text, &actual));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

fn first_difference(expected: &str, actual: &str) -> String {
    let lines = expected.lines().zip(actual.lines()).enumerate();
    let mut different = lines.filter(|(_, (expected, actual))| expected != actual);
    match different.next() {
        Some((number, (expected, actual))) => {
            format!("line {}: written `{expected}`, happened `{actual}`", number + 1)
        }
        None => "one is longer".to_owned(),
    }
}
