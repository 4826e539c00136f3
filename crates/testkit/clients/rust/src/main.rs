//! The crates rskafka and rdkafka against a broker: the argument names the scenario. Ends with 0 when everything held.

mod rig;
mod with_rdkafka;
mod with_rskafka;

use rig::Outcome;

#[tokio::main]
async fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("rskafka") => with_rskafka::records_and_places().await,
        Some("rdkafka_group") => with_rdkafka::group().await,
        Some("rdkafka_transactions") => with_rdkafka::transactions().await,
        other => Err(format!("there is no scenario {other:?}").into()),
    }
}
