//! The promises of a consumer group, each as one check over a history. A check knows nothing of any implementation.
//!
//! | check | promise |
//! |---|---|
//! | [`single_owner`] | two members hold a partition at once only where one had lost it |
//! | [`pairing`] | every assigned is followed by exactly one revoked or lost; callbacks never overlap, none after the end |
//! | [`delivery`] | nothing is delivered outside of an ownership, nor once its end has been announced |
//! | [`order`] | within an ownership offsets come one by one, none twice, none skipped |
//! | [`commit_safety`] | nothing is committed that nobody was handed |
//! | [`commit_monotony`] | the committed offset never goes back |
//! | [`commit_ownership`] | a commit is stored only for a partition that its member holds |
//! | [`resumption`] | a new owner begins exactly where the last commit says: nothing twice, nothing skipped |
//! | [`loss`] | everything that was produced is delivered to somebody |
//!
//! [`Evidence::check`] runs them all.

pub mod commit_monotony;
pub mod commit_ownership;
pub mod commit_safety;
pub mod delivery;
pub mod loss;
pub mod order;
pub mod pairing;
pub mod resumption;
pub mod single_owner;

use crate::Failure;
use crate::failure;
use crate::history::{Event, History, Ownership, ownerships};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use tontine_group::TopicPartition;

/// How many events around the first violation a failure shows.
const SHOWN: usize = 25;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where in the history.
    pub at: usize,
    /// What is wrong, in a sentence.
    pub what: String,
}

/// One check.
pub type Check = fn(&Evidence) -> Vec<Violation>;

/// All checks, with their names.
pub const ALL: &[(&str, Check)] = &[
    ("single owner", single_owner::check),
    ("pairing", pairing::check),
    ("delivery", delivery::check),
    ("order", order::check),
    ("commit safety", commit_safety::check),
    ("commit monotony", commit_monotony::check),
    ("commit ownership", commit_ownership::check),
    ("resumption", resumption::check),
    ("loss", loss::check),
];

/// A history, and what else is known of the run.
#[derive(Debug, Default)]
pub struct Evidence {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Who held what, read out of the events.
    pub ownerships: Vec<Ownership>,
    /// The offsets that were produced and that the group has to deliver.
    pub log: BTreeMap<TopicPartition, Range<i64>>,
    /// Whether every commit is an event. Not so with auto-commit: where a new owner has to begin is then unknown.
    pub sees_all_commits: bool,
}

impl Evidence {
    /// The evidence of events.
    pub fn new(events: Vec<Event>) -> Self {
        Self { ownerships: ownerships(&events), events, log: BTreeMap::new(), sees_all_commits: true }
    }

    /// The evidence of a history so far.
    pub fn of(history: &History) -> Self {
        Self::new(history.events())
    }

    /// The group has to deliver these offsets of the partition.
    #[must_use]
    pub fn produced(mut self, partition: TopicPartition, offsets: Range<i64>) -> Self {
        self.log.insert(partition, offsets);
        self
    }

    /// The group has to deliver all of `topic`, up to these ends.
    #[must_use]
    pub fn produced_up_to(mut self, topic: &str, ends: &BTreeMap<i32, i64>) -> Self {
        let rows = ends.iter().map(|(partition, end)| (TopicPartition::new(topic, *partition), 0..*end));
        self.log.extend(rows);
        self
    }

    /// Members commit by themselves: their commits are not seen.
    #[must_use]
    pub fn with_auto_commit(mut self) -> Self {
        self.sees_all_commits = false;
        self
    }

