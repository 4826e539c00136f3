//! When everything has been handed out, each member stands at the end of each of its logs: what it would commit is neither
//! less than it got nor more.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

pub(super) struct Positions;

impl Invariant for Positions {
    fn name(&self) -> &'static str {
        "positions equal the log"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Position(who, what, at, end) if at != end => {
                Err(format!("{who} is at {at} in {what}, whose log ends at {end}"))
            }
            _ => Ok(()),
        }
    }
}
