//! Looks up places in logs: first, last, or by timestamp; for partitions that have to be reset, and for the application.
//!
//! Each broker is asked for the partitions it leads. Everything but a lack of rights is tried again. Mirrors
//! `OffsetsRequestManager`.

use super::{Answer, CallId, ConsumerState, Tell};
use crate::{
    Error,
    cluster::{Lane, SendError, Target},
    fetch::partition::Phase,
    lease::Incarnation,
    offsets::{OffsetAndTimestamp, Spot},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tontine_group::{Instant, TopicPartition};
use tontine_wire::{
    ErrorCode,
    api::{
        Response,
        list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic},
    },
};

/// What an answer is for.
#[derive(Debug)]
pub(super) struct Flight {
    asked: BTreeMap<TopicPartition, (Spot, For)>,
}

/// Whom one partition of a lookup is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum For {
    /// The partition starts there.
    Start(Incarnation),
    /// The application asked.
    Call(CallId),
}

/// What the application asked for and does not know yet.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    calls: BTreeMap<CallId, Call>,
    topics: Vec<(CallId, Arc<str>, Instant, Duration)>,
}

#[derive(Debug)]
struct Call {
    /// Not asked, or to be asked again.
    open: BTreeMap<TopicPartition, Spot>,
    under_way: usize,
    found: Vec<(TopicPartition, Option<OffsetAndTimestamp>)>,
    deadline: Instant,
    timeout: Duration,
    not_before: Instant,
    attempts: u32,
    why: Option<Error>,
}

impl Lookups {
    pub(super) fn topics(&self) -> impl Iterator<Item = Arc<str>> + '_ {
        let of_calls = self.calls.values().flat_map(|call| call.open.keys().map(|name| name.topic.clone()));
        of_calls.chain(self.topics.iter().map(|(_, topic, ..)| topic.clone()))
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        let calls = self.calls.values().flat_map(|call| {
            let retry = (!call.open.is_empty()).then_some(call.not_before);
            [Some(call.deadline), retry].into_iter().flatten()
        });
        calls.chain(self.topics.iter().map(|(_, _, deadline, _)| *deadline)).min()
    }
}

type Requests = BTreeMap<i32, BTreeMap<TopicPartition, (Spot, For)>>;

impl ConsumerState {
    pub(super) fn ask_lookup(&mut self, call: CallId, spots: Vec<(TopicPartition, Spot)>, timeout: Duration) {
        if spots.is_empty() {
            return self.answer(call, Ok(Answer::Spots(Vec::new())));
        }
        let now = self.now;
        let state = Call {
            open: spots.into_iter().collect(),
            under_way: 0,
            found: Vec::new(),
            deadline: now + timeout,
            timeout,
            not_before: now,
            attempts: 0,
            why: None,
        };
        self.lookups.calls.insert(call, state);
        self.interest_is_stale = true;
        self.update_interest();
    }

    pub(super) fn ask_partitions(&mut self, call: CallId, topic: Arc<str>, timeout: Duration) {
        self.lookups.topics.push((call, topic, self.now + timeout, timeout));
        self.interest_is_stale = true;
        self.update_interest();
        self.answer_partitions();
        if !self.lookups.topics.is_empty() {
            self.cluster.refresh_metadata(self.now);
        }
    }

    /// Answers what metadata tells by now.
    pub(super) fn answer_partitions(&mut self) {
        for (call, topic, deadline, timeout) in std::mem::take(&mut self.lookups.topics) {
            match self
                .cluster
                .metadata()
                .topic(&topic)
                .filter(|t| t.error.is_ok() && !t.partitions.is_empty())
            {
                Some(known) => {
                    let partitions = known.partitions.iter().map(|(number, p)| (*number, p.leader)).collect();
                    self.answer(call, Ok(Answer::Partitions(partitions)));
                }
                None => self.lookups.topics.push((call, topic, deadline, timeout)),
            }
        }
    }

    pub(super) fn send_lookups(&mut self) {
        if self.closing.is_some() {
            return;
        }
        let mut requests = Requests::new();
        let mut leaderless = false;
        for name in self.fetches.due(self.now, |phase| matches!(phase, Phase::Spot(_))) {
            let leader = self.cluster.metadata().leader(&name);
            let Some(partition) = self.fetches.partitions.get_mut(&name) else { continue };
            let Phase::Spot(spot) = partition.phase else { continue };
            let incarnation = partition.incarnation;
            match leader {
                Some(node) => {
                    partition.phase = Phase::AskedSpot(spot);
                    requests.entry(node).or_default().insert(name, (spot, For::Start(incarnation)));
                }
                None => {
                    leaderless = true;
                    self.leader_failed(&name);
                }
            }
        }
        leaderless |= self.collect_calls(&mut requests);
        for (node, asked) in requests {
            self.send_lookup(node, asked);
        }
        if leaderless {
            self.cluster.refresh_metadata(self.now);
        }
    }

