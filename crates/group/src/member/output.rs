//! What goes in and out of a member, as types: requests, events, deadlines and errors. Decides nothing.

use super::{MemberState, callback::Due, leader::Planning};
use crate::{Cause, Instant};
use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};
use tontine_wire::{ErrorCode, api::Request};

/// Ties an answer to its request. Each is used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a member wants done. Drain [`super::Member::poll_output`] until it answers [`Output::Wait`].
#[derive(Clone, Debug)]
pub enum Output {
    /// Send this to the group's coordinator and bring the answer to [`super::Member::handle_response`] under the same
    /// ticket.
    Send {
        /// Goes along with the answer.
        ticket: Ticket,
        /// What to send. Every field is filled; old versions leave out what they do not know.
        request: Request,
        /// How long to wait for the answer, in place of `request.timeout.ms`; `None` leaves that in force.
        timeout: Option<Duration>,
    },
    /// The coordinator is not known (any more): look it up, then say so with [`super::Member::handle_coordinator`].
    FindCoordinator,
    /// These are the topics whose metadata the member needs from now on: its own, and the whole group's while it leads.
    /// Bring fresh metadata with [`super::Member::handle_topics`], also when it turns out to be unchanged.
    RefreshTopics {
        /// The names.
        topics: BTreeSet<Arc<str>>,
    },
    /// This member leads and has to deal the partitions: run it, and bring what comes out to
    /// [`super::Member::handle_plan`]. The application's own assignor may take its time, so run it where it holds up
    /// nothing else: heartbeats go on meanwhile.
    Plan(Planning),
    /// Something happened that the application or the log should know.
    Event(Event),
    /// Nothing more to do until this point in time, or until something comes in.
    Wait(Option<Deadline>),
}

/// When to call [`super::Member::handle_timeout`], and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The point in time.
    pub at: Instant,
    /// What is due then.
    pub why: Why,
}

/// What a deadline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The next heartbeat.
    Heartbeat,
    /// The coordinator has not answered for a whole session.
    Session,
    /// The application must have polled by then.
    PollInterval,
    /// A request is tried again.
    Retry,
    /// It goes on without fresh metadata: the leader of a classic group, or a member that waits for the names of topics.
    Metadata,
    /// Leaving is given up.
    Leave,
    /// A static member that came back looks whether everything has an owner.
    Audit,
    /// A join no longer waits for commits in flight.
    CommitGrace,
}

/// What the application or the log should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A callback is due: stop handing out what [`Due`] says is going away, and run it within the application's next
    /// (or waiting) poll, unsubscribe or close, through [`super::Member::begin_callback`].
    CallbackDue(Due),
    /// To be returned by the application's next poll.
    Error(MemberError),
    /// The log should know, and whoever reads it.
    Warned(Warning),
    /// The member has left the group (or never was in it): [`super::Member::leave`] or `unsubscribe` is complete.
    Left,
    /// The state changed.
    Transition(Transition),
}

/// One change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: MemberState,
    /// The state now.
    pub to: MemberState,
    /// Why; `None` for the steps that follow from the one before.
    pub cause: Option<Cause>,
    /// The generation the member is in; `None` when it is in none.
    pub generation: Option<i32>,
}

/// What is no error yet, but nothing that should go on in silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The member waits for its instance id.
    InstanceHeld {
        /// `group.instance.id`.
        instance: String,
        /// How long it has waited.
        waited: Duration,
        /// How much longer it will.
        left: Duration,
    },
    /// It goes on with the classic protocol.
    FallsBack {
        /// Why the other cannot be had.
        why: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InstanceHeld { instance, waited, left } => write!(
                f,
                "group.instance.id `{instance}` belongs to another consumer, or to a former session of this one: waiting until \
                 that has left or its session is over, for {} s so far and at most {} s more; if another consumer runs with \
                 this id, close it or give each its own",
                waited.as_secs(),
                left.as_secs()
            ),
            Self::FallsBack { why } => {
                write!(
                    f,
                    "going on with the classic protocol, as group.protocol=consumer,classic allows: {why}"
                )
            }
        }
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection broke, or could not be made.
    #[error("disconnected from the coordinator")]
    Disconnected,
    /// No answer came in time.
    #[error("the coordinator did not answer in time")]
    TimedOut,
    /// The broker does not know the API in any version that can be used.
    #[error("the broker does not support this request")]
    Unsupported,
    /// The broker knows the API, but in no version that has room for all that the request says.
    #[error("the broker is too old for what this request says")]
    TooOld,
}

