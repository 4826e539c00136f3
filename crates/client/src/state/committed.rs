//! Reads committed offsets: for partitions that have no position yet, and for the application.
//!
//! Offsets are read as stable ones: where a transaction may still change them, the coordinator says so and is asked
//! again. With the consumer protocol a member says who it is and at which epoch, so that it never starts from what somebody
//! else has moved on from; where the epoch has changed meanwhile it asks again under the new one. Mirrors `CommitRequestManager.OffsetFetchRequestState`.

use super::{Answer, CallId, ConsumerState, Tell, topic_ids::TopicIds};
use crate::{
    Error,
    cluster::{Lane, SendError, Target},
    fetch::partition::Phase,
    lease::Incarnation,
    offsets::OffsetAndMetadata,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tontine_group::{Instant, TopicPartition, ids::Membership, member::GroupProtocol};
use tontine_wire::{
    ErrorCode,
    api::{
        Response,
        offset_fetch::{
            OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
            OffsetFetchResponse,
        },
    },
};

/// A request under way.
#[derive(Debug)]
pub(super) struct Flight {
    purpose: Purpose,
    /// The topics that it named by id.
    ids: TopicIds,
    /// What it was sent under.
    membership: Option<Membership>,
}

/// What an answer is for.
#[derive(Debug)]
enum Purpose {
    /// These partitions start there.
    Start(Vec<(TopicPartition, Incarnation)>),
    /// The application asked.
    Call(Call),
}

/// The application asks for committed offsets.
#[derive(Debug)]
pub(super) struct Call {
    call: CallId,
    partitions: BTreeSet<TopicPartition>,
    deadline: Instant,
    timeout: Duration,
    not_before: Instant,
    attempts: u32,
}

/// Calls that are not under way.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

impl Calls {
    pub(super) fn wake(&self) -> Option<Instant> {
        self.0.iter().map(|call| call.not_before.min(call.deadline)).min()
    }
}

type Found = BTreeMap<TopicPartition, Result<Option<OffsetAndMetadata>, ErrorCode>>;

impl ConsumerState {
    pub(super) fn ask_committed(
        &mut self,
        call: CallId,
        partitions: BTreeSet<TopicPartition>,
        timeout: Duration,
    ) {
        let (now, attempts) = (self.now, 0);
        self.committed.0.push(Call {
            call,
            partitions,
            deadline: now + timeout,
            timeout,
            not_before: now,
            attempts,
        });
    }

    pub(super) fn send_committed(&mut self) {
        if self.group.is_none() || self.closing.is_some() {
            return;
        }
        let due = self.fetches.due(self.now, |phase| *phase == Phase::Committed);
        if !due.is_empty() {
            let mut start = Vec::new();
            for name in due {
                if let Some(partition) = self.fetches.partitions.get_mut(&name) {
                    partition.phase = Phase::AskedCommitted;
                    start.push((name, partition.incarnation));
                }
            }
            let names: Vec<_> = start.iter().map(|(name, _)| name.clone()).collect();
            self.send_offset_fetch(&names, self.settings.request_timeout, Purpose::Start(start));
        }
        let now = self.now;
        let (ready, waiting) =
            std::mem::take(&mut self.committed.0).into_iter().partition(|c| c.not_before <= now);
        self.committed.0 = waiting;
        let ready: Vec<Call> = ready;
        for call in ready {
            let names: Vec<_> = call.partitions.iter().cloned().collect();
            let left = call.deadline.saturating_since(now).min(self.settings.request_timeout);
            self.send_offset_fetch(&names, left, Purpose::Call(call));
        }
    }

    fn send_offset_fetch(&mut self, names: &[TopicPartition], timeout: Duration, purpose: Purpose) {
        let Some(group) = &self.group else { return };
        let target = Target::Coordinator(group.id.clone());
        let membership =
            group.member.membership().filter(|_| group.member.protocol() == GroupProtocol::Consumer);
        let ids = self.topic_ids(names, &BTreeMap::new());
        let request = request(&group.id, membership.as_ref(), names, &ids);
        let ticket = self.cluster.send_at_most(
            self.now,
            target,
            Lane::Group,
            request.into(),
            timeout,
            ids.highest_version(),
        );
        let flight = Flight { purpose, ids, membership };
        self.flights.insert(ticket, super::Flight::Committed(flight));
    }

    pub(super) fn committed_responded(&mut self, flight: Flight, result: Result<Response, SendError>) {
        let Flight { purpose, ids, membership } = flight;
        match read(result, &ids) {
            Ok(found) => match purpose {
                Purpose::Start(start) => self.start_from(start, &found),
                Purpose::Call(call) => self.call_from(call, &found),
            },
            Err(error)
                if error.code().is_some_and(is_about_epoch) && self.has_moved_on(membership.as_ref()) =>
            {
                self.ask_again(purpose);
            }
            Err(error) => {
                if error.code().is_some_and(ErrorCode::needs_coordinator)
                    && let Some(group) = &self.group
                {
                    self.cluster.coordinator_lost(self.now, &group.id);
                }
                self.committed_failed(purpose, error);
            }
        }
    }

    /// Whether the membership is another one than a request went out under.
    fn has_moved_on(&self, sent_under: Option<&Membership>) -> bool {
        let now = self.group.as_ref().and_then(|group| group.member.membership());
        now.is_some() && now.as_ref() != sent_under
    }

    /// At once, since nothing is wrong.
    fn ask_again(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Start(start) => {
                for (name, incarnation) in start {
                    if let Some(partition) = self.partition_as(&name, incarnation) {
                        partition.phase = Phase::Committed;
                        self.fetches.seeking = true;
                    }
                }
            }
            Purpose::Call(call) => self.committed.0.push(Call { not_before: self.now, ..call }),
        }
    }

    fn start_from(&mut self, start: Vec<(TopicPartition, Incarnation)>, found: &Found) {
        for (name, incarnation) in start {
            match found.get(&name) {
                Some(Ok(at)) => self.committed_known(&name, incarnation, at.as_ref()),
                Some(Err(code)) => self.start_failed(&name, incarnation, *code),
                None => self.committed_known(&name, incarnation, None),
            }
        }
        self.fetches.stale = true;
    }

    fn start_failed(&mut self, name: &TopicPartition, incarnation: Incarnation, code: ErrorCode) {
        let Some(partition) = self.partition_as(name, incarnation) else { return };
        partition.phase = Phase::Committed;
        self.partition_failed(name);
        if !code.is_retriable() && !is_about_membership(code) {
            let error = Error::broker(code, format!("reading the committed offset of {name}"), None);
            self.tell(Tell::Failed { error, fatal: false });
        }
    }

    fn call_from(&mut self, call: Call, found: &Found) {
        let mut answer = Vec::new();
        for name in &call.partitions {
            match found.get(name) {
                Some(Ok(at)) => answer.push((name.clone(), at.clone())),
                Some(Err(code)) => {
                    let error = Error::broker(*code, format!("reading the committed offset of {name}"), None);
                    return self.committed_failed(Purpose::Call(call), error);
                }
                None => answer.push((name.clone(), None)),
            }
        }
        self.answer(call.call, Ok(Answer::Committed(answer)));
    }

    fn committed_failed(&mut self, purpose: Purpose, error: Error) {
        match purpose {
            Purpose::Start(start) => {
                let mut needed = false;
                for (name, incarnation) in start {
                    if let Some(partition) = self.partition_as(&name, incarnation) {
                        partition.phase = Phase::Committed;
                        self.partition_failed(&name);
                        needed = true;
                    }
                }
                // Nobody has to hear of a place that nobody starts from any more.
                if needed && !error.is_retriable() && !error.code().is_some_and(is_about_membership) {
                    self.tell(Tell::Failed { error, fatal: false });
                }
            }
            Purpose::Call(mut call) => {
                let pause = self.settings.retry_backoff.saturating_mul(1 << call.attempts.min(10));
                call.not_before = self.now + pause.min(self.settings.retry_backoff_max);
                call.attempts += 1;
                let may_pass = error.is_retriable() || error.code().is_some_and(is_about_epoch);
                if !may_pass {
                    return self.answer(call.call, Err(error));
                }
                if call.not_before >= call.deadline {
                    let why = Some(error.to_string().into());
                    let what = "reading committed offsets".to_owned();
                    return self.answer(call.call, Err(Error::Timeout { what, after: call.timeout, why }));
                }
                self.committed.0.push(call);
            }
        }
    }

    /// The coordinator cannot be had at all.
    pub(super) fn fail_committed(&mut self, error: &Error) {
        for call in std::mem::take(&mut self.committed.0) {
            self.answer(call.call, Err(error.clone()));
        }
    }
}

