//! Transactions are all or nothing: members that read only what is committed get nothing that is undecided or was aborted,
//! what came of a transaction is what its producer was told, offsets move with it, nobody acts who was replaced, and in the
//! end none is open. That all of what was committed is handed out is the business of `loss`.

use super::{Invariant, Verdict};
use crate::{fact::Fact, hidden::Hidden};
use std::collections::BTreeMap;
use tontine::TopicPartition;
use tontine_group::Instant;

/// Records by partition and place.
type Places<T> = BTreeMap<TopicPartition, BTreeMap<i64, (i64, T)>>;

#[derive(Default)]
pub(super) struct Transactions {
    hidden: Hidden,
    undecided: Places<()>,
    decided: Places<bool>,
    promised: Places<bool>,
}

fn word(committed: bool) -> &'static str {
    if committed { "committed" } else { "aborted" }
}

fn put<T>(places: &mut Places<T>, what: &TopicPartition, from: i64, to: i64, value: T) {
    places.entry(what.clone()).or_default().insert(from, (to, value));
}

/// What is said of a place.
fn said(places: &Places<bool>, what: &TopicPartition, from: i64) -> Option<bool> {
    places.get(what)?.get(&from).map(|(_, committed)| *committed)
}

/// Whether something lies between these.
fn overlaps<T>(
    places: &Places<T>,
    what: &TopicPartition,
    from: i64,
    to: i64,
    which: impl Fn(&T) -> bool,
) -> Option<i64> {
    let before = places.get(what)?.range(..to);
    before
        .rev()
        .take_while(|(_, (end, _))| *end > from)
        .find(|(_, (_, value))| which(value))
        .map(|(at, _)| *at)
}

impl Transactions {
    fn agree(&self, what: &TopicPartition, from: i64) -> Verdict {
        let (promised, decided) = (said(&self.promised, what, from), said(&self.decided, what, from));
        match (promised, decided) {
            (Some(promised), Some(decided)) if promised != decided => Err(format!(
                "what was written to {what} at {from} is {}, but its producer knows it as {}",
                word(decided),
                word(promised)
            )),
            _ => Ok(()),
        }
    }
}

impl Invariant for Transactions {
    fn name(&self) -> &'static str {
        "transactions are all or nothing"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        self.hidden.see(fact);
        match fact {
            Fact::Kept { what, .. } => {
                self.undecided.remove(what);
                self.decided.remove(what);
            }
            Fact::Undecided(what, from, to) => put(&mut self.undecided, what, *from, *to, ()),
            Fact::Decided(what, from, to, committed) => {
                self.undecided.entry(what.clone()).or_default().remove(from);
                put(&mut self.decided, what, *from, *to, *committed);
                return self.agree(what, *from);
            }
            Fact::Promised(what, from, to, committed) => {
                put(&mut self.promised, what, *from, *to, *committed);
                return self.agree(what, *from);
            }
            Fact::Delivered(who, what, from, to) if self.hidden.is_careful(*who) => {
                if let Some(at) = overlaps(&self.undecided, what, *from, *to, |()| true) {
                    return Err(format!("{who} gets {what} at {at}, which is not committed yet"));
                }
                if let Some(at) = overlaps(&self.decided, what, *from, *to, |committed| !committed) {
                    return Err(format!("{who} gets {what} at {at}, which was aborted"));
                }
            }
            Fact::Outlived(what) => return Err(what.clone()),
            Fact::Offsets { who, possible, found } if !possible.contains(found) => {
                return Err(format!(
                    "the offset that goes with the transactions of {who} is {found:?}, not one of {possible:?}"
                ));
            }
            Fact::End => {
                let open = self.undecided.iter().find(|(_, open)| !open.is_empty());
                if let Some((what, _)) = open {
                    return Err(format!("a transaction in {what} was never ended"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
