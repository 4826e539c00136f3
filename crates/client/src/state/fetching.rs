//! Sends fetches and takes their answers.
//!
//! An error of one partition is about that partition only. Mirrors `FetchRequestManager`, `FetchCollector`.

use super::{ConsumerState, Flight, Tell};
use crate::{
    Error,
    cluster::{Lane, SendError, Target, Ticket},
    fetch::{
        partition::Phase,
        plan::{UnderWay, Wanted, most_of_one},
        portion::Brought,
        position::Position,
    },
    lease::{Chunk, Delivery, Incarnation, LogEnd},
};
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tontine_group::TopicPartition;
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        Response,
        fetch::{FetchRequest, FetchResponse, NodeEndpoint, PartitionData},
    },
};

impl ConsumerState {
    pub(super) fn send_fetches(&mut self) {
        if !self.fetches.has_changed() || self.closing.is_some() {
            return;
        }
        let plan = self.fetches.plan(self.now, self.cluster.metadata());
        for (node, wanted) in plan.by_node {
            self.send_fetch(node, wanted);
        }
        for (node, wanted) in plan.aside {
            self.send_aside(node, wanted);
        }
        if !plan.leaderless.is_empty() {
            for name in plan.leaderless {
                self.leader_failed(&name);
            }
            self.cluster.refresh_metadata(self.now);
        }
    }

    /// It has no leader, or one that does not lead any more: it is tried after a pause, or when another one is known.
    pub(super) fn leader_failed(&mut self, name: &TopicPartition) {
        let known = self.cluster.metadata().partition(name).filter(|p| p.leader.is_some());
        let epoch = known.and_then(|p| p.leader_epoch);
        if let Some(partition) = self.fetches.partitions.get_mut(name) {
            partition.awaits_leader(epoch);
        }
        self.partition_failed(name);
    }

    fn send_aside(&mut self, node: i32, wanted: Wanted) {
        let request = self.fetches.request_aside(node, &wanted);
        let under_way = self.start_fetch(node, Lane::Other, wanted, request);
        self.flights.insert(under_way.ticket, Flight::Aside(node));
        self.fetches.nodes.entry(node).or_default().aside = Some(under_way);
    }

    fn send_fetch(&mut self, node: i32, wanted: Wanted) {
        let request = self.fetches.request(node, &wanted);
        let under_way = self.start_fetch(node, Lane::Fetch, wanted, request);
        self.flights.insert(under_way.ticket, Flight::Fetch(node));
        self.fetches.nodes.entry(node).or_default().under_way = Some(under_way);
    }

    fn start_fetch(&mut self, node: i32, lane: Lane, asked: Wanted, request: FetchRequest) -> UnderWay {
        let timeout =
            self.settings.request_timeout.max(self.settings.fetch.max_wait + Duration::from_secs(1));
        // Topic ids are used only when all of them are known.
        let has_ids = asked.iter().all(|want| !want.asked.topic_id.is_zero());
        let most = if has_ids { i16::MAX } else { 12 };
        let ticket =
            self.cluster.send_at_most(self.now, Target::Node(node), lane, request.into(), timeout, most);
        UnderWay { ticket, since: self.now, asked }
    }

    /// What was asked for while a long poll is under way.
    pub(super) fn aside_responded(&mut self, id: i32, result: Result<Response, SendError>) {
        self.fetches.touched.insert(id);
        let Some(node) = self.fetches.nodes.get_mut(&id) else { return };
        let Some(under_way) = node.aside.take() else { return };
        let answer = result.ok().and_then(|response| FetchResponse::try_from(response).ok());
        let has_records = |p: &PartitionData| p.records.as_ref().is_some_and(|r| !r.is_empty());
        let brought =
            answer.as_ref().is_some_and(|a| a.responses.iter().flat_map(|t| &t.partitions).any(has_records));
        node.aside_answered(self.now, brought);
        // Without an answer there is nothing to do: the long poll will tell whether the broker is gone.
        if let Some(answer) = answer.filter(|answer| answer.error_code.is_ok()) {
            self.take_answer(id, &under_way, answer);
        }
    }

    pub(super) fn partition_failed(&mut self, name: &TopicPartition) {
        let (base, max) = (self.settings.retry_backoff, self.settings.retry_backoff_max);
        if let Some(partition) = self.fetches.partitions.get_mut(name) {
            partition.failed(self.now, base, max);
            let at = partition.retry_at();
            self.fetches.retry(at);
        }
    }

