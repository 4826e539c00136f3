//! How consumer groups take part in the coordinator's turns: one decision of a group at a time, each on what the log
//! says; requests that come while records are on their way wait for them.

use super::{
    ConsumerRecord, Deferred, StoredConsumer, by_name, describe, downgrade,
    heartbeat::{Beaten, Heartbeat},
    leave,
    stored::ConsumerMember,
    target::Compute,
    upgrade,
    validate::{self, LEAVE, LEAVE_FOR_A_WHILE, Refusal},
};
use crate::{
    cause::Cause,
    coordinator::{
        ClientInfo, Coordinator, Ticket, append::After, durable::Group, effects::Decided, record::Record,
        timers::Duty, turn::group_tombstone,
    },
    time::{Duration, Instant},
    topics::Topics,
};
use std::sync::Arc;
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        Request, Response,
        consumer_group_describe::{
            ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedGroup,
        },
        consumer_group_heartbeat::*,
        leave_group::{MemberIdentity, MemberResponse},
    },
};

/// What a classic group of the same name has to become first.
enum Upgrade {
    /// There is none.
    NoNeed,
    /// It has no members and gives way.
    Empty,
    /// A consumer group with its members, by these records.
    Members(Box<StoredConsumer>, Vec<ConsumerRecord>),
}

impl Coordinator {
    /// The consumer group of this id, as the log says.
    pub(in crate::coordinator) fn consumer_group(&self, id: &str) -> Option<&StoredConsumer> {
        match self.durable.group(id) {
            Some(Group::Consumer(group)) => Some(group),
            Some(Group::Classic(_)) | None => None,
        }
    }

    pub(in crate::coordinator) fn beat(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        mut request: ConsumerGroupHeartbeatRequest,
        topics: &Topics,
    ) {
        if version == 0 && request.member_id.is_empty() && request.member_epoch == 0 {
            request.member_id = Uuid::from_u128(self.volatile.ids.bits()).to_string();
        }
        if let Err(refusal) = validate::check(&request, self.config.consumer_assignors) {
            return self.answer(ticket, refusal.response());
        }
        if self.is_writing(&request.group_id) {
            let group: Arc<str> = request.group_id.as_str().into();
            return self.defer(&group, ticket, client, version, request.into(), topics);
        }
        if self.volatile.topics.is_none() {
            self.volatile.topics = Some(topics.clone());
        }
        let result = match request.member_epoch {
            LEAVE | LEAVE_FOR_A_WHILE => self.leave_consumer(now, ticket, &request, topics),
            _ => self.join_or_stay(now, ticket, client, &request, topics),
        };
        if let Err(refusal) = result {
            self.answer(ticket, refusal.response());
        }
    }

    /// Lets a request wait until the log has what was decided before it.
    pub(in crate::coordinator) fn defer(
        &mut self,
        group: &Arc<str>,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        request: Request,
        topics: &Topics,
    ) {
        let (client, topics) = (client.clone(), topics.clone());
        let deferred = Deferred { ticket, client, version, request, topics };
        self.volatile.deferred.entry(group.clone()).or_default().push_back(deferred);
    }

    /// Whether a request of the classic protocol has to wait: what the group is now is on its way to the log.
    pub(in crate::coordinator) fn must_wait(&self, request: &Request) -> Option<Arc<str>> {
        let (group, commits) = match request {
            Request::JoinGroup(request) => (&request.group_id, false),
            Request::SyncGroup(request) => (&request.group_id, false),
            Request::Heartbeat(request) => (&request.group_id, false),
            Request::LeaveGroup(request) => (&request.group_id, false),
            Request::OffsetCommit(request) => (&request.group_id, true),
            _ => return None,
        };
        // Commits are decided by what the group was, as long as it stays of its protocol.
        let stays = self.consumer_group(group).is_some() && !self.volatile.appends.touch_classic(group);
        let waits = self.volatile.appends.touch_consumer(group) && !(commits && stays);
        waits.then(|| group.as_str().into())
    }

    /// Whether records about this group are on their way to the log.
    pub(super) fn is_writing(&self, group: &str) -> bool {
        self.volatile.appends.touch(group)
    }

