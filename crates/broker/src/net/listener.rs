//! Takes connections on the port of one node.

use super::connection;
use super::shared::Shared;
use crate::cluster::NodeId;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Listens on a port.
pub(super) async fn bind(host: &str, port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((host, port)).await
}

/// Listens again on a port that was closed a moment ago, which the system may still hold.
pub(super) async fn bind_again(host: &str, port: u16) -> io::Result<TcpListener> {
    for _ in 0..50 {
        match bind(host, port).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
    bind(host, port).await
}

/// Takes connections for a node; never returns.
pub(super) async fn accept(shared: Arc<Shared>, node: NodeId, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => take(&shared, node, stream, peer.ip().to_string()),
            Err(error) => {
                // Out of file descriptors, mostly: others have to end before it gets better.
                shared.say_once(format!("cannot take a connection: {error}{}", hint(&error)));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// What an operator can do: connections and files of logs are counted together.
fn hint(error: &io::Error) -> &'static str {
    const TOO_MANY: [i32; 2] = [23, 24];
    let too_many = error.raw_os_error().is_some_and(|code| cfg!(unix) && TOO_MANY.contains(&code));
    if too_many {
        " (connections wait until others end: allow the process more open files, ulimit -n)"
    } else {
        ""
    }
}

fn take(shared: &Arc<Shared>, node: NodeId, stream: TcpStream, host: String) {
    let limit = shared.look(|state| state.settings().request_max_bytes);
    let for_task = shared.clone();
    let spawn = |conn| tokio::spawn(connection::serve(for_task, conn, stream, limit)).abort_handle();
    if shared.connect(node, host, spawn).is_none() {
        tracing::debug!(node, "too many connections, or the node is stopped: closing a new one");
    }
}
