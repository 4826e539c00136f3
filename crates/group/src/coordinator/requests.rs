//! Which request goes where, and what is checked before a group is asked. Mirrors `GroupCoordinatorService`.

use super::{
    ClientInfo, Coordinator, Ticket,
    append::After,
    classic::{Join, Sync, join_refused, sync_refused},
    consumer, describe,
    effects::Decided,
    offsets::{commit::Commit, delete, expire, fetch},
    output::GroupState,
    turn::group_tombstone,
};
use crate::{time::Instant, topics::Topics};
use std::{collections::BTreeSet, sync::Arc};
use tontine_wire::{
    ErrorCode,
    api::{
        ApiKey, Request, Response,
        delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse},
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse},
        heartbeat::{HeartbeatRequest, HeartbeatResponse},
        join_group::JoinGroupRequest,
        leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse},
        list_groups::{ListGroupsRequest, ListGroupsResponse},
        offset_commit::OffsetCommitRequest,
        offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse},
        offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponseGroup},
        sync_group::SyncGroupRequest,
    },
};

/// LeaveGroup names several members from this version on.
const LEAVE_BATCHED_SINCE: i16 = 3;
/// From this version on a commit to a group that is not there says so.
const COMMIT_NOT_FOUND_SINCE: i16 = 9;

pub(super) fn serves(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::JoinGroup
            | ApiKey::SyncGroup
            | ApiKey::Heartbeat
            | ApiKey::LeaveGroup
            | ApiKey::OffsetCommit
            | ApiKey::OffsetFetch
            | ApiKey::OffsetDelete
            | ApiKey::DescribeGroups
            | ApiKey::ListGroups
            | ApiKey::DeleteGroups
            | ApiKey::ConsumerGroupHeartbeat
            | ApiKey::ConsumerGroupDescribe
    )
}

impl Coordinator {
    pub(super) fn dispatch(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        request: Request,
        topics: &Topics,
    ) {
        if let Some(group) = self.must_wait(&request) {
            return self.defer(&group, ticket, client, version, request, topics);
        }
        match request {
            Request::JoinGroup(join) => self.join(now, ticket, client, version, join, topics),
            Request::SyncGroup(sync) => self.sync(now, ticket, version, sync, topics),
            Request::Heartbeat(heartbeat) => self.heartbeat(now, ticket, &heartbeat, topics),
            Request::LeaveGroup(leave) => self.leave(now, ticket, version, leave),
            Request::OffsetCommit(commit) => self.commit(now, ticket, version, commit, topics),
            Request::OffsetFetch(request) => self.fetch(ticket, version, request, topics),
            Request::ConsumerGroupHeartbeat(heartbeat) => {
                self.beat(now, ticket, client, version, heartbeat, topics);
            }
            Request::ConsumerGroupDescribe(request) => self.describe_consumers(ticket, request, topics),
            Request::OffsetDelete(request) => self.delete_offsets(now, ticket, &request, topics),
            Request::DescribeGroups(request) => self.describe(now, ticket, version, request),
            Request::ListGroups(request) => self.list(ticket, &request),
            Request::DeleteGroups(request) => self.delete_groups(now, ticket, request),
            // What is not served does not come here.
            _ => {}
        }
    }

    pub(super) fn answer(&mut self, ticket: Ticket, response: impl Into<Response>) {
        self.carry_out(None, Decided { replies: vec![(ticket, response.into())], ..Decided::default() });
    }

