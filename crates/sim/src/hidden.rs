//! Which offsets of a log no member, or no member that reads only what is committed, is handed out.

use crate::{
    fact::{Fact, Life},
    invariants::add,
};
use std::collections::{BTreeMap, BTreeSet};
use tontine::TopicPartition;

type Ranges = BTreeMap<i64, i64>;

#[derive(Default)]
pub(crate) struct Hidden {
    marks: BTreeMap<TopicPartition, Ranges>,
    /// Marks and what was aborted.
    from_careful: BTreeMap<TopicPartition, Ranges>,
    careful: BTreeSet<Life>,
}

impl Hidden {
    pub(crate) fn see(&mut self, fact: &Fact) {
        match fact {
            Fact::Careful(who) => drop(self.careful.insert(*who)),
            // What had not reached the disk may be something else now: the log is looked at again.
            Fact::Kept { what, .. } => {
                self.marks.remove(what);
                self.from_careful.remove(what);
            }
            Fact::Mark(what, at) => {
                add(self.marks.entry(what.clone()).or_default(), *at, at + 1);
                add(self.from_careful.entry(what.clone()).or_default(), *at, at + 1);
            }
            Fact::Decided(what, from, to, false) => {
                add(self.from_careful.entry(what.clone()).or_default(), *from, *to);
            }
            _ => {}
        }
    }

    pub(crate) fn is_careful(&self, who: Life) -> bool {
        self.careful.contains(&who)
    }

    /// The next offset at or behind this one that the member may be handed out.
    pub(crate) fn next(&self, who: Life, what: &TopicPartition, at: i64) -> i64 {
        let hidden = if self.is_careful(who) { &self.from_careful } else { &self.marks };
        let range = hidden.get(what).and_then(|ranges| ranges.range(..=at).next_back());
        range.map_or(at, |(_, end)| at.max(*end))
    }
}
