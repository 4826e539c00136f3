//! The hand-over of a cooperative rebalance: a partition that another member still owns is given to nobody.
//!
//! Members of a cooperative group work on while they rebalance. Were a partition given straight to its new owner, both
//! would work on it until the old one has heard of it. So it is withheld; its owner sees that it is gone, gives it up and
//! joins again, and the round after that hands it over. Mirrors what `CooperativeStickyAssignor` does to its own
//! assignment, and the check that `ConsumerCoordinator` makes of everybody else's.

use crate::{
    Assignment, TopicPartition,
    assignment::MemberIndex,
    assignor::{
        MemberSubscription,
        claims::{CONTESTED, Claims},
        layout::{Layout, NOBODY},
        owned::Owned,
    },
    topics::{Topic, Topics},
};
use std::sync::Arc;

/// A partition that an assignor gave straight from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The partition, which has no owner now.
    pub partition: TopicPartition,
    /// Who still owns it; `None` when several members of one generation say so.
    pub from: Option<MemberIndex>,
    /// Who was to get it.
    pub to: MemberIndex,
}

/// Withholds from `assignment` whatever somebody else still owns, and tells what that was.
///
/// An assignor that supports cooperative rebalancing has to do this itself or leave it to whoever runs it; what is
/// withheld once is not withheld a second time. Of two members that claim a partition the one of the higher generation
/// is believed.
pub fn withhold(members: &[MemberSubscription], assignment: &mut Assignment) -> Vec<Transfer> {
    if members.iter().all(|member| member.owned.is_empty()) {
        return Vec::new();
    }
    let topics = assigned_topics(assignment);
    let layout = Layout::of_all(&topics, members);
    let owned: Vec<_> =
        layout.members.iter().map(|member| Owned::new(member, member.generation.unwrap_or(-1))).collect();
    let claims = Claims::new(&layout, &owned);
    let owners = layout.owners(assignment);
    let mut transfers = Vec::new();
    for row in &layout.rows {
        for (partition, slot) in row.range().enumerate() {
            if let (true, Some(to)) =
                (in_transfer(claims.owners[slot], owners[slot]), layout.index(owners[slot]))
            {
                let partition = TopicPartition::new(Arc::clone(row.name), partition as i32);
                assignment.withhold(&partition.topic, partition.partition);
                transfers.push(Transfer { partition, from: layout.index(claims.owners[slot]), to });
            }
        }
    }
    transfers
}

/// The same by numbers, for assignors that have weighed the claims themselves.
pub(crate) fn withhold_claimed(claims: &Claims, owners: &mut [u32]) {
    for (owner, claim) in owners.iter_mut().zip(&claims.owners) {
        if in_transfer(*claim, *owner) {
            *owner = NOBODY;
        }
    }
}

/// Whether the new owner would get what somebody else still has. Of a contested partition everybody has to let go first.
fn in_transfer(claim: u32, owner: u32) -> bool {
    owner != NOBODY && claim != NOBODY && (claim == CONTESTED || claim != owner)
}

/// The topics of an assignment, whether or not anybody wants them.
fn assigned_topics(assignment: &Assignment) -> Topics {
    let mut topics = Topics::new();
    for (name, owners) in assignment.topics() {
        let partitions = i32::try_from(owners.len()).unwrap_or(i32::MAX);
        topics.insert(name.clone(), Topic { partitions, ..Topic::default() });
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignor::examples::{lines, member};

    fn owning(id: &str, owned: &[i32], generation: i32) -> MemberSubscription {
        MemberSubscription {
            owned: owned.iter().map(|partition| TopicPartition::new("t", *partition)).collect(),
            generation: Some(generation),
            ..member(id, &["t"])
        }
    }

    /// Partition after partition of `t` to these members.
    fn giving(owners: &[MemberIndex]) -> Assignment {
        let mut assignment = Assignment::new();
        for (partition, owner) in owners.iter().enumerate() {
            assignment.assign(&"t".into(), partition as i32, *owner);
        }
        assignment
    }

    #[test]
    fn what_another_still_owns_is_withheld_and_told() {
        let members = [owning("a", &[0, 1], 1), owning("b", &[], 1)];
        let mut assignment = giving(&[0, 1, 1]);
        let partition = TopicPartition::new("t", 1);
        assert_eq!(withhold(&members, &mut assignment), [Transfer { partition, from: Some(0), to: 1 }]);
        assert_eq!(lines(&assignment, &members), ["a: t-0", "b: t-2"]);
        assert_eq!(withhold(&members, &mut assignment), [], "it is withheld once");
    }

    #[test]
    fn a_member_keeps_what_only_an_older_generation_claims_too() {
        let members = [owning("a", &[0], 2), owning("b", &[0], 1)];
        let mut assignment = giving(&[0]);
        assert_eq!(withhold(&members, &mut assignment), []);
        assert_eq!(assignment, giving(&[0]));
    }

    #[test]
    fn what_two_members_claim_is_withheld_from_both() {
        let members = [owning("a", &[0], 1), owning("b", &[0], 1)];
        let mut assignment = giving(&[0]);
        let partition = TopicPartition::new("t", 0);
        assert_eq!(withhold(&members, &mut assignment), [Transfer { partition, from: None, to: 0 }]);
        assert_eq!(assignment.owner("t", 0), None);
    }

    #[test]
    fn topics_that_nobody_asked_for_are_looked_at_too() {
        let members = [MemberSubscription { topics: Vec::new(), ..owning("a", &[0], 1) }, member("b", &[])];
        assert_eq!(withhold(&members, &mut giving(&[1])).len(), 1);
    }
}
