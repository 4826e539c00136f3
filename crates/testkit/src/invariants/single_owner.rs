//! Two members hold one partition at the same time only where one of them had lost it (or was killed, or put out of the
//! group) without knowing.

use super::{Evidence, Violation};
use crate::history::{Ownership, OwnershipEnd};

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let all = &evidence.ownerships;
    let pairs =
        all.iter().enumerate().flat_map(|(i, first)| all[i + 1..].iter().map(move |second| (first, second)));
    let overlapping = pairs.filter(|(first, second)| overlap(first, second));
    overlapping.map(|(first, second)| violation(first, second)).collect()
}

fn overlap(first: &Ownership, second: &Ownership) -> bool {
    // A member that has lost a partition learns of it when it can; one that is dead never does.
    let may_not_know = matches!(first.end, OwnershipEnd::Lost | OwnershipEnd::Killed)
        || first.expelled.is_some_and(|expelled| expelled < second.from);
    first.partition == second.partition
        && first.member != second.member
        && !may_not_know
        && first.until.is_none_or(|until| second.from < until)
}

fn violation(first: &Ownership, second: &Ownership) -> Violation {
    let what =
        format!("{} was assigned to {} while {} held it", first.partition, second.member, first.member);
    Violation { at: second.from, what }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, honest};
    use super::check;

    #[test]
    fn a_hand_over_in_order_is_fine_and_so_is_one_after_a_loss() {
        assert!(honest().judge(check).is_empty());
        assert!(Script::default().assigned("a").assigned("b").lost("a").judge(check).is_empty());
        assert!(Script::default().assigned("a").assigned("b").killed("a").judge(check).is_empty());
        assert!(
            Script::default().assigned("a").expelled("a").assigned("b").revoked("a").judge(check).is_empty()
        );
    }

    #[test]
    fn a_partition_assigned_before_it_was_revoked_is_caught() {
        let said = Script::default().assigned("a").assigned("b").revoked("a").judge(check);
        assert_eq!(said, ["t-0 was assigned to b while a held it"]);
    }
}
