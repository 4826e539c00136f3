//! `broker`: the embedded broker as a process.

use crate::args::BrokerArgs;
use crate::output::print;
use std::process::ExitCode;
use tontine::Error;
use tontine_broker::Broker;

/// Runs until it is interrupted.
pub(crate) async fn run(args: BrokerArgs) -> Result<ExitCode, Error> {
    let stop = interrupted();
    let mut builder = Broker::builder().listen(&args.listen).nodes(args.nodes as usize);
    for (topic, partitions) in &args.topics {
        builder = builder.topic(topic, *partitions as i32);
    }
    for (key, value) in &args.settings {
        builder = builder.config(key, value);
    }
    if let Some(directory) = &args.data_dir {
        builder = builder.data_dir(directory);
    }
    if !builder.ineffective_keys().is_empty() {
        eprintln!("these keys of Kafka's have no effect here: {}", builder.ineffective_keys().join(", "));
    }
    let broker = builder.start().await.map_err(|error| Error::configuration(error.to_string()))?;
    print(&format!("listening on {}\n", broker.bootstrap_servers()));
    stop.await;
    broker.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Ends with Ctrl-C or with a polite kill. Both are listened for from the call on, not only when it is waited for.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let signals = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok())
    };
    async move {
        #[cfg(unix)]
        if let Some((mut interrupt, mut terminate)) = signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}
