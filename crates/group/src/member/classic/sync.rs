//! SyncGroup: the leader's plan goes out with it, everybody's share comes back.

use super::{
    Classic, Remembered,
    state::{Applying, Joining, State, SyncStep},
};
use crate::{
    Cause, Instant, TopicPartition,
    assignor::RebalanceProtocol,
    member::{
        MemberError, Output, SendError,
        leader::{Planning, flat},
    },
};
use std::{collections::BTreeSet, sync::Arc};
use tontine_wire::{
    ErrorCode,
    api::{
        Response,
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    consumer_protocol::{Assignment, PROTOCOL_TYPE},
};

const API: &str = "SyncGroup";

impl Classic {
    /// A leader plans at once if all topics of the group are known already, or asks for metadata unless that was done just
    /// now.
    pub(super) fn lead_with_metadata(&mut self, asked: bool) {
        let Some(watch) = &self.watch else { return };
        if watch.is_covered_by(&self.topics) {
            self.take_metadata();
        } else if !asked {
            self.outbox.push(Output::RefreshTopics { topics: self.interest.clone() });
        }
    }

    /// Leads with the metadata at hand.
    pub(super) fn take_metadata(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.adopt(&self.topics);
        }
        self.plan_now();
    }

    /// Has the partitions dealt with the metadata at hand. Does nothing unless this member leads and has not planned yet.
    pub(super) fn plan_now(&mut self) {
        let Some(syncing) = self.state.syncing_mut() else { return };
        let SyncStep::Planning { group, .. } = &mut syncing.step else { return };
        let Some(assignor) = self.config.assignor(&syncing.assignor) else { return };
        let ticket = self.outbox.ticket();
        let planning = Planning::new(ticket, assignor.clone(), std::mem::take(group), &self.topics);
        if let Some(watch) = &mut self.watch {
            watch.planned_from(&self.topics);
        }
        self.outbox.push(Output::Plan(planning));
        syncing.step = SyncStep::Dealing { ticket };
    }

    /// The others wait for a plan until this member, asked by the next poll, joins again or is expelled.
    pub(super) fn planning_failed(&mut self, now: Instant, error: MemberError) {
        if let State::Leaving(leaving) = &mut self.state {
            leaving.round = None;
            self.report(error);
        } else {
            self.join_failed(now, error);
        }
    }

    pub(super) fn send_sync(&mut self) {
        let Some(request) = self.sync_request() else { return };
        let ticket = self.outbox.send(request, Some(self.config.request_timeout));
        let Some(syncing) = self.state.syncing_mut() else { return };
        let SyncStep::Ready { plan } = &mut syncing.step else { return };
        syncing.step = SyncStep::Sent { ticket, plan: std::mem::take(plan) };
    }

    fn sync_request(&self) -> Option<SyncGroupRequest> {
        let syncing = self.state.syncing()?;
        let SyncStep::Ready { plan } = &syncing.step else { return None };
        Some(SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.identity.generation?,
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.config.instance_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(syncing.assignor.clone()),
            assignments: plan.clone(),
        })
    }

    /// A lost answer is no reason to join again, unlike in Kafka's client: SyncGroup can be repeated, and a leader that joins
    /// again makes everybody rebalance.
    pub(super) fn sync_answered(&mut self, now: Instant, result: Result<Response, SendError>) {
        match result {
            Ok(Response::SyncGroup(response)) if response.error_code.is_ok() => self.synced(now, response),
            Ok(Response::SyncGroup(response)) => self.sync_refused(now, response.error_code),
            Ok(_) => self.join_failed(now, nonsense("it is the answer to another request")),
            Err(SendError::Unsupported | SendError::TooOld) => {
                self.join_failed(now, MemberError::Unsupported { api: API })
            }
            Err(SendError::Disconnected | SendError::TimedOut) => {
                self.lose_coordinator();
                self.retry_later(now);
            }
        }
    }

    fn sync_refused(&mut self, now: Instant, code: ErrorCode) {
        match code {
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.retry_soon(now);
                self.go(State::Joining(Joining::new(now)), Some(Cause::Coordinator));
            }
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => {
                self.retry_soon(now);
                self.expelled(code);
            }
            ErrorCode::FENCED_INSTANCE_ID => self.fenced_by_twin(),
            code if code.needs_coordinator() => {
                self.lose_coordinator();
                self.retry_later(now);
            }
            code if code.is_retriable() => self.retry_later(now),
            code => self.join_failed(now, self.refusal(API, code)),
        }
    }

    fn synced(&mut self, now: Instant, response: SyncGroupResponse) {
        let share = self.check_sync(&response).and_then(|()| {
            let read = Assignment::from_assignment(response.assignment);
            read.map_err(|error| nonsense(&error.to_string()))
        });
        match share {
            Ok(share) => self.take_share(now, flat(share.assigned_partitions)),
            Err(error) => self.join_failed(now, error),
        }
    }

    fn check_sync(&self, response: &SyncGroupResponse) -> Result<(), MemberError> {
        let State::Syncing(syncing) = &self.state else { return Ok(()) };
        let kind = response.protocol_type.as_ref().is_some_and(|kind| kind != PROTOCOL_TYPE);
        let name = response.protocol_name.as_ref().is_some_and(|name| *name != syncing.assignor);
        if kind || name {
            return Err(self.refusal(API, ErrorCode::INCONSISTENT_GROUP_PROTOCOL));
        }
        Ok(())
    }

    fn take_share(&mut self, now: Instant, share: BTreeSet<TopicPartition>) {
        self.backoff.reset();
        self.retry_at = now;
        self.heart.served(now);
        if self.protocol == RebalanceProtocol::Cooperative {
            self.heart.quicken(now, &mut self.jitter);
        }
        let foreign: BTreeSet<_> = share.iter().filter(|tp| !self.subscription.contains(&tp.topic)).collect();
        let topics: BTreeSet<Arc<str>> = foreign.into_iter().map(|tp| tp.topic.clone()).collect();
        if topics.is_empty() {
            self.mismatches = 0;
        } else if self.joined_as == self.subscription && !self.is_first_mismatch() {
            self.report(MemberError::ForeignTopics { topics: topics.iter().cloned().collect() });
        } else {
            // Joining again brings the leader the subscription that it did not know.
            let member = self.identity.member_id.clone();
            return self.prepare(now, Cause::SubscriptionChanged { member });
        }
        self.apply(share.into_iter().filter(|tp| !topics.contains(&tp.topic)).collect());
    }

    /// A static member that came back with other topics gets its old share first, and once is no fault of the leader's.
    fn is_first_mismatch(&mut self) -> bool {
        self.mismatches += 1;
        self.mismatches == 1
    }

    fn apply(&mut self, target: BTreeSet<TopicPartition>) {
        self.remembered = Remembered {
            partitions: target.iter().cloned().collect(),
            generation: self.identity.generation.unwrap_or(-1),
        };
        self.go(State::Applying(Applying { target, gave_up: false, begun: false }), None);
    }
}

fn nonsense(what: &str) -> MemberError {
    MemberError::Nonsense { api: API, what: what.to_owned() }
}
