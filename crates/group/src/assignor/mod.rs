//! Assignors: how the partitions of a group are dealt to its members.
//!
//! In the classic protocol the group's leader runs the assignor that the members voted for; the broker knows nothing of
//! it. Mirrors `ConsumerPartitionAssignor`.

mod balance;
mod builtin;
pub(crate) mod claims;
mod cooperative_sticky;
#[cfg(test)]
pub(crate) mod examples;
pub(crate) mod layout;
pub(crate) mod owned;
mod racks;
pub mod range;
mod round_robin;
mod sticky;
mod subscription;
pub mod uniform;
mod user_data;

pub use builtin::{ALL, Builtin, by_name, negotiate};
pub use cooperative_sticky::CooperativeSticky;
pub use range::Range;
pub use round_robin::RoundRobin;
pub use sticky::Sticky;
pub use subscription::SubscriptionReader;

use crate::{Assignment, TopicPartition, topics::Topics};
use bytes::Bytes;
use std::{fmt::Debug, sync::Arc};

/// Whether members give up everything before a rebalance, or only what moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RebalanceProtocol {
    /// Every member revokes all its partitions before it joins.
    Eager,
    /// Members keep what they have; a partition that moves is given up in one round and handed over in the next.
    Cooperative,
}

/// What an assignor knows of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberSubscription {
    /// The id the coordinator gave it.
    pub member_id: String,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    /// The topics it wants, each once.
    pub topics: Vec<Arc<str>>,
    /// What its own assignor sent along.
    pub user_data: Option<Bytes>,
    /// What it says it owns.
    pub owned: Vec<TopicPartition>,
    /// The generation in which it got what it owns; `None` when it does not say.
    pub generation: Option<i32>,
    /// `client.rack`.
    pub rack: Option<Arc<str>>,
}

/// Deals partitions to members. Implement it for an assignor of your own: only the members run it, so any name that all
/// members of the group offer will do.
pub trait Assignor: Send + Sync + Debug {
    /// The name on the wire, `range` for example. Members vote by it.
    fn name(&self) -> &str;

    /// The most gentle way of rebalancing that this assignor supports.
    fn rebalance_protocol(&self) -> RebalanceProtocol {
        RebalanceProtocol::Eager
    }

    /// What goes along with a member's subscription, given the partitions of its last assignment (also when it has given
    /// them up before joining, as an eager member does) and the generation of that assignment, -1 when there was none.
    fn user_data(&self, owned: &[TopicPartition], generation: i32) -> Option<Bytes> {
        let _ = (owned, generation);
        None
    }

    /// Deals the partitions of `topics` to `members`. The order of `members` must not matter. Topics that nobody knows
    /// are left out.
    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment;
}