    pub(super) fn fetch_responded(&mut self, id: i32, ticket: Ticket, result: Result<Response, SendError>) {
        self.fetches.touched.insert(id);
        let Some(node) = self.fetches.nodes.get_mut(&id) else { return };
        let Some(under_way) = node.under_way.take_if(|u| u.ticket == ticket) else { return };
        match result.map(FetchResponse::try_from) {
            Ok(Ok(response)) => {
                node.long_poll_answered();
                node.session.answered(response.error_code, response.session_id);
                if response.throttle_time_ms > 0 {
                    let pause = Duration::from_millis(response.throttle_time_ms.unsigned_abs().into());
                    node.not_before = Some(self.now + pause.min(self.settings.request_timeout));
                }
                let took = self.now.saturating_since(under_way.since);
                let asked_of_each = usize::try_from(most_of_one(&under_way.asked)).unwrap_or(0);
                let brought = self.take_answer(id, &under_way, response);
                if let Some(node) = self.fetches.nodes.get_mut(&id) {
                    node.portion.answered(took, asked_of_each, &brought);
                }
            }
            Ok(Err(_)) | Err(_) => {
                node.session.broken();
                self.fetch_failed(id, under_way);
            }
        }
    }

    /// The broker could not be reached: perhaps another one leads by now.
    fn fetch_failed(&mut self, id: i32, under_way: UnderWay) {
        let backoff = self.settings.retry_backoff;
        if let Some(node) = self.fetches.nodes.get_mut(&id) {
            node.not_before = Some(self.now + backoff);
        }
        for want in under_way.asked {
            if let Some(partition) = self.partition_as(&want.name, want.incarnation) {
                partition.preferred = None;
            }
        }
        self.fetches.reindex();
        self.cluster.refresh_metadata(self.now);
    }

    fn take_answer(&mut self, id: i32, under_way: &UnderWay, response: FetchResponse) -> Brought {
        if response.error_code.is_err() {
            let code = response.error_code;
            if code.needs_metadata() || code == ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR {
                self.cluster.refresh_metadata(self.now);
            }
            let forgotten = [ErrorCode::FETCH_SESSION_ID_NOT_FOUND, ErrorCode::INVALID_FETCH_SESSION_EPOCH];
            if !forgotten.contains(&code) {
                let backoff = self.settings.retry_backoff;
                if let Some(node) = self.fetches.nodes.get_mut(&id) {
                    node.not_before = Some(self.now + backoff);
                }
            }
            return Brought::default();
        }
        let (mut brought, mut hint) = (Brought::default(), 0);
        let endpoints: BTreeMap<i32, NodeEndpoint> =
            response.node_endpoints.into_iter().map(|node| (node.node_id, node)).collect();
        for topic in response.responses {
            let name = if topic.topic_id.is_zero() {
                Some(topic.topic.as_str().into())
            } else {
                self.asked_topic(under_way, topic.topic_id)
            };
            let Some(name) = name else { continue };
            for data in topic.partitions {
                let partition = TopicPartition::new(name.clone(), data.partition_index);
                // What was not asked for, or was asked for an ownership or place of the past, is dropped.
                let Some((incarnation, offset)) = under_way.asked_of(&partition, &mut hint) else { continue };
                let size = data.records.as_ref().map_or(0, Bytes::len);
                brought.bytes += size;
                brought.fullest = brought.fullest.max(size);
                if size > 0
                    && let Some(node) = self.fetches.nodes.get_mut(&id)
                {
                    node.session.served(&partition);
                }
                let largest = self.take_data(&partition, incarnation, offset, data, &endpoints);
                brought.largest_batch = brought.largest_batch.max(largest);
            }
        }
        brought
    }

    /// The name of a topic that was asked for. Metadata may have forgotten it since: a deleted topic is answered with an
    /// error that has to reach its partitions.
    fn asked_topic(&self, under_way: &UnderWay, id: Uuid) -> Option<Arc<str>> {
        let named = self.cluster.metadata().topic_name(id).cloned();
        named.or_else(|| {
            let is_it =
                |name: &&TopicPartition| self.fetches.partitions.get(*name).is_some_and(|p| p.topic_id == id);
            under_way.asked.iter().map(|want| &want.name).find(is_it).map(|name| name.topic.clone())
        })
    }

