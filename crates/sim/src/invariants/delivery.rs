//! Records are handed out only between the return of `assigned` and the call of `revoked` or `lost`; they begin where the
//! group had committed at some time since then (at the log's start without a commit: a member that was expelled meanwhile
//! and does not know it may have asked early), and go on without a gap and without a repetition. In a topic that was deleted and came again they begin anew.

use super::{Invariant, Verdict};
use crate::{
    disk::Loss,
    fact::{Fact, Life},
    hidden::Hidden,
};
use std::collections::{BTreeMap, BTreeSet};
use tontine::{TopicPartition, state::StepKind};
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct Delivery {
    positions: BTreeMap<(Life, TopicPartition), Position>,
    committed: BTreeMap<TopicPartition, i64>,
    /// Where readers go back to when the brokers have lost what they read, each once: it may take a while until they notice.
    back: BTreeMap<(Life, TopicPartition), BTreeSet<i64>>,
    /// What nobody is handed out: it is no gap.
    hidden: Hidden,
    /// What brokers that come back may have lost.
    loss: Loss,
    /// Where one starts that finds a committed offset from before its log was cut.
    cut: BTreeMap<TopicPartition, BTreeSet<i64>>,
}

enum Position {
    /// Its callback has not returned yet.
    Closed(BTreeSet<i64>),
    /// Nothing was handed out yet: it may start at one of these.
    Starts(BTreeSet<i64>),
    GoesOn(i64),
}

impl Delivery {
    fn assigned(&mut self, who: Life, what: &TopicPartition) {
        let start = self.committed.get(what).copied().unwrap_or(0);
        let mut starts = BTreeSet::from([start]);
        starts.extend(self.cut.get(what).into_iter().flatten());
        self.positions.entry((who, what.clone())).or_insert(Position::Closed(starts));
    }

    fn committed(&mut self, what: &TopicPartition, to: i64) {
        self.committed.insert(what.clone(), to);
        for ((_, name), position) in &mut self.positions {
            if let (Position::Starts(starts) | Position::Closed(starts), true) = (position, name == what) {
                starts.insert(to);
            }
        }
    }

    /// What the disk has kept: where a log ends earlier than somebody has read, that is where it goes on.
    fn kept(&mut self, what: &TopicPartition, end: i64, committed: Option<i64>) {
        match committed {
            Some(offset) => self.committed(what, offset),
            None => drop(self.committed.remove(what)),
        }
        if self.loss == Loss::Nothing {
            return;
        }
        let places = BTreeSet::from([end, committed.unwrap_or(0)]);
        for ((who, name), position) in self.positions.iter_mut().filter(|((_, name), _)| name == what) {
            if let Position::Starts(starts) | Position::Closed(starts) = position {
                starts.extend(&places);
            }
            // It may hand out first what it has got already.
            self.back.entry((*who, name.clone())).or_default().extend(&places);
        }
        self.cut.entry(what.clone()).or_default().extend(places);
    }

    /// Whoever has partitions of it begins anew in the next topic of that name.
    fn deleted(&mut self, topic: &str) {
        self.committed.retain(|name, _| &*name.topic != topic);
        self.back.retain(|(_, name), _| &*name.topic != topic);
        self.cut.retain(|name, _| &*name.topic != topic);
        for ((_, name), position) in &mut self.positions {
            if &*name.topic == topic {
                *position = match position {
                    Position::Closed(_) => Position::Closed([0].into()),
                    Position::Starts(_) | Position::GoesOn(_) => Position::Starts([0].into()),
                };
            }
        }
    }

    fn goes_back(&mut self, who: Life, what: &TopicPartition, to: i64) -> bool {
        let back = self.back.get_mut(&(who, what.clone()));
        back.is_some_and(|places| {
            places.contains(&to) && {
                places.clear();
                true
            }
        })
    }

    fn open(&mut self, who: Life, what: &TopicPartition) {
        if let Some(position) = self.positions.get_mut(&(who, what.clone()))
            && let Position::Closed(starts) = position
        {
            *position = Position::Starts(std::mem::take(starts));
        }
    }

    fn delivered(&mut self, who: Life, what: &TopicPartition, from: i64, to: i64) -> Verdict {
        match self.positions.insert((who, what.clone()), Position::GoesOn(to)) {
            None | Some(Position::Closed(_)) => {
                Err(format!("{who} gets records of {what}, which is not its own"))
            }
            Some(Position::GoesOn(at))
                if from != at
                    && from != self.hidden.next(who, what, at)
                    && !self.goes_back(who, what, from) =>
            {
                Err(format!("{who} gets {from} of {what}, but goes on at {at}"))
            }
            Some(Position::Starts(starts))
                if !starts.iter().any(|at| from == *at || from == self.hidden.next(who, what, *at))
                    && !self.goes_back(who, what, from) =>
            {
                Err(format!("{who} gets {from} of {what}, but has to start at one of {starts:?}"))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Invariant for Delivery {
    fn name(&self) -> &'static str {
        "records come in order, only to their owner"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        self.hidden.see(fact);
        match fact {
            Fact::Began(who, StepKind::Revoked | StepKind::Lost, what) => {
                for name in what {
                    self.positions.remove(&(*who, name.clone()));
                }
            }
            Fact::Began(who, StepKind::Assigned, what) => {
                what.iter().for_each(|name| self.assigned(*who, name));
            }
            Fact::Returned(who, StepKind::Assigned, what) => {
                what.iter().for_each(|name| self.open(*who, name));
            }
            Fact::Crashed(who) | Fact::Left(who) => self.positions.retain(|(other, _), _| other != who),
            Fact::Sought(who, what, to) => {
                drop(self.positions.insert((*who, what.clone()), Position::GoesOn(*to)))
            }
            // Some that are starting may end again, before it is known what the ones before have lost.
            Fact::Dark(_, loss) => self.loss = (*loss).max(self.loss),
            Fact::Kept { what, end, committed, .. } => self.kept(what, *end, *committed),
            Fact::Deleted(topic) => self.deleted(topic),
            Fact::Committed(_, what, to) => self.committed(what, *to),
            Fact::Delivered(who, what, from, to) => return self.delivered(*who, what, *from, *to),
            Fact::Garbled(who, what, why) => return Err(format!("{who}, {what}: {why}")),
            _ => {}
        }
        Ok(())
    }
}
