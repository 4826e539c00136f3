//! The producer's table.

use super::{
    choices::{Acks, CompressionType},
    network::IGNORED,
    value::Range,
};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The settings of the Java producer that have no meaning here.
const JAVA: &[&str] = &[
    "key.serializer",
    "value.serializer",
    "interceptor.classes",
    "partitioner.class",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.ignore.keys",
    "partitioner",
    "metadata.max.idle.ms",
    "retries",
    "message.send.max.retries",
    "transaction.timeout.ms",
    "transaction.two.phase.commit.enable",
    "batch.num.messages",
    "queue.buffering.max.messages",
];

table_with_network_rows! {
    /// Settings of a producer.
    ProducerConfig,
    /// Builds a producer.
    ProducerBuilder {},
    ignored &[IGNORED, JAVA], {
        acks: Acks = Acks::All, "acks" | "request.required.acks", Range::Any, Both,
            "How many brokers have to have a record before it counts as sent: 0 none, 1 the leader, all those in sync.";
        enable_idempotence: bool = true, "enable.idempotence", Range::Any, Both,
            "Whether brokers recognise batches that arrive twice. Needs acks=all and at most five requests in flight; off when those are set otherwise.";
        linger: Duration = ms(5), "linger.ms" | "queue.buffering.max.ms", Range::from(0), Both,
            "How long a batch waits for more records before it is sent.";
        batch_size: i32 = 16_384, "batch.size", Range::from(0), Both,
            "A batch that has this many bytes is sent at once.";
        buffer_memory: i64 = 33_554_432, "buffer.memory", Range::Numbers(0, i64::MAX), Both,
            "The most bytes of records that wait to be sent; sending waits when there are more.";
        max_block: Duration = ms(60_000), "max.block.ms", Range::from(0), Both,
            "How long sending waits for metadata or for buffer.memory.";
        max_request_size: i32 = 1_048_576, "max.request.size" | "message.max.bytes", Range::from(0), Both,
            "The largest request, and so the largest record.";
        compression_type: CompressionType = CompressionType::None, "compression.type" | "compression.codec", Range::Any, Both,
            "How batches are compressed.";
        delivery_timeout: Duration = ms(120_000), "delivery.timeout.ms" | "message.timeout.ms", Range::from(0), Both,
            "How long a record may take from `send` to the broker's answer, retries included.";
        max_in_flight: i32 = 5, "max.in.flight.requests.per.connection" | "max.in.flight", Range::from(1), Both,
            "How many requests may be under way to one broker. Without idempotence, more than one can change the order of records when a request is retried.";
        allow_auto_create_topics: bool = true, "allow.auto.create.topics", Range::Any, Both,
            "Whether sending to a topic that does not exist may create it, where brokers allow that.";
        transactional_id: Option<String> = None, "transactional.id", Range::NotBlank, Both,
            "Transactions are not supported: leave it unset.";
    }
}
