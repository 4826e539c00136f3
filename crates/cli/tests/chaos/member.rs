//! A member of the group: a `tontine consume` process behind a proxy of its own.

use crate::{Outcome, tally::Tally};
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tontine_testkit::{process::Guarded, proxy::Proxy};

const PATIENCE: Duration = Duration::from_secs(60);

/// A place in the group, taken by one process after the other.
pub struct Member {
    pub name: String,
    pub proxy: Proxy,
    arguments: Vec<String>,
    audit_dir: PathBuf,
    tally: Arc<Tally>,
    inner: Mutex<Inner>,
}

struct Inner {
    process: Option<Guarded>,
    starts: u32,
}

impl Member {
    /// A place with nobody in it.
    pub fn new(
        name: String,
        servers: &str,
        arguments: Vec<String>,
        audit_dir: PathBuf,
        tally: Arc<Tally>,
    ) -> Outcome<Self> {
        let proxy = Proxy::start(servers)?;
        Ok(Self {
            name,
            proxy,
            arguments,
            audit_dir,
            tally,
            inner: Mutex::new(Inner { process: None, starts: 0 }),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process, unless one is running.
    pub fn start(&self) -> Outcome {
        let mut inner = self.inner();
        if inner.process.as_ref().is_some_and(|process| process.exited().is_none()) {
            return Ok(());
        }
        inner.starts += 1;
        let log = self.audit_dir.join(format!("{}-{}.jsonl", self.name, inner.starts));
        let mut arguments = self.arguments.clone();
        arguments.extend(["-b".to_owned(), self.proxy.bootstrap_servers().to_owned()]);
        arguments.extend(["-X".to_owned(), format!("audit.log={}", log.display())]);
        let program = env!("CARGO_BIN_EXE_tontine");
        let process = Guarded::spawn(&self.name, program, &arguments, &[], Stdio::piped(), Stdio::null())?;
        let output = process.take_stdout().ok_or_else(|| format!("{} has no output", self.name))?;
        let tally = self.tally.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let mut fields = line.split('\t').skip(1).map(str::parse::<i64>);
                if let (Some(Ok(partition)), Some(Ok(offset))) = (fields.next(), fields.next()) {
                    tally.delivered(partition as i32, offset);
                }
            }
        });
        inner.process = Some(process);
        Ok(())
    }

    /// Sends the process a signal, if there is one.
    pub fn signal(&self, signal: &str) {
        if let Some(process) = &self.inner().process {
            // Who is gone already needs no signal.
            let _ = process.signal(signal);
        }
    }

    /// Asks the process to close, and waits until it has.
    pub async fn end(&self, signal: &str) -> Outcome {
        let process = self.inner().process.take();
        if let Some(process) = process {
            process.end(signal, PATIENCE).await?;
        }
        Ok(())
    }
}
