//! Everything that was produced has been delivered to somebody.

use super::{Evidence, Violation};
use crate::history::What;
use std::collections::BTreeSet;
use tontine_group::TopicPartition;

/// See the file's documentation.
pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let at = evidence.events.len().saturating_sub(1);
    let missing = evidence.log.iter().filter_map(|(partition, produced)| {
        let delivered = delivered(evidence, partition);
        let missing: Vec<i64> = produced.clone().filter(|offset| !delivered.contains(offset)).collect();
        let (first, last) = (missing.first()?, missing.last()?);
        Some(format!("{} of {partition} were never delivered, from {first} to {last}", missing.len()))
    });
    missing.map(|what| Violation { at, what }).collect()
}

fn delivered(evidence: &Evidence, partition: &TopicPartition) -> BTreeSet<i64> {
    let deliveries = evidence.events.iter().filter_map(|event| match &event.what {
        What::Delivered(other, offsets) if other == partition => Some(offsets),
        _ => None,
    });
    deliveries.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, p};
    use super::check;

    #[test]
    fn what_nobody_was_handed_is_missed() {
        let evidence = Script::default().assigned("a").delivered("a", 0..5).evidence().produced(p(), 0..8);
        let said: Vec<String> = check(&evidence).into_iter().map(|v| v.what).collect();
        assert_eq!(said, ["3 of t-0 were never delivered, from 5 to 7"]);
    }
}
