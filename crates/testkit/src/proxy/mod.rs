//! A proxy between clients and brokers that understands requests: tests hold them back, lose them, answer them, or change
//! the error code of their answers, against any broker.
//!
//! It stands before every node: the addresses in the answers are rewritten to its own, so that a client never finds a way
//! around it. Rules are given with [`Proxy::on`]; each acts on the next requests of one API and then is used up.

mod connection;
mod rewrite;
mod rule;

pub use rule::{Action, Rule};

use crate::{Failure, failure};
use connection::Connection;
use rule::Rules;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tontine_wire::api::ApiKey;

/// A proxy before all the nodes of a cluster; gone when dropped.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    servers: String,
}

/// What the connections share.
#[derive(Debug)]
struct Shared {
    /// The proxy's own port for each address of a node.
    ports: Mutex<BTreeMap<String, u16>>,
    rules: Rules,
    /// Counts up to cut every connection; `None` when the proxy is gone.
    cuts: watch::Sender<Option<u64>>,
    /// Whether bytes flow: a stalled network is not a closed one.
    flowing: watch::Sender<bool>,
}

impl Proxy {
    /// A proxy for the nodes of `bootstrap_servers`.
    ///
    /// Has to be called in a runtime, which then runs it.
    pub fn start(bootstrap_servers: &str) -> Result<Self, Failure> {
        let shared = Arc::new(Shared {
            ports: Mutex::new(BTreeMap::new()),
            rules: Rules::default(),
            cuts: watch::Sender::new(Some(0)),
            flowing: watch::Sender::new(true),
        });
        let mut servers = Vec::new();
        for address in bootstrap_servers.split(',') {
            servers.push(format!("127.0.0.1:{}", shared.port_for(address)?));
        }
        Ok(Self { shared, servers: servers.join(",") })
    }

    /// What clients connect to.
    pub fn bootstrap_servers(&self) -> &str {
        &self.servers
    }

    /// Acts on the next `times` requests of this API. The rule tells when that happens and lets go of what it holds.
    pub fn on(&self, key: ApiKey, times: usize, action: Action) -> Rule {
        self.shared.rules.add(key, times, action)
    }

    /// Closes every connection; new ones are accepted.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cut| *cut = cut.map(|count| count + 1));
    }

    /// Stops all bytes, both ways, without closing anything.
    pub fn stall(&self) {
        self.shared.flowing.send_replace(false);
    }

    /// Lets the bytes flow again.
    pub fn flow(&self) {
        self.shared.flowing.send_replace(true);
    }

    /// Ends it: nothing goes through from this moment on, connections are closed, new ones refused.
    pub fn shut(&self) {
        self.shared.flowing.send_replace(false);
        self.shared.cuts.send_replace(None);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Shared {
    fn ports(&self) -> MutexGuard<'_, BTreeMap<String, u16>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The proxy's port for a node, opened when the node is heard of for the first time.
    fn port_for(self: &Arc<Self>, address: &str) -> Result<u16, Failure> {
        let mut ports = self.ports();
        if let Some(port) = ports.get(address) {
            return Ok(*port);
        }
        let (listener, port) = listen().map_err(|e| failure!("no port for the proxy: {e}"))?;
        ports.insert(address.to_owned(), port);
        tokio::spawn(accept(self.clone(), listener, address.to_owned()));
        Ok(port)
    }
}

fn listen() -> std::io::Result<(TcpListener, u16)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((TcpListener::from_std(listener)?, port))
}

async fn accept(shared: Arc<Shared>, listener: TcpListener, address: String) {
    let mut cuts = shared.cuts.subscribe();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { return };
                tokio::spawn(serve(shared.clone(), client, address.clone()));
            }
            _ = cuts.wait_for(Option::is_none) => return,
        }
    }
}

async fn serve(shared: Arc<Shared>, client: TcpStream, address: String) {
    let mut cuts = shared.cuts.subscribe();
    cuts.mark_unchanged();
    // A node that is away refuses; so does the proxy, by closing.
    let Ok(broker) = TcpStream::connect(&address).await else { return };
    let _ = client.set_nodelay(true);
    let _ = broker.set_nodelay(true);
    tokio::select! {
        () = Connection::new(shared).run(client, broker) => {}
        _ = cuts.changed() => {}
    }
}
