//! Nothing is committed that nobody was handed: a committed offset is at most one more than the highest delivered one.
//! A position that somebody sought counts as handed out.

use super::{Evidence, Violation};
use crate::history::{CommitResult, What};
use std::collections::BTreeMap;
use tontine_group::TopicPartition;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut reached: BTreeMap<&TopicPartition, i64> = BTreeMap::new();
    let mut violations = Vec::new();
    for (at, event) in evidence.events.iter().enumerate() {
        let mut reach = |partition, next: i64| {
            let highest = reached.entry(partition).or_insert(next);
            *highest = next.max(*highest);
        };
        match &event.what {
            What::Delivered(partition, offsets) => {
                reach(partition, offsets.iter().max().map_or(0, |offset| offset + 1));
            }
            What::Sought(partition, offset) => reach(partition, *offset),
            What::CommitEnded(offsets, CommitResult::Stored) | What::Seen { offsets, .. } => {
                for (partition, offset) in offsets {
                    let highest = reached.get(partition).copied().unwrap_or(0);
                    if *offset > highest {
                        let what =
                            format!("{partition} is committed up to {offset}, handed out up to {highest}");
                        violations.push(Violation { at, what });
                    }
                }
            }
            _ => {}
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, honest, p};
    use super::check;
    use crate::history::What;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn commits_of_what_was_delivered_are_fine() {
        assert!(honest().judge(check).is_empty());
    }

    #[test]
    fn a_commit_ahead_of_delivery_is_caught_whoever_sees_it() {
        let said = Script::default().assigned("a").delivered("a", 0..5).committed("a", 6).judge(check);
        assert_eq!(said, ["t-0 is committed up to 6, handed out up to 5"]);
        let seen = What::Seen { asked: Duration::ZERO, offsets: BTreeMap::from([(p(), 6)]) };
        let said = Script::default().assigned("a").delivered("a", 0..5).write("", seen).judge(check);
        assert_eq!(said.len(), 1);
    }
}
