//! What was acknowledged is there when brokers come back, as their flush policy promises: topics, records, and what the group
//! has committed. After each end of them leader epochs have counted up, so that whoever read what is gone notices.

use super::{Invariant, Verdict};
use crate::{disk::Loss, fact::Fact};
use std::collections::{BTreeMap, BTreeSet};
use tontine::TopicPartition;
use tontine_group::Instant;

/// What was acknowledged when, oldest first.
type Told = BTreeMap<TopicPartition, Vec<(Instant, i64)>>;

#[derive(Default)]
pub(super) struct Durability {
    written: Told,
    committed: Told,
    /// When the brokers went, and what may be missing.
    dark: Option<(Instant, Loss)>,
    is_back: bool,
}

/// From which acknowledgement on anything may be missing: nothing that comes before it.
fn kept_until(told: &[(Instant, i64)], (at, loss): (Instant, Loss)) -> usize {
    match loss {
        Loss::Nothing => told.len(),
        Loss::Recent(time) => told.partition_point(|(when, _)| *when + time < at),
        Loss::Anything => 0,
    }
}

impl Durability {
    fn kept(&self, what: &TopicPartition, end: i64, committed: Option<i64>) -> Verdict {
        let Some(dark) = self.dark else { return Ok(()) };
        let told = |of: &Told| of.get(what).cloned().unwrap_or_default();
        let written = told(&self.written);
        let safe = kept_until(&written, dark).checked_sub(1).and_then(|last| written.get(last));
        if let Some((_, to)) = safe.filter(|(_, to)| *to > end) {
            return Err(format!("{what} was written up to {to}, but ends at {end} on the disk"));
        }
        let commits = told(&self.committed);
        let Some(last) = kept_until(&commits, dark).checked_sub(1) else { return Ok(()) };
        // Later ones may be there, too.
        let possible: BTreeSet<_> = commits.iter().skip(last).map(|(_, to)| Some(*to)).collect();
        if !possible.contains(&committed) {
            return Err(format!(
                "{possible:?} was committed last for {what}, but the disk has {committed:?}"
            ));
        }
        Ok(())
    }

    /// What is on the disk now is what was told last.
    fn begin_anew(&mut self, at: Instant, what: &TopicPartition, end: i64, committed: Option<i64>) {
        self.written.insert(what.clone(), vec![(at, end)]);
        match committed {
            Some(offset) => drop(self.committed.insert(what.clone(), vec![(at, offset)])),
            None => drop(self.committed.remove(what)),
        }
    }
}

impl Invariant for Durability {
    fn name(&self) -> &'static str {
        "what is acknowledged is kept"
    }

    fn see(&mut self, at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Written(what, to) => self.written.entry(what.clone()).or_default().push((at, *to)),
            Fact::Committed(_, what, to) => self.committed.entry(what.clone()).or_default().push((at, *to)),
            Fact::Dark(_, loss) => {
                // Another end before they were back: what the first one may cost is still missing.
                let (at, worst) = self.dark.filter(|_| !self.is_back).unwrap_or((at, *loss));
                (self.dark, self.is_back) = (Some((at, worst.max(*loss))), false);
            }
            Fact::Gone(what) => return Err(format!("nothing of {what} is on the disk")),
            Fact::Kept { what, epochs: (Some(before), Some(now)), .. } if now <= before => {
                return Err(format!("the leader epoch of {what} was {before} and is {now} after a crash"));
            }
            Fact::Kept { what, end, committed, .. } => {
                self.is_back = true;
                self.kept(what, *end, *committed)?;
                self.begin_anew(at, what, *end, *committed);
            }
            Fact::Deleted(topic) => {
                self.written.retain(|name, _| *name.topic != **topic);
                self.committed.retain(|name, _| *name.topic != **topic);
            }
            _ => {}
        }
        Ok(())
    }
}
