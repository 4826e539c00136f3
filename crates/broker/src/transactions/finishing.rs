//! A transaction that is decided is carried out: marks in its partitions, then the word that it is complete.
//!
//! No step is taken before the one before it is durable where that is the policy: a mark that survived an outage which the
//! decision did not would commit one partition of a transaction that is then aborted in the others. Mirrors
//! `TransactionMarkerChannelManager`.

use super::{AGAIN, Place};
use crate::log::TransactionEnd;
use crate::settling::{Needs, Then};
use crate::state::BrokerState;
use crate::topics::{OFFSETS_TOPIC, TRANSACTIONS_TOPIC};
use crate::work::LogKey;
use std::collections::BTreeMap;
use tontine_group::Instant;
use tontine_group::coordinator::Ticket;
use tontine_wire::ErrorCode;
use tontine_wire::api::Response;

/// Transactions of which a step is waited for, and who wants to know when the last one is done: with the answer and the
/// refusal.
#[derive(Debug, Default)]
pub(crate) struct Finishing {
    waiting: BTreeMap<String, Vec<(Ticket, Response, Response)>>,
}

impl Finishing {
    /// Whether a step of this transaction is waited for.
    pub(crate) fn is_waiting(&self, id: &str) -> bool {
        self.waiting.contains_key(id)
    }

    /// The request is answered when the transaction is complete, which it is on its way to.
    pub(crate) fn tell(&mut self, id: &str, ticket: Ticket, answer: Response, refusal: Response) {
        self.waiting.entry(id.to_owned()).or_default().push((ticket, answer, refusal));
    }
}

impl BrokerState {
    /// Carries out a decision once it is durable. Whether the transaction is complete now.
    pub(crate) fn finish_when_durable(
        &mut self,
        now: Instant,
        id: &str,
        pending: Option<(LogKey, u64)>,
    ) -> bool {
        let Some(pending) = pending else { return self.finish_transaction(now, id) };
        self.finishing.waiting.entry(id.to_owned()).or_default();
        self.when_durable(now, [pending].into(), Then::Prepared(id.to_owned()));
        !self.finishing.waiting.contains_key(id)
    }

    /// A decision is durable, or cannot become so.
    pub(crate) fn transaction_prepared(&mut self, now: Instant, id: &str, error: Option<ErrorCode>) {
        match error {
            None => {
                self.write_marks(now, id);
            }
            Some(_) => self.tell_finished(id, false),
        }
    }

    /// The marks are durable, or one of them cannot become so.
    pub(crate) fn transaction_marked(&mut self, now: Instant, id: &str, error: Option<ErrorCode>) {
        match error {
            None => {
                self.complete(now, id);
            }
            Some(_) => self.finish_later(now, id),
        }
    }

    /// Writes the marks of a transaction that is decided. Whether it is complete now.
    pub(crate) fn finish_transaction(&mut self, now: Instant, id: &str) -> bool {
        !self.finishing.waiting.contains_key(id) && self.write_marks(now, id)
    }

    fn write_marks(&mut self, now: Instant, id: &str) -> bool {
        let Some(transaction) = self.transactions.get(id).cloned() else { return true };
        let Some(committed) = transaction.status.deciding() else { return true };
        let index = self.transaction_partition(id);
        let coordinator_epoch = self.topics.get(TRANSACTIONS_TOPIC).and_then(|topic| topic.partition(index));
        let coordinator_epoch = coordinator_epoch.map_or(0, |partition| partition.leader_epoch);
        let end = TransactionEnd {
            producer_id: transaction.producer_id,
            producer_epoch: transaction.epoch,
            coordinator_epoch,
            committed,
        };
        // One partition that cannot be marked does not keep the others waiting.
        let mut needs = Needs::new();
        let left = transaction.places.iter().filter(|place| !self.mark(now, place, end, &mut needs)).count();
        if left > 0 {
            self.finish_later(now, id);
            return false;
        }
        if needs.is_empty() {
            return self.complete(now, id);
        }
        self.finishing.waiting.entry(id.to_owned()).or_default();
        self.when_durable(now, needs, Then::Marked(id.to_owned()));
        !self.finishing.waiting.contains_key(id)
    }

    /// Ends a transaction in one partition. A partition that is gone needs no mark.
    fn mark(&mut self, now: Instant, (topic, index): &Place, end: TransactionEnd, needs: &mut Needs) -> bool {
        let now_ms = self.unix_ms(now);
        let Some(known) = self.topics.get_mut(topic) else { return true };
        let id = known.id;
        let Some(partition) = known.partition_mut(*index) else { return true };
        let Ok(appended) = partition.log.end_transaction(end, partition.leader_epoch, now_ms) else {
            return false;
        };
        if topic == OFFSETS_TOPIC
            && let Some(shard) = self.groups.shards.get_mut(index)
        {
            shard.coordinator.end_transaction(end.producer_id, end.committed);
            self.pump(now, *index);
        }
        self.records_came(now, (id, *index), appended);
        needs.extend(appended.pending.map(|change| (LogKey::Partition(id, *index), change)));
        true
    }

    /// All marks are written. It need not be durable that they are: what comes next for this id is written behind it.
    fn complete(&mut self, now: Instant, id: &str) -> bool {
        let complete = self.transactions.completed(id, self.unix_ms(now));
        if complete.is_none_or(|complete| self.store_transaction(now, id, Some(complete)).is_ok()) {
            self.tell_finished(id, true);
            return true;
        }
        self.finish_later(now, id);
        false
    }

    fn finish_later(&mut self, now: Instant, id: &str) {
        self.unfinished_at = Some(now + AGAIN);
        // It is decided, and that is what was asked.
        self.tell_finished(id, true);
    }

    fn tell_finished(&mut self, id: &str, decided: bool) {
        for (ticket, answer, refusal) in self.finishing.waiting.remove(id).unwrap_or_default() {
            self.answer_ticket(ticket, if decided { answer } else { refusal });
        }
    }
}
