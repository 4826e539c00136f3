//! Callbacks come in pairs and one at a time: assigned, then one revoked or lost. Nothing comes after the member's end,
//! and a member that closes has given everything back before.

use super::{Evidence, Violation};
use crate::history::{Callback, End, What};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tontine_group::TopicPartition;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut members: BTreeMap<Arc<str>, Member> = BTreeMap::new();
    let mut violations = Vec::new();
    for (at, event) in evidence.events.iter().enumerate() {
        let member = members.entry(event.member.clone()).or_default();
        let broken = member.event(&event.what);
        violations.extend(
            broken.into_iter().map(|what| Violation { at, what: format!("{}: {what}", event.member) }),
        );
    }
    violations
}

#[derive(Default)]
struct Member {
    owned: BTreeSet<TopicPartition>,
    running: Option<(Callback, Vec<TopicPartition>)>,
    gone: bool,
}

impl Member {
    fn event(&mut self, what: &What) -> Vec<String> {
        match what {
            What::Called(callback, partitions) => self.called(*callback, partitions),
            What::Returned(callback) => self.returned(*callback),
            What::Ended(end) => self.ended(*end),
            _ => Vec::new(),
        }
    }

    fn called(&mut self, callback: Callback, partitions: &[TopicPartition]) -> Vec<String> {
        let mut broken = Vec::new();
        if self.gone {
            broken.push(format!("{callback:?} after the end"));
        }
        let this = (callback, partitions.to_vec());
        match self.running.replace(this.clone()) {
            // Cancelled in the middle and run again: the same call.
            Some(before) if before == this => return broken,
            Some((other, _)) => broken.push(format!("{callback:?} while {other:?} ran")),
            None => {}
        }
        if !partitions.is_sorted() {
            broken.push(format!("{callback:?} of partitions that are not sorted"));
        }
        for partition in partitions {
            let right = match callback {
                Callback::Assigned => self.owned.insert(partition.clone()),
                Callback::Revoked | Callback::Lost => self.owned.remove(partition),
            };
            if !right {
                let state = if callback == Callback::Assigned { "held already" } else { "not held" };
                broken.push(format!("{callback:?} of {partition}, which was {state}"));
            }
        }
        broken
    }

    fn returned(&mut self, callback: Callback) -> Vec<String> {
        match self.running.take() {
            Some((running, _)) if running == callback => Vec::new(),
            _ => vec![format!("{callback:?} returned without being called")],
        }
    }

    fn ended(&mut self, end: End) -> Vec<String> {
        self.gone = true;
        if end == End::Closed && !self.owned.is_empty() {
            return vec![format!("closed and never gave back {:?}", self.owned)];
        }
        self.owned.clear();
        self.running = None;
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, honest, p};
    use super::check;
    use crate::history::{Callback, What};

    #[test]
    fn pairs_are_fine_and_a_killed_member_owes_nothing() {
        assert!(honest().judge(check).is_empty());
        assert!(Script::default().assigned("a").killed("a").judge(check).is_empty());
    }

    #[test]
    fn a_cancelled_callback_that_is_run_again_is_one_call() {
        let script = Script::default().write("a", What::Called(Callback::Assigned, vec![p()])).assigned("a");
        assert!(script.judge(check).is_empty());
    }

    #[test]
    fn unpaired_callbacks_are_caught() {
        assert_eq!(Script::default().revoked("a").judge(check), ["a: Revoked of t-0, which was not held"]);
        let twice = Script::default().assigned("a").assigned("a").judge(check);
        assert_eq!(twice, ["a: Assigned of t-0, which was held already"]);
        let again = Script::default().assigned("a").lost("a").revoked("a").judge(check);
        assert_eq!(again, ["a: Revoked of t-0, which was not held"]);
    }

    #[test]
    fn a_close_that_tells_nobody_and_a_callback_after_it_are_caught() {
        let said = Script::default().assigned("a").closed("a").revoked("a").judge(check);
        assert_eq!(said, ["a: closed and never gave back {t-0}", "a: Revoked after the end"]);
    }

    #[test]
    fn two_callbacks_at_once_are_caught() {
        let script = Script::default().write("a", What::Called(Callback::Assigned, vec![])).assigned("a");
        assert_eq!(script.judge(check), ["a: Assigned while Assigned ran"]);
    }
}
