//! Why a group rebalanced: one closed set that member, coordinator, logs and reports share.

use std::{fmt, sync::Arc, time::Duration};

/// Why a rebalance began or a membership ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A new member came.
    MemberJoined {
        /// Its id.
        member: String,
    },
    /// A static member came back under a new member id.
    StaticMemberReplaced {
        /// `group.instance.id`.
        instance: String,
    },
    /// A member left.
    MemberLeft {
        /// Its id.
        member: String,
        /// What it said.
        reason: String,
    },
    /// A member did not poll within `max.poll.interval.ms`.
    PollDeadline {
        /// How long it had not polled.
        silent: Duration,
    },
    /// The coordinator heard nothing of a member within its session timeout.
    SessionExpired {
        /// Its id.
        member: String,
    },
    /// A member did not rejoin or release in time.
    RebalanceTimeout {
        /// Its id.
        member: String,
    },
    /// A member joined but never fetched its assignment.
    SyncTimeout {
        /// Its id.
        member: String,
    },
    /// A member subscribes to other topics than before.
    SubscriptionChanged {
        /// Its id.
        member: String,
    },
    /// A topic has more partitions than before.
    PartitionsChanged {
        /// The topic.
        topic: Arc<str>,
        /// Partitions before.
        from: i32,
        /// Partitions now.
        to: i32,
    },
    /// A subscribed topic appeared.
    TopicCreated {
        /// The topic.
        topic: Arc<str>,
    },
    /// A subscribed topic is gone.
    TopicDeleted {
        /// The topic.
        topic: Arc<str>,
    },
    /// Another assignor is used from now on.
    AssignorChanged,
    /// The group's leader joined again.
    LeaderRejoined {
        /// Its id.
        member: String,
    },
    /// Second round of a cooperative rebalance: partitions given up in the first one are free now.
    SecondPhase,
    /// A member with the same `group.instance.id` took over.
    InstanceFenced {
        /// `group.instance.id`.
        instance: String,
    },
    /// The coordinator does not know the member or its generation any more.
    Fenced {
        /// What the coordinator said.
        code: tontine_wire::ErrorCode,
    },
    /// The group moved to another coordinator; nothing else changed.
    CoordinatorMoved,
    /// The coordinator could not write the assignment.
    PersistFailed,
    /// The application asked for it.
    Requested {
        /// What it said.
        reason: String,
    },
    /// The coordinator said that a rebalance is going on; only it knows why.
    Coordinator,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemberJoined { member } => write!(f, "member joined: {member}"),
            Self::StaticMemberReplaced { instance } => write!(f, "static member came back: {instance}"),
            Self::MemberLeft { member, reason } if reason.is_empty() => write!(f, "member left: {member}"),
            Self::MemberLeft { member, reason } => write!(f, "member left: {member} ({reason})"),
            Self::PollDeadline { silent } => write!(f, "no poll for {} ms", silent.as_millis()),
            Self::SessionExpired { member } => write!(f, "session expired: {member}"),
            Self::RebalanceTimeout { member } => write!(f, "rebalance timeout: {member}"),
            Self::SyncTimeout { member } => write!(f, "sync timeout: {member}"),
            Self::SubscriptionChanged { member } => write!(f, "subscription changed: {member}"),
            Self::PartitionsChanged { topic, from, to } => {
                write!(f, "partitions of {topic} changed from {from} to {to}")
            }
            Self::TopicCreated { topic } => write!(f, "topic created: {topic}"),
            Self::TopicDeleted { topic } => write!(f, "topic deleted: {topic}"),
            Self::AssignorChanged => f.write_str("assignor changed"),
            Self::LeaderRejoined { member } => write!(f, "leader rejoined: {member}"),
            Self::SecondPhase => f.write_str("second round: partitions given up in the first are free"),
            Self::InstanceFenced { instance } => {
                write!(f, "fenced by another member with instance id {instance}")
            }
            Self::Fenced { code } => write!(f, "fenced: {code}"),
            Self::CoordinatorMoved => f.write_str("coordinator moved"),
            Self::PersistFailed => f.write_str("the assignment could not be stored"),
            Self::Requested { reason } => write!(f, "requested: {reason}"),
            Self::Coordinator => f.write_str("the coordinator asked for it"),
        }
    }
}