    fn join(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        request: JoinGroupRequest,
        topics: &Topics,
    ) {
        let refused = |code| join_refused(&request.member_id, code, version);
        if request.group_id.is_empty() {
            return self.answer(ticket, refused(ErrorCode::INVALID_GROUP_ID));
        }
        let session = i64::from(request.session_timeout_ms);
        let bound = |bound: crate::time::Duration| i64::try_from(bound.as_millis()).unwrap_or(i64::MAX);
        if session < bound(self.config.group_min_session_timeout)
            || session > bound(self.config.group_max_session_timeout)
        {
            return self.answer(ticket, refused(ErrorCode::INVALID_SESSION_TIMEOUT));
        }
        let unknown = refused(ErrorCode::UNKNOWN_MEMBER_ID);
        let ends = match self.consumer_group(&request.group_id) {
            Some(group) if group.members.is_empty() => Self::consumer_tombstones(&request.group_id),
            Some(_) => return self.join_consumers(now, ticket, client, version, request, topics),
            None => Vec::new(),
        };
        let (group_id, nameless) = (request.group_id.clone(), request.member_id.is_empty());
        let mut join = Some(Join::new(ticket, version, client, request));
        let known = self.with_group(now, &group_id, |group, fx| {
            if let Some(join) = join.take() {
                group.join(fx, join);
            }
        });
        match join {
            Some(join) if !known && nameless => {
                self.with_new_group(now, &group_id, ends, |group, fx| group.join(fx, join));
            }
            Some(_) => self.answer(ticket, unknown),
            None => {}
        }
    }

    fn sync(
        &mut self,
        now: Instant,
        ticket: Ticket,
        version: i16,
        request: SyncGroupRequest,
        topics: &Topics,
    ) {
        if request.group_id.is_empty() {
            return self.answer(ticket, sync_refused(ErrorCode::INVALID_GROUP_ID));
        }
        if self.consumer_group(&request.group_id).is_some() {
            return self.sync_consumers(now, ticket, &request, topics);
        }
        let group_id = request.group_id.clone();
        let sync = Sync { ticket, version, request };
        if !self.with_group(now, &group_id, |group, fx| group.sync(fx, sync)) {
            self.answer(ticket, sync_refused(ErrorCode::UNKNOWN_MEMBER_ID));
        }
    }

    fn heartbeat(&mut self, now: Instant, ticket: Ticket, request: &HeartbeatRequest, topics: &Topics) {
        let answer = |error_code| HeartbeatResponse { error_code, ..Default::default() };
        if request.group_id.is_empty() {
            return self.answer(ticket, answer(ErrorCode::INVALID_GROUP_ID));
        }
        if self.consumer_group(&request.group_id).is_some() {
            return self.heartbeat_consumers(now, ticket, request, topics);
        }
        let known = self.with_group(now, &request.group_id, |group, fx| {
            let code = group.heartbeat(fx, request);
            fx.reply(ticket, answer(code));
        });
        if !known {
            self.answer(ticket, answer(ErrorCode::UNKNOWN_MEMBER_ID));
        }
    }

    fn leave(&mut self, now: Instant, ticket: Ticket, version: i16, request: LeaveGroupRequest) {
        if request.group_id.is_empty() {
            let error_code = ErrorCode::INVALID_GROUP_ID;
            return self.answer(ticket, LeaveGroupResponse { error_code, ..Default::default() });
        }
        let members = if version < LEAVE_BATCHED_SINCE {
            vec![MemberIdentity { member_id: request.member_id, ..Default::default() }]
        } else {
            request.members
        };
        if self.consumer_group(&request.group_id).is_some() {
            let (answers, cause, gone) = self.send_away(&request.group_id, members);
            let reply = (ticket, leave_answer(Ok(answers), version).into());
            return self.finish_send_away(now, &request.group_id, &gone, reply, cause);
        }
        let known = self.with_group(now, &request.group_id, |group, fx| {
            let result = group.leave(fx, &members);
            fx.reply(ticket, leave_answer(result, version));
        });
        if !known {
            let unknown = |member: MemberIdentity| MemberResponse {
                member_id: member.member_id,
                group_instance_id: member.group_instance_id,
                error_code: ErrorCode::UNKNOWN_MEMBER_ID,
            };
            self.answer(ticket, leave_answer(Ok(members.into_iter().map(unknown).collect()), version));
        }
    }

