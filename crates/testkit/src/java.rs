//! Java consumers as members: `java/GroupMember.java`, compiled once into the cache, each in a JVM of its own.
//!
//! A Java member writes into the same history as ours. It commits after each poll. `KILL`, `STOP` and `CONT` make it crash,
//! stall and go on.

use crate::apache::{Jars, java_arguments};
use crate::history::{Callback, CommitResult, End, History, What};
use crate::process::Guarded;
use crate::{Failure, failure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tontine_group::TopicPartition;

const SOURCE: &str = include_str!("../java/GroupMember.java");
const CLASS: &str = "GroupMember";
/// Starting a JVM on a loaded machine takes its time.
const DEADLINE: Duration = Duration::from_secs(60);

/// A Java consumer in a group.
#[derive(Debug)]
pub struct JavaMember {
    name: Arc<str>,
    process: Guarded,
    history: History,
    /// We have killed it: the end of its output is its end.
    killed: Arc<AtomicBool>,
}

/// What a Java member is started with.
#[derive(Debug, Clone)]
pub struct JavaSettings {
    settings: BTreeMap<String, String>,
    topics: Vec<String>,
}

impl JavaSettings {
    /// A member of `group` that reads `topics` from their beginning.
    pub fn new(bootstrap_servers: &str, group: &str, topics: &[&str]) -> Self {
        let settings = [
            ("bootstrap.servers", bootstrap_servers),
            ("group.id", group),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "earliest"),
            ("heartbeat.interval.ms", "300"),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self { settings: settings.into(), topics: topics.iter().map(ToString::to_string).collect() }
    }

    /// Any setting of the Java consumer.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Speaks the consumer protocol, which has no place for some settings.
    #[must_use]
    pub fn consumer_protocol(mut self) -> Self {
        for key in ["session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"] {
            self.settings.remove(key);
        }
        self.set("group.protocol", "consumer")
    }

    /// An assignor by the name that members vote with: `range`, `roundrobin`, `sticky`, `cooperative-sticky`.
    #[must_use]
    pub fn assignor(self, name: &str) -> Self {
        let class = match name {
            "range" => "RangeAssignor",
            "roundrobin" => "RoundRobinAssignor",
            "sticky" => "StickyAssignor",
            "cooperative-sticky" => "CooperativeStickyAssignor",
            other => other,
        };
        self.set("partition.assignment.strategy", &format!("org.apache.kafka.clients.consumer.{class}"))
    }
}

impl JavaMember {
    /// Starts the member; it joins when its JVM has come up.
    pub fn start(history: &History, name: &str, settings: &JavaSettings) -> Result<Self, Failure> {
        let jars = Jars::resolve()?;
        let classes = compiled(&jars)?;
        let mut arguments = java_arguments(&jars)?;
        arguments.push(CLASS.to_owned());
        arguments.push(settings.topics.join(","));
        arguments.extend(settings.settings.iter().map(|(key, value)| format!("{key}={value}")));
        let environment = [("CLASSPATH", jars.class_path_with(&classes))];
        let title = format!("Java member {name}");
        let process =
            Guarded::spawn(&title, "java", &arguments, &environment, Stdio::piped(), Stdio::null())?;
        let stdout = process.take_stdout().ok_or_else(|| failure!("{title} has no output"))?;
        let member: Arc<str> = name.into();
        let (writer, who) = (history.clone(), member.clone());
        let killed = Arc::new(AtomicBool::new(false));
        let by_us = killed.clone();
        std::thread::spawn(move || {
            read_events(stdout, &writer, &who);
            // What it said before it died came first, however late it was read.
            if by_us.load(Ordering::SeqCst) {
                writer.write(&who, What::Ended(End::Killed));
            }
        });
        Ok(Self { name: member, process, history: history.clone(), killed })
    }

    /// The member's name in the history.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes the member in order and waits until its process has ended.
    pub async fn close(&self) -> Result<(), Failure> {
        self.process.end("TERM", DEADLINE).await?;
        self.until_ended().await
    }

    /// Kills the member: no callback, no leave.
    pub async fn kill(&self) -> Result<(), Failure> {
        self.killed.store(true, Ordering::SeqCst);
        self.process.end("KILL", DEADLINE).await?;
        self.until_ended().await
    }

    /// Stops the process where it stands: no heartbeats, connections stay open.
    pub fn freeze(&self) -> Result<(), Failure> {
        self.history.write(&self.name, What::Note("frozen".into()));
        self.process.signal("STOP")
    }

    /// Lets the process go on.
    pub fn thaw(&self) -> Result<(), Failure> {
        self.history.write(&self.name, What::Note("goes on".into()));
        self.process.signal("CONT")
    }

    async fn until_ended(&self) -> Result<(), Failure> {
        let what = format!("{} has said that it is closed", self.name);
        self.history
            .until(&what, DEADLINE, |events| {
                events.iter().any(|e| e.member == self.name && matches!(e.what, What::Ended(_))).then_some(())
            })
            .await
    }
}

/// The folder with the compiled members; its name changes with the source.
fn compiled(jars: &Jars) -> Result<PathBuf, Failure> {
    let name = format!("members-{:08x}", crc(SOURCE));
    jars.once(&name, |jars, folder| {
        let source = folder.join(format!("{CLASS}.java"));
        std::fs::write(&source, SOURCE).map_err(|e| failure!("cannot write {}: {e}", source.display()))?;
        let output = Command::new("javac")
            .arg("-d")
            .arg(folder)
            .arg(&source)
            .env("CLASSPATH", jars.class_path())
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failure!("cannot run javac: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(failure!("javac failed: {}", said.trim())) }
    })
}

/// A small hash of a text, to see that it has changed (FNV-1a).
fn crc(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn read_events(stdout: ChildStdout, history: &History, member: &Arc<str>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
        let micros = value["at"].as_u64().unwrap_or_default();
        if let Some(what) = parse(&value) {
            history.write_at(SystemTime::UNIX_EPOCH + Duration::from_micros(micros), member, what);
        }
    }
}

fn parse(value: &Value) -> Option<What> {
    Some(match value["event"].as_str()? {
        "started" => What::Note("started".to_owned()),
        "called" => What::Called(callback(value)?, partitions(&value["partitions"])),
        "returned" => What::Returned(callback(value)?),
        "delivered" => {
            let offsets = value["offsets"].as_array()?.iter().filter_map(Value::as_i64).collect();
            What::Delivered(partition(value["partition"].as_str()?)?, offsets)
        }
        "commit_sent" => What::CommitSent(offsets(&value["offsets"])),
        "commit_ended" => What::CommitEnded(offsets(&value["offsets"]), commit_result(value)),
        "failed" => What::Failed(value["error"].as_str()?.to_owned()),
        "closed" => What::Ended(End::Closed),
        _ => return None,
    })
}

fn callback(value: &Value) -> Option<Callback> {
    match value["callback"].as_str()? {
        "assigned" => Some(Callback::Assigned),
        "revoked" => Some(Callback::Revoked),
        "lost" => Some(Callback::Lost),
        _ => None,
    }
}

fn commit_result(value: &Value) -> CommitResult {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    match (text("refused"), text("unknown")) {
        (Some(refused), _) => CommitResult::Refused(refused),
        (None, Some(unknown)) => CommitResult::Unknown(unknown),
        (None, None) => CommitResult::Stored,
    }
}

/// `topic-0`; the topic may have dashes itself.
fn partition(text: &str) -> Option<TopicPartition> {
    let (topic, number) = text.rsplit_once('-')?;
    Some(TopicPartition::new(topic, number.parse().ok()?))
}

fn partitions(value: &Value) -> Vec<TopicPartition> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.filter_map(partition).collect()
}

fn offsets(value: &Value) -> BTreeMap<TopicPartition, i64> {
    let rows = value.as_object().into_iter().flatten();
    rows.filter_map(|(text, offset)| Some((partition(text)?, offset.as_i64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> What {
        parse(&serde_json::from_str(line).unwrap()).unwrap()
    }

    #[test]
    fn the_words_of_a_java_member_are_understood() {
        let tp = TopicPartition::new("my-topic", 3);
        let called = read(r#"{"at":1,"event":"called","callback":"lost","partitions":["my-topic-3"]}"#);
        assert_eq!(called, What::Called(Callback::Lost, vec![tp.clone()]));
        let delivered = read(r#"{"at":1,"event":"delivered","partition":"my-topic-3","offsets":[4,5]}"#);
        assert_eq!(delivered, What::Delivered(tp.clone(), vec![4, 5]));
        let ended = read(r#"{"at":1,"event":"commit_ended","offsets":{"my-topic-3":6},"refused":"no"}"#);
        let refused = CommitResult::Refused("no".to_owned());
        assert_eq!(ended, What::CommitEnded(BTreeMap::from([(tp, 6)]), refused));
    }
}