    fn join_or_stay(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        request: &ConsumerGroupHeartbeatRequest,
        topics: &Topics,
    ) -> Result<(), Refusal> {
        let upgrade = self.upgrade(now, request, topics)?;
        let heartbeat = Heartbeat {
            group: match &upgrade {
                Upgrade::Members(stored, _) => Some(stored),
                Upgrade::NoNeed | Upgrade::Empty => self.consumer_group(&request.group_id),
            },
            topics,
            size: self.config.consumer_group_max_size,
            in_force: self.in_force(&request.group_id),
            assignors: self.config.consumer_assignors,
            client,
            request,
            wall_ms: self.wall_ms(now),
            classic: None,
            is_upgraded: matches!(upgrade, Upgrade::Members(..)),
        };
        let beaten = heartbeat.decide()?;
        let group: Arc<str> = self.group_name(&request.group_id);
        let mut records = self.carry_out_upgrade(now, &group, upgrade);
        self.arm_for(now, &group, &beaten, self.in_force(&group).session_timeout);
        records.extend(beaten.records.into_iter().map(Record::Consumer));
        self.write(&group, records, Some((ticket, beaten.response.into())), beaten.cause);
        Ok(())
    }

    /// What has to happen with a classic group before its name can be that of a consumer group.
    fn upgrade(
        &mut self,
        now: Instant,
        request: &ConsumerGroupHeartbeatRequest,
        topics: &Topics,
    ) -> Result<Upgrade, Refusal> {
        if !matches!(self.durable.group(&request.group_id), Some(Group::Classic(_))) {
            return Ok(Upgrade::NoNeed);
        }
        if request.member_epoch != 0 {
            let message = format!("Group {} is not a consumer group.", request.group_id);
            return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message));
        }
        self.with_group(now, &request.group_id, |_, _| {});
        let live = self.volatile.classic.get(request.group_id.as_str());
        match live.filter(|group| group.members().next().is_some()) {
            None => Ok(Upgrade::Empty),
            Some(group) => {
                upgrade::check(group, &self.config)?;
                let (stored, records) = upgrade::convert(group, topics)?;
                Ok(Upgrade::Members(Box::new(stored), records))
            }
        }
    }

    /// Ends the classic group; its members begin their sessions in the new one, and learn that they have to join again.
    fn carry_out_upgrade(&mut self, now: Instant, group: &Arc<str>, upgrade: Upgrade) -> Vec<Record> {
        let (members, converted) = match upgrade {
            Upgrade::NoNeed => return Vec::new(),
            Upgrade::Empty => (Vec::new(), Vec::new()),
            Upgrade::Members(stored, records) => {
                let session = |member: &ConsumerMember| now + self.session_of(group, member);
                (stored.members.iter().map(|(id, m)| (id.clone(), session(m))).collect(), records)
            }
        };
        self.dissolve(now, group, ErrorCode::REBALANCE_IN_PROGRESS);
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        for (member, deadline) in members {
            live.renew_session(timers, group, &member, deadline);
        }
        let mut records = vec![group_tombstone(group)];
        records.extend(converted.into_iter().map(Record::Consumer));
        records
    }

    /// How long a member may be silent.
    pub(super) fn session_of(&self, group: &str, member: &ConsumerMember) -> Duration {
        match &member.classic {
            Some(classic) => crate::coordinator::durable::millis(classic.session_timeout_ms),
            None => self.in_force(group).session_timeout,
        }
    }

    /// Writes what makes a consumer group a classic one.
    pub(super) fn write_downgrade(
        &mut self,
        group: &Arc<str>,
        records: Vec<Record>,
        reply: Option<(Ticket, Response)>,
        cause: Cause,
    ) {
        let after = After::Downgraded { group: group.clone(), cause };
        self.carry_out(None, Decided { records, replies: reply.into_iter().collect(), after });
    }

    /// The shared form of a group's id.
    pub(super) fn group_name(&self, id: &str) -> Arc<str> {
        self.durable.groups_entry(id).map_or_else(|| id.into(), |(id, _)| id.clone())
    }

    pub(super) fn arm_for(&mut self, now: Instant, group: &Arc<str>, beaten: &Beaten, session: Duration) {
        let session = now + session;
        let release = beaten.must_release_within_ms.map(|ms| now + crate::coordinator::durable::millis(ms));
        let due = now + self.in_force(group).assignment_interval;
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        if let Some(replaced) = &beaten.replaced {
            live.forget(timers, group, replaced);
        }
        live.renew_session(timers, group, &beaten.member, session);
        live.expect(timers, group, &beaten.member, Duty::Release, release);
        if beaten.after.classic.is_none() {
            live.expect(timers, group, &beaten.member, Duty::Rejoin, None);
            live.expect(timers, group, &beaten.member, Duty::Sync, None);
        }
        if beaten.target_is_due {
            live.look_after_target(timers, group, due);
        }
    }

    fn leave_consumer(
        &mut self,
        now: Instant,
        ticket: Ticket,
        request: &ConsumerGroupHeartbeatRequest,
        topics: &Topics,
    ) -> Result<(), Refusal> {
        let member = leave::leaver(self.consumer_group(&request.group_id), request)?;
        let response = ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: request.member_epoch,
            ..Default::default()
        };
        let reply = Some((ticket, response.into()));
        let group = self.group_name(&request.group_id);
        if request.member_epoch == LEAVE_FOR_A_WHILE {
            let stored = self.consumer_group(&group);
            let records =
                stored.map(|stored| leave::for_a_while(&group, &member, stored)).unwrap_or_default();
            let records = records.into_iter().map(Record::Consumer).collect();
            self.write(&group, records, reply, None);
        } else {
            let cause = Cause::MemberLeft { member: member.to_string(), reason: String::new() };
            self.remove_consumers(now, &group, &[member], topics, reply, cause);
        }
        Ok(())
    }

    /// Takes members out of a group, whoever wants it.
    pub(super) fn remove_consumers(
        &mut self,
        now: Instant,
        group: &Arc<str>,
        members: &[Arc<str>],
        topics: &Topics,
        reply: Option<(Ticket, Response)>,
        cause: Cause,
    ) {
        let Some(stored) = self.consumer_group(group) else { return };
        let wall_ms = self.wall_ms(now);
        if downgrade::is_due(stored, members, 0, &self.config) {
            let change = downgrade::Change { leaving: members, joining: None, at_rest: false };
            let names = by_name::names(stored, topics, &self.volatile.gone);
            let records = downgrade::records(group, stored, &change, &names, wall_ms);
            if let Some(live) = self.volatile.consumer.get_mut(group) {
                members.iter().for_each(|member| live.forget(&mut self.volatile.timers, group, member));
            }
            return self.write_downgrade(group, records, reply, cause);
        }
        let compute = self.may_compute(group, stored, wall_ms);
        let records = leave::remove(group, stored, topics, members, compute);
        let records = records.into_iter().map(Record::Consumer).collect();
        let due = now + self.in_force(group).assignment_interval;
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        members.iter().for_each(|member| live.forget(timers, group, member));
        if compute.is_none() {
            live.look_after_target(timers, group, due);
        }
        self.write(group, records, reply, Some(cause));
    }

    /// How to compute a target, if it is not too soon after the one before.
    pub(super) fn may_compute(&self, id: &str, group: &StoredConsumer, wall_ms: i64) -> Option<Compute> {
        let interval = i64::try_from(self.in_force(id).assignment_interval.as_millis()).unwrap_or(i64::MAX);
        let may = group.target_timestamp == 0 || wall_ms.saturating_sub(group.target_timestamp) >= interval;
        may.then_some(Compute { assignors: self.config.consumer_assignors, wall_ms })
    }

    pub(super) fn write(
        &mut self,
        group: &Arc<str>,
        records: Vec<Record>,
        reply: Option<(Ticket, Response)>,
        cause: Option<Cause>,
    ) {
        let after = After::Moved { group: group.clone(), cause: cause.unwrap_or(Cause::Coordinator) };
        let replies = reply.into_iter().collect();
        self.carry_out(None, Decided { records, replies, after });
    }

    /// LeaveGroup on a consumer group: administrators send members away by it.
    pub(in crate::coordinator) fn send_away(
        &self,
        group_id: &str,
        identities: Vec<MemberIdentity>,
    ) -> (Vec<MemberResponse>, Option<Cause>, Vec<Arc<str>>) {
        let mut gone: Vec<Arc<str>> = Vec::new();
        let mut cause = None;
        let answers = identities.into_iter().map(|identity| {
            let found = self.consumer_group(group_id).and_then(|group| member_of(group, &identity));
            let found = found.filter(|id| !gone.contains(id));
            let error_code = if found.is_some() { ErrorCode::NONE } else { ErrorCode::UNKNOWN_MEMBER_ID };
            if let Some(id) = found {
                let reason = identity.reason.clone().unwrap_or_default();
                cause.get_or_insert(Cause::MemberLeft { member: id.to_string(), reason });
                gone.push(id);
            }
            MemberResponse {
                member_id: identity.member_id,
                group_instance_id: identity.group_instance_id,
                error_code,
            }
        });
        let answers = answers.collect();
        (answers, cause, gone)
    }

    /// Carries out what [`Self::send_away`] found.
    pub(in crate::coordinator) fn finish_send_away(
        &mut self,
        now: Instant,
        group_id: &str,
        gone: &[Arc<str>],
        reply: (Ticket, Response),
        cause: Option<Cause>,
    ) {
        let topics = self.volatile.topics.clone();
        match (topics, cause) {
            (Some(topics), Some(cause)) if !gone.is_empty() => {
                let group = self.group_name(group_id);
                self.remove_consumers(now, &group, gone, &topics, Some(reply), cause);
            }
            _ => self.answer(reply.0, reply.1),
        }
    }

    pub(in crate::coordinator) fn describe_consumers(
        &mut self,
        ticket: Ticket,
        request: ConsumerGroupDescribeRequest,
        topics: &Topics,
    ) {
        let describe = |id: &String| match self.durable.group(id) {
            _ if id.is_empty() => DescribedGroup {
                error_code: ErrorCode::INVALID_GROUP_ID,
                group_id: id.clone(),
                ..Default::default()
            },
            Some(Group::Consumer(group)) => {
                describe::describe(id, group, topics, self.config.consumer_assignors)
            }
            Some(Group::Classic(_)) => describe::missing(id, true),
            None => describe::missing(id, self.volatile.classic.contains_key(id.as_str())),
        };
        let groups = request.group_ids.iter().map(describe).collect();
        self.answer(ticket, ConsumerGroupDescribeResponse { groups, ..Default::default() });
    }

    /// The records that end an empty consumer group.
    pub(in crate::coordinator) fn consumer_tombstones(id: &str) -> Vec<Record> {
        use tontine_wire::group_records::*;
        let group_id = id.to_owned();
        let target = ConsumerGroupTargetAssignmentMetadataKey { group_id: group_id.clone() };
        let group = ConsumerGroupMetadataKey { group_id };
        let records = [ConsumerRecord::TargetEpoch(target, None), ConsumerRecord::Group(group, None)];
        records.into_iter().map(Record::Consumer).collect()
    }

    /// Requests that waited for the log go on.
    pub(in crate::coordinator) fn resume_deferred(&mut self, now: Instant) {
        let ready: Vec<Arc<str>> =
            self.volatile.deferred.keys().filter(|group| !self.is_writing(group)).cloned().collect();
        for group in ready {
            for deferred in self.volatile.deferred.remove(&group).unwrap_or_default() {
                let Deferred { ticket, client, version, request, topics } = deferred;
                // While it waited, topics may have come or gone.
                let topics = self.volatile.topics.clone().unwrap_or(topics);
                self.dispatch(now, ticket, &client, version, request, &topics);
            }
        }
    }
}

fn member_of(group: &StoredConsumer, identity: &MemberIdentity) -> Option<Arc<str>> {
    let by_instance = identity.group_instance_id.as_deref().and_then(|instance| group.instance(instance));
    if identity.member_id.is_empty() {
        return by_instance.cloned();
    }
    let known = group.members.get_key_value(identity.member_id.as_str()).map(|(id, _)| id.clone())?;
    (identity.group_instance_id.is_none() || by_instance == Some(&known)).then_some(known)
}
