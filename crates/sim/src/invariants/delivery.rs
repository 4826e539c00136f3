//! Records are handed out only between the return of `assigned` and the call of `revoked` or `lost`; they begin where the
//! group committed last (at the log's start without a commit), and go on without a gap and without a repetition.

use super::{Invariant, Verdict};
use crate::fact::{Fact, Life};
use std::collections::BTreeMap;
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct Delivery {
    /// Where each goes on; none before its first records.
    positions: BTreeMap<(Life, TopicPartition), Option<i64>>,
    committed: BTreeMap<TopicPartition, i64>,
}

impl Delivery {
    fn delivered(&mut self, who: Life, what: &TopicPartition, from: i64, to: i64) -> Verdict {
        let Some(position) = self.positions.get_mut(&(who, what.clone())) else {
            return Err(format!("{who} gets records of {what}, which is not its own"));
        };
        let committed = self.committed.get(what).copied().unwrap_or(0);
        let expected = position.unwrap_or(committed);
        if from != expected {
            let why = if position.is_some() { "goes on at" } else { "has to start at" };
            return Err(format!("{who} gets {from} of {what}, but {why} {expected}"));
        }
        *position = Some(to);
        Ok(())
    }
}

impl Invariant for Delivery {
    fn name(&self) -> &'static str {
        "records come in order, only to their owner"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Began(who, StepKind::Revoked | StepKind::Lost, what) => {
                for name in what {
                    self.positions.remove(&(*who, name.clone()));
                }
            }
            Fact::Returned(who, StepKind::Assigned, what) => {
                for name in what {
                    self.positions.entry((*who, name.clone())).or_insert(None);
                }
            }
            Fact::Crashed(who) | Fact::Left(who) => self.positions.retain(|(other, _), _| other != who),
            Fact::Sought(who, what, to) => drop(self.positions.insert((*who, what.clone()), Some(*to))),
            Fact::Committed(_, what, to) => drop(self.committed.insert(what.clone(), *to)),
            Fact::Delivered(who, what, from, to) => return self.delivered(*who, what, *from, *to),
            Fact::Garbled(who, what, why) => return Err(format!("{who}, {what}: {why}")),
            _ => {}
        }
        Ok(())
    }
}