/// Every version takes its own part: one group by itself, or a list of groups.
fn request(
    group: &str,
    membership: Option<&Membership>,
    names: &[TopicPartition],
    ids: &TopicIds,
) -> OffsetFetchRequest {
    let mut topics: Vec<OffsetFetchRequestTopics> = Vec::new();
    for name in names {
        match topics.last_mut().filter(|topic| *topic.name == *name.topic) {
            Some(topic) => topic.partition_indexes.push(name.partition),
            None => topics.push(OffsetFetchRequestTopics {
                name: name.topic.to_string(),
                topic_id: ids.get(&name.topic),
                partition_indexes: vec![name.partition],
            }),
        }
    }
    let single = topics.iter().map(|topic| OffsetFetchRequestTopic {
        name: topic.name.clone(),
        partition_indexes: topic.partition_indexes.clone(),
    });
    OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: Some(single.collect()),
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            member_id: membership.map(|m| m.member_id.clone()),
            member_epoch: membership.map_or(-1, |m| m.generation),
            topics: Some(topics),
        }],
        require_stable: true,
    }
}

fn read(result: Result<Response, SendError>, ids: &TopicIds) -> Result<Found, Error> {
    let response = OffsetFetchResponse::try_from(result?)
        .map_err(|_| Error::Malformed("another answer than to a read of committed offsets came".into()))?;
    let (mut found, mut error) = (Found::new(), response.error_code);
    for topic in response.topics {
        for p in topic.partitions {
            let at = (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code);
            found.insert(TopicPartition::new(topic.name.as_str(), p.partition_index), one(at));
        }
    }
    for group in response.groups {
        error = if error.is_ok() { group.error_code } else { error };
        for topic in group.topics {
            for p in topic.partitions {
                let at = (p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code);
                let name = ids.name(&topic.name, topic.topic_id);
                found.insert(TopicPartition::new(name, p.partition_index), one(at));
            }
        }
    }
    match error.into_result() {
        Ok(()) => Ok(found),
        Err(code) => Err(Error::broker(code, "reading committed offsets", None)),
    }
}

/// The membership's own requests find out what is true about it; offsets are read again meanwhile.
fn is_about_membership(code: ErrorCode) -> bool {
    is_about_epoch(code) || code == ErrorCode::ILLEGAL_GENERATION
}

/// The member, as it named itself, is not or not any more what the coordinator knows.
fn is_about_epoch(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::STALE_MEMBER_EPOCH)
}

fn one(
    (offset, epoch, metadata, code): (i64, i32, Option<String>, ErrorCode),
) -> Result<Option<OffsetAndMetadata>, ErrorCode> {
    code.into_result()?;
    let at = OffsetAndMetadata {
        offset,
        leader_epoch: (epoch >= 0).then_some(epoch),
        metadata: metadata.unwrap_or_default(),
    };
    Ok((offset >= 0).then_some(at))
}
