//! What must hold in every run, one file each. An invariant sees facts, nothing else: it can be shown a history that was
//! made up, which is how it is tested that each of them catches its liar.

mod audit;
mod callbacks;
mod commits;
mod convergence;
mod delivery;
mod durability;
mod loss;
mod memory;
mod positions;
mod replay;
mod rest;
mod single_owner;
mod timers;
mod transactions;

use crate::fact::Fact;
pub(crate) use loss::{add, cut};
use tontine_group::Instant;

/// Whether all is well; otherwise a sentence about what is not.
pub type Verdict = Result<(), String>;

/// Something that must hold.
pub trait Invariant {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Something happened.
    fn see(&mut self, at: Instant, fact: &Fact) -> Verdict;
}

/// All of them.
pub fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(callbacks::Callbacks::default()),
        Box::new(single_owner::SingleOwner::default()),
        Box::new(delivery::Delivery::default()),
        Box::new(commits::Commits::default()),
        Box::new(durability::Durability::default()),
        Box::new(loss::Loss::default()),
        Box::new(convergence::Convergence),
        Box::new(rest::Rest),
        Box::new(audit::OwnLogs),
        Box::new(positions::Positions),
        Box::new(replay::Replay),
        Box::new(memory::Memory),
        Box::new(timers::Timers),
        Box::new(transactions::Transactions::default()),
    ]
}

/// Shows a whole history to all of them: the first complaint, with the name of who has it.
pub fn judge<'a>(
    history: impl IntoIterator<Item = &'a (Instant, Fact)>,
) -> Result<(), (&'static str, String)> {
    let mut all = all();
    for (at, fact) in history {
        for invariant in &mut all {
            invariant.see(*at, fact).map_err(|why| (invariant.name(), why))?;
        }
    }
    Ok(())
}
