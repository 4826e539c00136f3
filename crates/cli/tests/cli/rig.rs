//! The binary, run to its end or for a while, and a broker process of each test's own.

use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// Long enough for anything that ends at all, on a machine that has much else to do.
pub const LONG: Duration = Duration::from_secs(90);

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// The standard output of a run that went well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// The standard output of a run that went well, as JSON.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// Ended with this code, said this on standard error, and nothing on standard output.
    #[track_caller]
    pub fn failed(self, code: i32, saying: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(saying), "not said: {saying}\n{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
    }
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tontine"));
    command.args(arguments).env_remove("TONTINE_BOOTSTRAP_SERVER").env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Runs to the end, without standard input.
pub async fn run(arguments: &[&str]) -> Ran {
    ended(command(arguments).spawn().unwrap()).await
}

pub async fn ended(child: Child) -> Ran {
    let output = timeout(LONG, child.wait_with_output()).await.expect("it ends in time").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub fn signal(child: &Child, name: &str) {
    let id = child.id().expect("it still runs").to_string();
    assert!(std::process::Command::new("kill").args([format!("-{name}"), id]).status().unwrap().success());
}

/// The next line that a process says.
pub async fn line(stdout: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    timeout(LONG, stdout.read_line(&mut line)).await.expect("a line in time").unwrap();
    line
}

/// `tontine broker` as a process, which does not outlive the test.
pub struct Broker {
    pub process: Child,
    pub address: String,
}

impl Broker {
    pub async fn start(arguments: &[&str]) -> Self {
        let mut process = command(&["broker", "--listen", "127.0.0.1:0"]).args(arguments).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let said = line(&mut stdout).await;
        let address = said.strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {said:?}"));
        Self { process, address: address.trim().to_owned() }
    }

    /// A command that talks to this broker.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.args(["-b", &self.address]);
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        ended(self.command(arguments).spawn().unwrap()).await
    }

    /// The same with standard input.
    pub async fn feed(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may end without reading everything.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        ended(child).await
    }
}
