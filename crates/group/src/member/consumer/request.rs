//! What a heartbeat says: everything when the member joins and after anything went wrong, otherwise what has changed.
//!
//! What the coordinator has heard is only known from its answer; without one everything is said again. The partitions that
//! a heartbeat names are those that the application has *and* those that it may be given on account of the latest
//! assignment: the coordinator frees at once what a member does not name, and the callback that hands a partition over may
//! begin while the heartbeat is on its way. Kafka's client names only the former.
//!
//! Mirrors `ConsumerHeartbeatRequestManager.HeartbeatState`.

use super::{Consumer, State};
use std::{collections::BTreeSet, sync::Arc};
use tontine_wire::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;

/// What a member wants, as the coordinator has to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) topics: BTreeSet<Arc<str>>,
    /// A regular expression that the coordinator resolves.
    pub(super) regex: Option<String>,
}

impl Wish {
    pub(super) fn is_empty(&self) -> bool {
        self.topics.is_empty() && self.regex.is_none()
    }
}

impl Consumer {
    /// The next heartbeat of a member that joins or stays.
    pub(super) fn heartbeat(&mut self) -> ConsumerGroupHeartbeatRequest {
        let joins = matches!(self.state, State::Joining);
        // Whoever leaves wants nothing any more, but that is the farewell's to say: what a static member has stays its own.
        let leaves = matches!(self.state, State::Leaving(_));
        let said = self.said.take().filter(|_| !joins);
        let full = said.is_none();
        let said = said.unwrap_or_default();
        let names_changed = !leaves && (full || said.topics != self.wish.topics);
        let regex_changed = !leaves && (said.regex != self.wish.regex || (full && self.has_used_regex));
        let mut request = self.addressed(self.epoch.unwrap_or(0));
        if names_changed {
            request.subscribed_topic_names =
                Some(self.wish.topics.iter().map(|name| name.to_string()).collect());
        }
        if regex_changed {
            self.has_used_regex = true;
            request.subscribed_topic_regex = Some(self.wish.regex.clone().unwrap_or_default());
        }
        if full {
            let timeout = self.config.rebalance_timeout.as_millis();
            request.rebalance_timeout_ms = i32::try_from(timeout).unwrap_or(i32::MAX);
            request.server_assignor.clone_from(&self.config.remote_assignor);
        }
        if joins {
            request.rack_id.clone_from(&self.config.rack);
            request.topic_partitions = Some(Vec::new());
        } else if full || self.report {
            let mut places = self.held.places();
            places.extend(&self.told);
            request.topic_partitions = Some(places.write());
        }
        self.report = false;
        self.said = (!leaves).then(|| self.wish.clone());
        request
    }

    /// The fields that every heartbeat carries, and no other.
    pub(super) fn addressed(&self, epoch: i32) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.config.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch: epoch,
            instance_id: self.config.instance_id.clone(),
            ..Default::default()
        }
    }
}
