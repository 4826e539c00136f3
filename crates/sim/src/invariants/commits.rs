//! What is committed was handed out to the one who commits it, never goes backwards without a seek, and never comes from a
//! member whose partition somebody else has by then.

use super::{Invariant, Verdict};
use crate::fact::{Fact, Life};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct Commits {
    lives: BTreeMap<String, Life>,
    holders: BTreeMap<TopicPartition, BTreeSet<Life>>,
    delivered: BTreeMap<(Life, TopicPartition), i64>,
    committed: BTreeMap<TopicPartition, i64>,
    sought: BTreeSet<TopicPartition>,
}

impl Commits {
    fn committed(&mut self, name: &str, what: &TopicPartition, to: i64) -> Verdict {
        let before = self.committed.insert(what.clone(), to).unwrap_or(0);
        if to < before && !self.sought.contains(what) {
            return Err(format!("the commit of {what} goes back from {before} to {to}"));
        }
        let Some(who) = self.lives.get(name) else { return Ok(()) };
        let delivered = self.delivered.get(&(*who, what.clone())).copied().unwrap_or(0);
        if to > before.max(delivered) {
            return Err(format!("{who} commits {to} of {what}, but got only what is before {delivered}"));
        }
        let holders = self.holders.get(what);
        if let Some(holders) = holders.filter(|holders| !holders.is_empty() && !holders.contains(who)) {
            return Err(format!("{who} commits {what} when {holders:?} have it"));
        }
        Ok(())
    }
}

impl Invariant for Commits {
    fn name(&self) -> &'static str {
        "commits are safe and never go back"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Named(who, name) => drop(self.lives.insert(name.clone(), *who)),
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
            // What a crashed member had sent may still be stored: it had the partition when it sent that.
            Fact::Left(who) => {
                for holders in self.holders.values_mut() {
                    holders.remove(who);
                }
            }
            Fact::Delivered(who, what, _, to) => {
                let end = self.delivered.entry((*who, what.clone())).or_default();
                *end = (*to).max(*end);
            }
            Fact::Sought(_, what, _) => drop(self.sought.insert(what.clone())),
            Fact::Committed(name, what, to) => return self.committed(name, what, *to),
            _ => {}
        }
        Ok(())
    }
}
