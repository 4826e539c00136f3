//! Between `assigned` at one member and the return of its `revoked` or `lost`, nobody else gets records of the partition,
//! unless the coordinator has expelled the first one: it may not have heard of that yet.

use super::{Invariant, Verdict};
use crate::{
    fact::{Fact, Life},
    holders::Holders,
};
use std::collections::{BTreeMap, BTreeSet};
use tontine::TopicPartition;
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct SingleOwner {
    holders: Holders,
    names: BTreeMap<Life, String>,
    members: Option<(Instant, BTreeSet<String>)>,
}

impl SingleOwner {
    fn delivered(&self, at: Instant, who: Life, what: &TopicPartition) -> Verdict {
        let Some(members) = self.members.as_ref().filter(|(when, _)| *when == at).map(|(_, names)| names)
        else {
            return Ok(());
        };
        for other in self.holders.of(what).filter(|other| *other != who) {
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
            Fact::Members(names) => self.members = Some((at, names.clone())),
            Fact::Delivered(who, what, ..) => return self.delivered(at, *who, what),
            _ => {}
        }
        Ok(())
    }
}
