//! The broker's address and levers.

use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// For what never comes, not for what is slow.
pub const LONG: Duration = Duration::from_secs(60);

pub fn servers() -> String {
    std::env::var("TONTINE_BOOTSTRAP").unwrap_or_default()
}

/// The broker ends (`graceful` or `kill`), starts again on its data directory, and listens when this returns.
pub async fn restart(how: &str) -> Outcome {
    let stream = TcpStream::connect(std::env::var("TONTINE_CONTROL")?).await?;
    let mut stream = BufReader::new(stream);
    stream.write_all(format!("{how}\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_line(&mut answer).await?;
    ensure(answer.trim() == "ok", || format!("the restart ({how}): {answer}"))
}

pub fn ensure(condition: bool, what: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(what().into()) }
}

pub fn ensure_eq<T: PartialEq + std::fmt::Debug>(got: T, expected: T, what: &str) -> Outcome {
    ensure(got == expected, || format!("{what}: got {got:?}, expected {expected:?}"))
}
