//! Members of the classic protocol in a consumer group: JoinGroup, SyncGroup and Heartbeat in the words they know.
//!
//! A JoinGroup says what a heartbeat of the other protocol says and is decided as one, without a barrier: it is answered
//! at once, nobody leads, and the assignment comes with SyncGroup. A heartbeat says when to join again. Mirrors
//! `classicGroupJoinToConsumerGroup`, `classicGroupSyncToConsumerGroup` and `classicGroupHeartbeatToConsumerGroup`.

use super::{
    by_name, downgrade,
    heartbeat::{Beaten, Heartbeat},
    stored::{ConsumerMember, MemberState, StoredConsumer},
    validate::Refusal,
};
use crate::{
    cause::Cause,
    coordinator::{
        ClientInfo, Coordinator, MigrationPolicy, Ticket,
        classic::{join_refused, sync_refused},
        durable::millis,
        record::Record,
        timers::Duty,
    },
    time::{Duration, Instant},
    topics::Topics,
};
use std::sync::Arc;
use tontine_wire::{
    ErrorCode, Uuid,
    api::{
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, TopicPartitions},
        heartbeat::{HeartbeatRequest, HeartbeatResponse},
        join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
        sync_group::{SyncGroupRequest, SyncGroupResponse},
    },
    consumer_protocol::{PROTOCOL_TYPE, Subscription},
    group_records::{ClassicMemberMetadata, ClassicProtocol},
};

/// From this version on a dynamic member must use an id that was handed out before.
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;

/// What makes a group a classic one when its last member of the consumer protocol is replaced.
struct Last {
    generation: i32,
    records: Vec<Record>,
}

/// A join that is not taken: the code, and the id that the answer shows.
struct Refused(ErrorCode, String);

impl Coordinator {
    /// JoinGroup on a consumer group that has members.
    pub(in crate::coordinator) fn join_consumers(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        request: JoinGroupRequest,
        topics: &Topics,
    ) {
        let random = Uuid::from_u128(self.volatile.ids.bits()).to_string();
        let joined = self
            .admit(&request, version, &random)
            .and_then(|id| self.join_as_classic(now, ticket, client, version, &request, id, topics));
        if let Err(Refused(code, id)) = joined {
            self.answer(ticket, join_refused(&id, code, version));
        }
    }

