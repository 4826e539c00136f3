//! Within one ownership the offsets of a partition come one after the other: none twice, none skipped, unless the member
//! sought. The topics of the tests are not compacted and hold no transactions, so a gap is a loss.

use super::{Evidence, Violation};
use crate::history::What;
use std::collections::BTreeMap;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut next: BTreeMap<(&str, &tontine_group::TopicPartition, usize), i64> = BTreeMap::new();
    let mut violations = Vec::new();
    for (at, event) in evidence.events.iter().enumerate() {
        let member = &*event.member;
        match &event.what {
            What::Sought(partition, _) => {
                next.retain(|(who, which, _), _| *who != member || *which != partition)
            }
            What::Delivered(partition, offsets) => {
                let from = evidence.holding(member, partition, at).map_or(0, |ownership| ownership.from);
                for &offset in offsets {
                    let expected = next.insert((member, partition, from), offset + 1);
                    if let Some(expected) = expected.filter(|expected| *expected != offset) {
                        let what = format!("{member} was handed {partition} {offset}, expected {expected}");
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

    #[test]
    fn consecutive_offsets_are_fine_and_a_seek_begins_anew() {
        assert!(honest().judge(check).is_empty());
        let script = Script::default().assigned("a").delivered("a", 0..5);
        let script = script.write("a", What::Sought(p(), 2)).delivered("a", 2..9);
        assert!(script.judge(check).is_empty());
    }

    #[test]
    fn a_new_ownership_may_begin_elsewhere() {
        let script = Script::default().assigned("a").delivered("a", 0..5).lost("a").assigned("a");
        assert!(script.delivered("a", 2..7).judge(check).is_empty());
    }

    #[test]
    fn skipped_and_repeated_offsets_are_caught() {
        let said = Script::default().assigned("a").delivered("a", 0..5).delivered("a", 6..8).judge(check);
        assert_eq!(said, ["a was handed t-0 6, expected 5"]);
        let said = Script::default().assigned("a").delivered("a", 0..5).delivered("a", 4..6).judge(check);
        assert_eq!(said, ["a was handed t-0 4, expected 5"]);
    }
}
