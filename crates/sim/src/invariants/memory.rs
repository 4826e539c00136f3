//! What is kept for a member at rest is bounded by how many brokers there are, not by what has happened.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

/// Four kinds of requests have a connection of their own to each broker; one more finds the first broker.
const CONNECTIONS: usize = 4;
/// What may come between two polls.
const MOST_UNHEARD: usize = 1_000;

fn most_connections(fact: &Fact) -> usize {
    match fact {
        Fact::Keeps { nodes, .. } => CONNECTIONS * nodes + 1,
        _ => 0,
    }
}

pub(super) struct Memory;

impl Invariant for Memory {
    fn name(&self) -> &'static str {
        "memory is bounded"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Keeps { who, connections, .. } if *connections > most_connections(fact) => {
                Err(format!("{who} has {connections} connections"))
            }
            Fact::Keeps { who, unheard, .. } if *unheard > MOST_UNHEARD => {
                Err(format!("{unheard} things wait for {who} to hear them"))
            }
            _ => Ok(()),
        }
    }
}
