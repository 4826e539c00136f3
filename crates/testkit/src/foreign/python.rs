//! librdkafka, as PyPI has it inside of confluent-kafka.

use super::{ForeignMember, Missing, Program, clients, run};
use crate::cache::Shelf;
use crate::history::History;
use crate::{Failure, failure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// With librdkafka 2.16.0 in it.
pub const CONFLUENT_KAFKA_VERSION: &str = "2.16.1";

/// The scenarios of confluent-kafka; the name of one is the argument.
pub fn python() -> Result<Program, Missing> {
    module("scenarios")
}

fn module(name: &str) -> Result<Program, Missing> {
    static READY: OnceLock<Result<PathBuf, Missing>> = OnceLock::new();
    let packages = READY.get_or_init(packages).clone()?;
    let path = format!("{}:{}", clients("python").display(), packages.display());
    Ok(Program {
        name: "confluent-kafka",
        program: "python3".to_owned(),
        arguments: vec!["-m".to_owned(), name.to_owned()],
        environment: vec![("PYTHONPATH", path), ("PYTHONDONTWRITEBYTECODE", "1".to_owned())],
    })
}

/// The folder of the installed package. A folder of its own needs no virtual environment, only pip.
fn packages() -> Result<PathBuf, Missing> {
    let tools = run(Command::new("python3").args(["-m", "pip", "--version"]));
    tools.map_err(|e| format!("no python3 with pip on the PATH ({e})"))?;
    let name = format!("confluent-kafka-{CONFLUENT_KAFKA_VERSION}");
    let made = Shelf::named("clients/python").and_then(|shelf| shelf.once(&name, install));
    made.map_err(|e| format!("confluent-kafka {CONFLUENT_KAFKA_VERSION} cannot be had: {e}"))
}

fn install(folder: &Path) -> Result<(), Failure> {
    let package = format!("confluent-kafka=={CONFLUENT_KAFKA_VERSION}");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    pip.arg("--target").arg(folder).arg(package);
    run(&mut pip)?;
    // One that cannot be loaded (another libc) is not one.
    run(Command::new("python3").args(["-c", "import confluent_kafka"]).env("PYTHONPATH", folder)).map(drop)
}

/// What a librdkafka member is started with.
#[derive(Debug, Clone)]
pub struct LibrdkafkaSettings {
    settings: BTreeMap<String, String>,
    topics: Vec<String>,
}

impl LibrdkafkaSettings {
    /// A member of `group` that reads `topics` from their beginning.
    pub fn new(bootstrap_servers: &str, group: &str, topics: &[&str]) -> Self {
        let settings = [
            ("bootstrap.servers", bootstrap_servers),
            ("group.id", group),
            ("enable.auto.commit", "false"),
            ("auto.offset.reset", "earliest"),
            ("check.crcs", "true"),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Self { settings: settings.into(), topics: topics.iter().map(ToString::to_string).collect() }
    }

    /// Any setting of librdkafka.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Starts the member; it joins when its process has come up.
    pub fn start(&self, history: &History, name: &str) -> Result<ForeignMember, Failure> {
        let program = module("member").map_err(|missing| failure!("{missing}"))?;
        ForeignMember::start(history, name, &program, &self.topics, &self.settings)
    }
}
