//! How a broker is asked for.

use super::address::{Address, AddressError};
use super::broker::Broker;
use super::listener::bind;
use super::shared::Shared;
use crate::cluster::{Node, NodeId};
use crate::config::{BrokerConfig, ConfigError, Effect};
use crate::creation::NewTopic;
use crate::disk::OsDisk;
use crate::state::BrokerState;
use crate::store::StoreError;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tontine_group::Instant;

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is not accepted.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be read.
    #[error("{0}")]
    Address(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Only one data directory is taken.
    #[error("`{0}` are several data directories: give one")]
    DataDirs(String),
    /// A topic cannot be created.
    #[error("cannot create topic `{name}`: {why}")]
    Topic {
        /// The topic.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// There has to be a node.
    #[error("a cluster needs at least one node and at most 1000, not {0}")]
    Nodes(usize),
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            " (another process listens there: stop it, or choose another port; port 0 picks a free one)"
        }
        std::io::ErrorKind::PermissionDenied => " (ports below 1024 need permission: choose a higher one)",
        _ => "",
    }
}

impl From<AddressError> for StartError {
    fn from(error: AddressError) -> Self {
        Self::Address(error.to_string())
    }
}

/// Settings of a broker, or of a test cluster of several nodes, that is about to start.
#[derive(Debug, Default)]
#[must_use = "nothing runs before `start`"]
pub struct Builder {
    config: BrokerConfig,
    topics: Vec<NewTopic>,
    listen: Option<String>,
    nodes: Option<usize>,
    racks: Vec<Arc<str>>,
    seed: Option<u64>,
    ineffective: Vec<String>,
    wrong: Option<ConfigError>,
    data_dir: Option<PathBuf>,
}

impl Builder {
    /// Creates a topic at start.
    pub fn topic(self, name: impl Into<String>, partitions: i32) -> Self {
        self.new_topic(NewTopic::new(name, partitions))
    }

    /// Creates a topic at start, with replicas and settings as given.
    pub fn new_topic(mut self, topic: NewTopic) -> Self {
        self.topics.push(topic);
        self
    }

    /// Sets one of Kafka's broker keys. A key or value that is not accepted is reported by [`Builder::start`].
    pub fn config(mut self, key: &str, value: impl AsRef<str>) -> Self {
        match self.config.set(key, value.as_ref()) {
            Ok(Effect::Obeyed) => {}
            Ok(Effect::None) => self.ineffective.push(key.to_owned()),
            Err(error) => self.wrong = self.wrong.or(Some(error)),
        }
        self
    }

    /// Kafka's keys among those given so far that have no effect here.
    pub fn ineffective_keys(&self) -> &[String] {
        &self.ineffective
    }

    /// Where to listen: `host:port`. Without it `listeners` counts when it was set, else 127.0.0.1 and a free port.
    /// Several nodes take this port and those behind it, or a free one each when it is 0.
    pub fn listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// Keeps topics, records and groups in this directory, which is made when it is missing; what it holds is found again.
    /// Without it `log.dirs` counts when it was set, else everything is in memory.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// How many nodes run in this process; one unless said otherwise.
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = Some(count);
        self
    }

    /// The racks of the nodes, in the order of their ids.
    pub fn racks<R: Into<Arc<str>>>(mut self, racks: impl IntoIterator<Item = R>) -> Self {
        self.racks = racks.into_iter().map(Into::into).collect();
        self
    }

    /// Makes topic ids, session ids and member ids the same in every run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts. When this returns, the broker serves.
    pub async fn start(mut self) -> Result<Broker, StartError> {
        if let Some(error) = self.wrong.take() {
            return Err(error.into());
        }
        self.config.check()?;
        let count = self.nodes.unwrap_or(1);
        if !(1..=1000).contains(&count) {
            return Err(StartError::Nodes(count));
        }
        let listeners = self.listen_all(count).await?;
        let nodes = self.describe(&listeners)?;
        let seed = self.seed.unwrap_or_else(random_seed);
        let data_dir = self.directory()?;
        let mut state = match data_dir {
            Some(path) => {
                BrokerState::open(self.config, nodes, seed, unix_ms(), Arc::new(OsDisk::new(path)))?
            }
            None => BrokerState::new(self.config, nodes, seed, unix_ms()),
        };
        for topic in &self.topics {
            // A topic that an earlier run created is there already.
            if state.data_dir().is_some() && state.partitions(&topic.name).is_some() {
                continue;
            }
            if let Err((_, mut why)) = state.create_topic(Instant::ZERO, topic) {
                state.take_notes().iter().for_each(|note| why = format!("{why} {note}"));
                return Err(StartError::Topic { name: topic.name.clone(), why });
            }
        }
        state.work_off(Instant::ZERO);
        Ok(Broker::run(Shared::new(state), listeners))
    }

    fn directory(&self) -> Result<Option<PathBuf>, StartError> {
        if self.data_dir.is_some() {
            return Ok(self.data_dir.clone());
        }
        match self.config.given("log.dirs").or_else(|| self.config.given("log.dir")) {
            Some(several) if several.contains(',') => Err(StartError::DataDirs(several.to_owned())),
            one => Ok(one.map(PathBuf::from)),
        }
    }

    fn address(&self) -> Result<Address, StartError> {
        match (&self.listen, self.config.given("listeners")) {
            (Some(listen), _) => Ok(Address::parse(listen)?),
            (None, Some(listeners)) => Ok(Address::first_of(listeners)?),
            (None, None) => Ok(Address { host: "127.0.0.1".into(), port: 0 }),
        }
    }

    async fn listen_all(&self, count: usize) -> Result<BTreeMap<NodeId, TcpListener>, StartError> {
        let first = self.address()?;
        let mut listeners = BTreeMap::new();
        let first_id = self.config.settings().node_id;
        for (offset, id) in (0..).zip(first_id..).take(count) {
            let port = if first.port == 0 { 0 } else { first.port.saturating_add(offset) };
            let listener = bind(&first.host, port)
                .await
                .map_err(|source| StartError::Listen { address: format!("{}:{port}", first.host), source })?;
            listeners.insert(id, listener);
        }
        Ok(listeners)
    }

    fn describe(
        &self,
        listeners: &BTreeMap<NodeId, TcpListener>,
    ) -> Result<BTreeMap<NodeId, Node>, StartError> {
        let listened = self.address()?;
        let advertised = self.config.given("advertised.listeners").map(Address::first_of).transpose()?;
        let mut nodes = BTreeMap::new();
        for (at, (id, listener)) in listeners.iter().enumerate() {
            let bound = listener
                .local_addr()
                .map_err(|source| StartError::Listen { address: listened.host.clone(), source })?;
            let mut node = match &advertised {
                Some(told) if listeners.len() == 1 => Node::new(told.reachable_host(), told.port),
                _ => Node::new(listened.reachable_host(), bound.port()),
            };
            node.rack = self.racks.get(at).cloned();
            if at == 0 && node.rack.is_none() {
                node.rack = self.config.given("broker.rack").map(Into::into);
            }
            nodes.insert(*id, node);
        }
        Ok(nodes)
    }
}

/// Another seed in every run: member ids must not come back after a restart.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[allow(clippy::disallowed_methods)]
fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
