//! Consumer groups: the coordinator computes who is to have what, members get there one partition at a time, and nobody
//! stops (KIP-848).
//!
//! Everything a consumer group is stands in the log ([`stored`]); deciding reads it and answers records, one decision of
//! a group at a time (`turn`). What a heartbeat decides is in `heartbeat` and the steps it calls: `validate`, `regex`,
//! `target`, `reconcile`. Groups go over to the other protocol with their members (`upgrade`, `downgrade`), and members of
//! the classic protocol can be in a consumer group (`classic_member`).

mod by_name;
mod classic_member;
mod commit;
mod describe;
mod downgrade;
mod draft;
mod heartbeat;
mod leave;
mod live;
mod pace;
mod reconcile;
pub mod record;
mod refresh;
mod regex;
mod server_assignor;
pub mod stored;
mod tally;
mod target;
mod timeouts;
mod turn;
mod upgrade;
mod validate;

pub use record::ConsumerRecord;
pub use server_assignor::{ServerAssignor, ServerAssignors};
pub use stored::{ConsumerMember, StoredConsumer};

pub(super) use commit::{validate_commit, validate_fetch};
pub(super) use describe::state;
pub(super) use live::{Deferred, LiveConsumer};
pub(super) use pace::Pace;

/// How the protocol is called in lists.
pub(super) const CONSUMER: &str = "consumer";

impl StoredConsumer {
    /// Whether a member uses this topic.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        self.members.values().any(|member| {
            member.names.contains(topic)
                || self.regexes.get(&member.regex).is_some_and(|topics| topics.contains(topic))
        })
    }
}
