//! `broker`: the embedded broker as a process.

use crate::args::BrokerArgs;
use crate::output::print;
use std::process::ExitCode;
use tontine::Error;
use tontine_broker::Broker;

/// Runs until it is interrupted.
pub(crate) async fn run(args: BrokerArgs) -> Result<ExitCode, Error> {
    let mut builder = Broker::builder().listen(&args.listen).nodes(args.nodes as usize);
    for (topic, partitions) in &args.topics {
        builder = builder.topic(topic, *partitions as i32);
    }
    for (key, value) in &args.settings {
        builder = builder.config(key, value);
    }
    if !builder.ineffective_keys().is_empty() {
        eprintln!("these keys of Kafka's have no effect here: {}", builder.ineffective_keys().join(", "));
    }
    let broker = builder.start().await.map_err(|error| Error::configuration(error.to_string()))?;
    print(&format!("listening on {}\n", broker.bootstrap_servers()));
    interrupted().await;
    broker.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Waits for Ctrl-C or for a polite kill.
pub(crate) async fn interrupted() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = interrupt.await;
}
