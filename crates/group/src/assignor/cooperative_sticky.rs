//! `cooperative-sticky`: deals as `sticky` does, and members keep working meanwhile. A partition that is to move is given
//! to nobody until its owner has let go of it; the next round hands it over.
//!
//! Mirrors `CooperativeStickyAssignor`. The module `balance` is the algorithm, [`crate::rebalance::cooperative`] the rule of
//! the hand-over.

use super::{
    Assignor, MemberSubscription, RebalanceProtocol,
    balance::balance,
    claims::Claims,
    layout::Layout,
    owned::Owned,
    user_data::{read_generation, write_generation},
};
use crate::{Assignment, TopicPartition, rebalance::cooperative, topics::Topics};
use bytes::Bytes;

/// The assignor `cooperative-sticky`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CooperativeSticky;

impl Assignor for CooperativeSticky {
    fn name(&self) -> &str {
        "cooperative-sticky"
    }

    fn rebalance_protocol(&self) -> RebalanceProtocol {
        RebalanceProtocol::Cooperative
    }

    /// The generation, for leaders that do not know the field of the subscription that tells it.
    fn user_data(&self, _owned: &[TopicPartition], generation: i32) -> Option<Bytes> {
        Some(write_generation(generation))
    }

    fn assign(&self, topics: &Topics, members: &[MemberSubscription]) -> Assignment {
        let layout = Layout::new(topics, members);
        let owned: Vec<_> =
            layout.members.iter().map(|member| Owned::new(member, generation(member))).collect();
        let claims = Claims::new(&layout, &owned);
        let mut owners = balance(&layout, &claims.owners);
        cooperative::withhold_claimed(&claims, &mut owners);
        layout.assignment(&owners)
    }
}

/// The field of the subscription if it says anything, otherwise the user data.
fn generation(member: &MemberSubscription) -> i32 {
    let field = member.generation.filter(|generation| *generation >= 0);
    field
        .or_else(|| member.user_data.as_deref().and_then(read_generation))
        .map_or(-1, |generation| generation.max(-1))
}
