//! The audit of a static member that came back: is there an owner for everything?
//!
//! A static member takes its place in a stable group without a rebalance, and the coordinator tells a leader not to plan
//! (KIP-814). What changed while it was away (partitions, topics, its own subscription) nobody else will notice: the
//! coordinator stores the new subscription, and that is all. Kafka's client compares only with what it sees from then on;
//! here the member asks once what everybody has, and joins again if something is left over.

use super::{Classic, State};
use crate::{
    Instant,
    member::{Deadline, SendError, Ticket, Why, leader::flat, watch::incomplete},
};
use std::{collections::BTreeSet, time::Duration};
use tontine_wire::{
    api::{
        Response,
        describe_groups::{DescribeGroupsRequest, DescribedGroupMember},
    },
    consumer_protocol::Assignment,
};

/// How long a member that does not lead waits: in a group that rebalances at this moment the next round tells everything.
const PATIENCE: Duration = Duration::from_secs(2);

/// What has become of the audit.
#[derive(Debug)]
pub(super) enum Audit {
    /// None is needed.
    Idle,
    /// To be made from this point in time on, when the group rests.
    Due(Instant),
    /// DescribeGroups is on its way.
    Sent(Ticket),
}

impl Audit {
    pub(super) fn of_leader(now: Instant) -> Self {
        Self::Due(now)
    }

    pub(super) fn of_follower(now: Instant) -> Self {
        Self::Due(now + PATIENCE)
    }

    pub(super) fn is_sent_as(&self, ticket: Ticket) -> bool {
        matches!(self, Self::Sent(sent) if *sent == ticket)
    }
}

impl Classic {
    /// Asks once the group rests and the metadata are there, if there is anything to ask.
    pub(super) fn audit(&mut self, now: Instant) {
        let Audit::Due(at) = self.audit else { return };
        if now < at || !matches!(self.state, State::Stable) || !self.reach.is_known() {
            return;
        }
        match &self.watch {
            Some(watch) if !watch.knows_its_topics() => return,
            Some(_) => {}
            None if self.has_part_of_everything() => {
                self.audit = Audit::Idle;
                return;
            }
            None => {}
        }
        let request = DescribeGroupsRequest {
            groups: vec![self.config.group_id.clone()],
            ..DescribeGroupsRequest::default()
        };
        self.audit = Audit::Sent(self.outbox.send(request, None));
    }

    /// Whoever got partitions of a topic need not ask whether the group knows of it.
    fn has_part_of_everything(&self) -> bool {
        let has = |name: &str| self.owned.iter().any(|tp| *tp.topic == *name);
        self.subscription.iter().all(|name| has(name) || self.topics.partitions(name).is_none_or(|n| n == 0))
    }

    /// No answer, or one that may be another a moment later, is asked for again; one that says nothing is let be.
    pub(super) fn audited(&mut self, now: Instant, result: Result<Response, SendError>) {
        self.audit = Audit::Idle;
        let group = match result {
            Ok(Response::DescribeGroups(response)) => {
                response.groups.into_iter().find(|group| group.group_id == self.config.group_id)
            }
            Ok(_) | Err(SendError::Unsupported | SendError::TooOld) => None,
            Err(SendError::Disconnected | SendError::TimedOut) => {
                self.audit = Audit::Due(now + PATIENCE);
                None
            }
        };
        let Some(group) = group else { return };
        if group.error_code.is_retriable() || (group.error_code.is_ok() && group.group_state != "Stable") {
            self.audit = Audit::Due(now + PATIENCE);
        } else if group.error_code.is_ok() && matches!(self.state, State::Stable) {
            self.compare(group.members);
        }
    }

    /// Joins again if what all members have together is not all there is.
    fn compare(&mut self, members: Vec<DescribedGroupMember>) {
        let mut assigned = BTreeSet::new();
        for member in members {
            let Ok(share) = Assignment::from_assignment(member.member_assignment) else { return };
            assigned.extend(flat(share.assigned_partitions));
        }
        let cause = match &self.watch {
            Some(watch) => watch.audit(&assigned, &self.topics),
            None => incomplete(&self.subscription, &assigned, &self.topics),
        };
        if let Some(cause) = cause {
            self.want_rejoin(cause);
        }
    }

    pub(super) fn audit_deadline(&self) -> Option<Deadline> {
        let Audit::Due(at) = self.audit else { return None };
        let can_tell = self.watch.as_ref().is_none_or(|watch| watch.knows_its_topics());
        let waits = matches!(self.state, State::Stable) && self.reach.is_known() && can_tell;
        waits.then_some(Deadline { at, why: Why::Audit })
    }
}
