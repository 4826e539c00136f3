//! The listener's contract: a partition is assigned, then revoked or lost once, then it may be assigned again; callbacks do
//! not overlap; whoever has left holds nothing. Mirrors `ConsumerRebalanceListener`.

use super::{Invariant, Verdict};
use crate::fact::{Fact, Life};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
struct Of {
    held: BTreeSet<TopicPartition>,
    running: Option<(StepKind, Vec<TopicPartition>)>,
}

#[derive(Default)]
pub(super) struct Callbacks(BTreeMap<Life, Of>);

impl Of {
    fn began(&mut self, who: Life, kind: StepKind, partitions: &[TopicPartition]) -> Verdict {
        if let Some((other, _)) = &self.running {
            return Err(format!("{who} hears {kind:?} while it still handles {other:?}"));
        }
        for name in partitions {
            match kind {
                StepKind::Assigned if self.held.contains(name) => {
                    return Err(format!("{who} is assigned {name}, which it has already"));
                }
                StepKind::Revoked | StepKind::Lost if !self.held.contains(name) => {
                    return Err(format!("{who} hears {kind:?} of {name}, which it does not have"));
                }
                StepKind::Assigned | StepKind::Revoked | StepKind::Lost => {}
            }
        }
        // An eager member hears `revoked` before it joins even when it has nothing, as in Kafka.
        if partitions.is_empty() && kind == StepKind::Lost {
            return Err(format!("{who} hears {kind:?} of nothing"));
        }
        self.running = Some((kind, partitions.to_vec()));
        Ok(())
    }

    fn returned(&mut self, who: Life, kind: StepKind, partitions: &[TopicPartition]) -> Verdict {
        match self.running.take() {
            Some((began, what)) if began == kind && what == partitions => {}
            other => return Err(format!("{who} returns from {kind:?}, but it is in {other:?}")),
        }
        for name in partitions {
            match kind {
                StepKind::Assigned => self.held.insert(name.clone()),
                StepKind::Revoked | StepKind::Lost => self.held.remove(name),
            };
        }
        Ok(())
    }
}

impl Invariant for Callbacks {
    fn name(&self) -> &'static str {
        "callbacks come in pairs and in order"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Began(who, kind, what) => self.0.entry(*who).or_default().began(*who, *kind, what),
            Fact::Returned(who, kind, what) => self.0.entry(*who).or_default().returned(*who, *kind, what),
            Fact::Crashed(who) => {
                self.0.remove(who);
                Ok(())
            }
            Fact::Left(who) => match self.0.remove(who) {
                Some(of) if !of.held.is_empty() => Err(format!(
                    "{who} has left and was never told that {:?} are not its own any more",
                    of.held
                )),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
