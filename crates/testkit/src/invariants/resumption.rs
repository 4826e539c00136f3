//! A new owner begins exactly at the committed offset: earlier would be a repetition, later a loss.
//!
//! Where a commit was on its way (sent and not known to be stored) its offset is right as well. Without any commit, or with
//! a seek in the ownership, nothing is known, and with auto-commit nothing is seen.

use super::{Evidence, Violation};
use crate::history::{CommitResult, Ownership, What};
use std::collections::BTreeSet;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    if !evidence.sees_all_commits {
        return Vec::new();
    }
    evidence.ownerships.iter().filter_map(|ownership| judge(evidence, ownership)).collect()
}

fn judge(evidence: &Evidence, ownership: &Ownership) -> Option<Violation> {
    let (at, first) = first_delivery(evidence, ownership)?;
    let right = beginnings(evidence, ownership);
    if right.is_empty() || right.contains(&first) {
        return None;
    }
    let (member, partition) = (&ownership.member, &ownership.partition);
    let what = format!("{member} began {partition} at {first}, committed was {right:?}");
    Some(Violation { at, what })
}

/// Where the first delivery of this ownership is and what it was; `None` when the member sought before.
fn first_delivery(evidence: &Evidence, ownership: &Ownership) -> Option<(usize, i64)> {
    let until = ownership.until.unwrap_or(evidence.events.len()).min(evidence.events.len());
    let mine = (ownership.from..until).filter(|at| evidence.events[*at].member == ownership.member);
    for at in mine {
        match &evidence.events[at].what {
            What::Sought(partition, _) if *partition == ownership.partition => return None,
            What::Delivered(partition, offsets) if *partition == ownership.partition => {
                return offsets.first().map(|first| (at, *first));
            }
            _ => {}
        }
    }
    None
}

/// The offsets at which the ownership may begin: what was stored last before it, and what may have been stored since.
fn beginnings(evidence: &Evidence, ownership: &Ownership) -> BTreeSet<i64> {
    let mut stored = None;
    let mut unsure = BTreeSet::new();
    for event in &evidence.events[..ownership.from] {
        let offset =
            |offsets: &std::collections::BTreeMap<_, i64>| offsets.get(&ownership.partition).copied();
        match &event.what {
            What::CommitSent(offsets) => unsure.extend(offset(offsets)),
            What::CommitEnded(offsets, CommitResult::Stored) => {
                if let Some(offset) = offset(offsets) {
                    stored = Some(offset);
                    unsure.retain(|other| *other > offset);
                }
            }
            What::CommitEnded(offsets, CommitResult::Refused(_)) => {
                if let Some(offset) = offset(offsets) {
                    unsure.remove(&offset);
                }
            }
            _ => {}
        }
    }
    // Without a commit the reset policy decides, which is not this check's business.
    if stored.is_none() && !unsure.is_empty() {
        return BTreeSet::new();
    }
    unsure.extend(stored);
    unsure
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, honest, p};
    use super::check;
    use crate::history::{CommitResult, What};
    use std::collections::BTreeMap;

    #[test]
    fn an_owner_that_begins_at_the_commit_is_fine_and_without_a_commit_nothing_is_known() {
        assert!(honest().judge(check).is_empty());
        let script = Script::default().assigned("a").delivered("a", 0..5).killed("a").assigned("b");
        assert!(script.delivered("b", 0..5).judge(check).is_empty());
    }

    #[test]
    fn repetition_and_loss_at_a_hand_over_are_caught() {
        let before = || {
            Script::default().assigned("a").delivered("a", 0..9).committed("a", 9).revoked("a").assigned("b")
        };
        assert_eq!(before().delivered("b", 8..9).judge(check), ["b began t-0 at 8, committed was {9}"]);
        assert_eq!(before().delivered("b", 10..11).judge(check), ["b began t-0 at 10, committed was {9}"]);
    }

    #[test]
    fn a_commit_that_may_have_arrived_makes_two_beginnings_right() {
        let script = |first| {
            let sent = BTreeMap::from([(p(), 9)]);
            Script::default()
                .assigned("a")
                .delivered("a", 0..9)
                .committed("a", 4)
                .write("a", What::CommitSent(sent.clone()))
                .write("a", What::CommitEnded(sent, CommitResult::Unknown("timed out".into())))
                .killed("a")
                .assigned("b")
                .delivered("b", first..10)
        };
        assert!(script(4).judge(check).is_empty() && script(9).judge(check).is_empty());
        assert_eq!(script(6).judge(check).len(), 1);
    }
}
