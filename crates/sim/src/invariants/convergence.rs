//! Once nothing bad happens any more, the group shares out every partition and catches up, within a bounded time.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

pub(super) struct Convergence;

impl Invariant for Convergence {
    fn name(&self) -> &'static str {
        "the group comes to rest"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Unsettled(why) => Err(why.clone()),
            _ => Ok(()),
        }
    }
}
