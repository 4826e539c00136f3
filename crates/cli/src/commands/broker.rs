//! `broker`: the embedded broker as a process.

use super::interrupt::interrupted;
use crate::args::BrokerArgs;
use crate::failure::Failure;
use crate::output::{print, say};
use std::process::ExitCode;
use tontine::Error;
use tontine_broker::config::rows;
use tontine_broker::{Broker, BrokerConfig, StartError};

/// Where the broker listens when nobody says.
const DEFAULT_ADDRESS: &str = "127.0.0.1:9092";

/// Runs until it is interrupted.
pub(crate) async fn run(args: BrokerArgs) -> Result<ExitCode, Failure> {
    let stop = interrupted();
    let settings = settings_of(&args)?;
    if args.print_config {
        return print_config(&settings);
    }
    let mut builder = Broker::builder().nodes(args.nodes as usize);
    match &args.listen {
        Some(address) => builder = builder.listen(address),
        None if settings.iter().all(|(key, _)| key != "listeners") => {
            builder = builder.listen(DEFAULT_ADDRESS)
        }
        None => {}
    }
    for (topic, partitions) in &args.topics {
        builder = builder.topic(topic, *partitions as i32);
    }
    for (key, value) in &settings {
        builder = builder.config(key, value);
    }
    if let Some(directory) = &args.data_dir {
        builder = builder.data_dir(directory);
    }
    if !builder.ineffective_keys().is_empty() {
        say(&format!("these keys of Kafka's have no effect here: {}", builder.ineffective_keys().join(", ")));
    }
    allow_many_files();
    let broker = builder.start().await.map_err(why)?;
    print(&format!("listening on {}\n", broker.bootstrap_servers()));
    stop.await;
    broker.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Each connection is an open file, and a process may mostly have 1,024, unless it asks for what it is allowed to have.
fn allow_many_files() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource::RLIMIT_NOFILE, getrlimit, setrlimit};
        if let Ok((_, most)) = getrlimit(RLIMIT_NOFILE) {
            // Where this is refused the broker says so when it cannot take a connection.
            let _ = setrlimit(RLIMIT_NOFILE, most, most);
        }
    }
}

/// The settings of the file, then those that were typed: what is given again counts as it was given last.
fn settings_of(args: &BrokerArgs) -> Result<Vec<(String, String)>, Error> {
    let mut settings = match &args.config_file {
        Some(path) => super::settings::properties(path)?,
        None => Vec::new(),
    };
    settings.retain(|(key, _)| args.settings.iter().all(|(given, _)| given != key));
    settings.extend(args.settings.iter().cloned());
    Ok(settings)
}

fn print_config(settings: &[(String, String)]) -> Result<ExitCode, Failure> {
    let mut config = BrokerConfig::new();
    for (key, value) in settings {
        // Keys without an effect are not among those printed.
        let _ = config.set(key, value).map_err(|error| Error::configuration(error.to_string()))?;
    }
    for row in rows::BROKER {
        print(&format!("{}={}\n", row.key, config.value(row.key).unwrap_or_default()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A port that is taken and a directory that cannot be used are no fault of the typing.
fn why(error: StartError) -> Failure {
    let message = error.to_string();
    match error {
        StartError::Listen { .. } | StartError::Store(_) => Failure::Failed(message),
        _ => Failure::Typed(message),
    }
}
