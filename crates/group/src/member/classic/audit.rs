//! The audit of a static leader that came back: is there an owner for everything?
//!
//! A static member takes its place in a stable group without a rebalance, and the coordinator tells a leader not to plan
//! (KIP-814). What changed while it was away (partitions, topics, its own subscription) nobody else will notice. Kafka's
//! client compares only with what it sees from then on; here the leader asks once what everybody has.

use super::{Classic, State};
use crate::member::{SendError, leader::flat};
use std::collections::BTreeSet;
use tontine_wire::{
    api::{Response, describe_groups::DescribeGroupsRequest},
    consumer_protocol::Assignment,
};

impl Classic {
    /// Asks once the group rests and the metadata of its topics are there.
    pub(super) fn audit(&mut self) {
        let ready = self.watch.as_ref().is_some_and(|watch| watch.knows_its_topics());
        if !self.audit_wanted || !ready || !matches!(self.state, State::Stable) || !self.coordinator_known {
            return;
        }
        self.audit_wanted = false;
        let request = DescribeGroupsRequest {
            groups: vec![self.config.group_id.clone()],
            ..DescribeGroupsRequest::default()
        };
        self.audit = Some(self.outbox.send(request, None));
    }

    /// An answer that says nothing (no permission, another state by now) is let be.
    pub(super) fn audited(&mut self, result: Result<Response, SendError>) {
        let Ok(Response::DescribeGroups(response)) = result else { return };
        let Some(group) = response.groups.into_iter().find(|g| g.group_id == self.config.group_id) else {
            return;
        };
        if group.error_code.is_err() || group.group_state != "Stable" || !matches!(self.state, State::Stable)
        {
            return;
        }
        let mut assigned = BTreeSet::new();
        for member in group.members {
            let Ok(share) = Assignment::from_assignment(member.member_assignment) else { return };
            assigned.extend(flat(share.assigned_partitions));
        }
        if let Some(cause) = self.watch.as_ref().and_then(|watch| watch.audit(&assigned, &self.topics)) {
            self.want_rejoin(cause);
        }
    }
}
