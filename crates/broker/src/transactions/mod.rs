//! Transactions: what the coordinator decides is stored in `__transaction_state`, and carried out.
//!
//! All partitions are in this process, so marks are written at once where Kafka sends them to other brokers. A
//! transaction whose marks could not all be written stays decided and is finished later, after a restart as well.
//! Mirrors `TransactionStateManager` and `TransactionMarkerChannelManager`.

mod coordinator;
mod finishing;
mod record;

pub(crate) use coordinator::{Init, Place, Status, Transaction, Transactions};
pub(crate) use finishing::Finishing;

use crate::cluster::NodeId;
use crate::config::TopicConfig;
use crate::groups::partition_of;
use crate::state::BrokerState;
use crate::topics::TRANSACTIONS_TOPIC;
use crate::work::LogKey;
use bytes::Bytes;
use std::time::Duration;
use tontine_group::Instant;
use tontine_group::coordinator::GroupRecord;
use tontine_wire::ErrorCode;
use tontine_wire::records::{BatchBuilder, Compression, RecordBatch};

/// How long it takes until marks that could not be written are tried again.
const AGAIN: Duration = Duration::from_secs(1);

impl BrokerState {
    /// The partition of `__transaction_state` in which a transactional id is kept.
    fn transaction_partition(&self, id: &str) -> i32 {
        let partitions = self.topics.get(TRANSACTIONS_TOPIC).map(|topic| topic.partitions.len());
        let partitions = partitions.and_then(|count| i32::try_from(count).ok());
        partition_of(id, partitions.unwrap_or(self.settings.transaction_topic_partitions))
    }

    /// The node that coordinates the transactions of an id.
    pub(crate) fn transaction_coordinator(&mut self, now: Instant, id: &str) -> Option<NodeId> {
        self.create_transactions_topic(now);
        self.topics.get(TRANSACTIONS_TOPIC)?.partition(self.transaction_partition(id))?.leader
    }

    fn create_transactions_topic(&mut self, now: Instant) {
        let settings = &self.settings;
        let (count, factor) =
            (settings.transaction_topic_partitions, settings.transaction_topic_replication_factor);
        let mut config = TopicConfig::default();
        // Both are in the table with these values allowed.
        let _ = config.set("cleanup.policy", "compact");
        let _ = config.set("compression.type", "uncompressed");
        self.create_internal_topic(now, TRANSACTIONS_TOPIC, count, factor, config);
    }

    /// Whether this node may answer for a transactional id.
    pub(crate) fn check_transaction_coordinator(
        &mut self,
        now: Instant,
        node: NodeId,
        id: &str,
    ) -> Result<(), ErrorCode> {
        match self.transaction_coordinator(now, id) {
            Some(leader) if leader == node => Ok(()),
            Some(_) => Err(ErrorCode::NOT_COORDINATOR),
            None => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        }
    }

    /// Stores where a transaction stands, then takes it in. Answers what has to be durable before it is acted on.
    pub(crate) fn store_transaction(
        &mut self,
        now: Instant,
        id: &str,
        transaction: Option<Transaction>,
    ) -> Result<Option<(LogKey, u64)>, ErrorCode> {
        let index = self.transaction_partition(id);
        let record = GroupRecord { key: record::key(id), value: transaction.as_ref().map(record::value) };
        let now_ms = self.unix_ms(now);
        let batch = batch_of(&[record], now_ms, None).ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)?;
        let pending = self
            .append_internal(now, TRANSACTIONS_TOPIC, index, batch)
            .map_err(|_| ErrorCode::COORDINATOR_NOT_AVAILABLE)?;
        self.transactions.apply(id, transaction);
        Ok(pending)
    }

    /// Aborts what takes too long, finishes what is decided, forgets ids that nobody uses.
    pub(crate) fn time_out_transactions(&mut self, now: Instant) {
        let now_ms = self.unix_ms(now);
        for (id, aborting) in self.transactions.timed_out(now_ms) {
            match self.store_transaction(now, &id, Some(aborting)) {
                Ok(pending) => drop(self.finish_when_durable(now, &id, pending)),
                Err(_) => self.unfinished_at = Some(now + AGAIN),
            }
        }
        if self.unfinished_at.is_some_and(|at| at <= now) {
            self.unfinished_at = None;
            for id in self.transactions.undecided() {
                self.finish_transaction(now, &id);
            }
        }
    }

    /// Forgets ids that nobody has used for a long time.
    pub(crate) fn expire_transactions(&mut self, now: Instant) {
        let after = i64::try_from(self.settings.transactional_id_expiration.as_millis()).unwrap_or(i64::MAX);
        for id in self.transactions.expired(self.unix_ms(now), after) {
            // What cannot be stored now is tried again the next time.
            let _ = self.store_transaction(now, &id, None);
        }
    }

    /// When [`BrokerState::time_out_transactions`] wants to be called.
    pub(crate) fn next_transaction_deadline(&self) -> Option<Instant> {
        let at = self.transactions.next_timeout_ms().map(|ms| {
            let after = u64::try_from(ms.saturating_sub(self.unix_ms_at_origin)).unwrap_or(0);
            let at = Instant::from_origin(Duration::from_millis(after));
            // What could not be aborted is tried again, but not at once.
            self.unfinished_at.map_or(at, |again| at.max(again))
        });
        tontine_group::time::soonest(at, self.unfinished_at)
    }

    /// Reads `__transaction_state` at the start, and finishes what is decided.
    pub(crate) fn load_transactions(&mut self, now: Instant) {
        let Some(topic) = self.topics.get(TRANSACTIONS_TOPIC) else { return };
        let mut found = Vec::new();
        for batch in topic.partitions.iter().flat_map(|partition| partition.log.batches()) {
            let Ok(records) = batch.records() else { continue };
            let pairs = records.iter().filter_map(Result::ok);
            found
                .extend(pairs.filter_map(|record| record::decode(record.key_bytes()?, record.value_bytes())));
        }
        found.into_iter().for_each(|(id, stored)| self.transactions.apply(&id, stored));
        for id in self.transactions.undecided() {
            let index = self.transaction_partition(&id);
            let log = self.topics.get(TRANSACTIONS_TOPIC).and_then(|topic| {
                Some((LogKey::Partition(topic.id, index), topic.partition(index)?.log.pending()?))
            });
            self.finish_when_durable(now, &id, log);
        }
    }
}

/// A batch of these records, transactional when a producer is given.
pub(crate) fn batch_of(
    records: &[GroupRecord],
    now_ms: i64,
    producer: Option<(i64, i16)>,
) -> Option<RecordBatch> {
    let mut builder = BatchBuilder::new(Compression::None);
    if let Some((id, epoch)) = producer {
        builder.producer(id, epoch, -1).transactional(true);
    }
    for record in records {
        builder.append(now_ms, Some(&record.key), record.value.as_deref(), std::iter::empty()).ok()?;
    }
    let mut bytes: Bytes = builder.build(0);
    RecordBatch::parse(&mut bytes).ok()?
}
