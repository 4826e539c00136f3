//! `uniform`: the broker's default for groups of the consumer protocol. Balanced and sticky.
//!
//! The broker knows itself who has what, so nobody has to be believed: the target assignment so far is what the members
//! have, and moving partitions one by one is the business of the reconciliation, not of the assignor. Mirrors
//! `UniformAssignor`. The module `balance` is the algorithm.

use super::{MemberSubscription, balance::balance, claims::Claims, layout::Layout, owned::Owned};
use crate::{Assignment, topics::Topics};

/// The name on the wire.
pub const NAME: &str = "uniform";

/// Deals the partitions of `topics`, given the target assignment so far, whose owners are indexes into `members`.
pub fn assign(topics: &Topics, members: &[MemberSubscription], so_far: &Assignment) -> Assignment {
    let layout = Layout::new(topics, members);
    layout.assignment(&balance(&layout, &layout.owners(so_far)))
}

/// Deals the partitions of `topics`, given what each member says it owns.
pub fn assign_to_owners(topics: &Topics, members: &[MemberSubscription]) -> Assignment {
    let layout = Layout::new(topics, members);
    let owned: Vec<_> =
        layout.members.iter().map(|member| Owned::new(member, member.generation.unwrap_or(-1))).collect();
    layout.assignment(&balance(&layout, &Claims::new(&layout, &owned).owners))
}