    /// Adds what the application asked for; whether a leader is missing.
    fn collect_calls(&mut self, requests: &mut Requests) -> bool {
        let (now, metadata) = (self.now, self.cluster.metadata());
        let (base, max) = (self.settings.retry_backoff, self.settings.retry_backoff_max);
        let mut leaderless = false;
        for (id, call) in self.lookups.calls.iter_mut().filter(|(_, call)| call.not_before <= now) {
            for (name, spot) in std::mem::take(&mut call.open) {
                // A partition may already be asked for in this round for another reason: then in the next one.
                let node = metadata
                    .leader(&name)
                    .filter(|n| !requests.get(n).is_some_and(|r| r.contains_key(&name)));
                match node {
                    Some(node) => {
                        call.under_way += 1;
                        requests.entry(node).or_default().insert(name, (spot, For::Call(*id)));
                    }
                    None => {
                        leaderless |= metadata.leader(&name).is_none();
                        call.open.insert(name, spot);
                    }
                }
            }
            if !call.open.is_empty() {
                call.not_before = now + base.saturating_mul(1 << call.attempts.min(10)).min(max);
                call.attempts += 1;
            }
        }
        leaderless
    }

    fn send_lookup(&mut self, node: i32, asked: BTreeMap<TopicPartition, (Spot, For)>) {
        let mut topics: Vec<ListOffsetsTopic> = Vec::new();
        for (name, (spot, _)) in &asked {
            let epoch = self.cluster.metadata().partition(name).and_then(|p| p.leader_epoch);
            let partition = ListOffsetsPartition {
                partition_index: name.partition,
                current_leader_epoch: epoch.unwrap_or(-1),
                timestamp: spot.timestamp(),
            };
            match topics.last_mut().filter(|topic| *topic.name == *name.topic) {
                Some(topic) => topic.partitions.push(partition),
                None => topics
                    .push(ListOffsetsTopic { name: name.topic.to_string(), partitions: vec![partition] }),
            }
        }
        let timeout = self.settings.request_timeout;
        let request = ListOffsetsRequest {
            replica_id: -1,
            isolation_level: i8::from(self.settings.is_read_committed()),
            topics,
            timeout_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
        };
        let ticket = self.cluster.send(self.now, Target::Node(node), Lane::Other, request.into(), timeout);
        self.flights.insert(ticket, super::Flight::Lookup(Flight { asked }));
    }

    pub(super) fn lookup_responded(&mut self, flight: Flight, result: Result<Response, SendError>) {
        let mut asked = flight.asked;
        match result.map(ListOffsetsResponse::try_from) {
            Ok(Ok(response)) => {
                for topic in response.topics {
                    let topic_name: Arc<str> = topic.name.as_str().into();
                    for p in topic.partitions {
                        let name = TopicPartition::new(topic_name.clone(), p.partition_index);
                        let Some((spot, whom)) = asked.remove(&name) else { continue };
                        let found = (p.offset >= 0).then_some(OffsetAndTimestamp {
                            offset: p.offset,
                            timestamp: p.timestamp,
                            leader_epoch: (p.leader_epoch >= 0).then_some(p.leader_epoch),
                        });
                        self.spot_answered(&name, spot, whom, p.error_code.into_result().map(|()| found));
                    }
                }
                for (name, (spot, whom)) in asked {
                    self.spot_answered(&name, spot, whom, Err(ErrorCode::UNKNOWN_SERVER_ERROR));
                }
            }
            Ok(Err(_)) | Err(_) => {
                for (name, (spot, whom)) in asked {
                    self.spot_answered(&name, spot, whom, Err(ErrorCode::NETWORK_EXCEPTION));
                }
            }
        }
        self.finish_lookups();
    }

    fn spot_answered(
        &mut self,
        name: &TopicPartition,
        spot: Spot,
        whom: For,
        answer: Result<Option<OffsetAndTimestamp>, ErrorCode>,
    ) {
        if answer.is_err() {
            self.cluster.refresh_metadata(self.now);
        }
        match whom {
            For::Start(incarnation) => self.start_answered(name, spot, incarnation, answer),
            For::Call(id) => self.call_answered(name, spot, id, answer),
        }
    }

