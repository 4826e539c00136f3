//! Every record that was written is handed out to some member at least once.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use std::collections::BTreeMap;
use tontine::TopicPartition;
use tontine_group::Instant;

#[derive(Default)]
pub(super) struct Loss {
    /// Ranges that were handed out, by their beginning; they neither touch nor overlap.
    seen: BTreeMap<TopicPartition, BTreeMap<i64, i64>>,
}

/// Adds a range, and joins it with those that it touches.
pub(crate) fn add(ranges: &mut BTreeMap<i64, i64>, mut from: i64, mut to: i64) {
    let touching: Vec<_> =
        ranges.range(..=to).filter(|(_, end)| **end >= from).map(|(start, end)| (*start, *end)).collect();
    for (start, end) in touching {
        ranges.remove(&start);
        (from, to) = (from.min(start), to.max(end));
    }
    ranges.insert(from, to);
}

/// Forgets what lies at or behind an offset.
pub(crate) fn cut(ranges: &mut BTreeMap<i64, i64>, end: i64) {
    drop(ranges.split_off(&end));
    if let Some(mut last) = ranges.last_entry() {
        let to = last.get_mut();
        *to = end.min(*to);
    }
}

impl Invariant for Loss {
    fn name(&self) -> &'static str {
        "nothing is lost"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Delivered(_, what, from, to) => add(self.seen.entry(what.clone()).or_default(), *from, *to),
            // A mark is no record, and what was aborted need not reach anybody.
            Fact::Mark(what, at) => add(self.seen.entry(what.clone()).or_default(), *at, at + 1),
            Fact::Decided(what, from, to, false) => {
                add(self.seen.entry(what.clone()).or_default(), *from, *to);
            }
            // What the brokers lost, others are written for.
            Fact::Kept { what, end, .. } => {
                if let Some(ranges) = self.seen.get_mut(what) {
                    cut(ranges, *end);
                }
            }
            Fact::Deleted(topic) => self.seen.retain(|name, _| *name.topic != **topic),
            Fact::Log(what, from, to) if from < to => {
                let seen = self.seen.get(what);
                let covers = |ranges: &BTreeMap<i64, i64>| {
                    ranges.range(..=from).next_back().is_some_and(|(_, end)| end >= to)
                };
                if !seen.is_some_and(covers) {
                    return Err(format!("{what} holds {from}..{to}, but only {seen:?} were handed out"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
