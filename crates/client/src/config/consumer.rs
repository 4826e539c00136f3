//! The consumer's table.

use super::{
    choices::{AutoOffsetReset, GroupProtocol, IsolationLevel},
    network::IGNORED,
    value::Range,
};
use std::{sync::Arc, time::Duration};
use tontine_group::assignor::Assignor;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The settings of the Java consumer that have no meaning here.
const JAVA: &[&str] = &[
    "key.deserializer",
    "value.deserializer",
    "interceptor.classes",
    "internal.throw.on.fetch.stable.offset.unsupported",
    "enable.partition.eof",
    "queued.min.messages",
    "queued.max.messages.kbytes",
    "share.acknowledgement.mode",
    "share.acquire.mode",
];

table_with_network_rows! {
    /// Settings of a consumer.
    ConsumerConfig,
    /// Builds a consumer.
    ConsumerBuilder { assignors: Vec<Arc<dyn Assignor>> },
    ignored &[IGNORED, JAVA], {
        group_id: Option<String> = None, "group.id", Range::NotBlank, Both,
            "The group this consumer is a member of. Without one, only `assign` works and nothing is committed.";
        group_instance_id: Option<String> = None, "group.instance.id", Range::NotBlank, Both,
            "A name that stays over restarts: the member's partitions wait for it until session.timeout.ms instead of moving.";
        group_protocol: GroupProtocol = GroupProtocol::Classic, "group.protocol", Range::Any, Both,
            "Which of Kafka's group protocols to speak. `consumer` (KIP-848) needs a broker that has it (Apache Kafka 4.0 and later, or the embedded broker); `consumer,classic` falls back to the classic one, with `cooperative-sticky` unless partition.assignment.strategy says otherwise, where it has not, or where the group has classic members and the broker does not move it (`group.consumer.migration.policy`).";
        group_remote_assignor: Option<String> = None, "group.remote.assignor", Range::NotBlank, Consumer,
            "The coordinator's assignor; it chooses one itself when this is not set.";
        partition_assignment_strategy: Vec<String> = vec!["range".to_owned(), "cooperative-sticky".to_owned()],
            "partition.assignment.strategy", Range::Any, Classic,
            "The assignors this member offers, best first: range, roundrobin, sticky, cooperative-sticky, Java's class names of them, or one given to the builder. All members must share one. The group rebalances cooperatively only when all that are offered can.";
        session_timeout: Duration = ms(45_000), "session.timeout.ms", Range::from(1), Classic,
            "A member whose heartbeats stay away for this long is put out of the group. Brokers accept 6 seconds to 30 minutes unless told otherwise. Take at least three times heartbeat.interval.ms.";
        heartbeat_interval: Duration = ms(3_000), "heartbeat.interval.ms", Range::from(1), Classic,
            "How often heartbeats go out, whatever the application does.";
        max_poll_interval: Duration = ms(300_000), "max.poll.interval.ms", Range::from(1), Both,
            "A member that does not poll for this long leaves its group. It is also how long a rebalance waits for members.";
        max_poll_records: i32 = 500, "max.poll.records", Range::from(1), Both,
            "The most records that one poll returns.";
        enable_auto_commit: bool = true, "enable.auto.commit", Range::Any, Both,
            "Whether what poll returned earlier is committed in the background. It counts as done as soon as the next poll begins. Off when there is no group.id.";
        auto_commit_interval: Duration = ms(5_000), "auto.commit.interval.ms", Range::from(0), Both,
            "How often it is committed in the background.";
        audit_log: Option<String> = None, "audit.log", Range::NotBlank, Both,
            "A file to which the consumer appends, as lines of JSON, which partitions it had from when to when, what of them it was handed and what it committed. `tontine group audit FILE..` puts the files of all members together. This key is not Kafka's.";
        auto_offset_reset: AutoOffsetReset = AutoOffsetReset::Latest, "auto.offset.reset", Range::Any, Both,
            "Where a partition starts that has no committed offset. `latest` skips what was written to a new partition before this consumer saw it; `by_duration:PT1H` starts at the records of the last hour.";
        isolation_level: IsolationLevel = IsolationLevel::ReadUncommitted, "isolation.level", Range::Any, Both,
            "Whether records of transactions are delivered before the transaction is committed.";
        fetch_min_bytes: i32 = 1, "fetch.min.bytes", Range::from(0), Both,
            "A broker waits with its answer until it has this much, or until fetch.max.wait.ms has passed.";
        fetch_max_wait: Duration = ms(500), "fetch.max.wait.ms" | "fetch.wait.max.ms", Range::from(0), Both,
            "How long a broker waits for fetch.min.bytes.";
        fetch_max_bytes: i32 = 52_428_800, "fetch.max.bytes", Range::from(0), Both,
            "The most bytes in one answer. A batch that is larger comes all the same, alone.";
        max_partition_fetch_bytes: i32 = 1_048_576, "max.partition.fetch.bytes" | "fetch.message.max.bytes", Range::from(0), Both,
            "The most bytes of one partition in one answer. A batch that is larger comes all the same, alone.";
        fetch_queue_bytes: i32 = 67_108_864, "fetch.queue.bytes", Range::from(1), Both,
            "The most bytes that wait for the application, over all partitions. Each partition has its own share, so a slow or paused one never holds back another.";
        check_crcs: bool = true, "check.crcs", Range::Any, Both,
            "Whether the checksums of batches are checked.";
        client_rack: String = String::new(), "client.rack", Range::Any, Both,
            "Where this client stands, as the brokers' broker.rack. Assignors and fetches prefer what is near.";
        allow_auto_create_topics: bool = true, "allow.auto.create.topics", Range::Any, Both,
            "Whether subscribing to a topic that does not exist may create it, where brokers allow that.";
        exclude_internal_topics: bool = true, "exclude.internal.topics", Range::Any, Both,
            "Whether patterns leave Kafka's own topics out.";
    }
}

impl ConsumerBuilder {
    /// Makes an assignor of your own known. It is offered to the group when `partition.assignment.strategy` names it;
    /// when that is not set, it is the only one offered.
    pub fn assignor(mut self, assignor: Arc<dyn Assignor>) -> Self {
        if !self.config.is_given("partition.assignment.strategy") {
            self.config.partition_assignment_strategy =
                self.assignors.iter().map(|a| a.name().to_owned()).collect();
            self.config.partition_assignment_strategy.push(assignor.name().to_owned());
        }
        self.assignors.push(assignor);
        self
    }
}
