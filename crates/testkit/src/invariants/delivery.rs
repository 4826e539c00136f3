//! A record is delivered by a member that holds its partition: after the assigned callback has returned and before the
//! revoked or lost callback begins.

use super::{Evidence, Violation};
use crate::history::What;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at, event) in evidence.events.iter().enumerate() {
        let What::Delivered(partition, offsets) = &event.what else { continue };
        let holding = evidence.holding(&event.member, partition, at);
        if !holding.is_some_and(|ownership| ownership.may_deliver(at)) {
            let first = offsets.first().copied().unwrap_or(-1);
            let what =
                format!("{} was handed {partition} from {first} on, which it did not hold", event.member);
            violations.push(Violation { at, what });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, honest, p};
    use super::check;
    use crate::history::{Callback, What};

    #[test]
    fn deliveries_within_an_ownership_are_fine() {
        assert!(honest().judge(check).is_empty());
    }

    #[test]
    fn a_record_after_revoked_was_called_is_caught() {
        let said = Script::default().assigned("a").revoked("a").delivered("a", 3..4).judge(check);
        assert_eq!(said, ["a was handed t-0 from 3 on, which it did not hold"]);
        let running = Script::default()
            .assigned("a")
            .write("a", What::Called(Callback::Revoked, vec![p()]))
            .delivered("a", 3..4);
        assert_eq!(running.judge(check).len(), 1);
    }

    #[test]
    fn a_record_before_assigned_returned_is_caught() {
        let early = Script::default()
            .write("a", What::Called(Callback::Assigned, vec![p()]))
            .delivered("a", 0..1)
            .write("a", What::Returned(Callback::Assigned));
        assert_eq!(early.judge(check).len(), 1);
    }
}
