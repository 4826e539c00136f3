//! Where client settings come from: a file, then `-X`, then the options of the command.
//!
//! One file serves all commands, as one serves all of an application's clients: what belongs to another kind of client
//! than the command uses is left out. What belongs to none is a typo, and the client refuses it.

use crate::args::{Connection, Settings};
use crate::output::say;
use std::path::Path;
use tontine::{
    Admin, Error,
    config::{AdminConfig, ConsumerConfig, ProducerConfig, is_key_of_a_client},
};

/// Where a cluster is looked for when nobody says.
const DEFAULT_BOOTSTRAP: &str = "127.0.0.1:9092";

/// The kind of client that a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Admin,
    Consumer,
    Producer,
}

impl Kind {
    fn knows(self, key: &str) -> bool {
        match self {
            Self::Admin => AdminConfig::knows(key),
            Self::Consumer => ConsumerConfig::knows(key),
            Self::Producer => ProducerConfig::knows(key),
        }
    }

    /// Somebody sits before a terminal and waits: what does not answer is named sooner than Kafka's defaults would.
    fn patience(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Admin => &[("default.api.timeout.ms", "10000"), ("request.timeout.ms", "8000")],
            Self::Producer => &[("max.block.ms", "15000")],
            Self::Consumer => &[],
        }
    }
}

/// All settings of a command, the most particular last.
pub(crate) fn of(connection: &Connection, kind: Kind) -> Result<Vec<(String, String)>, Error> {
    let patience = kind.patience().iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let mut all: Vec<_> = patience.collect();
    if !connection.names_a_cluster()? {
        all.push(("bootstrap.servers".to_owned(), DEFAULT_BOOTSTRAP.to_owned()));
    }
    all.extend(given(connection, kind)?);
    Ok(all)
}

/// An admin with the settings of the command.
pub(crate) fn admin(connection: &Connection) -> Result<Admin, Error> {
    let mut builder = Admin::builder();
    for (key, value) in of(connection, Kind::Admin)? {
        builder = builder.set(&key, value);
    }
    builder.build()
}

/// What was given, and nothing else.
pub(crate) fn given(connection: &Connection, kind: Kind) -> Result<Vec<(String, String)>, Error> {
    let mut all = file_and_sets(&connection.settings)?;
    all.retain(|(key, _)| kind.knows(key) || !is_key_of_a_client(key));
    if let Some(servers) = &connection.bootstrap_server {
        all.push(("bootstrap.servers".to_owned(), servers.clone()));
    }
    Ok(all)
}

/// What was typed for another kind of client than `kinds` does nothing, which whoever typed it wants to know.
pub(crate) fn say_what_has_no_effect(connection: &Connection, kinds: &[Kind]) {
    let elsewhere = |key: &str| is_key_of_a_client(key) && !kinds.iter().any(|kind| kind.knows(key));
    for (key, _) in connection.settings.set.iter().filter(|(key, _)| elsewhere(key)) {
        say(&format!("tontine: -X {key} has no effect on this command"));
    }
}

impl Connection {
    /// Whether an option, the environment, `-X` or the file says which cluster.
    pub(crate) fn names_a_cluster(&self) -> Result<bool, Error> {
        let names = |(key, _): &(String, String)| {
            matches!(key.as_str(), "bootstrap.servers" | "metadata.broker.list")
        };
        Ok(self.bootstrap_server.is_some() || file_and_sets(&self.settings)?.iter().any(names))
    }
}

fn file_and_sets(settings: &Settings) -> Result<Vec<(String, String)>, Error> {
    let mut all = match &settings.config {
        Some(path) => properties(path)?,
        None => Vec::new(),
    };
    // A setting that is given again counts as it was given last; what it replaces may even be wrong.
    all.retain(|(key, _)| settings.set.iter().all(|(given, _)| given != key));
    all.extend(settings.set.iter().cloned());
    Ok(all)
}

pub(crate) fn properties(path: &Path) -> Result<Vec<(String, String)>, Error> {
    let unreadable = |error| Error::configuration(format!("could not read {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    tontine::config::properties(&text)
}
