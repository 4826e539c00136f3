//! A member of a group that is a process of somebody else's client: it prints what its application is told, one JSON object a
//! line, and all of it goes into the same history as our members' events.
//!
//! It commits after each poll. `KILL`, `STOP` and `CONT` make it crash, stall and go on; `TERM` closes it in order.

use super::Program;
use crate::history::{Callback, CommitResult, End, History, What};
use crate::process::Guarded;
use crate::{Failure, failure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tontine_group::TopicPartition;

/// Starting a JVM on a loaded machine takes its time.
const DEADLINE: Duration = Duration::from_secs(60);

/// A consumer in a group, as a process.
#[derive(Debug)]
pub struct ForeignMember {
    name: Arc<str>,
    process: Guarded,
    history: History,
    /// We have killed it: the end of its output is its end.
    killed: Arc<AtomicBool>,
}

impl ForeignMember {
    /// Starts the member; it joins when its process has come up. Its arguments are the topics and its client's settings.
    pub fn start(
        history: &History,
        name: &str,
        program: &Program,
        topics: &[String],
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let mut arguments = program.arguments.clone();
        arguments.push(topics.join(","));
        arguments.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
        let title = format!("{} member {name}", program.name);
        let (program, environment) = (&program.program, &program.environment);
        let process =
            Guarded::spawn(&title, program, &arguments, environment, Stdio::piped(), Stdio::null())?;
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
    fn the_words_of_a_foreign_member_are_understood() {
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
