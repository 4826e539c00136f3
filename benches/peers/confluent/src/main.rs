//! confluent-kafka, the translation of the Java client. Only the consumer protocol. Tuned: a poll may return much more.

use bytes::Bytes;
use confluent_kafka::{
    common::serialization::BytesDeserializer,
    consumer::{Consumer, ConsumerConfig, KafkaConsumer},
};
use measure::{Args, Run};
use std::{collections::HashMap, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut run = Run::start(Args::parse());
    let args = run.args();
    let mut settings = vec![
        ("bootstrap.servers", args.bootstrap.as_str()),
        ("group.id", &args.group),
        ("group.protocol", "consumer"),
        ("auto.offset.reset", "earliest"),
        ("enable.auto.commit", "false"),
        ("check.crcs", "true"),
    ];
    if args.is_tuned() {
        settings.push(("max.poll.records", "50000"));
    }
    let settings: HashMap<String, String> =
        settings.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let topic = args.topic.clone();
    let mut consumer: KafkaConsumer<Bytes, Bytes> =
        KafkaConsumer::new(ConsumerConfig::new(&settings)?, BytesDeserializer::new(), BytesDeserializer::new())?;
    run.subscribing();
    consumer.subscribe_with_topics(vec![topic]).await?;
    while run.go_on() {
        let records = consumer.poll(Duration::from_secs(1)).await?;
        for record in &records {
            run.record(record.key().map(|b| b.len()), record.value().map(|b| b.len()));
        }
    }
    run.print("confluent-kafka", "1.0.0");
    std::process::exit(0);
}
