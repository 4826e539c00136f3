//! Between `assigned` at one member and the return of its `revoked` or `lost`, nobody else gets records of the partition,
//! unless the coordinator has expelled the first one: it may not have heard of that yet.

use super::{Invariant, Verdict};
use crate::fact::{Fact, Life};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct SingleOwner {
    holders: BTreeMap<TopicPartition, BTreeSet<Life>>,
    names: BTreeMap<Life, String>,
    members: Option<(Instant, BTreeSet<String>)>,
}

impl SingleOwner {
    fn forget(&mut self, who: Life) {
        for holders in self.holders.values_mut() {
            holders.remove(&who);
        }
    }

    fn delivered(&self, at: Instant, who: Life, what: &TopicPartition) -> Verdict {
        let Some(members) = self.members.as_ref().filter(|(when, _)| *when == at).map(|(_, names)| names)
        else {
            return Ok(());
        };
        let others = self.holders.get(what).into_iter().flatten().filter(|other| **other != who);
        for other in others {
            if self.names.get(other).is_some_and(|name| members.contains(name))
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
        match fact {
            Fact::Named(who, name) => drop(self.names.insert(*who, name.clone())),
            Fact::Members(names) => self.members = Some((at, names.clone())),
            Fact::Began(who, StepKind::Assigned, what) => {
                for name in what {
                    self.holders.entry(name.clone()).or_default().insert(*who);
                }
            }
            Fact::Returned(who, StepKind::Revoked | StepKind::Lost, what) => {
                for name in what {
                    self.holders.entry(name.clone()).or_default().remove(who);
                }
            }
            Fact::Crashed(who) | Fact::Left(who) => self.forget(*who),
            Fact::Delivered(who, what, ..) => return self.delivered(at, *who, what),
            _ => {}
        }
        Ok(())
    }
}