    /// Answers the size of the largest batch.
    fn take_data(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        offset: i64,
        data: PartitionData,
        endpoints: &BTreeMap<i32, NodeEndpoint>,
    ) -> usize {
        let Some(partition) = self.partition_as(name, incarnation) else { return 0 };
        let Phase::Fetching(position) = partition.phase else { return 0 };
        if position.offset != offset {
            return 0;
        }
        if data.error_code.is_err() {
            self.take_error(name, incarnation, position, &data, endpoints);
            return 0;
        }
        let end = LogEnd { high_watermark: data.high_watermark, last_stable: data.last_stable_offset };
        let end_moved = partition.end.replace(end) != Some(end);
        partition.worked();
        let records = data.records.unwrap_or_default();
        let has_records = !records.is_empty();
        let largest_batch = if has_records { partition.queue(offset, &records) } else { 0 };
        if end_moved {
            self.tell(Tell::LogEnd { partition: name.clone(), incarnation, end });
        }
        if has_records {
            let aborted = data.aborted_transactions.unwrap_or_default();
            self.deliver(name, incarnation, Delivery::Chunk(Chunk { start: offset, records, aborted }));
        } else if data.preferred_read_replica >= 0 {
            self.prefer(name, incarnation, data.preferred_read_replica);
        }
        largest_batch
    }

    /// A follower is nearer than the leader.
    fn prefer(&mut self, name: &TopicPartition, incarnation: Incarnation, replica: i32) {
        let until = self.now + self.settings.metadata_max_age;
        if let Some(partition) = self.partition_as(name, incarnation) {
            partition.preferred = Some((replica, until));
            self.fetches.reindex();
        }
    }

    fn take_error(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        position: Position,
        data: &PartitionData,
        endpoints: &BTreeMap<i32, NodeEndpoint>,
    ) {
        match data.error_code {
            ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::FENCED_LEADER_EPOCH => {
                if !self.take_leader(name, incarnation, data, endpoints) {
                    self.try_later(name, incarnation, true);
                }
            }
            ErrorCode::OFFSET_OUT_OF_RANGE => self.out_of_range(name, incarnation, position),
            ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::UNKNOWN_SERVER_ERROR
            | ErrorCode::OFFSET_NOT_AVAILABLE => {
                self.try_later(name, incarnation, data.error_code == ErrorCode::OFFSET_NOT_AVAILABLE);
            }
            ErrorCode::CORRUPT_MESSAGE => {
                let error =
                    format!("{name} at offset {}: the broker says its data is corrupt", position.offset);
                self.stuck(name, incarnation, Error::Malformed(error.into()));
            }
            code if code.is_retriable() => self.try_later(name, incarnation, true),
            code => {
                // It is reported, and tried again: rights may be granted meanwhile.
                let error =
                    Error::broker(code, format!("fetching {name} at offset {}", position.offset), None);
                self.tell(Tell::Failed { error, fatal: false });
                self.try_later(name, incarnation, false);
            }
        }
    }

    fn try_later(&mut self, name: &TopicPartition, incarnation: Incarnation, refresh: bool) {
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        if partition.preferred.take().is_some() {
            self.fetches.reindex();
        }
        if refresh {
            self.leader_failed(name);
            self.cluster.refresh_metadata(self.now);
        } else {
            self.partition_failed(name);
        }
    }

    fn stuck(&mut self, name: &TopicPartition, incarnation: Incarnation, error: Error) {
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        partition.phase = Phase::Stuck;
        self.deliver(name, incarnation, Delivery::Failed(error));
    }

    /// The answer names the new leader: it is asked at once, without waiting for metadata.
    fn take_leader(
        &mut self,
        name: &TopicPartition,
        incarnation: Incarnation,
        data: &PartitionData,
        endpoints: &BTreeMap<i32, NodeEndpoint>,
    ) -> bool {
        let leader = &data.current_leader;
        if leader.leader_id < 0 {
            return false;
        }
        let endpoint = endpoints.get(&leader.leader_id);
        let endpoint = endpoint.and_then(|e| Some((e.host.clone(), u16::try_from(e.port).ok()?)));
        if endpoint.is_none() && !self.cluster.metadata().brokers().contains_key(&leader.leader_id) {
            return false;
        }
        if !self.cluster.update_leader(name, leader.leader_id, leader.leader_epoch, endpoint) {
            return false;
        }
        if let Some(partition) = self.partition_as(name, incarnation) {
            partition.preferred = None;
        }
        self.fetches.reindex();
        self.doubt(name);
        true
    }

    fn out_of_range(&mut self, name: &TopicPartition, incarnation: Incarnation, position: Position) {
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        if partition.preferred.take().is_some() {
            self.fetches.reindex();
            // A follower may be behind: only the leader's word counts.
            return;
        }
        self.reset(
            name,
            incarnation,
            Error::OffsetOutOfRange { partition: name.clone(), offset: position.offset },
        );
    }
}
