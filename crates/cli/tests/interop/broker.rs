//! `tontine broker` as a process that ends and comes back: same address, same data directory.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tontine_testkit::process::Guarded;
use tontine_testkit::{Failure, ensure_eq, failure, wait};

/// For what never comes, not for what is slow.
const DEADLINE: Duration = Duration::from_secs(60);

/// Short times for members, as tests want them; what belongs to a client of its own is in its program.
const SETTINGS: [&str; 4] = [
    "group.min.session.timeout.ms=500",
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=300",
    "group.consumer.min.session.timeout.ms=1000",
];

/// How often another port is tried, and what a broker says whose port is taken.
const ATTEMPTS: usize = 10;
const TAKEN: &str = "another process listens there";

/// A running broker.
pub struct Broker {
    folder: tempfile::TempDir,
    port: u16,
    process: Option<Guarded>,
}

/// How a broker ends.
#[derive(Clone, Copy)]
pub enum Ending {
    /// SIGTERM: it ends in good order, which its exit code says.
    Graceful,
    /// SIGKILL.
    Kill,
}

impl Broker {
    /// Starts a broker on an empty data directory.
    pub async fn start() -> Result<Self, Failure> {
        let folder = tempfile::TempDir::with_prefix("tontine-interop-");
        let folder = folder.map_err(|e| failure!("no temporary folder: {e}"))?;
        let mut broker = Self { folder, port: free_port()?, process: None };
        // Somebody else may take the port in the moment before the broker does.
        for _ in 0..ATTEMPTS {
            match broker.run().await {
                Err(_) if broker.said().contains(TAKEN) => {
                    broker.end(Ending::Kill).await?;
                    std::fs::write(broker.log(), "").map_err(|e| failure!("no log: {e}"))?;
                    broker.port = free_port()?;
                }
                ran => return ran.map(|()| broker),
            }
        }
        Err(failure!("no port stays free"))
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends it and starts it again.
    pub async fn restart(&mut self, how: Ending) -> Result<(), Failure> {
        self.end(how).await?;
        self.run().await
    }

    /// Ends it.
    pub async fn end(&mut self, how: Ending) -> Result<(), Failure> {
        let Some(process) = self.process.take() else { return Ok(()) };
        match how {
            Ending::Kill => process.end("KILL", DEADLINE).await.map(drop),
            Ending::Graceful => {
                let status = process.end("TERM", DEADLINE).await?;
                ensure_eq!(status.code(), Some(0), "how the broker ended; it said: {}", self.said());
                Ok(())
            }
        }
    }

    async fn run(&mut self) -> Result<(), Failure> {
        let mut arguments = vec!["broker".to_owned(), "--listen".to_owned(), self.address()];
        arguments.extend(["--data-dir".to_owned(), self.folder().join("data").display().to_string()]);
        arguments.extend(SETTINGS.iter().flat_map(|setting| ["--config".to_owned(), (*setting).to_owned()]));
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        let log = log.map_err(|e| failure!("no log: {e}"))?;
        let program = env!("CARGO_BIN_EXE_tontine");
        let process = Guarded::spawn("broker", program, &arguments, &[], Stdio::piped(), Stdio::from(log))?;
        let stdout = process.take_stdout().ok_or_else(|| failure!("the broker has no output"))?;
        self.process = Some(process);
        let stdout = tokio::process::ChildStdout::from_std(stdout).map_err(|e| failure!("{e}"))?;
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        let read = wait::within("the broker listens", DEADLINE, stdout.read_line(&mut line)).await?;
        read.map_err(|e| failure!("{e}"))?;
        ensure_eq!(
            line.trim(),
            format!("listening on {}", self.address()),
            "the broker's line; it said: {}",
            self.said()
        );
        Ok(())
    }

    /// What it said on standard error, in all its lives.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    fn log(&self) -> PathBuf {
        self.folder().join("broker.log")
    }
}

/// A port outside of the range that systems hand out by themselves, so that it is still free at the next start.
fn free_port() -> Result<u16, Failure> {
    let mut candidates = (0..200).map(|_| 10_000 + (tontine_testkit::random() % 10_000) as u16);
    let free = candidates.find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| failure!("no free port"))
}
