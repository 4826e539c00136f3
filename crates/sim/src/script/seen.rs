//! What a script has seen happen, to judge by.

use super::Script;
use crate::{Fact, Life};
use std::time::Duration;
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;
use tontine_wire::api::ApiKey;

/// A point in a script's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl Script {
    /// Now.
    pub fn mark(&self) -> Mark {
        Mark(self.world.history.len())
    }

    /// The time of the script.
    pub fn now(&self) -> Instant {
        self.world.now
    }

    fn since(&self, mark: Mark) -> &[(Instant, Fact)] {
        self.world.history.get(mark.0..).unwrap_or_default()
    }

    /// What the member's listener heard since then, with what it was about; calls without partitions do not count.
    pub fn heard(&self, life: Life, mark: Mark) -> Vec<(StepKind, Vec<TopicPartition>)> {
        let calls = self.since(mark).iter().filter_map(|(_, fact)| match fact {
            Fact::Began(who, kind, what) if *who == life && !what.is_empty() => Some((*kind, what.clone())),
            _ => None,
        });
        calls.collect()
    }

    /// When the member's listener was called with this since then, with partitions or without.
    pub fn calls(&self, life: Life, kind: StepKind, mark: Mark) -> Vec<Instant> {
        let calls = self.since(mark).iter().filter_map(|(at, fact)| match fact {
            Fact::Began(who, is, _) if *who == life && *is == kind => Some(*at),
            _ => None,
        });
        calls.collect()
    }

    /// The offsets of a partition that the member was handed since then, in this order.
    pub fn handed(&self, life: Life, name: &TopicPartition, mark: Mark) -> Vec<i64> {
        let runs = self.since(mark).iter().filter_map(|(_, fact)| match fact {
            Fact::Delivered(who, what, from, to) if *who == life && what == name => Some(*from..*to),
            _ => None,
        });
        runs.flatten().collect()
    }

    /// The commits that the coordinator accepted for a partition since then, whoever made them.
    pub fn commits(&self, name: &TopicPartition, mark: Mark) -> Vec<i64> {
        let commits = self.since(mark).iter().filter_map(|(_, fact)| match fact {
            Fact::Committed(_, what, to) if what == name => Some(*to),
            _ => None,
        });
        commits.collect()
    }

    /// What calls of the member failed with since then.
    pub fn errors(&self, life: Life, mark: Mark) -> Vec<&str> {
        let errors = self.since(mark).iter().filter_map(|(_, fact)| match fact {
            Fact::Failed(who, why) if *who == life => Some(why.as_str()),
            _ => None,
        });
        errors.collect()
    }

    /// How often the coordinator has brought the group together since then.
    pub fn rounds(&self, mark: Mark) -> usize {
        let says = |text: &str| text.contains("-> CompletingRebalance") || text.contains("-> Reconciling");
        self.since(mark).iter().filter(|(_, fact)| matches!(fact, Fact::Group(text) if says(text))).count()
    }

    /// The longest time since then, and until now, in which nobody was handed a record of the partition.
    pub fn silence(&self, name: &TopicPartition, mark: Mark) -> Duration {
        let begin = self.since(mark).first().map_or(self.world.now, |(at, _)| *at);
        let (mut last, mut longest) = (begin, Duration::ZERO);
        for (at, fact) in self.since(mark) {
            if matches!(fact, Fact::Delivered(_, what, ..) if what == name) {
                longest = longest.max(at.saturating_since(last));
                last = *at;
            }
        }
        longest.max(self.world.now.saturating_since(last))
    }

    /// When the member first heard this since then.
    pub fn first(&self, life: Life, kind: StepKind, mark: Mark) -> Option<Instant> {
        let is = |fact: &Fact| matches!(fact, Fact::Began(who, is, what) if *who == life && *is == kind && !what.is_empty());
        self.since(mark).iter().find(|(_, fact)| is(fact)).map(|(at, _)| *at)
    }

    /// When the member was first handed a record of the partition since then.
    pub fn first_handed(&self, life: Life, name: &TopicPartition, mark: Mark) -> Option<Instant> {
        let is = |fact: &Fact| matches!(fact, Fact::Delivered(who, what, ..) if *who == life && what == name);
        self.since(mark).iter().find(|(_, fact)| is(fact)).map(|(at, _)| *at)
    }

    /// How many requests of this kind the member has made since the script began.
    pub fn asked(&self, life: Life, key: ApiKey) -> u64 {
        self.world.asked.get(&(life, key as i16)).copied().unwrap_or(0)
    }
}
