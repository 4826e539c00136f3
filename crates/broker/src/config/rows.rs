//! The keys that mean something: one row each with default, range and meaning. Names and defaults are Kafka's.

use super::kind::Kind::{self, Bool, Double, Int, List, Long, OneOf, Text};

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The key as Kafka spells it.
    pub key: &'static str,
    /// The value when nothing is set; `None` where Kafka's default is null.
    pub default: Option<&'static str>,
    /// Which values are allowed.
    pub kind: Kind,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

const fn row(key: &'static str, default: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row { key, default: Some(default), kind, doc }
}

const fn unset(key: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row { key, default: None, kind, doc }
}

const MAX_INT: i64 = i32::MAX as i64;
const ANY_LONG: Kind = Long { min: i64::MIN, max: i64::MAX };

const fn int(min: i64) -> Kind {
    Int { min, max: MAX_INT }
}

const fn long(min: i64) -> Kind {
    Long { min, max: i64::MAX }
}

/// Keys of the broker that are obeyed.
#[rustfmt::skip]
pub const BROKER: &[Row] = &[
    unset("advertised.listeners", List, "addresses that clients are told, when they differ from the ones listened on"),
    row("auto.create.topics.enable", "true", Bool, "whether asking for the metadata of an unknown topic creates it"),
    unset("broker.rack", Text, "the rack of the first node; the nodes of a test cluster can be given racks of their own"),
    row("connections.max.idle.ms", "600000", ANY_LONG, "how long a connection may be silent before it is closed; negative: for ever"),
    row("default.replication.factor", "1", int(-1), "replicas of a topic that does not say how many; a test cluster of several nodes starts with up to 3"),
    row("delete.topic.enable", "true", Bool, "whether topics may be deleted"),
    row("fetch.max.bytes", "57671680", int(1024), "the most that one fetch answers, one batch excepted"),
    row("group.consumer.assignment.interval.ms", "20", int(0), "how far apart the targets of a consumer group are computed at least; Kafka's own default is 1000"),
    row("group.consumer.assignors", "uniform,range", List, "the assignors that members of consumer groups may ask for, the default first: uniform, range"),
    row("group.consumer.heartbeat.interval.ms", "5000", int(1), "how often members of a consumer group at rest are asked to speak; unless it is set, a coordinator of few members asks more often: 20 ms for each of its members, at least 50 ms"),
    row("group.consumer.max.assignment.interval.ms", "15000", int(0), "the longest consumer.assignment.interval.ms of a group"),
    row("group.consumer.max.heartbeat.interval.ms", "15000", int(1), "the longest consumer.heartbeat.interval.ms of a group"),
    row("group.consumer.max.session.timeout.ms", "60000", int(1), "the longest consumer.session.timeout.ms of a group"),
    row("group.consumer.max.size", "2147483647", int(1), "the most members of a consumer group"),
    row("group.consumer.migration.policy", "bidirectional", OneOf(&["bidirectional", "upgrade", "downgrade", "disabled"]), "whether groups with members go over to the other protocol, and which way"),
    row("group.consumer.min.assignment.interval.ms", "0", int(0), "the shortest consumer.assignment.interval.ms of a group"),
    row("group.consumer.min.heartbeat.interval.ms", "5000", int(1), "the shortest consumer.heartbeat.interval.ms of a group"),
    row("group.consumer.min.session.timeout.ms", "45000", int(1), "the shortest consumer.session.timeout.ms of a group"),
    row("group.consumer.session.timeout.ms", "45000", int(1), "how long a member of a consumer group may be silent"),
    row("group.coordinator.rebalance.protocols", "classic,consumer", List, "the protocols that groups may speak; classic must be there, share and streams have no effect"),
    row("group.initial.rebalance.delay.ms", "0", int(0), "how long the first rebalance of an empty group waits for more members; Kafka's own default is 3000"),
    row("group.max.session.timeout.ms", "1800000", int(0), "the longest session.timeout.ms a member may ask for"),
    row("group.max.size", "2147483647", int(1), "the most members of a group"),
    row("group.min.session.timeout.ms", "6000", int(0), "the shortest session.timeout.ms a member may ask for"),
    row("listeners", "PLAINTEXT://:9092", List, "addresses to listen on"),
    row("log.cleanup.policy", "delete", List, "what happens to old records: delete, compact or both"),
    unset("log.dir", Text, "the data directory, where log.dirs is not set; without either, records are in memory"),
    unset("log.dirs", List, "the data directory: one; without it, records are in memory"),
    row("log.flush.interval.messages", "9223372036854775807", long(1), "how many records of a partition are written before they are made durable; 1: before each answer"),
    unset("log.flush.interval.ms", long(0), "how long records wait at most before they are made durable; unset: as the operating system sees fit"),
    row("log.flush.offset.checkpoint.interval.ms", "60000", int(0), "how often it is noted how far logs are durable: a start after a crash looks at what came later"),
    row("log.index.interval.bytes", "4096", int(0), "how many bytes lie between two entries of an index"),
    row("log.message.timestamp.after.max.ms", "3600000", long(0), "how far in the future a record's timestamp may lie"),
    row("log.message.timestamp.before.max.ms", "9223372036854775807", long(0), "how far in the past a record's timestamp may lie"),
    row("log.message.timestamp.type", "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]), "whose clock timestamps records"),
    row("log.retention.bytes", "-1", ANY_LONG, "the size a partition is cut back to; -1: no limit"),
    row("log.retention.check.interval.ms", "300000", long(1), "how often old records are looked for"),
    row("log.retention.hours", "168", Int { min: i32::MIN as i64, max: MAX_INT }, "how long records are kept, where neither minutes nor ms are set"),
    unset("log.retention.minutes", Int { min: i32::MIN as i64, max: MAX_INT }, "how long records are kept, where ms is not set"),
    unset("log.retention.ms", ANY_LONG, "how long records are kept; -1: for ever"),
    row("log.roll.hours", "168", int(1), "how long a segment is written to, where log.roll.ms is not set"),
    unset("log.roll.ms", long(1), "how long a segment is written to"),
    row("log.segment.bytes", "1073741824", int(1_048_576), "the size of a segment"),
    row("max.connections", "2147483647", int(0), "the most connections of one node"),
    row("max.incremental.fetch.session.cache.slots", "1000", int(0), "the most fetch sessions of one node"),
    row("message.max.bytes", "1048588", int(0), "the largest batch of records"),
    row("min.insync.replicas", "1", int(1), "replicas that have to be up for acks=all"),
    row("node.id", "1", int(0), "the id of the first node; the others count up from it"),
    row("num.partitions", "1", int(1), "partitions of a topic that does not say how many"),
    row("offset.metadata.max.bytes", "4096", int(0), "the longest metadata of a committed offset"),
    row("offsets.retention.check.interval.ms", "600000", long(1), "how often expired offsets are looked for"),
    row("offsets.retention.minutes", "10080", int(1), "how long the offsets of an empty group are kept"),
    row("offsets.topic.num.partitions", "50", int(1), "partitions of __consumer_offsets, and so the number of coordinators"),
    row("offsets.topic.replication.factor", "3", Int { min: 1, max: i16::MAX as i64 }, "replicas of __consumer_offsets; never more than there are nodes"),
    row("producer.id.expiration.ms", "86400000", int(1), "how long a silent idempotent producer is remembered"),
    row("socket.request.max.bytes", "104857600", int(1), "the largest request"),
    row("transaction.max.timeout.ms", "900000", int(1), "the longest transaction.timeout.ms a producer may ask for"),
    row("transaction.state.log.num.partitions", "50", int(1), "partitions of __transaction_state"),
    row("transaction.state.log.replication.factor", "3", Int { min: 1, max: i16::MAX as i64 }, "replicas of __transaction_state; never more than there are nodes"),
    row("transactional.id.expiration.ms", "604800000", int(1), "how long a transactional id that nobody uses is remembered"),
    row("unclean.leader.election.enable", "false", Bool, "accepted as in Kafka; replicas here never fall behind"),
];

/// Keys of a topic; the last column of Kafka's table, the broker's key for the default, is [`broker_key`].
#[rustfmt::skip]
pub const TOPIC: &[Row] = &[
    row("cleanup.policy", "delete", List, "what happens to old records: delete, compact or both"),
    row("compression.gzip.level", "-1", Int { min: -1, max: 9 }, "no effect: batches are kept as the producer compressed them"),
    row("compression.lz4.level", "9", Int { min: 1, max: 17 }, "no effect: batches are kept as the producer compressed them"),
    row("compression.type", "producer", OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), "no effect: batches are kept as the producer compressed them"),
    row("compression.zstd.level", "3", Int { min: -131_072, max: 22 }, "no effect: batches are kept as the producer compressed them"),
    row("delete.retention.ms", "86400000", long(0), "how long compaction keeps a tombstone"),
    row("errors.deadletterqueue.group.enable", "false", Bool, "no effect"),
    row("file.delete.delay.ms", "60000", long(0), "no effect"),
    row("flush.messages", "9223372036854775807", long(1), "how many records of a partition are written before they are made durable; 1: before each answer"),
    row("flush.ms", "9223372036854775807", long(0), "how long records wait at most before they are made durable"),
    row("follower.replication.throttled.replicas", "", List, "no effect"),
    row("index.interval.bytes", "4096", int(0), "how many bytes lie between two entries of an index"),
    row("leader.replication.throttled.replicas", "", List, "no effect"),
    row("local.retention.bytes", "-2", long(-2), "no effect"),
    row("local.retention.ms", "-2", long(-2), "no effect"),
    row("max.compaction.lag.ms", "9223372036854775807", long(1), "no effect"),
    row("max.decompressed.message.bytes", "2147483639", int(1), "no effect"),
    row("max.message.bytes", "1048588", int(0), "the largest batch of records"),
    row("message.timestamp.after.max.ms", "3600000", long(0), "how far in the future a record's timestamp may lie"),
    row("message.timestamp.before.max.ms", "9223372036854775807", long(0), "how far in the past a record's timestamp may lie"),
    row("message.timestamp.type", "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]), "whose clock timestamps records"),
    row("min.cleanable.dirty.ratio", "0.5", Double, "no effect"),
    row("min.compaction.lag.ms", "0", long(0), "no effect"),
    row("min.insync.replicas", "1", int(1), "replicas that have to be up for acks=all"),
    row("preallocate", "false", Bool, "no effect"),
    row("remote.copy.lag.bytes", "-1", long(-1), "no effect"),
    row("remote.copy.lag.ms", "0", long(-1), "no effect"),
    row("remote.log.copy.disable", "false", Bool, "no effect"),
    row("remote.log.delete.on.disable", "false", Bool, "no effect"),
    row("remote.storage.enable", "false", Bool, "no effect"),
    row("retention.bytes", "-1", ANY_LONG, "the size a partition is cut back to; -1: no limit"),
    row("retention.ms", "604800000", long(-1), "how long records are kept; -1: for ever"),
    row("segment.bytes", "1073741824", int(1_048_576), "the size of a segment"),
    row("segment.index.bytes", "10485760", int(4), "no effect"),
    row("segment.jitter.ms", "0", long(0), "no effect"),
    row("segment.ms", "604800000", long(1), "how long a segment is written to; in memory: no effect"),
    row("unclean.leader.election.enable", "false", Bool, "accepted as in Kafka; replicas here never fall behind"),
];

/// Keys of a consumer group; the broker's key for the default is [`group_broker_key`].
#[rustfmt::skip]
pub const GROUP: &[Row] = &[
    unset("consumer.assignment.interval.ms", int(0), "how far apart targets of this group are computed at least"),
    unset("consumer.heartbeat.interval.ms", int(1), "how often members of this group are asked to speak while it is at rest"),
    unset("consumer.session.timeout.ms", int(1), "how long a member of this group may be silent"),
];

/// The broker's key that gives the default of a group's key.
pub fn group_broker_key(group_key: &str) -> String {
    format!("group.{group_key}")
}

/// The broker's key that gives the default of a topic's key, where the broker obeys one.
pub fn broker_key(topic_key: &str) -> Option<&'static str> {
    Some(match topic_key {
        "cleanup.policy" => "log.cleanup.policy",
        "flush.messages" => "log.flush.interval.messages",
        "flush.ms" => "log.flush.interval.ms",
        "index.interval.bytes" => "log.index.interval.bytes",
        "max.message.bytes" => "message.max.bytes",
        "message.timestamp.after.max.ms" => "log.message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms" => "log.message.timestamp.before.max.ms",
        "message.timestamp.type" => "log.message.timestamp.type",
        "min.insync.replicas" => "min.insync.replicas",
        "retention.bytes" => "log.retention.bytes",
        "retention.ms" => "log.retention.ms",
        "segment.bytes" => "log.segment.bytes",
        "segment.ms" => "log.roll.ms",
        "unclean.leader.election.enable" => "unclean.leader.election.enable",
        _ => return None,
    })
}
