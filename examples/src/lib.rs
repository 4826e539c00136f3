//! What every example needs and none is about: a cluster, and a topic with something in it.
//!
//! Nothing of this belongs in an application.

use std::hash::{BuildHasher, RandomState};
use tontine::{Admin, Producer, ProducerRecord, admin::NewTopic};
use tontine_broker::Broker;

/// An error is whatever went wrong: `main` prints it, and the exit code is 1.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A cluster with a topic of the example's own.
#[derive(Debug)]
pub struct Playground {
    /// `bootstrap.servers`.
    pub servers: String,
    /// The topic.
    pub topic: String,
    _broker: Option<Broker>,
}

impl Playground {
    /// The cluster that the program's first argument names; without one, a broker inside this process.
    pub async fn open(partitions: i32, records: usize) -> Result<Self> {
        let broker = match std::env::args().nth(1) {
            Some(_) => None,
            None => Some(Broker::builder().start().await?),
        };
        let own = broker.as_ref().map(Broker::bootstrap_servers);
        let servers = std::env::args().nth(1).or(own).unwrap_or_default();
        let topic = format!("orders-{:08x}", RandomState::new().hash_one("topic") as u32);
        let admin = Admin::builder().bootstrap_servers(servers.as_str()).build()?;
        admin.create_topic(NewTopic::new(&topic, partitions)).await?;
        let playground = Self { servers, topic, _broker: broker };
        playground.produce(records).await?;
        Ok(playground)
    }

    /// Writes records `order 0`, `order 1` and so on, to all partitions in turn.
    pub async fn produce(&self, records: usize) -> Result {
        let admin = Admin::builder().bootstrap_servers(self.servers.as_str()).build()?;
        let partitions = admin.describe_topic(&self.topic).await?.partitions.len().max(1);
        let producer = Producer::builder().bootstrap_servers(self.servers.as_str()).build()?;
        let mut deliveries = Vec::new();
        for number in 0..records {
            let record = ProducerRecord::to(self.topic.as_str())
                .partition((number % partitions) as i32)
                .value(format!("order {number}"));
            deliveries.push(producer.send(record).await?);
        }
        producer.flush().await?;
        for delivery in deliveries {
            delivery.await?;
        }
        Ok(())
    }

    /// Deletes the topic: on a real cluster nothing of the example stays.
    pub async fn close(self) -> Result {
        let admin = Admin::builder().bootstrap_servers(self.servers.as_str()).build()?;
        Ok(admin.delete_topic(&self.topic).await?)
    }
}

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
