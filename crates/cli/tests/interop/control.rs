//! How a program has its broker restarted: it connects, writes `graceful` or `kill`, and reads `ok` when the broker listens
//! again.

use crate::broker::{Broker, Ending};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tontine_testkit::{Failure, failure};

/// Does what is asked, one after the other; ends with the first thing that cannot be done.
pub async fn serve(listener: &TcpListener, broker: &mut Broker) -> Failure {
    loop {
        let done = match listener.accept().await {
            Ok((stream, _)) => answer(stream, broker).await,
            Err(e) => Err(failure!("no control connection: {e}")),
        };
        if let Err(failure) = done {
            return failure;
        }
    }
}

async fn answer(stream: TcpStream, broker: &mut Broker) -> Result<(), Failure> {
    let mut stream = BufReader::new(stream);
    let mut word = String::new();
    stream.read_line(&mut word).await.map_err(|e| failure!("cannot read a control connection: {e}"))?;
    match word.trim() {
        "graceful" => broker.restart(Ending::Graceful).await?,
        "kill" => broker.restart(Ending::Kill).await?,
        other => return Err(failure!("nobody knows how to do {other:?}")),
    }
    // A program that is gone meanwhile says by its end what went wrong.
    let _ = stream.write_all(b"ok\n").await;
    Ok(())
}
