//! Serves until it is killed: `cargo run -p tontine-broker --example serve -- 127.0.0.1:9092 3 orders:8`.

use tontine_broker::Broker;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let listen = args.next().unwrap_or_else(|| "127.0.0.1:9092".into());
    let nodes = args.next().map_or(Ok(1), |count| count.parse())?;
    let mut builder = Broker::builder().listen(listen).nodes(nodes);
    for topic in args {
        let (name, partitions) = topic.split_once(':').unwrap_or((&topic, "1"));
        builder = builder.topic(name, partitions.parse()?);
    }
    let broker = builder.start().await?;
    println!("listening on {}", broker.bootstrap_servers());
    tokio::signal::ctrl_c().await?;
    broker.stop().await;
    Ok(())
}
