//! The committed offset of a partition never goes back, unless a member sought, which begins anew.
//!
//! A second client's answer is held against what was stored before it *asked*: what is stored while its question is on the
//! way may be in the answer or not.

use super::{Evidence, Violation};
use crate::history::{CommitResult, What};
use std::collections::BTreeMap;
use std::time::Duration;
use tontine_group::TopicPartition;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut stored: BTreeMap<&TopicPartition, Vec<(Duration, i64)>> = BTreeMap::new();
    let mut violations = Vec::new();
    for (at, event) in evidence.events.iter().enumerate() {
        let (offsets, known_at) = match &event.what {
            What::CommitEnded(offsets, CommitResult::Stored) => (offsets, event.at),
            What::Seen { asked, offsets } => (offsets, *asked),
            What::Sought(partition, _) => {
                stored.remove(partition);
                continue;
            }
            _ => continue,
        };
        for (partition, offset) in offsets {
            let before = stored.entry(partition).or_default();
            let highest =
                before.iter().filter(|(when, _)| *when <= known_at).map(|(_, offset)| *offset).max();
            if let Some(highest) = highest.filter(|highest| highest > offset) {
                let what = format!("{partition} went back from {highest} to {offset}");
                violations.push(Violation { at, what });
            }
            before.push((event.at, *offset));
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
    fn commits_that_grow_are_fine() {
        assert!(honest().judge(check).is_empty());
    }

    #[test]
    fn a_commit_that_goes_back_is_caught() {
        let script = Script::default().assigned("a").delivered("a", 0..9).committed("a", 9).committed("a", 5);
        assert_eq!(script.judge(check), ["t-0 went back from 9 to 5"]);
    }

    #[test]
    fn an_answer_to_an_old_question_proves_nothing() {
        let seen = |asked| What::Seen { asked, offsets: BTreeMap::from([(p(), 5)]) };
        let script =
            || Script::default().assigned("a").delivered("a", 0..9).committed("a", 5).committed("a", 9);
        assert!(script().write("", seen(Duration::ZERO)).judge(check).is_empty());
        assert_eq!(script().write("", seen(Duration::from_secs(1))).judge(check).len(), 1);
    }
}
