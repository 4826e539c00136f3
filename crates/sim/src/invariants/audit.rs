//! What members themselves write down with `audit.log` proves the same as what was observed from outside: one owner at a time,
//! nothing skipped, no commit after a release. The proof is [`tontine::audit`], the same that `tontine group audit` makes.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

pub(super) struct OwnLogs;

impl Invariant for OwnLogs {
    fn name(&self) -> &'static str {
        "the members' own logs fit together"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Unfit(what) => Err(what.clone()),
            _ => Ok(()),
        }
    }
}
