//! Between `assigned` at one member and the return of its `revoked` or `lost`, nobody else gets records of the partition,
//! unless the coordinator has expelled the first one: it may not have heard of that yet.

use super::{Invariant, Verdict};
use crate::{
    disk::Loss,
    fact::{Fact, Life},
    holders::Holders,
};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct SingleOwner {
    holders: Holders,
    /// What holders have of topics that are gone; topics of the same name are none of theirs until they get something of them.
    old: BTreeSet<(Life, TopicPartition)>,
    /// What holders had when the brokers lost what they knew of the group: it is theirs no more, which they may not have heard.
    forgotten: BTreeSet<(Life, TopicPartition)>,
    names: BTreeMap<Life, String>,
    members: Option<(Instant, BTreeSet<String>)>,
}

impl SingleOwner {
    fn delivered(&self, at: Instant, who: Life, what: &TopicPartition) -> Verdict {
        let Some(members) = self.members.as_ref().filter(|(when, _)| *when == at).map(|(_, names)| names)
        else {
            return Ok(());
        };
        let is_old = |other: &Life| {
            let held = (*other, what.clone());
            self.old.contains(&held) || self.forgotten.contains(&held)
        };
        for other in self.holders.of(what).filter(|other| *other != who && !is_old(other)) {
            if self.names.get(&other).is_some_and(|name| members.contains(name))
                && self.names.get(&who).is_some_and(|name| members.contains(name))
            {
                return Err(format!(
                    "{who} gets records of {what} while {other} owns it, and both are members"
                ));
            }
        }
        Ok(())
    }
}

impl Invariant for SingleOwner {
    fn name(&self) -> &'static str {
        "one owner at a time"
    }

    fn see(&mut self, at: Instant, fact: &Fact) -> Verdict {
        self.holders.see(fact);
        match fact {
            Fact::Named(who, name) => drop(self.names.insert(*who, name.clone())),
            Fact::Outdated(who, what) => self.old.extend(what.iter().map(|name| (*who, name.clone()))),
            Fact::Deleted(topic) => self.old.extend(self.holders.all_of(topic)),
            Fact::Began(who, StepKind::Assigned, what) => {
                for name in what {
                    self.old.remove(&(*who, name.clone()));
                    self.forgotten.remove(&(*who, name.clone()));
                }
            }
            Fact::Dark(_, loss) if *loss != Loss::Nothing => self.forgotten.extend(self.holders.all()),
            Fact::Members(names) => self.members = Some((at, names.clone())),
            Fact::Delivered(who, what, ..) => {
                self.old.remove(&(*who, what.clone()));
                return self.delivered(at, *who, what);
            }
            _ => {}
        }
        Ok(())
    }
}
