//! What a member is told about itself when it is made.

use crate::assignor::{self, Assignor, RebalanceProtocol};
use std::{sync::Arc, time::Duration};

/// Which group protocol a member speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupProtocol {
    /// The classic one: members join rounds, and one of them deals the partitions.
    #[default]
    Classic,
    /// The consumer protocol: the coordinator deals the partitions, and a broker without it is an error.
    Consumer,
    /// The consumer protocol where the broker has it, the classic one elsewhere.
    ConsumerOrClassic,
}

/// The part of a consumer's configuration that its membership depends on. Defaults are Kafka's.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// `group.id`.
    pub group_id: String,
    /// `group.instance.id`: makes the member static.
    pub instance_id: Option<String>,
    /// `group.protocol`.
    pub protocol: GroupProtocol,
    /// `group.remote.assignor`: the coordinator's assignor, with the consumer protocol; it chooses when there is none.
    pub remote_assignor: Option<String>,
    /// `client.id`, named in reasons.
    pub client_id: String,
    /// `client.rack`.
    pub rack: Option<String>,
    /// `session.timeout.ms`.
    pub session_timeout: Duration,
    /// `heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// How long the coordinator waits for this member in a rebalance: `max.poll.interval.ms`.
    pub rebalance_timeout: Duration,
    /// `max.poll.interval.ms`.
    pub max_poll_interval: Duration,
    /// `request.timeout.ms`.
    pub request_timeout: Duration,
    /// `retry.backoff.ms`.
    pub retry_backoff: Duration,
    /// `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// `partition.assignment.strategy`, the preferred one first. Of no use with the consumer protocol.
    pub assignors: Vec<Arc<dyn Assignor>>,
}

impl Default for MemberConfig {
    fn default() -> Self {
        Self {
            group_id: String::new(),
            instance_id: None,
            protocol: GroupProtocol::Classic,
            remote_assignor: None,
            client_id: String::new(),
            rack: None,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(300),
            max_poll_interval: Duration::from_secs(300),
            request_timeout: Duration::from_secs(30),
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            assignors: Vec::new(),
        }
    }
}

impl MemberConfig {
    /// How this member rebalances: the most gentle way that all its assignors support. It is one value for the whole life
    /// of the member, so no two parts of it can be of different opinion.
    pub fn rebalance_protocol(&self) -> RebalanceProtocol {
        assignor::negotiate(&self.assignors)
    }

    /// The assignor of this name.
    pub fn assignor(&self, name: &str) -> Option<&Arc<dyn Assignor>> {
        self.assignors.iter().find(|a| a.name() == name)
    }
}
