//! A member of the demo's group, seen from outside: a process that tells what it sees, one line for each event.
//!
//! Members are processes so that one can be killed as it happens in life: without a word to anybody. When the demo itself
//! goes away, their standard input ends, and they leave.

use super::{
    board::Board,
    history::{Event, MemberId, What, letter},
};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    task::JoinHandle,
};

/// How long a member may take to leave.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running member.
pub(crate) struct Member {
    /// Its number.
    pub(crate) id: MemberId,
    child: Child,
    reading: JoinHandle<()>,
}

impl Member {
    /// Starts a member that reads `topic` with these settings.
    pub(crate) fn start(
        id: MemberId,
        topic: &str,
        settings: &[(String, String)],
        board: Board,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["demo-member", "--id", &id.to_string(), "--topic", topic]);
        command.args(["--began-us", &board.clock().unix_us().to_string()]);
        for (key, value) in settings {
            command.args(["-X", &format!("{key}={value}")]);
        }
        command.args(["-X", &format!("client.id={}", letter(id))]);
        // Ctrl-C goes to everything that a terminal runs; members leave when the demo tells them to.
        #[cfg(unix)]
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdout =
            child.stdout.take().ok_or_else(|| std::io::Error::other("a member without standard output"))?;
        let reading = tokio::spawn(read(stdout, board));
        Ok(Self { id, child, reading })
    }

    /// An error when its process has ended by itself; it has said why.
    pub(crate) fn still_runs(&mut self) -> std::io::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                Err(std::io::Error::other(format!("member {} has ended: {status}", letter(self.id))))
            }
        }
    }

    /// Lets the member finish its batch, commit and leave. One that takes too long is killed: whoever waits wants to go.
    pub(crate) async fn leave(mut self) {
        drop(self.child.stdin.take());
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        let _ = self.reading.await;
    }

    /// Kills the process.
    pub(crate) async fn kill(mut self, board: &Board) {
        let _ = self.child.kill().await;
        let _ = self.reading.await;
        board.write(self.id, What::Killed);
    }
}

/// Writes on the board what the member says. A last line that a kill cut off says nothing.
async fn read(stdout: ChildStdout, board: Board) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(event) = serde_json::from_str::<Event>(&line) {
            board.record(event);
        }
    }
}
