//! One node of Apache Kafka in combined mode: its properties, its storage, its process.

use super::jars::Jars;
use crate::process::Guarded;
use crate::{Failure, failure};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a node may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(20);

/// Ports outside of the range that systems hand out by themselves, so that a free one stays free.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 10_000;

/// The ports and folders of one node; running or not.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: i32,
    pub(super) port: u16,
    pub(super) controller_port: u16,
    folder: PathBuf,
    process: Option<Guarded>,
}

impl Node {
    /// A node with free ports, not yet started.
    pub(super) fn new(id: i32, folder: PathBuf) -> Result<Self, Failure> {
        let port = free_port()?;
        let controller_port = free_port()?;
        Ok(Self { id, port, controller_port, folder, process: None })
    }

    /// Where clients connect.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Lays out the storage folder and the properties.
    pub(super) fn prepare(
        &self,
        jars: &Jars,
        cluster_id: &str,
        voters: &str,
        nodes: usize,
    ) -> Result<(), Failure> {
        let data = self.folder.join("data");
        copy_folder(&formatted(jars)?, &data)?;
        let directory_id = random_uuid();
        let meta =
            format!("version=1\ncluster.id={cluster_id}\nnode.id={}\ndirectory.id={directory_id}\n", self.id);
        write(&data.join("meta.properties"), &meta)?;
        write(&self.folder.join("node.properties"), &self.properties(&data, voters, nodes))
    }

    fn properties(&self, data: &Path, voters: &str, nodes: usize) -> String {
        let (id, port, controller_port) = (self.id, self.port, self.controller_port);
        let (replicas, in_sync) = if nodes > 1 { (3, 2) } else { (1, 1) };
        // Of three, a dead one should be missed soon. A lone one has nobody to hand over to, and must not be given up
        // because the machine is busy.
        let session = if nodes > 1 { 5_000 } else { 120_000 };
        let data = data.display();
        format!(
            "process.roles=broker,controller\n\
             node.id={id}\n\
             controller.quorum.voters={voters}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             controller.listener.names=CONTROLLER\n\
             inter.broker.listener.name=PLAINTEXT\n\
             log.dirs={data}\n\
             broker.rack=rack-{id}\n\
             default.replication.factor={replicas}\n\
             min.insync.replicas={in_sync}\n\
             offsets.topic.replication.factor={replicas}\n\
             offsets.topic.num.partitions=3\n\
             transaction.state.log.replication.factor={replicas}\n\
             transaction.state.log.min.isr={in_sync}\n\
             transaction.state.log.num.partitions=3\n\
             share.coordinator.state.topic.replication.factor={replicas}\n\
             share.coordinator.state.topic.min.isr={in_sync}\n\
             group.initial.rebalance.delay.ms=0\n\
             group.min.session.timeout.ms=500\n\
             group.consumer.min.heartbeat.interval.ms=100\n\
             group.consumer.min.session.timeout.ms=1000\n\
             auto.create.topics.enable=false\n\
             auto.leader.rebalance.enable=false\n\
             broker.session.timeout.ms={session}\n\
             broker.heartbeat.interval.ms=500\n\
             controller.quorum.fetch.timeout.ms=4000\n"
        )
    }

    /// Starts the process, unless it runs.
    pub(super) fn start(&mut self, jars: &Jars) -> Result<(), Failure> {
        if self.is_running() {
            return Ok(());
        }
        let log = self.folder.join("log");
        let open = || File::options().create(true).append(true).open(&log);
        let (out, err) =
            open().and_then(|out| Ok((out, open()?))).map_err(|e| failure!("{}: {e}", log.display()))?;
        let mut arguments = java_arguments(jars)?;
        arguments.push("kafka.Kafka".into());
        arguments.push(self.folder.join("node.properties").display().to_string());
        let environment = [("CLASSPATH", jars.class_path())];
        let name = format!("Apache Kafka node {}", self.id);
        let process =
            Guarded::spawn(&name, "java", &arguments, &environment, Stdio::from(out), Stdio::from(err))?;
        self.process = Some(process);
        Ok(())
    }

    /// Whether the process is there.
    pub(super) fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.exited().is_none())
    }

    /// Takes the process, to end it without holding the node.
    pub(super) fn take_process(&mut self) -> Option<Guarded> {
        self.process.take()
    }

    /// The last lines of the log, for a failure message.
    pub(super) fn log_tail(&self) -> String {
        let text = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

/// Ends a node's process in an orderly way, by force when it does not.
pub(super) async fn end_in_order(process: Guarded) -> Result<(), Failure> {
    match process.end("TERM", GRACE).await {
        Ok(_) => Ok(()),
        Err(_) => process.end("KILL", GRACE).await.map(drop),
    }
}

/// The arguments of every JVM here: small, quick to start, quiet.
pub(crate) fn java_arguments(jars: &Jars) -> Result<Vec<String>, Failure> {
    let logging = jars.once("logging", |_, folder| {
        let text = "status=error\nappender.console.type=Console\nappender.console.name=console\n\
                    appender.console.target=SYSTEM_ERR\nappender.console.layout.type=PatternLayout\n\
                    appender.console.layout.pattern=%d{ISO8601} %p %c{1} %m%n\n\
                    rootLogger.level=WARN\nrootLogger.appenderRef.console.ref=console\n";
        write(&folder.join("log4j2.properties"), text)
    })?;
    let fixed = ["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];
    let mut arguments: Vec<String> = fixed.iter().map(ToString::to_string).collect();
    arguments.push(format!("-Dlog4j2.configurationFile={}", logging.join("log4j2.properties").display()));
    Ok(arguments)
}

/// A formatted storage folder to copy from. Only the identity in `meta.properties` differs from node to node.
fn formatted(jars: &Jars) -> Result<PathBuf, Failure> {
    let arguments = java_arguments(jars)?;
    jars.once("formatted", |jars, folder| {
        let properties = folder.join("format.properties");
        let data = folder.display();
        write(
            &properties,
            &format!(
                "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n\
                 listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n\
                 controller.listener.names=CONTROLLER\nlog.dirs={data}\n"
            ),
        )?;
        let output = Command::new("java")
            .args(&arguments)
            .args(["kafka.tools.StorageTool", "format", "-t", &random_uuid(), "-c"])
            .arg(&properties)
            .env("CLASSPATH", jars.class_path())
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failure!("cannot run java: {e}"))?;
        let _ = fs::remove_file(&properties);
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(failure!("StorageTool failed: {}", said.trim())) }
    })
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    let copy = || -> std::io::Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                fs::create_dir_all(&target)?;
                for file in fs::read_dir(entry.path())? {
                    let file = file?;
                    fs::copy(file.path(), target.join(file.file_name()))?;
                }
            } else {
                fs::copy(entry.path(), target)?;
            }
        }
        Ok(())
    };
    copy().map_err(|e| failure!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| failure!("cannot write {}: {e}", path.display()))
}

/// A random identifier, written as Kafka writes it.
pub(super) fn random_uuid() -> String {
    let bits = (u128::from(crate::random()) << 64) | u128::from(crate::random());
    // A leading dash would be read as an option by the tools.
    tontine_wire::Uuid::from_u128(bits >> 1).to_string()
}

fn free_port() -> Result<u16, Failure> {
    let start = crate::random();
    (0..1000)
        .map(|step| FIRST_PORT + (start.wrapping_add(step * 7) % u64::from(PORTS)) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| failure!("no free port between {FIRST_PORT} and {}", FIRST_PORT + PORTS))
}
