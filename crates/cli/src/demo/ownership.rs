//! Who owned which partition from when to when, as the callbacks told the members.

use super::history::{Event, MemberId, Partition, What};
use std::{collections::BTreeMap, time::Duration};

/// One member had one partition for this long. `until` is `None` while it still has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tenure {
    pub(crate) member: MemberId,
    pub(crate) from: Duration,
    pub(crate) until: Option<Duration>,
}

/// The tenures of every partition, in the order of their beginnings.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    tenures: BTreeMap<Partition, Vec<Tenure>>,
}

impl Ownership {
    /// Reads the tenures out of what happened.
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut ownership = Self::default();
        for event in events {
            match &event.what {
                What::Assigned(partitions) => partitions.iter().for_each(|p| ownership.begin(p, event)),
                What::Revoked(partitions) | What::Lost(partitions) => {
                    partitions.iter().for_each(|p| ownership.end(p, event));
                }
                What::Killed => ownership.end_all(event),
                What::Started | What::Delivered { .. } | What::Committed(_) => {}
                What::History(_) | What::Left | What::Trouble(_) => {}
            }
        }
        ownership
    }

    fn begin(&mut self, partition: &Partition, event: &Event) {
        let tenure = Tenure { member: event.member, from: event.at, until: None };
        self.tenures.entry(partition.clone()).or_default().push(tenure);
    }

    fn end(&mut self, partition: &Partition, event: &Event) {
        let open = |t: &&mut Tenure| t.member == event.member && t.until.is_none();
        if let Some(tenure) = self.tenures.get_mut(partition).and_then(|all| all.iter_mut().find(open)) {
            tenure.until = Some(event.at);
        }
    }

    fn end_all(&mut self, event: &Event) {
        for tenure in self.tenures.values_mut().flatten() {
            if tenure.member == event.member && tenure.until.is_none() {
                tenure.until = Some(event.at);
            }
        }
    }

    /// The partitions in order, each with its tenures.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = (&Partition, &[Tenure])> {
        self.tenures.iter().map(|(p, t)| (p, t.as_slice()))
    }

    /// Who has the partition at this time.
    pub(crate) fn owner(&self, partition: &Partition, at: Duration) -> Option<MemberId> {
        let holds = |t: &&Tenure| t.from <= at && t.until.is_none_or(|until| at < until);
        self.tenures.get(partition)?.iter().find(holds).map(|t| t.member)
    }

    /// Pairs of tenures of one partition, by different members, that overlap in time.
    pub(crate) fn overlaps(&self) -> Vec<(Partition, Tenure, Tenure)> {
        let mut found = Vec::new();
        for (partition, tenures) in &self.tenures {
            for (i, first) in tenures.iter().enumerate() {
                for second in &tenures[i + 1..] {
                    let meets = first.until.is_none_or(|until| second.from < until);
                    if meets && first.member != second.member {
                        found.push((partition.clone(), first.clone(), second.clone()));
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, member: MemberId, what: What) -> Event {
        Event { at: Duration::from_millis(ms), member, what }
    }

    fn p(n: i32) -> Vec<Partition> {
        vec![Partition(tontine_group::TopicPartition::new("t", n))]
    }

    #[test]
    fn handing_over_in_order_is_no_overlap() {
        let events =
            [at(0, 0, What::Assigned(p(0))), at(5, 0, What::Revoked(p(0))), at(5, 1, What::Assigned(p(0)))];
        let ownership = Ownership::of(&events);
        assert!(ownership.overlaps().is_empty());
        assert_eq!(ownership.owner(&p(0)[0], Duration::from_millis(4)), Some(0));
        assert_eq!(ownership.owner(&p(0)[0], Duration::from_millis(6)), Some(1));
    }

    #[test]
    fn two_owners_at_once_are_found() {
        let events =
            [at(0, 0, What::Assigned(p(0))), at(4, 1, What::Assigned(p(0))), at(5, 0, What::Revoked(p(0)))];
        assert_eq!(Ownership::of(&events).overlaps().len(), 1);
    }

    #[test]
    fn a_killed_member_owns_nothing_any_more() {
        let events = [at(0, 0, What::Assigned(p(0))), at(3, 0, What::Killed), at(4, 1, What::Assigned(p(0)))];
        assert!(Ownership::of(&events).overlaps().is_empty());
    }
}
