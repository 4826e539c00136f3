//! Java consumers as members: `java/GroupMember.java`, compiled once into the cache, each in a JVM of its own.

use crate::apache::{Jars, java_arguments};
use crate::foreign::{ForeignMember, Program, crc};
use crate::history::History;
use crate::{Failure, failure};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SOURCE: &str = include_str!("../java/GroupMember.java");
const CLASS: &str = "GroupMember";

/// A Java consumer in a group.
#[derive(Debug)]
pub struct JavaMember;

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
    pub fn start(history: &History, name: &str, settings: &JavaSettings) -> Result<ForeignMember, Failure> {
        let jars = Jars::resolve()?;
        let classes = compiled(&jars)?;
        let mut arguments = java_arguments(&jars)?;
        arguments.push(CLASS.to_owned());
        let environment = vec![("CLASSPATH", jars.class_path_with(&classes))];
        let program = Program { name: "Java", program: "java".to_owned(), arguments, environment };
        ForeignMember::start(history, name, &program, &settings.topics, &settings.settings)
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