/// What a poll should return as an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// Another member with the same `group.instance.id` took over. Final: nothing but close is left.
    #[error("{}", fenced(.instance))]
    InstanceFenced {
        /// `group.instance.id`; empty when the member has none, and is told so all the same.
        instance: String,
    },
    /// The coordinator refuses the member. The next poll tries again.
    #[error("the coordinator refused {api} with {code}")]
    Refused {
        /// The request.
        api: &'static str,
        /// What it said.
        code: ErrorCode,
    },
    /// The coordinator refuses the member for good. Final.
    #[error("the coordinator refused {api} for good with {code}: {message}")]
    Rejected {
        /// The request.
        api: &'static str,
        /// What it said.
        code: ErrorCode,
        /// In its words.
        message: String,
    },
    /// Another member has this instance id, and did not give it up for a whole session. Final.
    #[error(
        "another consumer with group.instance.id `{instance}` is in the group; give each its own id, or wait until the \
         other has left"
    )]
    InstanceInUse {
        /// `group.instance.id`.
        instance: String,
    },
    /// The broker does not have the consumer protocol, or it is switched off. Final.
    #[error(
        "the broker does not support group.protocol=consumer: it needs Apache Kafka 4.0 with group.version 1; set \
         group.protocol=classic, or consumer,classic to use what there is"
    )]
    ProtocolUnsupported,
    /// The broker has the consumer protocol, but resolves no regular expressions. Final.
    #[error(
        "the broker does not resolve regular expressions: that needs Apache Kafka 4.0; subscribe to the topics by name, or \
         to a pattern that this client resolves"
    )]
    RegexUnsupported,
    /// The group and this member have no way in common to deal partitions. The next poll tries again.
    #[error(
        "the group cannot take this member in: its members have to agree on an assignor, and this one offers only {offers}; \
         compare partition.assignment.strategy with that of the others. A group whose members use group.protocol=consumer \
         takes classic ones in only while the broker's group.consumer.migration.policy allows it; use group.protocol=consumer \
         there. A group of something else than consumers, like Kafka Connect, never does: use another group.id"
    )]
    NothingInCommon {
        /// The request.
        api: &'static str,
        /// The assignors of this member.
        offers: String,
    },
    /// The coordinator does not speak the classic group protocol.
    #[error("the broker does not support {api}")]
    Unsupported {
        /// The request.
        api: &'static str,
    },
    /// The answer cannot be meant for this member.
    #[error("the coordinator's answer to {api} makes no sense: {what}")]
    Nonsense {
        /// The request.
        api: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The application's own assignor panicked. The next poll joins again.
    #[error("the assignor `{assignor}` panicked: {message}")]
    AssignorPanicked {
        /// Its name.
        assignor: String,
        /// The panic's message.
        message: String,
    },
    /// The group's leader assigned topics that this member does not subscribe to; they were left out.
    #[error("the group's leader assigned topics that were not subscribed to: {topics:?}")]
    ForeignTopics {
        /// Their names.
        topics: Vec<Arc<str>>,
    },
}

impl MemberError {
    /// Whether the consumer is of no use any more.
    pub fn is_fatal(&self) -> bool {
        matches!(
            self,
            Self::InstanceFenced { .. }
                | Self::InstanceInUse { .. }
                | Self::Rejected { .. }
                | Self::ProtocolUnsupported
                | Self::RegexUnsupported
        )
    }
}

/// Why a commit cannot be made, or was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitRefusal {
    /// A rebalance is going on. The membership is intact: commit again once it is over, for what is still owned.
    #[error("a rebalance is in progress: poll until it is over, then commit again")]
    RebalanceInProgress,
    /// The consumer is not a member of the group (any more).
    #[error(
        "the consumer is not a member of its group: poll to join again; somebody else may own the partitions"
    )]
    NotAMember,
    /// Another member with the same `group.instance.id` took over.
    #[error("another consumer with the same group.instance.id has taken over")]
    Fenced,
}

fn fenced(instance: &str) -> String {
    if instance.is_empty() {
        return "the coordinator says that another consumer has taken this one's group.instance.id over, though it has none; \
                close it and start another one"
            .to_owned();
    }
    format!(
        "another consumer with group.instance.id `{instance}` has taken over; close this one and give each its own id"
    )
}
