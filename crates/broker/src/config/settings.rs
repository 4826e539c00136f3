//! The values in force as the code reads them. The texts were checked when they were set, so reading them cannot fail;
//! a value that does not parse all the same falls back to zero.

use super::{BrokerConfig, TopicConfig, rows};
use crate::log::{Flush, Layout};
use std::str::FromStr;
use std::time::Duration;
use tontine_group::coordinator::{HeartbeatPace, MigrationPolicy, ServerAssignors};

fn parse<T: FromStr + Default>(value: Option<&str>) -> T {
    value.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

fn millis(value: Option<&str>) -> Duration {
    Duration::from_millis(parse(value))
}

/// -1 and other negative values mean "no limit".
fn limit(value: Option<&str>) -> Option<i64> {
    value.and_then(|text| text.trim().parse().ok()).filter(|number| *number >= 0)
}

fn listed(names: &str) -> impl Iterator<Item = &str> {
    names.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// The assignors of a list, or what is wrong with it.
pub(super) fn assignors(names: &str) -> Result<ServerAssignors, String> {
    ServerAssignors::of_names(listed(names))
}

/// What is wrong with a list of protocols, if anything is. Kafka knows four; two of them mean something here.
pub(super) fn check_protocols(names: &str) -> Result<(), String> {
    const KNOWN: [&str; 4] = ["classic", "consumer", "share", "streams"];
    if let Some(unknown) = listed(names).find(|name| !KNOWN.contains(name)) {
        return Err(format!("`{unknown}` is no protocol: there are {}", KNOWN.join(", ")));
    }
    if !listed(names).any(|name| name == "classic") {
        return Err("`classic` cannot be switched off: it must be in the list".into());
    }
    Ok(())
}

/// The broker's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Settings {
    pub auto_create_topics: bool,
    pub connections_max_idle: Option<Duration>,
    pub default_replication_factor: i16,
    pub delete_topic_enable: bool,
    pub fetch_max_bytes: usize,
    pub group_consumer_assignment_interval: Duration,
    pub group_consumer_assignors: ServerAssignors,
    pub group_consumer_heartbeat_interval: Duration,
    pub group_consumer_heartbeat_pace: HeartbeatPace,
    pub group_consumer_max_size: usize,
    pub group_consumer_migration_policy: MigrationPolicy,
    /// Whether groups may speak the consumer protocol.
    pub group_consumer_protocol: bool,
    pub group_consumer_session_timeout: Duration,
    pub flush_checkpoint_interval: Duration,
    pub group_initial_rebalance_delay: Duration,
    pub group_max_session_timeout: Duration,
    pub group_max_size: usize,
    pub group_min_session_timeout: Duration,
    pub max_connections: usize,
    pub fetch_session_slots: usize,
    pub node_id: i32,
    pub num_partitions: i32,
    pub offset_metadata_max_bytes: usize,
    pub offsets_retention: Duration,
    pub offsets_retention_check_interval: Duration,
    pub offsets_topic_partitions: i32,
    pub offsets_topic_replication_factor: i16,
    pub producer_id_expiration: Duration,
    pub retention_check_interval: Duration,
    pub request_max_bytes: usize,
    pub transaction_max_timeout_ms: i32,
    pub transaction_topic_partitions: i32,
    pub transaction_topic_replication_factor: i16,
    pub transactional_id_expiration: Duration,
}

impl Settings {
    pub(super) fn of(config: &BrokerConfig) -> Self {
        let value = |key| config.value(key);
        Self {
            auto_create_topics: parse(value("auto.create.topics.enable")),
            connections_max_idle: limit(value("connections.max.idle.ms"))
                .map(|ms| Duration::from_millis(ms.unsigned_abs())),
            default_replication_factor: parse(value("default.replication.factor")),
            delete_topic_enable: parse(value("delete.topic.enable")),
            fetch_max_bytes: parse(value("fetch.max.bytes")),
            group_consumer_assignment_interval: millis(value("group.consumer.assignment.interval.ms")),
            group_consumer_assignors: value("group.consumer.assignors")
                .and_then(|names| assignors(names).ok())
                .unwrap_or_default(),
            group_consumer_heartbeat_interval: millis(value("group.consumer.heartbeat.interval.ms")),
            // Whoever says how often wants it so.
            group_consumer_heartbeat_pace: match config.given("group.consumer.heartbeat.interval.ms") {
                Some(_) => HeartbeatPace::QuickWhileMoving,
                None => HeartbeatPace::Quick,
            },
            group_consumer_max_size: parse(value("group.consumer.max.size")),
            group_consumer_migration_policy: match value("group.consumer.migration.policy") {
                Some("upgrade") => MigrationPolicy::Upgrade,
                Some("downgrade") => MigrationPolicy::Downgrade,
                Some("disabled") => MigrationPolicy::Disabled,
                Some(_) | None => MigrationPolicy::Bidirectional,
            },
            group_consumer_protocol: value("group.coordinator.rebalance.protocols")
                .is_none_or(|names| listed(names).any(|name| name == "consumer")),
            group_consumer_session_timeout: millis(value("group.consumer.session.timeout.ms")),
            flush_checkpoint_interval: millis(value("log.flush.offset.checkpoint.interval.ms"))
                .max(Duration::from_millis(1)),
            group_initial_rebalance_delay: millis(value("group.initial.rebalance.delay.ms")),
            group_max_session_timeout: millis(value("group.max.session.timeout.ms")),
            group_max_size: parse(value("group.max.size")),
            group_min_session_timeout: millis(value("group.min.session.timeout.ms")),
            max_connections: parse(value("max.connections")),
            fetch_session_slots: parse(value("max.incremental.fetch.session.cache.slots")),
            node_id: parse(value("node.id")),
            num_partitions: parse(value("num.partitions")),
            offset_metadata_max_bytes: parse(value("offset.metadata.max.bytes")),
            offsets_retention: Duration::from_secs(60 * parse::<u64>(value("offsets.retention.minutes"))),
            offsets_retention_check_interval: millis(value("offsets.retention.check.interval.ms")),
            offsets_topic_partitions: parse(value("offsets.topic.num.partitions")),
            offsets_topic_replication_factor: parse(value("offsets.topic.replication.factor")),
            producer_id_expiration: millis(value("producer.id.expiration.ms")),
            retention_check_interval: millis(value("log.retention.check.interval.ms")),
            request_max_bytes: parse(value("socket.request.max.bytes")),
            transaction_max_timeout_ms: parse(value("transaction.max.timeout.ms")),
            transaction_topic_partitions: parse(value("transaction.state.log.num.partitions")),
            transaction_topic_replication_factor: parse(value("transaction.state.log.replication.factor")),
            transactional_id_expiration: millis(value("transactional.id.expiration.ms")),
        }
    }
}

/// A topic's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TopicSettings {
    pub compact: bool,
    pub delete: bool,
    pub delete_retention_ms: i64,
    pub flush_messages: Option<u64>,
    pub flush_ms: Option<u64>,
    pub index_interval: u64,
    pub log_append_time: bool,
    pub max_message_bytes: usize,
    pub min_insync_replicas: usize,
    pub retention_bytes: Option<i64>,
    pub retention_ms: Option<i64>,
    pub segment_bytes: usize,
    pub segment_ms: i64,
    pub timestamp_after_max_ms: i64,
    pub timestamp_before_max_ms: i64,
}

