//! Apache Kafka of one node for as long as standard input is open: prints where it listens, and its class path.
//!
//! `cargo run -p tontine-testkit --example kafka`

use std::io::Read;
use tontine_testkit::{
    Failure,
    apache::{ApacheKafka, Jars},
};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if std::env::args().any(|arg| arg == "--class-path") {
        println!("class path {}", Jars::resolve()?.class_path());
        return Ok(());
    }
    let kafka = ApacheKafka::start(1).await?;
    println!("listening on {}", kafka.bootstrap_servers());
    println!("class path {}", kafka.jars().class_path());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}