    fn start_answered(
        &mut self,
        name: &TopicPartition,
        spot: Spot,
        incarnation: Incarnation,
        answer: Result<Option<OffsetAndTimestamp>, ErrorCode>,
    ) {
        match answer {
            Ok(found) => self.spot_known(name, incarnation, spot, found.as_ref()),
            Err(code) => {
                let Some(partition) = self.partition_as(name, incarnation) else { return };
                partition.phase = Phase::Spot(spot);
                self.leader_failed(name);
                if code == ErrorCode::TOPIC_AUTHORIZATION_FAILED {
                    let error = Error::broker(code, format!("looking up where {name} starts"), None);
                    self.tell(Tell::Failed { error, fatal: false });
                }
            }
        }
    }

    fn call_answered(
        &mut self,
        name: &TopicPartition,
        spot: Spot,
        id: CallId,
        answer: Result<Option<OffsetAndTimestamp>, ErrorCode>,
    ) {
        let now = self.now;
        let (base, max) = (self.settings.retry_backoff, self.settings.retry_backoff_max);
        let Some(call) = self.lookups.calls.get_mut(&id) else { return };
        call.under_way = call.under_way.saturating_sub(1);
        match answer {
            Ok(found) => call.found.push((name.clone(), found)),
            Err(
                code @ (ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT | ErrorCode::TOPIC_AUTHORIZATION_FAILED),
            ) => {
                let error = Error::broker(code, format!("looking up offsets of {name}"), None);
                self.lookups.calls.remove(&id);
                self.answer(id, Err(error));
            }
            Err(code) => {
                call.why = Some(Error::broker(code, format!("looking up offsets of {name}"), None));
                call.open.insert(name.clone(), spot);
                call.not_before = now + base.saturating_mul(1 << call.attempts.min(10)).min(max);
                call.attempts += 1;
            }
        }
    }

    /// Metadata came in: what waited for a leader goes on at once.
    pub(super) fn hurry_lookups(&mut self) {
        let metadata = self.cluster.metadata();
        for call in self.lookups.calls.values_mut() {
            if call.open.keys().all(|name| metadata.leader(name).is_some()) {
                call.not_before = self.now;
            }
        }
    }

    fn finish_lookups(&mut self) {
        let done = |call: &Call| call.open.is_empty() && call.under_way == 0;
        let ids: Vec<CallId> =
            self.lookups.calls.iter().filter(|(_, call)| done(call)).map(|(id, _)| *id).collect();
        for id in ids {
            if let Some(mut call) = self.lookups.calls.remove(&id) {
                call.found.sort_by(|a, b| a.0.cmp(&b.0));
                self.answer(id, Ok(Answer::Spots(call.found)));
            }
        }
    }

    pub(super) fn expire_lookups(&mut self) {
        let now = self.now;
        let late: Vec<CallId> =
            self.lookups.calls.iter().filter(|(_, call)| call.deadline <= now).map(|(id, _)| *id).collect();
        for id in late {
            if let Some(call) = self.lookups.calls.remove(&id) {
                let why = call.why.map(|error| error.to_string().into());
                let why = why.or_else(|| self.why_unplaced(call.open.keys()));
                let what = "looking up offsets".to_owned();
                self.answer(id, Err(Error::Timeout { what, after: call.timeout, why }));
            }
        }
        let topics = std::mem::take(&mut self.lookups.topics);
        for (call, topic, deadline, timeout) in topics {
            if deadline <= now {
                let what = format!("looking up the partitions of {topic}");
                let error = Error::Timeout { what, after: timeout, why: Some(self.why_unknown()) };
                self.answer(call, Err(error));
            } else {
                self.lookups.topics.push((call, topic, deadline, timeout));
            }
        }
    }

    /// Why nobody could be asked about these partitions.
    fn why_unplaced<'a>(&self, mut names: impl Iterator<Item = &'a TopicPartition>) -> Option<Arc<str>> {
        let metadata = self.cluster.metadata();
        let name = names.find(|name| metadata.leader(name).is_none())?;
        if metadata.topic(&name.topic).is_none_or(|topic| topic.error.is_err()) {
            return Some(self.why_unknown());
        }
        let exists = metadata.partition(name).is_some();
        Some(if exists { format!("{name} has no leader") } else { format!("{name} does not exist") }.into())
    }

    /// Why a topic is still not known: nobody could be asked, or nobody has it.
    fn why_unknown(&self) -> Arc<str> {
        let unknown = if self.cluster.metadata().brokers().is_empty() {
            "no broker of bootstrap.servers has answered so far"
        } else {
            "no broker knows the topic: create it first"
        };
        self.cluster.last_error().unwrap_or_else(|| unknown.into())
    }
}
