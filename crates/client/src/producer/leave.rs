//! Which batches leave now, in which requests, and to which leaders.

use super::{
    batch::{Batch, Identity, Queue, next_sequence},
    sender::{Known, Sender, Sent},
};
use crate::cluster::{Lane, Target};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tontine_group::{Instant, TopicPartition, time::soonest};
use tontine_wire::{Uuid, api::produce};

/// The last version of Produce that names topics instead of giving their ids.
const LAST_WITH_NAMES: i16 = 12;

enum Ready {
    Now,
    Later(Instant),
    Not,
}

impl<D, F> Sender<D, F> {
    pub(super) fn send_what_is_ready(&mut self) -> Option<Instant> {
        let identity = match self.identity {
            Known::Anonymous => None,
            Known::Is(identity) => Some(identity),
            Known::Needed { not_before, .. } => return Some(not_before).filter(|at| *at > self.now),
            Known::Asked { .. } => return None,
        };
        let mut wake = None;
        let mut by_leader: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        for (tp, queue) in &self.queues {
            match self.ready(queue) {
                Ready::Now => match self.cluster.metadata().leader(tp) {
                    Some(leader) => by_leader.entry(leader).or_default().push(tp.clone()),
                    None => wake = soonest(wake, Some(self.now + self.config.retry_backoff)),
                },
                Ready::Later(at) => wake = soonest(wake, Some(at)),
                Ready::Not => {}
            }
        }
        for (leader, partitions) in by_leader {
            self.send_to(leader, partitions, identity);
        }
        let leaderless = |(tp, q): (&TopicPartition, &Queue<D>)| {
            !q.waiting.is_empty() && self.cluster.metadata().leader(tp).is_none()
        };
        if self.queues.iter().any(leaderless) {
            self.cluster.refresh_metadata(self.now);
        }
        wake
    }

    fn ready(&self, queue: &Queue<D>) -> Ready {
        // Without sequence numbers, or before it knows the producer, a broker cannot keep the order of several batches.
        let most = if queue.is_introduced { self.max_in_flight() } else { 1 };
        let Some(batch) = queue.waiting.front() else { return Ready::Not };
        if queue.is_held() || queue.under_way >= most {
            return Ready::Not;
        }
        if queue.not_before > self.now {
            return Ready::Later(queue.not_before);
        }
        let is_full =
            batch.size >= usize::try_from(self.config.batch_size).unwrap_or(0) || queue.waiting.len() > 1;
        let at = batch.created + self.config.linger;
        if is_full || batch.attempts > 0 || batch.order() <= self.hurry || self.abandoned || at <= self.now {
            return Ready::Now;
        }
        Ready::Later(at)
    }

    fn max_in_flight(&self) -> usize {
        usize::try_from(self.config.max_in_flight).unwrap_or(1).max(1)
    }

    /// Sends requests to one leader: each has one batch of every partition, as far as the size allows.
    fn send_to(&mut self, leader: i32, mut partitions: Vec<TopicPartition>, identity: Option<Identity>) {
        let limit = usize::try_from(self.config.max_request_size).unwrap_or(0);
        while !partitions.is_empty() {
            let loaded = self.under_way.values().filter(|s| s.node == leader).count();
            if loaded >= self.max_in_flight() {
                return;
            }
            let mut batches = Vec::new();
            let mut size = 0;
            for tp in &partitions {
                let Some(queue) = self.queues.get_mut(tp) else { continue };
                let moved = queue.under_way > 0 && queue.sent_to != leader;
                let fits = |b: &Batch<D>| !moved && (size == 0 || size + b.size <= limit);
                if !queue.waiting.front().is_some_and(fits) {
                    continue;
                }
                let Some(mut batch) = queue.waiting.pop_front() else { continue };
                size += batch.size;
                if identity.is_some() && batch.sequence.is_none() {
                    batch.sequence = Some(queue.next_sequence);
                    queue.next_sequence = next_sequence(queue.next_sequence, batch.entries.len());
                }
                batch.attempts += 1;
                queue.under_way += 1;
                queue.sent_to = leader;
                batches.push((tp.clone(), batch));
            }
            if batches.is_empty() {
                return;
            }
            self.send_request(leader, batches, identity);
            partitions.retain(|tp| self.queues.get(tp).is_some_and(|q| matches!(self.ready(q), Ready::Now)));
        }
    }

    fn send_request(
        &mut self,
        leader: i32,
        batches: Vec<(TopicPartition, Batch<D>)>,
        identity: Option<Identity>,
    ) {
        let mut topics: BTreeMap<Arc<str>, Vec<produce::PartitionProduceData>> = BTreeMap::new();
        let mut sent = Vec::new();
        let mut left = self.config.request_timeout;
        for (tp, batch) in batches {
            match batch.build(self.compression, identity) {
                Ok(bytes) => {
                    let data = produce::PartitionProduceData { index: tp.partition, records: Some(bytes) };
                    topics.entry(tp.topic.clone()).or_default().push(data);
                    left = left.min(batch.deadline - self.now);
                    sent.push((tp, batch));
                }
                Err(error) => self.give_up(&tp, batch, &error),
            }
        }
        if sent.is_empty() {
            return;
        }
        let mut has_ids = true;
        let mut topic_data = Vec::new();
        for (name, partition_data) in topics {
            let topic_id = self.cluster.metadata().topic(&name).map_or(Uuid::ZERO, |t| t.id);
            has_ids &= !topic_id.is_zero();
            topic_data.push(produce::TopicProduceData { name: name.to_string(), topic_id, partition_data });
        }
        let timeout_ms = i32::try_from(self.config.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let acks = self.config.acks.number();
        let request = produce::ProduceRequest { transactional_id: None, acks, timeout_ms, topic_data };
        let at_most = if has_ids { i16::MAX } else { LAST_WITH_NAMES };
        let left = left.max(Duration::from_millis(1));
        let target = Target::Node(leader);
        let ticket =
            self.cluster.send_at_most(self.now, target, Lane::Produce, request.into(), left, at_most);
        self.under_way.insert(ticket, Sent { node: leader, batches: sent });
    }
}
