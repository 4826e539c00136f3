//! What a producer does with answers: records are delivered, sent again, or given up.

use super::{
    batch::{Batch, Identity},
    sender::{Event, Known, Sender, Sent, is_about_identity},
};
use crate::{
    Error,
    cluster::{SendError, Ticket},
};
use std::{collections::BTreeMap, sync::Arc};
use tontine_group::TopicPartition;
use tontine_wire::{
    ErrorCode,
    api::{Response, init_producer_id, produce},
};

impl<D, F> Sender<D, F> {
    pub(super) fn answered(&mut self, ticket: Ticket, result: Result<Response, SendError>) {
        if let Some(sent) = self.under_way.remove(&ticket) {
            return self.produced(sent, result);
        }
        match self.identity {
            Known::Asked { old, attempts, ticket: asked } if asked == ticket => {
                self.identified(old, attempts, result)
            }
            Known::Asked { .. } | Known::Anonymous | Known::Needed { .. } | Known::Is(_) => {}
        }
    }

    fn identified(&mut self, old: Option<Identity>, attempts: u32, result: Result<Response, SendError>) {
        let error = match result {
            Ok(Response::InitProducerId(init_producer_id::InitProducerIdResponse {
                error_code: ErrorCode::NONE,
                producer_id,
                producer_epoch,
                ..
            })) => {
                self.identity = Known::Is(Identity { id: producer_id, epoch: producer_epoch });
                return self.queues.values_mut().for_each(|q| q.restart_sequence());
            }
            Ok(Response::InitProducerId(answer)) => {
                Error::broker(answer.error_code, "asking for a producer id", None)
            }
            Ok(_) => Error::Malformed("a broker answered something else than a producer id".into()),
            Err(error) => error.into(),
        };
        let is_fenced = error.code().is_some_and(is_about_identity);
        if !error.is_retriable() && !is_fenced {
            return self.fail_everything(&error);
        }
        let not_before = self.pause(attempts + 1);
        let old = old.filter(|_| !is_fenced);
        self.identity = Known::Needed { old, attempts: attempts + 1, not_before };
    }

    /// Without an identity nothing can be sent; whoever waits learns why.
    fn fail_everything(&mut self, error: &Error) {
        let not_before = self.pause(u32::MAX);
        self.identity = Known::Needed { old: None, attempts: 0, not_before };
        let mut batches = Vec::new();
        for (tp, queue) in &mut self.queues {
            batches.extend(queue.waiting.drain(..).map(|b| (tp.clone(), b)));
        }
        for (_, batch) in batches {
            self.fail(batch, error);
        }
    }

    fn produced(&mut self, sent: Sent<D>, result: Result<Response, SendError>) {
        let answer = match result {
            Ok(Response::Produce(answer)) => answer,
            Ok(_) => {
                return self.all_failed(
                    sent,
                    &Error::Malformed("a broker answered something else".into()),
                    true,
                );
            }
            Err(SendError::Malformed { why }) => return self.all_failed(sent, &Error::Malformed(why), true),
            Err(error) => {
                let error = Error::from(error);
                let again = error.is_retriable();
                return self.all_failed(sent, &error, again);
            }
        };
        if self.config.acks == crate::config::Acks::None {
            return sent.batches.into_iter().for_each(|(tp, batch)| self.delivered(&tp, batch, -1, -1));
        }
        let endpoints: BTreeMap<i32, (String, u16)> = answer
            .node_endpoints
            .into_iter()
            .filter_map(|n| Some((n.node_id, (n.host, u16::try_from(n.port).ok()?))))
            .collect();
        let mut answers = BTreeMap::new();
        for topic in answer.responses {
            let known = self.cluster.metadata().topic_name(topic.topic_id).cloned();
            let name: Arc<str> =
                if topic.name.is_empty() { known.unwrap_or_default() } else { topic.name.into() };
            for partition in topic.partition_responses {
                answers.insert(TopicPartition::new(name.clone(), partition.index), partition);
            }
        }
        for (tp, batch) in sent.batches {
            match answers.remove(&tp) {
                Some(answer) => self.partition_answered(&tp, batch, answer, &endpoints),
                None => {
                    let error =
                        Error::Malformed(format!("the answer of a broker does not mention {tp}").into());
                    self.again(&tp, batch, &error);
                }
            }
        }
    }

