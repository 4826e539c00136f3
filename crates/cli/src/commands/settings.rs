//! Where client settings come from: a file, then `-X`, then the options of the command.

use crate::args::{Connection, Settings};
use std::path::Path;
use tontine::Error;

/// Where a cluster is looked for when nobody says.
const DEFAULT_BOOTSTRAP: &str = "127.0.0.1:9092";

/// All settings of a command, the most particular last.
pub(crate) fn of(connection: &Connection) -> Result<Vec<(String, String)>, Error> {
    let mut all = file_and_sets(&connection.settings)?;
    if let Some(servers) = &connection.bootstrap_server {
        all.push(("bootstrap.servers".to_owned(), servers.clone()));
    } else if !all.iter().any(|(key, _)| key == "bootstrap.servers") {
        all.push(("bootstrap.servers".to_owned(), DEFAULT_BOOTSTRAP.to_owned()));
    }
    Ok(all)
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
