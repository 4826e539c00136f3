//! JoinGroup: who may join, when it is answered at once, and when it waits for the others.
//!
//! Mirrors `classicGroupJoinToClassicGroup` and what it calls. Static members that come back are in `static_member`.

use super::{
    ClassicGroup, Phase,
    member::{Member, ParkedRequest},
    vote::Protocol,
};
use crate::{
    cause::Cause,
    coordinator::{
        durable::millis,
        effects::Effects,
        output::{ClientInfo, Ticket},
        session::Session,
    },
    time::Duration,
};
use std::sync::Arc;
use tontine_wire::{
    ErrorCode,
    api::join_group::{JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember},
};

/// From this version on a dynamic member must use an id that was handed out before, so that a join that is tried again
/// does not leave a member behind that nobody is.
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;

/// A JoinGroup, read.
#[derive(Debug)]
pub(in crate::coordinator) struct Join {
    ticket: Ticket,
    version: i16,
    client: ClientInfo,
    member_id: String,
    pub(super) instance_id: Option<Arc<str>>,
    protocol_type: String,
    pub(super) protocols: Vec<Protocol>,
    pub(super) session_timeout: Duration,
    pub(super) rebalance_timeout: Duration,
}

impl Join {
    pub(in crate::coordinator) fn new(
        ticket: Ticket,
        version: i16,
        client: &ClientInfo,
        request: JoinGroupRequest,
    ) -> Self {
        let session_timeout = millis(request.session_timeout_ms);
        // Version 0 has no rebalance timeout: the session stands for both. A negative one says as little.
        let rebalance_timeout = match request.rebalance_timeout_ms {
            ms if ms < 0 || version == 0 => session_timeout,
            ms => millis(ms),
        };
        Self {
            ticket,
            version,
            client: client.clone(),
            member_id: request.member_id,
            instance_id: request.group_instance_id.map(Arc::from),
            protocol_type: request.protocol_type,
            protocols: request.protocols.into_iter().map(Protocol::from).collect(),
            session_timeout,
            rebalance_timeout,
        }
    }

    pub(super) fn parked(&self) -> ParkedRequest {
        ParkedRequest { ticket: Some(self.ticket), version: self.version }
    }

    fn refuse(&self, fx: &mut Effects<'_>, code: ErrorCode) {
        self.refuse_as(fx, &self.member_id, code);
    }

    fn refuse_as(&self, fx: &mut Effects<'_>, member_id: &str, code: ErrorCode) {
        fx.reply(self.ticket, join_refused(member_id, code, self.version));
    }
}

/// What differs between answers to a join that worked.
pub(super) struct Joined {
    /// Whom the answer calls leader.
    pub(super) leader: String,
    /// Whether the members are listed: only the leader needs them.
    pub(super) with_members: bool,
    /// The member leads but must not assign: nothing has changed.
    pub(super) skip_assignment: bool,
}

/// A join that worked.
pub(super) fn join_answer(
    group: &ClassicGroup,
    member: &str,
    version: i16,
    answer: Joined,
) -> JoinGroupResponse {
    let protocol = group.protocol.clone().unwrap_or_default();
    let list = |member: &Member| JoinGroupResponseMember {
        member_id: member.id.to_string(),
        group_instance_id: member.instance_id.as_deref().map(str::to_owned),
        metadata: member.metadata(&protocol),
    };
    let members = if answer.with_members { group.members.values().map(list).collect() } else { Vec::new() };
    JoinGroupResponse {
        generation_id: group.generation,
        protocol_type: group.protocol_type.clone(),
        leader: answer.leader,
        skip_assignment: answer.skip_assignment && version >= 9,
        member_id: member.to_owned(),
        members,
        protocol_name: Some(protocol),
        ..Default::default()
    }
}

