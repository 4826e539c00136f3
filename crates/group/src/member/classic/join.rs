//! JoinGroup: what it says, and what each answer to it means (table D.3 of Kafka's client, retries included).

use super::{
    Classic, Identity,
    audit::Audit,
    state::{Joining, Round, State, SyncStep, Syncing},
};
use crate::{
    Instant,
    member::{
        MemberError, SendError,
        leader::{Group, by_topic, guarded},
        reason,
        watch::Watch,
    },
};
use std::time::Duration;
use tontine_wire::{
    ErrorCode,
    api::{
        Response,
        join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
    },
    consumer_protocol::{PROTOCOL_TYPE, Subscription},
};

/// The version in which subscriptions are written.
const SUBSCRIPTION_VERSION: i16 = 3;
/// How much longer than the rebalance timeout an answer to JoinGroup may take.
const JOIN_SLACK: Duration = Duration::from_secs(5);
/// How long the leader waits for metadata at most before it plans with what it has.
const METADATA_PATIENCE: Duration = Duration::from_secs(5);
/// How often a round starts over at once before that has to wait. A group that many members join at a time needs a few.
const FREE_RETRIES: u32 = 5;
const API: &str = "JoinGroup";

pub(super) fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

impl Classic {
    pub(super) fn send_join(&mut self) {
        let request = self.join_request();
        self.joined_as.clone_from(&self.subscription);
        // Whatever asked for another round before this one is served by it.
        self.rejoin = None;
        let timeout =
            self.config.rebalance_timeout.saturating_add(JOIN_SLACK).max(self.config.request_timeout);
        let ticket = self.outbox.send(request, Some(timeout));
        self.join_sent = Some(ticket);
        if let State::Joining(joining) = &mut self.state {
            joining.request = Some(ticket);
        }
    }

    fn join_request(&self) -> JoinGroupRequest {
        JoinGroupRequest {
            group_id: self.config.group_id.clone(),
            session_timeout_ms: millis(self.config.session_timeout),
            rebalance_timeout_ms: millis(self.config.rebalance_timeout),
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.config.instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: self.protocols(),
            reason: self.last_cause.as_ref().map(reason::of_cause),
        }
    }

    /// One subscription for each assignor on offer: they differ in what the assignor wants to remember.
    fn protocols(&self) -> Vec<JoinGroupRequestProtocol> {
        let subscription = Subscription {
            topics: self.subscription.iter().map(|topic| topic.to_string()).collect(),
            user_data: None,
            owned_partitions: by_topic(self.owned.iter().cloned()),
            generation_id: self.identity.generation.unwrap_or(-1),
            rack_id: self.config.rack.clone(),
        };
        let mut protocols = Vec::new();
        for assignor in &self.config.assignors {
            // One that panics here has nothing to remember.
            let remembered = || assignor.user_data(&self.remembered.partitions, self.remembered.generation);
            let user_data = guarded(remembered).unwrap_or_default();
            let subscription = Subscription { user_data, ..subscription.clone() };
            let metadata = subscription.to_metadata(SUBSCRIPTION_VERSION);
            protocols.push(JoinGroupRequestProtocol { name: assignor.name().to_owned(), metadata });
        }
        protocols
    }