    /// Runs every check; the failure names each broken promise and shows what happened around the first.
    pub fn check(&self) -> Result<(), Failure> {
        let broken: Vec<(&str, Violation)> =
            ALL.iter().flat_map(|(name, check)| check(self).into_iter().map(|v| (*name, v))).collect();
        let Some((_, first)) = broken.iter().min_by_key(|(_, violation)| violation.at) else { return Ok(()) };
        let mut text = String::from("promises were broken:\n");
        for (name, violation) in broken.iter().take(SHOWN) {
            text.push_str(&format!("  {name}: {violation}\n"));
        }
        let from = first.at.saturating_sub(SHOWN);
        for (number, event) in self.events.iter().enumerate().skip(from).take(2 * SHOWN) {
            text.push_str(&format!("{}{number:>6} {event}\n", if number == first.at { '>' } else { ' ' }));
        }
        Err(failure!("{text}"))
    }

    /// The ownership of `member` over `partition` that covers the event `at`.
    pub fn holding(&self, member: &str, partition: &TopicPartition, at: usize) -> Option<&Ownership> {
        self.ownerships.iter().find(|o| &*o.member == member && o.partition == *partition && o.covers(at))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at event {}: {}", self.at, self.what)
    }
}

#[cfg(test)]
mod script {
    //! Histories written by hand, for the tests of the checks: one partition, two members.

    use super::Evidence;
    use crate::history::{Callback, CommitResult, End, Event, What};
    use std::collections::BTreeMap;
    use std::ops::Range;
    use std::time::Duration;
    use tontine_group::TopicPartition;

    pub(super) fn p() -> TopicPartition {
        TopicPartition::new("t", 0)
    }

    #[derive(Default)]
    pub(super) struct Script(Vec<Event>);

    impl Script {
        pub(super) fn write(mut self, member: &str, what: What) -> Self {
            let at = Duration::from_millis(self.0.len() as u64);
            self.0.push(Event { at, member: member.into(), what });
            self
        }
        pub(super) fn assigned(self, member: &str) -> Self {
            self.call(member, Callback::Assigned)
        }
        pub(super) fn revoked(self, member: &str) -> Self {
            self.call(member, Callback::Revoked)
        }
        pub(super) fn lost(self, member: &str) -> Self {
            self.call(member, Callback::Lost)
        }
        fn call(self, member: &str, callback: Callback) -> Self {
            self.write(member, What::Called(callback, vec![p()])).write(member, What::Returned(callback))
        }
        pub(super) fn delivered(self, member: &str, offsets: Range<i64>) -> Self {
            self.write(member, What::Delivered(p(), offsets.collect()))
        }
        pub(super) fn committed(self, member: &str, offset: i64) -> Self {
            let offsets = BTreeMap::from([(p(), offset)]);
            self.write(member, What::CommitSent(offsets.clone()))
                .write(member, What::CommitEnded(offsets, CommitResult::Stored))
        }
        pub(super) fn closed(self, member: &str) -> Self {
            self.write(member, What::Ended(End::Closed))
        }
        pub(super) fn killed(self, member: &str) -> Self {
            self.write(member, What::Ended(End::Killed))
        }
        pub(super) fn expelled(self, member: &str) -> Self {
            self.write(member, What::Expelled)
        }
        pub(super) fn evidence(self) -> Evidence {
            Evidence::new(self.0)
        }
        /// What one check has to say.
        pub(super) fn judge(self, check: super::Check) -> Vec<String> {
            check(&self.evidence()).into_iter().map(|violation| violation.what).collect()
        }
    }

    /// A hand-over as it should be.
    pub(super) fn honest() -> Script {
        Script::default()
            .assigned("a")
            .delivered("a", 0..10)
            .committed("a", 10)
            .revoked("a")
            .assigned("b")
            .delivered("b", 10..20)
            .committed("b", 20)
            .revoked("b")
            .closed("b")
    }

    #[test]
    fn an_honest_history_breaks_no_promise() {
        honest().evidence().produced(p(), 0..20).check().unwrap();
    }

    #[test]
    fn a_failure_names_the_promise_and_shows_what_happened() {
        let failure = honest().evidence().produced(p(), 0..21).check().unwrap_err().to_string();
        assert!(
            failure.contains("loss: at event") && failure.contains("delivered t-0: 10..=19"),
            "{failure}"
        );
    }
}
