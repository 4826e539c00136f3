//! No timer is forgotten: a member at rest, to which nobody says anything, wakes by itself when its next heartbeat is due.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

pub(super) struct Timers;

impl Invariant for Timers {
    fn name(&self) -> &'static str {
        "no timer is forgotten"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Wakes(who, None, _) => Err(format!("{who} has no timer")),
            Fact::Wakes(who, Some(after), latest) if after > latest => Err(format!(
                "{who} wakes after {} ms, but has to speak within {}",
                after.as_millis(),
                latest.as_millis()
            )),
            _ => Ok(()),
        }
    }
}