    /// The id under which the member joins.
    fn admit(&self, request: &JoinGroupRequest, version: i16, random: &str) -> Result<String, Refused> {
        let refuse = |code| Err(Refused(code, request.member_id.clone()));
        let Some(group) = self.consumer_group(&request.group_id) else {
            return refuse(ErrorCode::UNKNOWN_MEMBER_ID);
        };
        if self.config.consumer_migration_policy == MigrationPolicy::Disabled {
            return Err(Refused(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, String::new()));
        }
        let instance = request.group_instance_id.as_deref().and_then(|instance| group.instance(instance));
        let has_seat = group.members.contains_key(request.member_id.as_str()) || instance.is_some();
        if !has_seat && group.members.len() >= self.config.consumer_group_max_size {
            return refuse(ErrorCode::GROUP_MAX_SIZE_REACHED);
        }
        if !supports(group, request) {
            return refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if !request.member_id.is_empty() {
            return match (&request.group_instance_id, instance) {
                (Some(_), None) => refuse(ErrorCode::UNKNOWN_MEMBER_ID),
                (Some(_), Some(owner)) if **owner != *request.member_id => {
                    refuse(ErrorCode::FENCED_INSTANCE_ID)
                }
                (Some(_), Some(_)) | (None, _) => Ok(request.member_id.clone()),
            };
        }
        if request.group_instance_id.is_none() && version >= MEMBER_ID_REQUIRED_SINCE {
            return Err(Refused(ErrorCode::MEMBER_ID_REQUIRED, random.to_owned()));
        }
        Ok(random.to_owned())
    }

    #[allow(clippy::too_many_arguments)]
    fn join_as_classic(
        &mut self,
        now: Instant,
        ticket: Ticket,
        client: &ClientInfo,
        version: i16,
        request: &JoinGroupRequest,
        id: String,
        topics: &Topics,
    ) -> Result<(), Refused> {
        let shown = request.member_id.clone();
        let inconsistent = || Refused(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, shown.clone());
        let first = request.protocols.first().ok_or_else(inconsistent)?;
        let subscription = Subscription::from_metadata(first.metadata.clone()).map_err(|_| inconsistent())?;
        if self.was_put_out(request, &subscription) {
            return Err(Refused(ErrorCode::UNKNOWN_MEMBER_ID, shown));
        }
        let rebalance_timeout_ms = rebalance_timeout_ms(request, version);
        let spoken = as_heartbeat(request, id, rebalance_timeout_ms, subscription, topics);
        let heartbeat = Heartbeat {
            group: self.consumer_group(&request.group_id),
            topics,
            size: self.config.consumer_group_max_size,
            in_force: self.in_force(&request.group_id),
            assignors: self.config.consumer_assignors,
            client,
            request: &spoken,
            wall_ms: self.wall_ms(now),
            classic: Some(classic_metadata(request)),
            is_upgraded: false,
        };
        let beaten = heartbeat.decide().map_err(|Refusal { code, .. }| Refused(code, shown.clone()))?;
        let mut response = JoinGroupResponse {
            generation_id: beaten.response.member_epoch,
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(first.name.clone()),
            member_id: spoken.member_id.clone(),
            ..Default::default()
        };
        let group = self.group_name(&request.group_id);
        if let Some(Last { generation, records }) = self.replaces_the_last(now, &group, &beaten, topics) {
            response.generation_id = generation;
            let instance = request.group_instance_id.clone().unwrap_or_default();
            let cause = Cause::StaticMemberReplaced { instance };
            self.write_downgrade(&group, records, Some((ticket, response.into())), cause);
            return Ok(());
        }
        self.arm_for(now, &group, &beaten, millis(request.session_timeout_ms));
        // Who has joined fetches its assignment in time; the time begins anew with every join.
        self.expect(now, &group, &beaten.member, Duty::Rejoin, None);
        self.expect(now, &group, &beaten.member, Duty::Sync, None);
        self.expect(now, &group, &beaten.member, Duty::Sync, Some(millis(rebalance_timeout_ms)));
        let records = beaten.records.into_iter().map(Record::Consumer).collect();
        self.write(&group, records, Some((ticket, response.into())), beaten.cause);
        Ok(())
    }

    /// Whether somebody joins who was a member and has not heard that it is none any more: it says that it has partitions.
    /// Kafka takes it for a new one with an id that was just handed out; it goes on reading what others have by then.
    fn was_put_out(&self, request: &JoinGroupRequest, subscription: &Subscription) -> bool {
        let is_known = |group: &StoredConsumer| group.members.contains_key(request.member_id.as_str());
        let owns = subscription.owned_partitions.iter().any(|topic| !topic.partitions.is_empty());
        owns && !request.member_id.is_empty() && !self.consumer_group(&request.group_id).is_some_and(is_known)
    }

    /// Whether this member takes the seat of the last one of the consumer protocol: the group is a classic one then.
    fn replaces_the_last(&self, now: Instant, group: &str, beaten: &Beaten, topics: &Topics) -> Option<Last> {
        let replaced = beaten.replaced.as_ref()?;
        let stored = self.consumer_group(group)?;
        if !downgrade::is_due(stored, std::slice::from_ref(replaced), 1, &self.config) {
            return None;
        }
        let at_rest = beaten.epoch == stored.epoch
            && beaten.after.state == MemberState::Stable
            && stored.target_epoch == stored.epoch
            && stored.members.iter().all(|(id, member)| id == replaced || settled(stored, member));
        let joining = Some((replaced, &beaten.member, &beaten.after));
        let change = downgrade::Change { leaving: &[], joining, at_rest };
        let names = by_name::names(stored, topics, &self.volatile.gone);
        let records = downgrade::records(group, stored, &change, &names, self.wall_ms(now));
        Some(Last { generation: stored.epoch, records })
    }

    /// SyncGroup on a consumer group: the assignment as it is, at once.
    pub(in crate::coordinator) fn sync_consumers(
        &mut self,
        now: Instant,
        ticket: Ticket,
        request: &SyncGroupRequest,
        topics: &Topics,
    ) {
        let instance = request.group_instance_id.as_deref();
        let found =
            self.classic_member(&request.group_id, &request.member_id, instance, request.generation_id);
        let (group, id, member) = match found {
            Ok(found) => found,
            Err(code) => return self.answer(ticket, sync_refused(code)),
        };
        let differs = |said: &Option<String>, is: &str| said.as_deref().is_some_and(|said| said != is);
        let classic = member.classic.clone().unwrap_or_default();
        let protocol = classic.supported_protocols.first().map(|p| p.name.clone()).unwrap_or_default();
        if differs(&request.protocol_type, PROTOCOL_TYPE) || differs(&request.protocol_name, &protocol) {
            return self.answer(ticket, sync_refused(ErrorCode::INCONSISTENT_GROUP_PROTOCOL));
        }
        // A member that has joined and must let go of something first will join again anyway.
        let rejoins = member.epoch < group.target_epoch && member.state != MemberState::Unrevoked;
        let within = millis(member.rebalance_timeout_ms);
        let response = SyncGroupResponse {
            protocol_type: request.protocol_type.clone(),
            protocol_name: request.protocol_name.clone(),
            assignment: downgrade::assignment_of(member, topics),
            ..Default::default()
        };
        self.heard_classic(now, &request.group_id, &id, millis(classic.session_timeout_ms));
        if rejoins {
            self.expect(now, &request.group_id, &id, Duty::Rejoin, Some(within));
            return self.answer(ticket, sync_refused(ErrorCode::REBALANCE_IN_PROGRESS));
        }
        self.expect(now, &request.group_id, &id, Duty::Sync, None);
        self.answer(ticket, response);
    }

    /// Heartbeat on a consumer group: whether the member has to join again.
    pub(in crate::coordinator) fn heartbeat_consumers(
        &mut self,
        now: Instant,
        ticket: Ticket,
        request: &HeartbeatRequest,
        topics: &Topics,
    ) {
        let answer = |error_code| HeartbeatResponse { error_code, ..Default::default() };
        let instance = request.group_instance_id.as_deref();
        let found =
            self.classic_member(&request.group_id, &request.member_id, instance, request.generation_id);
        let (group, id, member) = match found {
            Ok(found) => found,
            Err(code) => return self.answer(ticket, answer(code)),
        };
        let rejoins = member.epoch < group.target_epoch
            || member.state == MemberState::Unrevoked
            || (member.state == MemberState::Unreleased && !waits(group, &id, member, topics));
        let session = millis(member.classic.as_ref().map_or(0, |classic| classic.session_timeout_ms));
        let within = millis(member.rebalance_timeout_ms);
        self.heard_classic(now, &request.group_id, &id, session);
        if rejoins {
            self.expect(now, &request.group_id, &id, Duty::Rejoin, Some(within));
        }
        self.answer(ticket, answer(if rejoins { ErrorCode::REBALANCE_IN_PROGRESS } else { ErrorCode::NONE }));
    }

    /// Every request of a member is a sign of life, whatever it is answered.
    fn heard_classic(&mut self, now: Instant, group: &str, member: &Arc<str>, session: Duration) {
        let group = self.group_name(group);
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        live.renew_session(timers, &group, member, now + session);
    }

    /// The member has so long for something, or no longer has to do it.
    fn expect(&mut self, now: Instant, group: &str, member: &Arc<str>, duty: Duty, within: Option<Duration>) {
        let group = self.group_name(group);
        let timers = &mut self.volatile.timers;
        let live = self.volatile.consumer.entry(group.clone()).or_default();
        live.expect(timers, &group, member, duty, within.map(|within| now + within));
    }

    /// The member of the classic protocol that speaks, if it is one.
    fn classic_member(
        &self,
        group: &str,
        member: &str,
        instance: Option<&str>,
        generation: i32,
    ) -> Result<(&StoredConsumer, Arc<str>, &ConsumerMember), ErrorCode> {
        let group = self.consumer_group(group).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if let Some(instance) = instance {
            match group.instance(instance) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(owner) if **owner != *member => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        let (id, member) = group.members.get_key_value(member).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if member.classic.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if member.epoch != generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        Ok((group, id.clone(), member))
    }
}

/// What is kept of how the member speaks.
fn classic_metadata(request: &JoinGroupRequest) -> ClassicMemberMetadata {
    let protocol =
        |p: &JoinGroupRequestProtocol| ClassicProtocol { name: p.name.clone(), metadata: p.metadata.clone() };
    ClassicMemberMetadata {
        session_timeout_ms: request.session_timeout_ms,
        supported_protocols: request.protocols.iter().map(protocol).collect(),
    }
}

/// Version 0 has no rebalance timeout: the session stands for both.
fn rebalance_timeout_ms(request: &JoinGroupRequest, version: i16) -> i32 {
    match request.rebalance_timeout_ms {
        ms if ms < 0 || version == 0 => request.session_timeout_ms,
        ms => ms,
    }
}

/// Whether a member with these protocols can be in the group: there is one that all its classic members know.
fn supports(group: &StoredConsumer, request: &JoinGroupRequest) -> bool {
    let classic: Vec<_> = group.members.values().filter_map(|member| member.classic.as_ref()).collect();
    let known = |name: &str| {
        classic.iter().all(|member| member.supported_protocols.iter().any(|protocol| protocol.name == name))
    };
    request.protocol_type == PROTOCOL_TYPE && request.protocols.iter().any(|protocol| known(&protocol.name))
}

fn settled(group: &StoredConsumer, member: &ConsumerMember) -> bool {
    member.state == MemberState::Stable && member.epoch == group.target_epoch
}

/// Whether others still have something of what the member is to have.
fn waits(group: &StoredConsumer, id: &Arc<str>, member: &ConsumerMember, topics: &Topics) -> bool {
    let Some(target) = group.targets.get(id) else { return false };
    let used = by_name::used(group, topics, &[id]);
    target.iter().any(|(topic, partitions)| {
        let has =
            |partition: &i32| member.assigned.get(topic).is_some_and(|held| held.contains_key(partition));
        let taken = |partition: &i32| {
            group.owner(*topic, *partition).is_some_and(|owner| owner != id)
                || used.contains(&(*topic, *partition))
        };
        partitions.iter().any(|partition| !has(partition) && taken(partition))
    })
}

/// What a JoinGroup says, as a heartbeat that joins.
fn as_heartbeat(
    request: &JoinGroupRequest,
    member_id: String,
    rebalance_timeout_ms: i32,
    subscription: Subscription,
    topics: &Topics,
) -> ConsumerGroupHeartbeatRequest {
    let owned = by_name::by_id(subscription.owned_partitions, topics);
    let owned = owned.into_iter().map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions });
    ConsumerGroupHeartbeatRequest {
        group_id: request.group_id.clone(),
        member_id,
        member_epoch: 0,
        instance_id: request.group_instance_id.clone(),
        rack_id: subscription.rack_id,
        rebalance_timeout_ms,
        subscribed_topic_names: Some(subscription.topics),
        subscribed_topic_regex: Some(String::new()),
        server_assignor: None,
        topic_partitions: Some(owned.collect()),
    }
}