    fn commit(
        &mut self,
        now: Instant,
        ticket: Ticket,
        version: i16,
        request: OffsetCommitRequest,
        topics: &Topics,
    ) {
        let wall_ms = self.wall_ms(now);
        let commit = Commit::new(request, version, topics);
        if !commit.concerns_the_group() {
            let (response, _) = commit.decide(Ok(()), &self.config, wall_ms);
            return self.answer(ticket, response);
        }
        let request = commit.request();
        if let Some(group) = self.consumer_group(&request.group_id) {
            let allowed = consumer::validate_commit(group, request, version, topics);
            let (response, records) = commit.decide(allowed, &self.config, wall_ms);
            let replies = vec![(ticket, response.into())];
            self.carry_out(None, Decided { records, replies, after: After::Nothing });
            return;
        }
        let known = self.with_group(now, &request.group_id, |group, fx| {
            let allowed = group.validate_commit(fx, request);
            let (response, records) = commit.decide(allowed, fx.config, wall_ms);
            fx.decided.records.extend(records);
            fx.reply(ticket, response);
        });
        if !known {
            let allowed = commit_without_group(request, version);
            let (response, records) = commit.decide(allowed, &self.config, wall_ms);
            let replies = vec![(ticket, response.into())];
            self.carry_out(None, Decided { records, replies, after: After::Nothing });
        }
    }

    fn fetch(&mut self, ticket: Ticket, version: i16, mut request: OffsetFetchRequest, topics: &Topics) {
        let allowed = |group: &OffsetFetchRequestGroup| match self.consumer_group(&group.group_id) {
            Some(known) => consumer::validate_fetch(known, group.member_id.as_deref(), group.member_epoch),
            None => Ok(()),
        };
        let refused = |group: &OffsetFetchRequestGroup| OffsetFetchResponseGroup {
            group_id: group.group_id.clone(),
            error_code: allowed(group).err().unwrap_or(ErrorCode::NONE),
            ..Default::default()
        };
        let (good, bad): (Vec<_>, Vec<_>) =
            std::mem::take(&mut request.groups).into_iter().partition(|group| allowed(group).is_ok());
        let bad: Vec<_> = bad.iter().map(refused).collect();
        request.groups = good;
        let mut response = fetch::fetch(&self.durable, topics, request, version);
        response.groups.extend(bad);
        self.answer(ticket, response);
    }

    fn delete_offsets(
        &mut self,
        now: Instant,
        ticket: Ticket,
        request: &OffsetDeleteRequest,
        topics: &Topics,
    ) {
        if !delete::concerns_the_group(request, topics) && !request.topics.is_empty() {
            let (response, _) = delete::decide(&self.durable, topics, request, |_| false);
            return self.answer(ticket, response);
        }
        let refused = |error_code| OffsetDeleteResponse { error_code, ..Default::default() };
        if let Some(group) = self.consumer_group(&request.group_id) {
            let subscribed = |topic: &str| group.is_subscribed_to(topic);
            let (response, records) = delete::decide(&self.durable, topics, request, subscribed);
            let replies = vec![(ticket, response.into())];
            self.carry_out(None, Decided { records, replies, after: After::Nothing });
            return;
        }
        let known = self.with_group_and_durable(now, &request.group_id, |durable, group, fx| {
            if let Err(code) = group.validate_offset_delete() {
                return fx.reply(ticket, refused(code));
            }
            let subscribed = |topic: &str| group.is_subscribed_to(topic);
            let (response, records) = delete::decide(durable, topics, request, subscribed);
            fx.decided.records.extend(records);
            fx.reply(ticket, response);
        });
        if !known {
            self.answer(ticket, refused(ErrorCode::GROUP_ID_NOT_FOUND));
        }
    }

    fn describe(&mut self, now: Instant, ticket: Ticket, version: i16, request: DescribeGroupsRequest) {
        let mut groups = Vec::new();
        for id in &request.groups {
            let mut found = None;
            self.with_group(now, id, |group, _| {
                found = Some(group).filter(|g| g.state() != GroupState::Dead).map(|g| describe::describe(g));
            });
            groups.push(found.unwrap_or_else(|| {
                describe::describe_missing(id, version, self.consumer_group(id).is_some())
            }));
        }
        self.answer(ticket, DescribeGroupsResponse { groups, ..Default::default() });
    }