    fn all_failed(&mut self, sent: Sent<D>, error: &Error, again: bool) {
        if again {
            self.cluster.refresh_metadata(self.now);
        }
        for (tp, batch) in sent.batches {
            if again { self.again(&tp, batch, error) } else { self.give_up(&tp, batch, error) }
        }
    }

    fn partition_answered(
        &mut self,
        tp: &TopicPartition,
        batch: Batch<D>,
        answer: produce::PartitionProduceResponse,
        endpoints: &BTreeMap<i32, (String, u16)>,
    ) {
        let code = answer.error_code;
        if code.is_ok() || code == ErrorCode::DUPLICATE_SEQUENCE_NUMBER {
            return self.delivered(tp, batch, answer.base_offset, answer.log_append_time_ms);
        }
        let error = Error::broker(code, format!("sending to {tp}"), answer.error_message);
        let leader = answer.current_leader;
        if leader.leader_id >= 0 {
            let endpoint = endpoints.get(&leader.leader_id).cloned();
            self.cluster.update_leader(tp, leader.leader_id, leader.leader_epoch, endpoint);
        }
        if code.needs_metadata() {
            self.cluster.refresh_metadata(self.now);
        }
        if code == ErrorCode::MESSAGE_TOO_LARGE && batch.entries.len() > 1 {
            return self.in_halves(tp, batch);
        }
        if is_about_identity(code) && self.identity != Known::Anonymous {
            // Out of order only because an earlier batch failed: it goes first, and then this one is in order.
            let behind_another =
                self.queues.get(tp).is_some_and(|q| q.oldest_failed().is_some_and(|o| o < batch.order()));
            if code != ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER || !behind_another {
                self.renew_identity();
            }
            return self.again(tp, batch, &error);
        }
        if error.is_retriable() { self.again(tp, batch, &error) } else { self.give_up(tp, batch, &error) }
    }

    fn delivered(&mut self, tp: &TopicPartition, batch: Batch<D>, base_offset: i64, append_time: i64) {
        if let Some(queue) = self.queues.get_mut(tp) {
            queue.under_way = queue.under_way.saturating_sub(1);
            queue.last_error = None;
            queue.is_introduced |= batch.sequence.is_some();
            queue.requeue();
        }
        let delivered = batch.delivered(tp, base_offset, append_time);
        self.events.extend(delivered.map(|(token, result)| Event::Delivered(token, result)));
    }

    fn again(&mut self, tp: &TopicPartition, batch: Batch<D>, error: &Error) {
        let not_before = self.pause(batch.attempts);
        let Some(queue) = self.queues.get_mut(tp) else { return };
        queue.under_way = queue.under_way.saturating_sub(1);
        queue.not_before = queue.not_before.max(not_before);
        queue.last_error = Some(error.to_string().into());
        queue.put_back(batch);
        queue.requeue();
    }

    fn in_halves(&mut self, tp: &TopicPartition, batch: Batch<D>) {
        let Some(queue) = self.queues.get_mut(tp) else { return };
        queue.under_way = queue.under_way.saturating_sub(1);
        let (first, second) = batch.split();
        queue.put_back(first);
        queue.put_back(second);
        queue.requeue();
    }

    /// A batch that was sent is given up; its sequence numbers are missing from now on.
    pub(super) fn give_up(&mut self, tp: &TopicPartition, batch: Batch<D>, error: &Error) {
        if let Some(queue) = self.queues.get_mut(tp) {
            queue.under_way = queue.under_way.saturating_sub(1);
            queue.requeue();
        }
        if batch.sequence.is_some() {
            self.renew_identity();
        }
        self.fail(batch, error);
    }

    fn fail(&mut self, batch: Batch<D>, error: &Error) {
        let failed = batch.entries.into_iter().map(|e| Event::Delivered(e.token, Err(error.clone())));
        self.events.extend(failed);
    }

    pub(super) fn renew_identity(&mut self) {
        if let Known::Is(identity) = self.identity {
            self.identity = Known::Needed { old: Some(identity), attempts: 0, not_before: self.now };
        }
    }
}
