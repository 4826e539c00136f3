//! A commit is stored only for partitions that its member held when it asked, its revoked callback included and its lost
//! callback not.

use super::{Evidence, Violation};
use crate::history::{CommitResult, OwnershipEnd, What};
use std::collections::{BTreeMap, VecDeque};
use tontine_group::TopicPartition;

/// A commit that was asked for: where, and of what.
type Asked<'a> = (usize, &'a BTreeMap<TopicPartition, i64>);

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut open: BTreeMap<&str, VecDeque<Asked<'_>>> = BTreeMap::new();
    let mut violations = Vec::new();
    for (at, event) in evidence.events.iter().enumerate() {
        let sent = open.entry(&event.member).or_default();
        match &event.what {
            What::CommitSent(offsets) => sent.push_back((at, offsets)),
            What::CommitEnded(offsets, result) => {
                let place = sent.iter().position(|(_, other)| *other == offsets);
                let asked = place.and_then(|place| sent.remove(place)).map_or(at, |(asked, _)| asked);
                if *result == CommitResult::Stored {
                    violations.extend(strangers(evidence, &event.member, offsets, asked));
                }
            }
            _ => {}
        }
    }
    violations
}

fn strangers(
    evidence: &Evidence,
    member: &str,
    offsets: &BTreeMap<TopicPartition, i64>,
    asked: usize,
) -> Vec<Violation> {
    let strange = offsets.keys().filter(|partition| {
        let holding = evidence.holding(member, partition, asked);
        !holding.is_some_and(|ownership| {
            ownership.end != OwnershipEnd::Lost || ownership.stopped.is_none_or(|stopped| asked < stopped)
        })
    });
    strange
        .map(|partition| Violation {
            at: asked,
            what: format!("{member} committed {partition}, which it did not hold"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, honest, p};
    use super::check;
    use crate::history::{Callback, What};

    #[test]
    fn commits_of_the_owner_are_fine_also_while_it_is_being_revoked() {
        assert!(honest().judge(check).is_empty());
        let script = Script::default()
            .assigned("a")
            .write("a", What::Called(Callback::Revoked, vec![p()]))
            .committed("a", 0)
            .write("a", What::Returned(Callback::Revoked));
        assert!(script.judge(check).is_empty());
    }

    #[test]
    fn a_commit_of_somebody_else_is_caught_and_so_is_one_in_lost() {
        let said = Script::default().assigned("a").committed("b", 0).judge(check);
        assert_eq!(said, ["b committed t-0, which it did not hold"]);
        let script = Script::default()
            .assigned("a")
            .write("a", What::Called(Callback::Lost, vec![p()]))
            .committed("a", 0)
            .write("a", What::Returned(Callback::Lost));
        assert_eq!(script.judge(check).len(), 1);
    }
}
