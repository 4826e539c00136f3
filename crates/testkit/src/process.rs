//! A child process that cannot outlive the tests.
//!
//! The child runs below a small shell which reads its standard input, a pipe held by this process. Each line is a signal
//! for the child; the end of the pipe is SIGKILL. The pipe ends when the [`Guarded`] is dropped, and also when this process
//! dies in whatever way, so neither a panic nor a killed test binary leaves a JVM behind. The shell has a process group of
//! its own: a Ctrl-C at the terminal reaches the tests only, which then take the child with them.

use crate::{Failure, failure, wait};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Runs the words after the script, obeys lines of signals, and kills at the end of the pipe.
const KEEPER: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ while read -r signal <&3; do kill -"$signal" "$child" 2>/dev/null; done; kill -KILL "$child" 2>/dev/null; } >/dev/null &
keeper=$!
wait "$child"
code=$?
kill -KILL "$keeper" 2>/dev/null
exit "$code"
"#;

/// A running child; killed when dropped.
#[derive(Debug)]
pub struct Guarded {
    name: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    child: Child,
    signals: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
}

impl Guarded {
    /// Starts `program` with `arguments`. `stdout` and `stderr` say where its words go.
    pub fn spawn(
        name: &str,
        program: &str,
        arguments: &[String],
        environment: &[(&str, String)],
        stdout: Stdio,
        stderr: Stdio,
    ) -> Result<Self, Failure> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(KEEPER)
            .arg(name)
            .arg(program)
            .args(arguments)
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(|e| failure!("cannot start {name}: {e}"))?;
        let inner = Inner { signals: child.stdin.take(), stdout: child.stdout.take(), child };
        Ok(Self { name: name.to_owned(), inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child's standard output, once, when it was asked for as a pipe.
    pub fn take_stdout(&self) -> Option<ChildStdout> {
        self.inner().stdout.take()
    }

    /// Sends a signal by its name: `TERM`, `KILL`, `STOP`, `CONT`.
    pub fn signal(&self, signal: &str) -> Result<(), Failure> {
        let mut inner = self.inner();
        let Some(pipe) = inner.signals.as_mut() else { return Ok(()) };
        writeln!(pipe, "{signal}").map_err(|e| failure!("{} is gone already: {e}", self.name))
    }

    /// How the child ended, when it has.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.inner().child.try_wait().ok().flatten()
    }

    /// Sends a signal and waits until the child has ended.
    pub async fn end(&self, signal: &str, deadline: Duration) -> Result<ExitStatus, Failure> {
        if let Some(status) = self.exited() {
            return Ok(status);
        }
        self.signal(signal)?;
        let what = format!("the end of {} after SIG{signal}", self.name);
        wait::until(&what, deadline, async || self.exited()).await
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let mut inner = self.inner();
        inner.signals = None;
        // The keeper kills at once when the pipe ends, so this is short.
        let _ = inner.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn sleeper() -> Guarded {
        let script = "echo $$; exec sleep 1000".to_owned();
        Guarded::spawn("sleeper", "sh", &["-c".into(), script], &[], Stdio::piped(), Stdio::null()).unwrap()
    }

    fn pid(guarded: &Guarded) -> String {
        let mut stdout = guarded.take_stdout().unwrap();
        let mut text = Vec::new();
        let mut byte = [0];
        while stdout.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            text.push(byte[0]);
        }
        String::from_utf8(text).unwrap()
    }

    fn alive(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn a_dropped_child_is_dead() {
        let child = sleeper();
        let pid = pid(&child);
        assert!(alive(&pid));
        drop(child);
        assert!(!alive(&pid));
    }

    #[tokio::test]
    async fn a_signal_reaches_the_child_and_its_end_is_seen() {
        let child = sleeper();
        pid(&child);
        assert!(child.exited().is_none());
        let status = child.end("TERM", Duration::from_secs(5)).await.unwrap();
        assert_eq!(status.code(), Some(128 + 15));
    }
}