    pub(super) fn join_answered(&mut self, now: Instant, result: Result<Response, SendError>) {
        match result {
            Ok(Response::JoinGroup(response)) if response.error_code.is_ok() => self.joined(now, response),
            Ok(Response::JoinGroup(response)) => self.join_refused(now, response),
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

    fn join_refused(&mut self, now: Instant, response: JoinGroupResponse) {
        match response.error_code {
            ErrorCode::MEMBER_ID_REQUIRED if !response.member_id.is_empty() => {
                self.identity.member_id = response.member_id;
                self.retry_soon(now);
            }
            ErrorCode::REBALANCE_IN_PROGRESS => self.retry_soon(now),
            code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION) => {
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

    /// What the application hears of a code.
    pub(super) fn refusal(&self, api: &'static str, code: ErrorCode) -> MemberError {
        if code != ErrorCode::INCONSISTENT_GROUP_PROTOCOL {
            return MemberError::Refused { api, code };
        }
        let names: Vec<&str> = self.config.assignors.iter().map(|assignor| assignor.name()).collect();
        MemberError::NothingInCommon { api, offers: names.join(", ") }
    }

    /// The application has to see this; its next poll tries again.
    pub(super) fn join_failed(&mut self, now: Instant, error: MemberError) {
        self.report(error);
        self.retry_later(now);
        let joining = Joining { await_poll: true, ..Joining::new(now) };
        match &mut self.state {
            State::Joining(state) => *state = joining,
            State::Unjoined
            | State::Preparing
            | State::Syncing(_)
            | State::Applying(_)
            | State::Stable
            | State::Leaving(_)
            | State::Fenced => self.go(State::Joining(joining), None),
        }
    }

    /// Tries again at once, since the answer said what to do differently; not without end if that does not help.
    pub(super) fn retry_soon(&mut self, now: Instant) {
        self.retry_at = now + self.backoff.fail_freely(FREE_RETRIES, &mut self.jitter);
    }

    pub(super) fn retry_later(&mut self, now: Instant) {
        self.retry_at = now + self.backoff.fail(&mut self.jitter);
    }

    pub(super) fn joined(&mut self, now: Instant, response: JoinGroupResponse) {
        let assignor = match self.check_join(&response) {
            Ok(assignor) => assignor,
            Err(error) => return self.join_failed(now, error),
        };
        if self.was_left_behind(&response) {
            return self.expelled(ErrorCode::ILLEGAL_GENERATION);
        }
        let leads = response.leader == response.member_id;
        let returns = self.config.instance_id.is_some() && self.identity.member_id.is_empty();
        self.identity = Identity { member_id: response.member_id, generation: Some(response.generation_id) };
        self.retry_at = now;
        self.heart.start(now);
        self.watch = None;
        self.audit = match (returns, leads) {
            (true, false) => Audit::of_follower(now),
            (true, true) if response.skip_assignment => Audit::of_leader(now),
            (true, true) | (false, _) => Audit::Idle,
        };
        let step = if leads {
            self.lead(now, Group::read(response.members), response.skip_assignment)
        } else {
            self.watch_unled(&response.leader);
            SyncStep::Ready { plan: Vec::new() }
        };
        let asked = self.tell_interest();
        let syncing = Syncing { assignor, step };
        match &mut self.state {
            State::Leaving(leaving) => leaving.round = Some(Round::Syncing(syncing)),
            _ => self.go(State::Syncing(syncing), None),
        }
        self.lead_with_metadata(asked);
    }

    /// Whether the group may have dealt what this member owns to others meanwhile. A static member that misses a round
    /// stays in the group (KIP-345), so that nothing but the generation tells it; a consumer group, which names no leader,
    /// takes the join of a member that it has put out for that of a new one. Going on with what it owns, the member would
    /// commit over the offsets of whoever had it since. Kafka's client does that.
    fn was_left_behind(&self, response: &JoinGroupResponse) -> bool {
        let missed = |own: i32| response.generation_id > own.saturating_add(1);
        let missed = self.config.instance_id.is_some() && self.identity.generation.is_some_and(missed);
        let unknown = matches!(&self.state, State::Joining(joining) if joining.unknown);
        let past = if response.leader.is_empty() { unknown } else { missed };
        past && !self.owned.is_empty()
    }

    pub(super) fn check_join(&self, response: &JoinGroupResponse) -> Result<String, MemberError> {
        let foreign = response.protocol_type.as_ref().is_some_and(|kind| kind != PROTOCOL_TYPE);
        let assignor = response.protocol_name.clone().unwrap_or_default();
        if foreign || self.config.assignor(&assignor).is_none() {
            return Err(self.refusal(API, ErrorCode::INCONSISTENT_GROUP_PROTOCOL));
        }
        if response.member_id.is_empty() || response.generation_id < 0 {
            return Err(nonsense("it names no member or no generation"));
        }
        Ok(assignor)
    }

    /// A consumer group names no leader. It may become a classic one without a round, when a static member of this protocol
    /// takes the seat of the last one of the other: then nobody knows that it leads, and nobody but these members sees
    /// that topics grow. In a consumer group their joins are answered at once and move nothing.
    fn watch_unled(&mut self, leader: &str) {
        if leader.is_empty() {
            self.watch = Some(Watch::new(self.subscription.clone(), false));
        }
    }

    /// Takes up the leader's duties. A static leader that came back to a stable group plans nothing, but watches (KIP-814).
    fn lead(&mut self, now: Instant, group: Group, skip_assignment: bool) -> SyncStep {
        let racks_matter = self.config.rack.is_some();
        self.watch = Some(Watch::new(group.topics().clone(), racks_matter));
        if skip_assignment {
            return SyncStep::Ready { plan: Vec::new() };
        }
        let until = now + METADATA_PATIENCE.min(self.config.rebalance_timeout / 2);
        SyncStep::Planning { group, until }
    }
}

fn nonsense(what: &str) -> MemberError {
    MemberError::Nonsense { api: API, what: what.to_owned() }
}