    fn list(&mut self, ticket: Ticket, request: &ListGroupsRequest) {
        let live = self.volatile.classic.values().map(describe::list_live);
        let stored = self.durable.groups().filter(|(id, _)| !self.volatile.classic.contains_key(*id));
        let stored = stored.map(|(id, group)| describe::list_stored(id, group));
        let groups = live.chain(stored).filter(|group| describe::is_wanted(request, group)).collect();
        self.answer(ticket, ListGroupsResponse { groups, ..Default::default() });
    }

    /// Deletes groups in one append: all that can be, and the answer says which could not.
    fn delete_groups(&mut self, now: Instant, ticket: Ticket, request: DeleteGroupsRequest) {
        let mut records = Vec::new();
        let mut deleted = Vec::new();
        let mut results = Vec::new();
        let mut seen = BTreeSet::new();
        for id in request.groups_names {
            if !seen.insert(id.clone()) {
                continue;
            }
            let result = self.begin_deletion(now, &id);
            let error_code = result.as_ref().err().copied().unwrap_or(ErrorCode::NONE);
            if let Ok(group) = result {
                records.extend(expire::of_group(&self.durable, &group));
                match self.consumer_group(&group) {
                    Some(_) => records.extend(Self::consumer_tombstones(&group)),
                    None => records.push(group_tombstone(&group)),
                }
                deleted.push(group);
            }
            let missing = error_code == ErrorCode::GROUP_ID_NOT_FOUND;
            let error_message = missing.then(|| format!("Group {id} not found."));
            results.push(DeletableGroupResult { group_id: id, error_code, error_message });
        }
        let response = DeleteGroupsResponse { results, ..Default::default() };
        let replies = vec![(ticket, response.into())];
        self.carry_out(None, Decided { records, replies, after: After::Deleted(deleted) });
    }

    /// Nothing can happen in a group while its deletion is on its way to the log.
    fn begin_deletion(&mut self, now: Instant, id: &str) -> Result<Arc<str>, ErrorCode> {
        let busy = self.volatile.appends.touch(id);
        if let Some(group) = self.consumer_group(id) {
            return match group.members.is_empty() {
                false => Err(ErrorCode::NON_EMPTY_GROUP),
                true if busy => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
                true => Ok(id.into()),
            };
        }
        let mut result = Err(ErrorCode::GROUP_ID_NOT_FOUND);
        self.with_group(now, id, |group, _| {
            result = match group.state() {
                GroupState::Dead => Err(ErrorCode::GROUP_ID_NOT_FOUND),
                // A commit, or its creation, is on its way to the log: the client tries again.
                GroupState::Empty if busy => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
                GroupState::Empty => {
                    group.kill();
                    Ok(group.id.clone())
                }
                GroupState::PreparingRebalance
                | GroupState::CompletingRebalance
                | GroupState::Assigning
                | GroupState::Reconciling
                | GroupState::Stable => Err(ErrorCode::NON_EMPTY_GROUP),
            };
        });
        result
    }
}

/// Without a group offsets may be committed by those who do not claim to be members.
fn commit_without_group(request: &OffsetCommitRequest, version: i16) -> Result<(), ErrorCode> {
    match request.generation_id_or_member_epoch {
        ..0 => Ok(()),
        _ if version >= COMMIT_NOT_FOUND_SINCE => Err(ErrorCode::GROUP_ID_NOT_FOUND),
        _ => Err(ErrorCode::ILLEGAL_GENERATION),
    }
}

/// Before members could leave together the error of the one stood for the whole.
fn leave_answer(result: Result<Vec<MemberResponse>, ErrorCode>, version: i16) -> LeaveGroupResponse {
    match result {
        Err(error_code) => LeaveGroupResponse { error_code, ..Default::default() },
        Ok(members) if version >= LEAVE_BATCHED_SINCE => LeaveGroupResponse { members, ..Default::default() },
        Ok(members) => {
            let error_code = members.first().map_or(ErrorCode::NONE, |m| m.error_code);
            LeaveGroupResponse { error_code, ..Default::default() }
        }
    }
}