/// A join that did not work.
pub(in crate::coordinator) fn join_refused(
    member_id: &str,
    code: ErrorCode,
    version: i16,
) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: code,
        member_id: member_id.to_owned(),
        // Null came with version 7.
        protocol_name: (version < 7).then(String::new),
        ..Default::default()
    }
}

impl ClassicGroup {
    /// Takes a JoinGroup whose session timeout is in bounds.
    pub(in crate::coordinator) fn join(&mut self, fx: &mut Effects<'_>, join: Join) {
        if matches!(self.phase, Phase::Dead) {
            return join.refuse(fx, ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
        if !self.has_room_for(fx, &join) {
            self.remove(fx, &join.member_id);
            join.refuse_as(fx, "", ErrorCode::GROUP_MAX_SIZE_REACHED);
            return self.complete_if_all_joined(fx);
        }
        if !self.supports(&join.protocol_type, &join.protocols) {
            return join.refuse(fx, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        if join.member_id.is_empty() { self.join_without_id(fx, join) } else { self.join_with_id(fx, join) }
    }

    /// While members are joining the seats go to those that are here: a group that has become too large shrinks so.
    /// Unlike Kafka's, a static member that comes back without its id has its seat.
    fn has_room_for(&self, fx: &Effects<'_>, join: &Join) -> bool {
        let size = fx.config.group_max_size;
        let instance = join.instance_id.as_ref().filter(|_| join.member_id.is_empty());
        let id = instance.and_then(|instance| self.instances.get(instance)).map_or(&*join.member_id, |id| id);
        let known = self.members.get(id);
        match &self.phase {
            Phase::Empty | Phase::Dead => true,
            Phase::Preparing { .. } => known.is_some_and(|m| m.join.is_some()) || self.joined < size,
            Phase::Completing { .. } | Phase::Stable { .. } => known.is_some() || self.members.len() < size,
        }
    }

    fn join_without_id(&mut self, fx: &mut Effects<'_>, join: Join) {
        let prefix = join.instance_id.as_deref().unwrap_or(&join.client.client_id);
        let id: Arc<str> = fx.ids.next(prefix).into();
        let known = join.instance_id.as_ref().and_then(|instance| self.instances.get(instance)).cloned();
        match known {
            Some(old) => self.replace_static(fx, old, id, join),
            None if join.instance_id.is_none() && join.version >= MEMBER_ID_REQUIRED_SINCE => {
                self.hand_out(fx, id, join);
            }
            None => self.take_in_new(fx, id, join),
        }
    }

    /// Gives the client an id to come back with. It is good for one session timeout.
    fn hand_out(&mut self, fx: &mut Effects<'_>, id: Arc<str>, join: Join) {
        let mut session = Session::default();
        session.restart(fx.timers, fx.now + join.session_timeout, &self.id, &id);
        join.refuse_as(fx, &id, ErrorCode::MEMBER_ID_REQUIRED);
        self.pending.insert(id, session);
    }

    fn take_in_new(&mut self, fx: &mut Effects<'_>, id: Arc<str>, join: Join) {
        self.note_more_came();
        let member = Member {
            id: id.clone(),
            instance_id: join.instance_id.clone(),
            client: join.client.clone(),
            assignment: Default::default(),
            session_timeout: join.session_timeout,
            rebalance_timeout: join.rebalance_timeout,
            protocols: join.protocols.clone(),
            is_new: true,
            epoch_before: None,
            arrival: 0,
            join: None,
            sync: None,
            session: Session::default(),
        };
        self.add(fx, member, &join.protocol_type);
        self.park_join(fx, &id, join.parked());
        self.limit_wait_of_new(fx, &id);
        self.rebalance(fx, Cause::MemberJoined { member: id.to_string() });
    }

    /// A client that gave up on its join meanwhile must not stay a member for ever.
    fn limit_wait_of_new(&mut self, fx: &mut Effects<'_>, id: &Arc<str>) {
        // A group that did not have to wait has answered already.
        if let Some(member) = self.members.get_mut(id) {
            let deadline = fx.now + fx.config.group_new_member_join_timeout;
            member.session.restart(fx.timers, deadline, &self.id, id);
        }
    }

    fn join_with_id(&mut self, fx: &mut Effects<'_>, join: Join) {
        if self.pending.contains_key(join.member_id.as_str()) {
            let id: Arc<str> = join.member_id.as_str().into();
            if join.instance_id.is_some() {
                // Ids are handed out to dynamic members only.
                return join.refuse(fx, ErrorCode::UNKNOWN_MEMBER_ID);
            }
            return self.take_in_new(fx, id, join);
        }
        if let Err(code) = self.validate(&join.member_id, join.instance_id.as_deref()) {
            return join.refuse(fx, code);
        }
        self.rejoin(fx, join);
    }

    fn rejoin(&mut self, fx: &mut Effects<'_>, join: Join) {
        let Some(member) = self.members.get(join.member_id.as_str()) else {
            return join.refuse(fx, ErrorCode::UNKNOWN_MEMBER_ID);
        };
        let id = member.id.clone();
        let same = member.protocols == join.protocols;
        let leads = self.is_leader(&id);
        match &self.phase {
            Phase::Empty | Phase::Dead => join.refuse(fx, ErrorCode::UNKNOWN_MEMBER_ID),
            // The answer of the last join was lost: the same again.
            Phase::Completing { .. } if same => self.answer_current(fx, &join, &id, leads),
            Phase::Stable { .. } if same && !leads => self.answer_current(fx, &join, &id, false),
            Phase::Preparing { .. } | Phase::Completing { .. } | Phase::Stable { .. } => {
                let member = id.to_string();
                let cause = if same {
                    Cause::LeaderRejoined { member }
                } else {
                    Cause::SubscriptionChanged { member }
                };
                self.update(fx, &id, &join);
                self.park_join(fx, &id, join.parked());
                self.rebalance(fx, cause);
            }
        }
    }

    fn answer_current(&mut self, fx: &mut Effects<'_>, join: &Join, id: &str, with_members: bool) {
        let answer = Joined { leader: self.leader_id(), with_members, skip_assignment: false };
        fx.reply(join.ticket, join_answer(self, id, join.version, answer));
    }

    /// Takes over what a member says of itself when it joins again.
    pub(super) fn update(&mut self, _fx: &mut Effects<'_>, id: &str, join: &Join) {
        let Some(member) = self.members.get_mut(id) else { return };
        self.support.remove(&member.protocols);
        member.protocols = join.protocols.clone();
        member.rebalance_timeout = join.rebalance_timeout;
        member.session_timeout = join.session_timeout;
        self.support.add(&member.protocols);
    }

    /// Lets a join wait for the others. One of the same member that waits already will not be missed: its client sent
    /// another.
    pub(super) fn park_join(&mut self, fx: &mut Effects<'_>, id: &Arc<str>, parked: ParkedRequest) {
        self.answer_join_with_error(fx, id, id, ErrorCode::REBALANCE_IN_PROGRESS);
        let Some(member) = self.members.get_mut(id) else { return };
        member.join = Some(parked);
        self.joined += 1;
        if let Some(ticket) = parked.ticket {
            fx.park(ticket, &self.id, id);
        }
    }

    /// Ends the parked join of a member, if there is one, with an error.
    pub(super) fn answer_join_with_error(
        &mut self,
        fx: &mut Effects<'_>,
        id: &str,
        shown: &str,
        code: ErrorCode,
    ) {
        let Some(parked) = self.members.get_mut(id).and_then(|m| m.join.take()) else { return };
        self.joined -= 1;
        if let Some(ticket) = parked.ticket {
            fx.unpark(ticket, join_refused(shown, code, parked.version));
        }
    }

    pub(super) fn leader_id(&self) -> String {
        self.leader.as_deref().unwrap_or_default().to_owned()
    }
}