impl TopicSettings {
    pub(super) fn of(topic: &TopicConfig, broker: &BrokerConfig) -> Self {
        let value = |key: &'static str| topic_value(topic, broker, key);
        let value = |key| value(key);
        let policy = value("cleanup.policy").unwrap_or_default();
        let has = |name| policy.split(',').any(|part| part.trim() == name);
        Self {
            compact: has("compact"),
            delete: has("delete"),
            delete_retention_ms: parse(value("delete.retention.ms").as_deref()),
            flush_messages: unless_endless(value("flush.messages").as_deref()),
            flush_ms: unless_endless(value("flush.ms").as_deref()),
            index_interval: parse(value("index.interval.bytes").as_deref()),
            log_append_time: value("message.timestamp.type").as_deref() == Some("LogAppendTime"),
            max_message_bytes: parse(value("max.message.bytes").as_deref()),
            min_insync_replicas: parse(value("min.insync.replicas").as_deref()),
            retention_bytes: limit(value("retention.bytes").as_deref()),
            retention_ms: limit(value("retention.ms").as_deref()),
            segment_bytes: parse(value("segment.bytes").as_deref()),
            segment_ms: parse(value("segment.ms").as_deref()),
            timestamp_after_max_ms: parse(value("message.timestamp.after.max.ms").as_deref()),
            timestamp_before_max_ms: parse(value("message.timestamp.before.max.ms").as_deref()),
        }
    }
}

impl TopicSettings {
    /// How logs are written to disk.
    pub(crate) fn layout(&self) -> Layout {
        Layout {
            segment_bytes: self.segment_bytes as u64,
            segment_ms: self.segment_ms,
            index_interval: self.index_interval,
            flush: Flush { records: self.flush_messages, millis: self.flush_ms },
        }
    }
}

/// The largest number stands for never, as in Kafka.
fn unless_endless(value: Option<&str>) -> Option<u64> {
    value.and_then(|text| text.trim().parse().ok()).filter(|number| *number < i64::MAX.unsigned_abs())
}

/// The value of a topic's key that is in force.
pub(crate) fn topic_value(topic: &TopicConfig, broker: &BrokerConfig, key: &str) -> Option<String> {
    if let Some(given) = topic.given(key) {
        return Some(given.to_owned());
    }
    broker_default(broker, key).or_else(|| super::row(rows::TOPIC, key)?.default.map(str::to_owned))
}

/// What the broker was told for a topic's key.
pub(crate) fn broker_default(broker: &BrokerConfig, key: &str) -> Option<String> {
    if key == "retention.ms" {
        return retention(broker);
    }
    if key == "segment.ms" {
        return roll(broker);
    }
    broker.given(rows::broker_key(key)?).map(str::to_owned)
}

/// `log.roll.ms` wins over hours.
fn roll(broker: &BrokerConfig) -> Option<String> {
    let hours = || broker.given("log.roll.hours")?.parse::<i64>().ok().map(|hours| hours * 3_600_000);
    broker.given("log.roll.ms").map(str::to_owned).or_else(|| hours().map(|ms| ms.to_string()))
}

/// `log.retention.ms` wins over minutes, minutes over hours; -1 is for ever in each.
fn retention(broker: &BrokerConfig) -> Option<String> {
    if let Some(ms) = broker.given("log.retention.ms") {
        return Some(ms.to_owned());
    }
    let scaled = |key, factor: i64| {
        let number: i64 = broker.given(key)?.parse().ok()?;
        Some(if number < 0 { "-1".to_owned() } else { (number * factor).to_string() })
    };
    scaled("log.retention.minutes", 60_000).or_else(|| scaled("log.retention.hours", 3_600_000))
}
