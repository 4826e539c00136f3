//! What a coordinator reads from its log is what the one before it had: nothing that matters is kept in memory only.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

pub(super) struct Replay;

impl Invariant for Replay {
    fn name(&self) -> &'static str {
        "the log holds all that the coordinator has"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Replayed { live, read } if live != read => {
                Err(format!("the coordinator had {live}, but its successor read {read}"))
            }
            _ => Ok(()),
        }
    }
}
