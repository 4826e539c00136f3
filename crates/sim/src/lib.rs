//! Simulates groups of Kafka consumers and an embedded broker in one thread and in virtual time.
//!
//! Everything is drawn from one seed, and the same seed gives the same run. The machines are those of production: only
//! sockets and clocks are replaced. A run has a time of trouble, then nothing bad happens any more and the group has to
//! come to rest; invariants watch all the time.
//!
//! That this crate builds is the proof that wire, group and the state machines of client and broker need no runtime.

mod app;
mod brokers;
mod client;
pub mod fact;
mod holders;
pub mod invariants;
pub mod lie;
mod network;
mod phases;
pub mod random;
pub mod report;
pub mod script;
mod trouble;
pub mod workload;
mod world;

pub use fact::{Fact, Life};
use lie::Lie;
pub use report::{Counts, Failure};
use std::time::Duration;
use tontine_group::Instant;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// Everything that happened.
    pub history: Vec<(Instant, Fact)>,
    /// How often what happened.
    pub counts: Counts,
    /// How long the run took in its own time.
    pub time: Duration,
    /// What did not hold.
    pub failure: Option<Failure>,
}

/// Runs one history.
pub fn run(seed: u64) -> Outcome {
    world::World::new(seed, None).live(seed)
}

/// Runs one history, with requests and answers in its timeline.
pub fn run_verbosely(seed: u64) -> Outcome {
    let mut world = world::World::new(seed, None);
    world.verbose = true;
    world.live(seed)
}

/// Runs one history with brokers that lie.
pub fn run_with_lie(seed: u64, lie: Box<dyn Lie>) -> Outcome {
    world::World::new(seed, Some(lie)).live(seed)
}
