//! Assignors: how the partitions of a group are dealt to its members.
//!
//! In the classic protocol the group's leader, which is one of the members, runs the assignor that the members voted
//! for; the broker knows nothing of it. [`ALL`] lists those that come with the library:
//!
//! | name | deals | when something changes |
//! |---|---|---|
//! | `range` | each topic in contiguous ranges; the same partition numbers of like topics to the same member; near the members' racks if racks are known | starts anew |
//! | `roundrobin` | all partitions one by one in a circle | starts anew |
//! | `sticky` | as evenly as the subscriptions allow | moves as few partitions as evenness allows; everybody stops while it happens |
//! | `cooperative-sticky` | as `sticky` | as `sticky`; only what moves stops |
//!
//! The consumer protocol has the broker assign; [`uniform`] and [`range::assign_without_racks`] are what it does.
//!
//! # An assignor of your own
//!
//! Implement [`Assignor`] and offer it under a name of its own; members of one group must have an assignor in common, so
//! every member needs yours. It is given the topics that the group wants, as far as they exist, and what every member
//! said when it joined, and answers with an [`Assignment`]: an owner, or none, for each partition. Members are named by
//! their index in the slice. A partition cannot be given to two members, and what a member did not subscribe to is not
//! passed on to it. Three rules are left to you:
//!
//! * Give the same answer whatever the order of the members, or else partitions wander at every rebalance.
//! * Leave no partition without an owner by accident: nobody would read it, and nothing would complain.
//! * Believe nothing that members tell in their user data until you have checked it.
//!
//! This one gives all partitions of a topic to one member, the same topic to the same member as long as the group stays
//! as it is, for work that needs a whole topic in one place:
//!
//! ```
//! use tontine_group::{Assignment, assignor::{Assignor, MemberSubscription}, topics::Topics};
//!
//! #[derive(Debug)]
//! struct WholeTopics;
//!
//! impl Assignor for WholeTopics {
//!     fn name(&self) -> &str {
//!         "whole-topics"
//!     }
//!
//!     fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
//!         // By member id, so that the order in which the members come does not matter.
//!         let mut order: Vec<usize> = (0..members.len()).collect();
//!         order.sort_by_key(|i| &members[*i].member_id);
//!         let mut assignment = Assignment::new();
//!         for (nth, (name, topic)) in topics.iter().enumerate() {
//!             let wanting: Vec<_> = order.iter().filter(|i| members[**i].topics.contains(name)).collect();
//!             if wanting.is_empty() {
//!                 continue;
//!             }
//!             for partition in 0..topic.partitions {
//!                 assignment.assign(name, partition, *wanting[nth % wanting.len()]);
//!             }
//!         }
//!         assignment
//!     }
//! }
//!
//! let member = |id: &str| MemberSubscription {
//!     member_id: id.into(),
//!     topics: vec!["orders".into(), "payments".into()],
//!     ..MemberSubscription::default()
//! };
//! let topics = Topics::new().with("orders", 3).with("payments", 2);
//! let assignment = WholeTopics.assign(&topics, &[member("b"), member("a")]);
//! assert_eq!(assignment.owner("orders", 2), Some(1), "all of orders goes to a");
//! assert_eq!(assignment.owner("payments", 0), Some(0), "all of payments goes to b");
//! ```
//!
//! To have members keep what they have through a rebalance, answer [`RebalanceProtocol::Cooperative`] from
//! [`Assignor::rebalance_protocol`] and give a partition to the member that has it
//! ([`MemberSubscription::owned`]) wherever you can. A partition that you give to somebody else while its owner still
//! has it is withheld for you and handed over one round later (see [`crate::rebalance::cooperative`]). A member
//! rebalances cooperatively only if all assignors that it offers do ([`negotiate`]).
//!
//! To remember something from one rebalance to the next, or to tell the leader something about a member, answer it from
//! [`Assignor::user_data`] and read it from [`MemberSubscription::user_data`].
//!
//! Mirrors `ConsumerPartitionAssignor`.

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
    /// The topics it wants, each once, sorted. Some of them may not exist.
    pub topics: Vec<Arc<str>>,
    /// What the assignor of this name sent along on the member's side.
    pub user_data: Option<Bytes>,
    /// What it says it owns, sorted. Nothing in an eager rebalance: everything has been given up.
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

    /// Deals the partitions of `topics` to `members`. The order of `members` must not matter. Topics that members want
    /// and `topics` does not know are left out. The consumer runs it on a thread of its own: it may take its time, within
    /// `max.poll.interval.ms`, which is how long the other members wait.
    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment;
}
