//! The one error of this crate, sorted by whose fault it is and what helps.
//!
//! Mirrors the exceptions of `org.apache.kafka.common.errors` that a consumer, a producer or an admin can meet. Messages
//! are lower-case and say what to do. [`Error::is_retriable`] asks the table of error codes.

use crate::cluster::SendError;
use std::{sync::Arc, time::Duration};
use tontine_group::TopicPartition;
use tontine_wire::ErrorCode;

/// What can go wrong.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A broker refused.
    #[error("{context}: the broker answered {code}{}", detail(.message))]
    Broker {
        /// The broker's answer.
        code: ErrorCode,
        /// What was asked.
        context: String,
        /// What the broker says about it.
        message: Option<String>,
    },
    /// The connection could not be opened or was lost.
    #[error("{0}")]
    Disconnected(Arc<str>),
    /// The operation did not end in time.
    #[error("{what} did not end within {after:?}{}", because(.why))]
    Timeout {
        /// The operation.
        what: String,
        /// How long was waited.
        after: Duration,
        /// The last thing that went wrong meanwhile.
        why: Option<Arc<str>>,
    },
    /// A broker or a partition holds bytes that make no sense.
    #[error("{0}")]
    Malformed(Arc<str>),
    /// The broker is too old, or too new, for what was asked.
    #[error("{0}")]
    Unsupported(Arc<str>),
    /// Another member or producer took this one's place; it has to be closed.
    #[error("fenced: {0}")]
    Fenced(Arc<str>),
    /// The member lost its partitions, or was never a member: what it had is somebody else's now.
    #[error("{0}")]
    Lost(Arc<str>),
    /// The group is rebalancing: go on polling, then try again.
    #[error("the group is rebalancing: poll until the rebalance is over, then try again")]
    RebalanceInProgress,
    /// A partition has no position: nothing is committed, or the offset does not exist, and there is no reset policy.
    #[error("no offset to start from for {}: seek, commit an offset, or set auto.offset.reset", list(.0))]
    NoOffset(Vec<TopicPartition>),
    /// The offset to read from does not exist, and there is no reset policy.
    #[error("{partition} has no offset {offset}: seek to one that exists, or set auto.offset.reset")]
    OffsetOutOfRange {
        /// The partition.
        partition: TopicPartition,
        /// The offset that was asked for.
        offset: i64,
    },
    /// The log was cut off before the offset to read from, and there is no reset policy.
    #[error(
        "{partition} was cut off before offset {offset}{}: records that were read are gone; seek, or set auto.offset.reset",
        parting(.parts_at)
    )]
    Truncated {
        /// The partition.
        partition: TopicPartition,
        /// The offset to read from.
        offset: i64,
        /// From here on the log differs from what was read; `None` when nobody knows.
        parts_at: Option<i64>,
    },
    /// A listener or another callback of the application failed.
    #[error("a callback of the application failed: {0}")]
    Callback(Arc<dyn std::error::Error + Send + Sync>),
    /// A setting is wrong.
    #[error("{0}")]
    Configuration(Arc<str>),
    /// The call makes no sense here.
    #[error("{0}")]
    Misuse(Arc<str>),
    /// `wakeup` was called.
    #[error("woken up by wakeup()")]
    Woken,
    /// The consumer, producer or admin is closed.
    #[error("{0} is closed")]
    Closed(&'static str),
}

impl Error {
    /// An answer of a broker.
    pub fn broker(code: ErrorCode, context: impl Into<String>, message: Option<String>) -> Self {
        Self::Broker { code, context: context.into(), message }
    }

    /// A wrong setting.
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::Configuration(message.into().into())
    }

    /// A call that makes no sense.
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::Misuse(message.into().into())
    }

    /// Whether the same call may succeed later.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Broker { code, .. } => code.is_retriable(),
            Self::Disconnected(_) | Self::Timeout { .. } | Self::RebalanceInProgress | Self::Woken => true,
            Self::Malformed(_)
            | Self::Unsupported(_)
            | Self::Fenced(_)
            | Self::Lost(_)
            | Self::NoOffset(_)
            | Self::OffsetOutOfRange { .. }
            | Self::Truncated { .. }
            | Self::Callback(_)
            | Self::Configuration(_)
            | Self::Misuse(_)
            | Self::Closed(_) => false,
        }
    }

    /// The broker's error code, when there is one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Broker { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Disconnected { why } => Self::Disconnected(why),
            SendError::TimedOut { what, after, why } => Self::Timeout { what: what.to_owned(), after, why },
            SendError::Unsupported { why } | SendError::TooOld { why } => Self::Unsupported(why),
            SendError::Malformed { why } => Self::Malformed(why),
            SendError::Refused { code, context, message } => {
                Self::Broker { code, context: context.to_string(), message: message.map(|m| m.to_string()) }
            }
        }
    }
}

fn detail(message: &Option<String>) -> String {
    message.as_ref().map_or_else(String::new, |m| format!(" ({m})"))
}

fn because(why: &Option<Arc<str>>) -> String {
    why.as_ref().map_or_else(String::new, |w| format!(": {w}"))
}

fn parting(parts_at: &Option<i64>) -> String {
    parts_at.map_or_else(String::new, |at| format!(", it differs from {at} on"))
}

fn list(partitions: &[TopicPartition]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_says_what_went_wrong_meanwhile() {
        let error = Error::from(SendError::TimedOut {
            what: "Metadata",
            after: Duration::from_secs(1),
            why: Some("could not connect to 127.0.0.1:9: connection refused".into()),
        });
        assert_eq!(
            error.to_string(),
            "Metadata did not end within 1s: could not connect to 127.0.0.1:9: connection refused"
        );
        assert!(error.is_retriable());
    }

    #[test]
    fn an_answer_of_a_broker_is_retriable_when_its_code_is() {
        assert!(Error::broker(ErrorCode::NOT_COORDINATOR, "commit", None).is_retriable());
        assert!(!Error::broker(ErrorCode::INVALID_GROUP_ID, "join", None).is_retriable());
    }
}
