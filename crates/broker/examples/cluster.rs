//! A test cluster that is driven by hand: `cargo run -p tontine-broker --example cluster -- 127.0.0.1:9092 3 orders:8`.
//!
//! It takes commands from standard input, one a line: `stop 2`, `start 2`, `lead orders 0 3`, `coordinate billing 1`,
//! `prefer`, `cut 1`, `hole 1`, `heal 1`, `groups`. It ends with its input, or when it is interrupted.

use std::error::Error;
use tokio::io::{AsyncBufReadExt, BufReader};
use tontine_broker::Broker;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
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
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match command(&broker, &line).await {
            Ok(()) => println!("ok"),
            Err(error) => println!("{error}"),
        }
    }
    broker.stop().await;
    Ok(())
}

async fn command(broker: &Broker, line: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["stop", node] => broker.stop_node(node.parse()?).await?,
        ["start", node] => broker.start_node(node.parse()?).await?,
        ["lead", topic, partition, node] => broker.move_leader(topic, partition.parse()?, node.parse()?)?,
        ["coordinate", group, node] => broker.move_coordinator(group, node.parse()?)?,
        ["prefer"] => broker.elect_preferred_leaders(),
        ["cut", node] => broker.disconnect_all(node.parse()?),
        ["hole", node] => broker.set_black_hole(node.parse()?, true)?,
        ["heal", node] => broker.set_black_hole(node.parse()?, false)?,
        ["groups"] => println!("{:#?}", broker.groups()),
        _ => return Err("commands are stop, start, lead, coordinate, prefer, cut, hole, heal, groups".into()),
    }
    Ok(())
}
