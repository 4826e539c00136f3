//! What is committed was handed out to the one who commits it, never goes backwards without a seek, and never comes from a
//! member whose partition somebody else has by then. What brokers lost with their machine, where they may, is read and committed
//! again.

use super::{Invariant, Verdict};
use crate::{
    fact::{Fact, Life},
    hidden::Hidden,
};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct Commits {
    lives: BTreeMap<String, Life>,
    /// Who has what, and since which fact.
    holders: BTreeMap<TopicPartition, BTreeMap<Life, u64>>,
    /// Since which fact who does not have what any more.
    given_up: BTreeMap<(Life, TopicPartition), u64>,
    count: u64,
    delivered: BTreeMap<(Life, TopicPartition), i64>,
    committed: BTreeMap<TopicPartition, i64>,
    sought: BTreeSet<TopicPartition>,
    /// What nobody is handed out, and may be stepped over.
    hidden: Hidden,
    written: BTreeMap<TopicPartition, i64>,
}

impl Commits {
    fn committed(&mut self, name: &str, what: &TopicPartition, to: i64) -> Verdict {
        let before = self.committed.insert(what.clone(), to).unwrap_or(0);
        if to < before && !self.sought.contains(what) {
            return Err(format!("the commit of {what} goes back from {before} to {to}"));
        }
        let Some(who) = self.lives.get(name) else { return Ok(()) };
        let delivered = self.delivered.get(&(*who, what.clone())).copied().unwrap_or(0);
        if to > self.hidden.next(*who, what, before.max(delivered)) {
            return Err(format!("{who} commits {to} of {what}, but got only what is before {delivered}"));
        }
        let Some(holders) = self.holders.get(what).filter(|holders| !holders.contains_key(who)) else {
            return Ok(());
        };
        // What it sent when it had the partition may arrive a little later. A holder from before that was expelled then.
        let given_up = self.given_up.get(&(*who, what.clone())).copied().unwrap_or(0);
        match holders.iter().find(|(_, since)| **since > given_up) {
            Some((holder, _)) => Err(format!("{who} commits {what} when {holder} has it")),
            None => Ok(()),
        }
    }

    fn assigned(&mut self, who: Life, what: &[TopicPartition]) {
        for name in what {
            self.holders.entry(name.clone()).or_default().insert(who, self.count);
        }
    }

    fn gave_up(&mut self, who: Life, what: &[TopicPartition]) {
        for name in what {
            if self.holders.entry(name.clone()).or_default().remove(&who).is_some() {
                self.given_up.insert((who, name.clone()), self.count);
            }
        }
    }
}

impl Invariant for Commits {
    fn name(&self) -> &'static str {
        "commits are safe and never go back"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        self.count += 1;
        self.hidden.see(fact);
        match fact {
            Fact::Named(who, name) => drop(self.lives.insert(name.clone(), *who)),
            Fact::Began(who, StepKind::Assigned, what) => self.assigned(*who, what),
            Fact::Returned(who, StepKind::Revoked | StepKind::Lost, what) => self.gave_up(*who, what),
            // What a crashed member had sent may still be stored: it had the partition when it sent that.
            Fact::Left(who) => {
                let all: Vec<_> = self.holders.keys().cloned().collect();
                self.gave_up(*who, &all);
            }
            Fact::Delivered(who, what, _, to) => {
                let end = self.delivered.entry((*who, what.clone())).or_default();
                *end = (*to).max(*end);
            }
            Fact::Deleted(topic) => {
                self.written.retain(|name, _| *name.topic != **topic);
                self.committed.retain(|name, _| *name.topic != **topic);
                self.delivered.retain(|(_, name), _| *name.topic != **topic);
            }
            Fact::Written(what, to) => drop(self.written.insert(what.clone(), *to)),
            Fact::Kept { what, end, committed, .. } => {
                let read = self.delivered.iter().filter(|((_, name), _)| name == what).map(|(_, to)| *to);
                // What was fetched before may be handed out later.
                let fetched = self.written.get(what).copied();
                if read.chain(*committed).chain(fetched).any(|to| to > *end) {
                    // Readers go back to where the logs part, once they notice.
                    self.sought.insert(what.clone());
                }
                match committed {
                    Some(offset) => drop(self.committed.insert(what.clone(), *offset)),
                    None => drop(self.committed.remove(what)),
                }
            }
            Fact::Sought(_, what, _) => drop(self.sought.insert(what.clone())),
            Fact::Committed(name, what, to) => return self.committed(name, what, *to),
            _ => {}
        }
        Ok(())
    }
}
