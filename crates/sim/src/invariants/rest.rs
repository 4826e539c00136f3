//! A group at rest asks little of its brokers and does not rebalance; and at no time does anything spin.

use super::{Invariant, Verdict};
use crate::fact::Fact;
use tontine_group::Instant;

/// What one member may ask for in one second: two fetches of each of three brokers, commits, heartbeats, metadata.
const MOST: f64 = 16.0;

pub(super) struct Rest;

impl Invariant for Rest {
    fn name(&self) -> &'static str {
        "a group at rest is quiet"
    }

    fn see(&mut self, _at: Instant, fact: &Fact) -> Verdict {
        match fact {
            Fact::Storm(what) => Err(what.clone()),
            Fact::Rested { joins, .. } if *joins > 0 => Err(format!("{joins} joins while nothing happens")),
            Fact::Rested { members, requests, time, .. } => {
                let rate = *requests as f64 / time.as_secs_f64().max(0.001) / (*members).max(1) as f64;
                if rate > MOST {
                    return Err(format!(
                        "each member sends {rate:.1} requests per second while nothing happens"
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
