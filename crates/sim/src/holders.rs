//! Who holds which partition, from the beginning of `assigned` to the return of `revoked` or `lost`.

use crate::fact::{Fact, Life};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};

#[derive(Default)]
pub(crate) struct Holders(BTreeMap<TopicPartition, BTreeSet<Life>>);

impl Holders {
    pub(crate) fn see(&mut self, fact: &Fact) {
        match fact {
            Fact::Began(who, StepKind::Assigned, what) => {
                for name in what {
                    self.0.entry(name.clone()).or_default().insert(*who);
                }
            }
            Fact::Returned(who, StepKind::Revoked | StepKind::Lost, what) => {
                for name in what {
                    self.0.entry(name.clone()).or_default().remove(who);
                }
            }
            Fact::Crashed(who) | Fact::Left(who) => {
                for holders in self.0.values_mut() {
                    holders.remove(who);
                }
            }
            _ => {}
        }
    }

    /// Who holds a partition.
    pub(crate) fn of(&self, name: &TopicPartition) -> impl Iterator<Item = Life> {
        self.0.get(name).into_iter().flatten().copied()
    }

    /// Who holds what of a topic.
    pub(crate) fn all_of(&self, topic: &str) -> impl Iterator<Item = (Life, TopicPartition)> {
        let of = self.0.iter().filter(move |(name, _)| &*name.topic == topic);
        of.flat_map(|(name, holders)| holders.iter().map(|who| (*who, name.clone())))
    }

    /// Who holds what.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Life, TopicPartition)> {
        self.0.iter().flat_map(|(name, holders)| holders.iter().map(|who| (*who, name.clone())))
    }

    /// What somebody holds.
    pub(crate) fn held_by(&self, who: Life) -> BTreeSet<TopicPartition> {
        self.0.iter().filter(|(_, holders)| holders.contains(&who)).map(|(name, _)| name.clone()).collect()
    }
}
